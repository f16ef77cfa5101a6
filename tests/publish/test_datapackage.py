"""Every release folder can be described as a data package, which says no more than the release does."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from frictionless import validate

from odkanon import METHODS, Rule, anonymize
from odkanon.publish.datapackage import DESCRIPTOR, FILES, describe_package
from worlds.matrices import golden_od

OPTIONS: dict[str, dict[str, Any]] = {"freezones": {"iterations": 1}, "treecut": {"iterations": 1}}


def described(folder: Path, **more: Any) -> Path:
    """Write the descriptor of a saved release, as saving does."""
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    zones = json.loads((folder / "zones.geojson").read_text(encoding="utf-8"))["features"]
    files = {
        path.name: (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
        if path.name in FILES
    }
    columns = pyarrow.parquet.read_schema(folder / "classes.parquet").names
    package = describe_package(folder.name, about | more, columns=columns, zones=zones, files=files)
    (folder / DESCRIPTOR).write_text(json.dumps(package), encoding="utf-8")
    return folder / DESCRIPTOR


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_valid_package(method: str, tmp_path: Path) -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=5), method=method, **OPTIONS.get(method, {}))
    descriptor = described(release.save(tmp_path / "A Town, 2024"))
    report = validate(str(descriptor))
    assert report.valid, report.flatten(["title", "note"])
    told = json.loads(descriptor.read_text(encoding="utf-8"))
    assert told["name"] == "a-town-2024"
    assert told["method"]["title"] == METHODS[method].title
    west, south, east, north = told["spatial"]["bbox"]
    assert 2.2 < west < 2.35 < east < 2.5
    assert 48.8 < south < 48.85 < north < 48.9


def test_whoever_validates_checks_the_promise(tmp_path: Path) -> None:
    folder = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    classes = folder / "classes.csv"
    head, first, *rest = classes.read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    classes.write_text("\n".join([head, ",".join([*cells[:2], "4", *cells[3:]]), *rest]) + "\n", encoding="utf-8")
    report = validate(str(described(folder)))
    assert [title for (title,) in report.flatten(["title"])] == ["Constraint Error"]


def test_a_changed_file_is_found_out(tmp_path: Path) -> None:
    folder = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    descriptor = described(folder)
    (folder / "classes.parquet").write_bytes(b"PAR1")
    assert not validate(str(descriptor)).valid


def test_nothing_but_the_promise_goes_in(tmp_path: Path) -> None:
    """Whatever else a manifest holds, now or later, stays where it is."""
    folder = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    plain = described(folder).read_bytes()
    secrets = {"input": {"trips": "SECRET"}, "suppressed": "SECRET", "parameters": {"x": "SECRET"}, "recipe": "SECRET"}
    assert described(folder, **secrets).read_bytes() == plain
    assert b"SECRET" not in plain
