"""Releases in a catalogue: read by an RDF library, with what portals ask of each entry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rdflib")

from rdflib import DCAT, DCTERMS, FOAF, RDF, Graph, Namespace

from odkanon import InputError, Rule
from odkanon.methods.method_registry import anonymize
from odkanon.publish.dcat import Publisher, describe_catalogue
from worlds.matrices import golden_od

MOBILITY = Namespace("https://w3id.org/mobilitydcat-ap#")
WHO = ("A city", "https://data.example.org/", "https://example.org/by", "FRA", "2026-11-15")
ASKED = {
    DCAT.Catalog: (
        DCAT.dataset,
        DCAT.record,
        DCTERMS.description,
        DCTERMS.publisher,
        DCTERMS.spatial,
        DCTERMS.title,
        FOAF.homepage,
    ),
    DCAT.Dataset: (
        DCAT.distribution,
        DCTERMS.accrualPeriodicity,
        DCTERMS.description,
        DCTERMS.publisher,
        DCTERMS.spatial,
        DCTERMS.title,
        MOBILITY.mobilityTheme,
    ),
    DCAT.Distribution: (DCAT.accessURL, DCTERMS.format, DCTERMS.rights, MOBILITY.mobilityDataStandard),
    DCAT.CatalogRecord: (DCTERMS.created, DCTERMS.language, DCTERMS.modified, FOAF.primaryTopic),
    FOAF.Agent: (FOAF.name,),
}
"""What the profile calls mandatory of each class."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("releases")
    release = anonymize(golden_od("tiny"), Rule(trips=5))
    return [release.save(place / name) for name in ("january", "a month, later")]


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")
def test_portals_find_what_they_ask_for(folders: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "catalogue.jsonld"
    options = zip(("publisher", "homepage", "licence", "country", "date"), WHO, strict=True)
    command = [sys.executable, "-m", "odkanon", "export", *map(str, folders), "--to", "dcat", "-o", str(target)]
    subprocess.run([*command, *(part for name, value in options for part in (f"--{name}", value))], check=True)
    graph = Graph().parse(target, format="json-ld")
    for kind, properties in ASKED.items():
        found = list(graph.subjects(RDF.type, kind))
        assert found, kind
        assert [(one, what) for one in found for what in properties if (one, what, None) not in graph] == []
    assert {str(one) for one in graph.subjects(RDF.type, DCAT.Dataset)} == {
        "https://data.example.org/january",
        "https://data.example.org/a%20month%2C%20later",
    }


def test_nothing_but_the_package_and_the_publisher_goes_in(folders: list[Path]) -> None:
    made = describe_catalogue(folders[:1], Publisher(*WHO))
    package = json.loads((folders[0] / "datapackage.json").read_text(encoding="utf-8"))
    (dataset,) = made["dcat:dataset"]
    assert dataset["dct:description"] == package["description"]
    assert [each["dct:title"] for each in dataset["dcat:distribution"]] == [
        each["title"] for each in package["resources"]
    ]


@pytest.mark.parametrize(
    ("who", "why"),
    [
        (("A", "data.example.org", *WHO[2:]), "homepage"),
        ((*WHO[:2], "CC-BY", *WHO[3:]), "licence"),
        ((*WHO[:3], "France", WHO[4]), "three capital letters"),
        ((*WHO[:4], "15.11.2026"), "2026-11-15"),
    ],
)
def test_what_a_portal_would_not_understand_is_refused(who: tuple[str, str, str, str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Publisher(*who)


def test_folders_that_are_no_releases(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no datapackage\.json"):
        describe_catalogue([tmp_path], Publisher(*WHO))
    (tmp_path / "datapackage.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        describe_catalogue([tmp_path], Publisher(*WHO))
    with pytest.raises(InputError, match="different names"):
        describe_catalogue([folders[0], folders[0]], Publisher(*WHO))
