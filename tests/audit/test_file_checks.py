"""The files of a release against each other, each comparison by itself, in folders made by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from odkanon.audit.file_checks import check_files, check_index
from odkanon.audit.findings import Finding
from odkanon.audit.release_reader import PublishedRelease
from odkanon.release_format.recipe import FORMAT

RULE, SAFE = {"trips": 10}, "Nobody is alone."
ABOUT = {"method": "odkanon", "rule": RULE, "published": {"trips": 30}, "statement": SAFE}
FLOWS = [("A", "B", 20, 20.5), ("B", "A", 10, 10.0)]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Folder:
    """A release of two flows that is as it should be, until it is changed."""

    def __init__(self, path: Path) -> None:
        self.path = path / "release"
        self.path.mkdir()
        self.manifest: dict[str, Any] = dict(ABOUT)
        self.provenance: dict[str, Any] | None = dict(ABOUT)
        self.recipe: dict[str, Any] = {"about": self.provenance}
        names = ("origin", "destination", "trips", "weight")
        table = pa.table(dict(zip(names, zip(*FLOWS, strict=True), strict=True)))
        pyarrow.parquet.write_table(table, self.path / "classes.parquet")
        self.write(names, *FLOWS)
        (self.path / "zones.geojson").write_text("{}")
        (self.path / "release.json").write_text("{}")
        self.manifest["files"] = {
            name: digest(self.path / name) for name in ("classes.csv", "classes.parquet", "zones.geojson")
        }

    def write(self, *lines: tuple[Any, ...]) -> None:
        (self.path / "classes.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))

    def found(self) -> Iterator[Finding]:
        """Return what is found; there is another release beside it."""
        connection = duckdb.connect()
        connection.execute(
            "CREATE TABLE classes (release INTEGER, origin VARCHAR, destination VARCHAR, attributes VARCHAR, "
            "trips BIGINT, weight DOUBLE)"
        )
        connection.executemany("INSERT INTO classes VALUES (3, ?, ?, '', ?, ?)", FLOWS)
        connection.execute("INSERT INTO classes VALUES (4, 'C', 'C', '', 1, 1)")
        measures = ("trips", "weight")
        return check_files(
            connection, PublishedRelease(3, "r", self.path, self.manifest, self.provenance, self.recipe, {}, measures)
        )

    def findings(self) -> list[tuple[str, str]]:
        """Return what is found, and how bad it is."""
        return [(each.message, each.severity) for each in self.found()]

    def said(self) -> list[str]:
        """Return what is found, without notes."""
        return [message for message, severity in self.findings() if severity == "finding"]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_an_intact_release(folder: Folder) -> None:
    assert folder.findings() == []


@pytest.mark.parametrize("wrong", ["0" * 64, "f" * 64])
@pytest.mark.parametrize("name", ["classes.csv", "classes.parquet", "zones.geojson"])
def test_digests_in_the_folder_and_in_the_recipe(folder: Folder, name: str, wrong: str) -> None:
    told = [(f"{name} was changed after it was written: its sha256 is another one", "finding")]
    right = folder.manifest["files"]
    folder.manifest["files"] = {**right, name: wrong}
    assert folder.findings() == told
    folder.manifest["files"] = {}
    folder.provenance = {**ABOUT, "files": {name: wrong}}
    assert folder.findings() == told
    folder.manifest["files"] = right  # what everybody reads comes first
    assert folder.findings() == []
    folder.manifest["files"] = {}
    folder.recipe = {}
    assert folder.findings() == []


def test_the_page_alone_may_be_made_anew(folder: Folder) -> None:
    (folder.path / "report.html").write_text("<p>")
    folder.manifest["files"]["report.html"] = "0" * 64
    ((message, severity),) = folder.findings()
    assert (message.partition(" ")[0], severity) == ("report.html", "note")


def test_files_that_are_missing_and_that_should_not_be_there(folder: Folder) -> None:
    folder.manifest["files"]["report.html"] = "0" * 64
    assert folder.said() == ["report.html is listed in release.json but missing"]
    (folder.path / "notes.txt").write_text("")
    (folder.path / "report.html").mkdir()
    assert folder.said() == [
        "notes.txt is no part of a release, and would be published with it; move it away",
        "report.html is no part of a release, and would be published with it; move it away",
        "report.html is listed in release.json but missing",
    ]


def test_missing_digests_and_recipes_are_notes(folder: Folder) -> None:
    del folder.manifest["files"]
    (found,) = folder.findings()
    assert found == ("release.json lists no digests, so edits of single files cannot be detected", "note")
    folder.provenance, folder.recipe = None, {}
    _, (message, severity) = folder.findings()
    assert message.startswith("there is no recipe beside it")
    assert severity == "note"


def test_the_manifest_is_compared_with_the_recipe_or_with_the_index(folder: Folder) -> None:
    beside, index = folder.path.with_name("release.recipe.json"), folder.path.with_name("index.json")
    own = digest(folder.path / "release.json")
    changed = "release.json was changed after it was written: {} has another sha256"
    folder.recipe["public_sha256"] = "0" * 64
    assert folder.said() == [changed.format("the recipe")]
    index.write_text(json.dumps({"files": {"release/release.json": own}}))
    assert folder.said() == []
    beside.write_text("{}")
    assert folder.said() == [changed.format("the recipe")]
    folder.recipe["public_sha256"] = own
    index.write_text(json.dumps({"files": {"release/release.json": "0" * 64}}))
    assert folder.said() == []
    beside.unlink()
    assert folder.said() == [changed.format("index.json")]
    index.write_text("{}")
    assert folder.said() == []


def test_the_index_is_compared_with_its_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / "index.json").write_text("{}")
    assert check_index(folder) == []
    for told, found in ((None, 0), (digest(folder / "index.json"), 0), ("0" * 64, 1), ("f" * 64, 1)):
        recipe = {"format": FORMAT, "public_sha256": told}
        (tmp_path / "both.recipe.json").write_text(json.dumps(recipe))
        assert len(check_index(folder)) == found


def test_columns_that_no_release_has(folder: Folder) -> None:
    table = pyarrow.parquet.read_table(folder.path / "classes.parquet")
    pyarrow.parquet.write_table(
        table.append_column("who", pa.array(["x", "y"])).append_column("mode", pa.array(["x", "y"])),
        folder.path / "classes.parquet",
    )
    del folder.manifest["files"]["classes.parquet"]
    assert folder.said() == ["classes.parquet has the columns who, mode, which are no part of a release"]


@pytest.mark.parametrize(
    ("part", "public", "private", "said"),
    [
        ("method", "odkanon", "oigh", "method"),
        ("method", "oigh", "odkanon", "method"),
        ("method", None, "odkanon", None),
        ("method", "odkanon", None, None),
        ("statement", SAFE, SAFE.upper(), "statement"),
        ("published", {"trips": 30}, {"trips": 31}, "published, trips"),
        ("published", {"trips": 30}, {"trips": 30, "weight": 7}, None),
        ("published", {"trips": 30, "weight": 7}, {"trips": 30}, None),
        ("published", {"weight": 12.3}, {"weight": 12.34}, "published, weight"),
        ("published", {"weight": 50.0}, {"weight": 70.0, "weight_told": 50.0}, "published, weight"),
        ("published", {"trips": 30}, "thirty", "published"),
        ("published", "thirty", {"trips": 30}, "published"),
        ("rule", {"trips": 10}, {"trips": 11}, "rule, trips"),
        ("rule", {"trips": 10}, {"trips": 10, "persons": 10}, "rule, persons"),
        ("rule", {"trips": 10, "persons": 10}, {"trips": 10}, "rule, persons"),
        ("rule", {"trips": 10}, {"trips": 10, "max_share": 0.5}, "rule, max_share"),
        ("rule", {"trips": 10}, {"trips": 10, "mean_weight": 2.5}, None),
        ("rule", {"trips": 10, "k": 10}, {"trips": 10}, None),
        ("rule", {"k": 10}, {"k": 11}, "rule, k"),
        ("rule", {"weight": 12.3}, {"weight": 12.3}, None),
        ("rule", {"weight": 12.345}, {"weight": 12.345}, None),
        # From the data: three digits, rounded down.
        ("rule", {"weight": 12.3}, {"weight": 12.34}, None),
        ("rule", {"weight": 12.4}, {"weight": 12.34}, "rule, weight"),
        ("rule", {"weight": 12.335}, {"weight": 12.34}, "rule, weight"),
        ("rule", {"weight": 1.0}, {"weight": 1.012}, "rule, weight"),
        ("rule", {"weight": 12}, {"weight": 12.05}, "rule, weight"),
        ("rule", {"weight": 12.0}, {"weight": 13}, "rule, weight"),
        ("rule", {"weight": 50.0}, {"weight": 70.0, "weight_told": 50.0}, None),
        ("rule", {"weight": 70.0}, {"weight": 70.0, "weight_told": 50.0}, "rule, weight"),
    ],
)
def test_manifest_and_recipe_agree(
    folder: Folder, part: str, public: object, private: object, said: str | None
) -> None:
    folder.manifest[part] = public
    folder.provenance = {**ABOUT, part: private}
    expected = [] if said is None else [f"release.json and the recipe disagree on {said}"]
    assert folder.said() == expected
    folder.recipe = {}
    assert folder.said() == []


NAMES = ("origin", "destination", "trips", "weight")
BEGINS = "classes.csv does not begin with the columns origin, destination, trips, weight"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [("A", "B", 20, 20.5)],
        [("aorigin", "destination", "trips", "weight"), *FLOWS],
        [("zorigin", "destination", "trips", "weight"), *FLOWS],
        [("origin", "destination", "trips"), *FLOWS],
        [("x" * 200_000, "destination"), *FLOWS],
        [('"origin', "x" * 200_000), *FLOWS],
    ],
)
def test_a_table_that_begins_otherwise(folder: Folder, lines: list[tuple[Any, ...]]) -> None:
    """A line longer than the reader of such files likes ended in a traceback."""
    del folder.manifest["files"]["classes.csv"]
    folder.write(*lines)
    assert folder.said() == [BEGINS]


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([("'A", "B", 20, 20.5), FLOWS[1]], None),
        ([FLOWS[1], FLOWS[0]], None),
        ([("A", "B", 20, 20.5 + 1e-9), FLOWS[1]], None),
        (
            [("A", "B", 19, 20.5), FLOWS[1]],
            "classes.csv and classes.parquet disagree; A -> B has 19 trips in the one, 20 in the other",
        ),
        (
            [("A", "B", "x", 20.5), FLOWS[1]],
            "classes.csv and classes.parquet disagree; A -> B has x trips in the one, 20 in the other",
        ),
        (
            [FLOWS[0], ("B", "A", 10, 10.1)],
            "classes.csv and classes.parquet disagree; B -> A has 10 trips in the one, 10 in the other",
        ),
        (
            [FLOWS[0]],
            "classes.csv has 1 flows and classes.parquet 2: one was cut short or added to; B -> A has no trips in the "
            "one, 10 in the other",
        ),
        (
            [*FLOWS, ("C", "A", 7, 7.0)],
            "classes.csv has 3 flows and classes.parquet 2: one was cut short or added to; C -> A has 7 trips in the "
            "one, no in the other",
        ),
        ([*FLOWS, FLOWS[0]], "classes.csv has 3 flows and classes.parquet 2: one was cut short or added to"),
    ],
)
def test_both_tables_have_the_same_flows(folder: Folder, flows: list[tuple[Any, ...]], said: str | None) -> None:
    del folder.manifest["files"]["classes.csv"]
    folder.write(NAMES, *flows)
    assert folder.said() == ([] if said is None else [said])


def test_the_flows_that_differ_are_listed(folder: Folder) -> None:
    del folder.manifest["files"]["classes.csv"]
    folder.write(NAMES, ("A", "B", 19, 20.5), ("B", "A", 9, 10.0))
    (found,) = folder.found()
    assert found.details == ({"origin": "A", "destination": "B"}, {"origin": "B", "destination": "A"})
    assert (found.check, found.releases) == ("files", ("r",))
