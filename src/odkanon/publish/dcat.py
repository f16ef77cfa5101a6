"""Releases as catalogue entries, in the vocabulary of European mobility data portals.

An entry consists of the ``datapackage.json`` of a release and of what only the publisher knows: who and where.

References
----------
mobilityDCAT-AP 1.1, https://w3id.org/mobilitydcat-ap
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from odkanon.core.parsing import parse_json
from odkanon.errors import DamagedReleaseError, InputError, InvalidValueError
from odkanon.release_format.names import PACKAGE

CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "mobilitydcatap": "https://w3id.org/mobilitydcat-ap#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_EUROPE = "http://publications.europa.eu/resource/authority"
_FORMATS = {"csv": "CSV", "parquet": "PARQUET", "geojson": "GEOJSON", "json": "JSON"}
_THEME = "https://w3id.org/mobilitydcat-ap/mobility-theme/general-information-for-trip-planning"
_RIGHTS = "https://w3id.org/mobilitydcat-ap/conditions-for-access-and-usage/licence-provided"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Publisher:
    """The publisher of a catalogue of releases.

    Attributes
    ----------
    name : str
        Name of the publisher.
    homepage : str
        URL of the catalogue; a release NAME is published at ``homepage/NAME``.
    licence : str
        URL of the licence of the data.
    country : str
        ISO 3166-1 alpha-3 code, such as ``FRA``.
    day : str
        Date of the entries, such as ``2026-11-15``.
    """

    name: str
    homepage: str
    licence: str
    country: str
    day: str

    def __post_init__(self) -> None:
        for which in ("homepage", "licence"):
            address = urlsplit(getattr(self, which))
            if address.scheme not in ("http", "https") or not address.netloc:
                raise InvalidValueError.expected(
                    f"the {which} of a catalogue", "a URL such as https://...", address.geturl()
                )
        if not re.fullmatch("[A-Z]{3}", self.country):
            raise InvalidValueError.expected("a country", "three capital letters, such as FRA", self.country)
        if not _DAY.match(self.day):
            raise InvalidValueError.expected("a day", "a date such as 2026-11-15", self.day)


def describe_catalogue(folders: Sequence[Path | str], publisher: Publisher) -> dict[str, Any]:
    """Describe releases as a catalogue in JSON-LD.

    Parameters
    ----------
    folders : sequence of path
        Saved releases with different names.
    publisher : Publisher
        Who publishes them, and where.

    Returns
    -------
    dict
        A ``dcat:Catalog`` with a dataset, its files and a record for each release.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> who = Publisher("A city", "https://data.example.org", "https://example.org/by", "FRA", "2026-11-15")
    >>> with TemporaryDirectory() as folder:
    ...     made = describe_catalogue([release.save(Path(folder) / "survey")], who)
    >>> made["dcat:dataset"][0]["@id"]
    'https://data.example.org/survey'
    """
    names = [Path(folder).resolve().name for folder in folders]
    if not folders or len(set(names)) < len(names):
        raise InputError("give at least one release, and releases with different names: these become their URLs")
    packages = [_package(Path(folder)) for folder in folders]
    home = publisher.homepage.rstrip("/")
    addresses = [f"{home}/{quote(name)}" for name in names]
    agent = {"@id": f"{home}#publisher", "@type": "foaf:Agent", "foaf:name": publisher.name}
    country = {"@type": "dct:Location", "dct:identifier": {"@id": f"{_EUROPE}/country/{publisher.country}"}}
    datasets = [_dataset(*each, publisher, agent) for each in zip(addresses, packages, strict=True)]
    return {
        "@context": CONTEXT,
        "@id": home,
        "@type": "dcat:Catalog",
        "dct:title": f"Origin-destination matrices of {publisher.name}",
        "dct:description": "Flows between zones, each shared by as many as its release promises.",
        "foaf:homepage": {"@id": publisher.homepage},
        "dct:publisher": agent,
        "dct:spatial": country,
        "dcat:dataset": datasets,
        "dcat:record": [_record(address, publisher.day) for address in addresses],
    }


def _package(folder: Path) -> dict[str, Any]:
    path = folder / PACKAGE
    try:
        package = parse_json(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{folder} has no {PACKAGE}; give the folder of a release") from None
    except ValueError:
        package = None
    if not isinstance(package, dict) or not {"title", "description", "resources"} <= package.keys():
        raise DamagedReleaseError.because(path, "is not a data package")
    return package


def _dataset(
    address: str, package: Mapping[str, Any], publisher: Publisher, agent: Mapping[str, Any]
) -> dict[str, Any]:
    box = package.get("spatial", {}).get("bbox")
    extent = {} if box is None else {"dct:spatial": {"@type": "dct:Location", "dcat:bbox": _box(box)}}
    return {
        "@id": address,
        "@type": "dcat:Dataset",
        "dct:title": package["title"],
        "dct:description": package["description"],
        "dcat:keyword": package.get("keywords", []),
        "dct:publisher": {"@id": agent["@id"]},
        "dct:accrualPeriodicity": {"@id": f"{_EUROPE}/frequency/UNKNOWN"},
        "mobilitydcatap:mobilityTheme": {"@id": _THEME},
        **extent,
        "dcat:distribution": [_distribution(address, file, publisher.licence) for file in package["resources"]],
    }


def _box(box: Sequence[float]) -> dict[str, str]:
    west, south, east, north = box
    ring = ", ".join(f"{x} {y}" for x, y in ((west, south), (east, south), (east, north), (west, north), (west, south)))
    return {"@type": "http://www.opengis.net/ont/geosparql#wktLiteral", "@value": f"POLYGON(({ring}))"}


def _distribution(address: str, file: Mapping[str, Any], licence: str) -> dict[str, Any]:
    where = {"@id": f"{address}/{file['path']}"}
    return {
        "@id": where["@id"],
        "@type": "dcat:Distribution",
        "dct:title": file["title"],
        "dcat:accessURL": where,
        "dcat:downloadURL": where,
        "dct:format": {"@id": f"{_EUROPE}/file-type/{_FORMATS[file['format']]}"},
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(file["bytes"])},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": file["hash"].removeprefix("sha256:")},
        },
        "dct:license": {"@id": licence},
        "dct:rights": {"@type": "dct:RightsStatement", "dct:type": {"@id": _RIGHTS}},
        "mobilitydcatap:mobilityDataStandard": {
            "@type": "mobilitydcatap:MobilityDataStandard",
            "dct:conformsTo": {"@id": "https://datapackage.org/standard/data-package/"},
        },
    }


def _record(address: str, day: str) -> dict[str, Any]:
    date = {"@type": "xsd:date", "@value": day}
    return {
        "@id": f"{address}#record",
        "@type": "dcat:CatalogRecord",
        "foaf:primaryTopic": {"@id": address},
        "dct:created": date,
        "dct:modified": date,
        "dct:language": {"@id": f"{_EUROPE}/language/ENG"},
    }
