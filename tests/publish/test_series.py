"""Releases side by side: changes of flows that both list, and nothing where the numbers do not go together."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("h5py")
pytest.importorskip("openmatrix")
pytest.importorskip("pyogrio")
pytest.importorskip("shapely")

import h5py
import numpy as np

from cli.here import run
from odkanon import InputError, Release, Rule, anonymize, export_release, open_release
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.publish.release_series import make_series, write_series
from worlds.matrices import golden_od, town


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("months")
    first = anonymize(town(1), Rule(trips=5), method="odkanon")
    zones = zoning_of(first)
    releases: dict[str, Release] = {"january": first}
    releases |= {
        name: release_on_zones(town(seed, trips=trips), Rule(trips=5), zones)
        for name, seed, trips in (("february", 2, 1500), ("march", 3, 700))
    }
    return [release.save(folder / name) for name, release in releases.items()]


def test_changes_are_those_of_flows_that_both_list(months: list[Path], tmp_path: Path) -> None:
    assert run("series", *months, "-o", tmp_path / "spring") == 0
    flows = [
        {(row["origin"], row["destination"]): row["trips"] for row in open_release(path).table.to_pylist()}
        for path in months
    ]
    with (tmp_path / "spring" / "changes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["origin"], row["destination"]) for row in rows} == set().union(*flows)
    changed = 0
    for row in rows:
        flow = row["origin"], row["destination"]
        for before, after, name in zip(flows, flows[1:], ("february", "march"), strict=False):
            both = flow in before and flow in after
            assert row[f"change {name}"] == (str(after[flow] - before[flow]) if both else "")
            changed += both and after[flow] != before[flow]
    assert changed > 0
    assert (tmp_path / "spring" / "report.html").is_file() or len(list((tmp_path / "spring").iterdir())) == 1
    series = make_series([open_release(path) for path in months])
    assert series.common_flows == len(set.intersection(*map(set, flows)))
    assert series.total("march") == sum(flows[2].values())


def test_two_months_on_the_same_zones_are_matrices_of_one_shape(months: list[Path], tmp_path: Path) -> None:
    shapes, names = [], []
    for path in months:
        export_release(path, "omx", tmp_path / f"{path.name}.omx", zones=[months[0]])
        with h5py.File(tmp_path / f"{path.name}.omx") as file:
            shapes.append(tuple(file.attrs["SHAPE"]))
            names.append(np.array(next(iter(file["lookup"].values()))).tolist())
            assert np.array(file["data/trips"]).sum() == sum(open_release(path).table.column("trips").to_pylist())
    assert len(set(shapes)) == 1
    assert names[0] == names[1] == names[2]


def test_what_cannot_be_compared(months: list[Path], tmp_path: Path) -> None:
    cascade = anonymize(golden_od("tiny"), Rule(trips=5), method="cascade").save(tmp_path / "cascade")
    boxes = anonymize(golden_od("turin-3k"), Rule(trips=50), method="mondrian").save(tmp_path / "boxes")
    elsewhere = anonymize(golden_od("tiny"), Rule(trips=5), method="odkanon").save(tmp_path / "elsewhere")
    for folders, said in (
        ([months[0]], "two releases or more"),
        ([months[0], months[0]], "different names"),
        ([months[0], cascade], "no finer row"),
        ([months[0], boxes], "boxes"),
        ([months[0], elsewhere], "no flow in common"),
    ):
        with pytest.raises(InputError, match=said):
            write_series(folders, tmp_path / "series")
    assert not (tmp_path / "series").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not part of a series"):
        write_series(months, tmp_path / "mine", force=True)
