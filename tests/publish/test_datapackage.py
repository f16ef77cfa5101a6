"""Every release folder is a data package, whose description says no more than the release does."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("frictionless")

from frictionless import validate

from odkanon import METHODS, Rule
from odkanon.methods.method_registry import anonymize, counting_methods
from odkanon.release_format.datapackage import describe_package
from odkanon.release_format.names import PACKAGE
from worlds.matrices import golden_od

OPTIONS: dict[str, dict[str, Any]] = {"freezones": {"iterations": 1}, "treecut": {"iterations": 1}}


@pytest.mark.parametrize("method", counting_methods())
def test_every_method_gives_a_valid_package(method: str, tmp_path: Path) -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=5), method=method, **OPTIONS.get(method, {}))
    descriptor = release.save(tmp_path / "A Town, 2024") / PACKAGE
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
    classes, descriptor = folder / "classes.csv", folder / PACKAGE
    head, first, *rest = classes.read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    classes.write_text("\n".join([head, ",".join([*cells[:2], "4", *cells[3:]]), *rest]) + "\n", encoding="utf-8")
    about = json.loads(descriptor.read_text(encoding="utf-8"))
    (flows,) = (each for each in about["resources"] if each["path"] == "classes.csv")
    flows |= {"bytes": classes.stat().st_size, "hash": f"sha256:{hashlib.sha256(classes.read_bytes()).hexdigest()}"}
    descriptor.write_text(json.dumps(about), encoding="utf-8")
    assert [title for (title,) in validate(str(descriptor)).flatten(["title"])] == ["Constraint Error"]


def test_a_changed_file_is_found_out(tmp_path: Path) -> None:
    folder = anonymize(golden_od("tiny"), Rule(trips=5)).save(tmp_path / "release")
    (folder / "classes.parquet").write_bytes(b"PAR1")
    assert not validate(str(folder / PACKAGE)).valid


def test_nothing_but_the_promise_goes_in() -> None:
    """Whatever else a manifest holds, now or later, stays where it is."""
    about = {"method": "oigh", "rule": {"trips": 5}, "statement": "Five share."}
    secrets = {"input": {"trips": "SECRET"}, "suppressed": "SECRET", "parameters": {"x": "SECRET"}, "recipe": "SECRET"}

    def described(manifest: dict[str, Any]) -> dict[str, Any]:
        columns = ["origin", "destination", "trips"]
        return describe_package("a", manifest, method={}, columns=columns, zones=[], files={})

    assert described(about | secrets) == described(about)
