"""``odkanon correct``: the program does what the definition says, and refuses where no safe way is known."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pytest

from odkanon import InputError, InputSpec, RefusedError, anonymize, audit_releases, correct, open_release
from odkanon.read.od_table import spec_to_matrix

K = 4
CELLS = sorted(h3.cell_to_children("861fb4667ffffff", 7))[:3]
SPANISH = ("persona", "hora", "lat_o", "lon_o", "lat_d", "lon_d", "factor")
OURS = ("person", "start_time", "start_lat", "start_lon", "end_lat", "end_lon", "weight")
COLUMNS = dict(zip(OURS, SPANISH, strict=True))
Trip = tuple[str, int, int, int]
"""A person, an origin, a destination, and a minute."""


def write(trips: Sequence[Trip], path: Path) -> Path:
    """Write trips as a spreadsheet in Chile saves them."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(SPANISH)
        for person, start, end, minute in trips:
            places = [f"{each:.6f}".replace(".", ",") for at in (start, end) for each in h3.cell_to_latlng(CELLS[at])]
            rows.writerow([person, f"2024-01-01 {minute // 60:02}:{minute % 60:02}:00", *places, "1,5"])
    return path


def story(seed: int) -> tuple[list[Trip], list[Trip]]:
    """Trips of a month as they were published, and as they are after a correction."""
    random = np.random.default_rng(seed)
    old, new = [], []
    for pair in range(9):
        stay, gone, come = (int(random.choice([0, 2, 5, 9])) for _ in range(3))
        people = [f"p{pair}-{number}" for number in range(stay + gone + come)]
        people = [each if random.random() > 0.2 else people[0] for each in people]
        trips = [(each, pair // 3, pair % 3, minute) for minute, each in enumerate(people)]
        old += trips[: stay + gone]
        new += trips[gone:]
    return old, new


def by_definition(old: Sequence[Trip], new: Sequence[Trip], listed: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Count flow by flow; the same trip has the same person and the same places."""

    def meets(trips: Counter[str]) -> bool:
        return trips.total() >= K and len(trips) >= K

    flows = {}
    for pair in range(9):
        ends = CELLS[pair // 3], CELLS[pair % 3]
        before, after = (Counter(trip[0] for trip in trips if trip[1] * 3 + trip[2] == pair) for trips in (old, new))
        stay, gone, come = before & after, before - after, after - before
        take = ends in listed and meets(gone) and (not stay or meets(stay))
        count = (before - gone if take else before).total() if ends in listed else 0
        flows[ends] = count + (come.total() if meets(come) else 0)
    return {ends: count for ends, count in flows.items() if count}


def flows_of(folder: Path) -> dict[tuple[str, str], int]:
    table = open_release(folder).table
    columns = (table.column(name).to_pylist() for name in ("origin", "destination", "trips"))
    return {(origin, destination): trips for origin, destination, trips in zip(*columns, strict=True)}


def release(path: Path, folder: Path, **options: Any) -> Path:
    spec = InputSpec(path, columns=COLUMNS, resolution=7)
    rule: Any = {"min_trips": K, "min_persons": K}
    saved: Path = anonymize(spec, **rule, **options).save(folder)
    return saved


LEVEL: dict[str, Any] = {"method": "oigh", "at_level": "7", "budget": 0.9}


@pytest.mark.parametrize("seed", range(4))
def test_the_program_does_what_the_definition_says(seed: int, tmp_path: Path) -> None:
    old, new = story(seed)
    published = release(write(old, tmp_path / "old.csv"), tmp_path / "may", **LEVEL)
    before = flows_of(published)
    expected = by_definition(old, new, set(before))
    corrected_file = write(new, tmp_path / "new.csv")
    if expected == before:
        with pytest.raises(RefusedError, match="no flow can be corrected"):
            correct(published, corrected_file, tmp_path / "may-2")
        return
    made = correct(published, corrected_file, tmp_path / "may-2", late=tmp_path / "late.csv")
    assert flows_of(tmp_path / "may-2") == expected
    assert "persons" not in open_release(tmp_path / "may-2").table.column_names
    assert "It corrects may" in open_release(tmp_path / "may-2").manifest["statement"]
    late = InputSpec(tmp_path / "late.csv", columns=COLUMNS, resolution=7)
    with (tmp_path / "late.csv").open() as file:
        assert len(list(csv.DictReader(file, delimiter=";"))) == made.not_added
    assert late.open().columns == SPANISH
    assert made.added - made.removed == sum(expected.values()) - sum(before.values())
    report = audit_releases([tmp_path])
    assert report.clean, report.findings
    assert any("one corrects the other" in each.message for each in report.findings)


@pytest.fixture
def cascade(tmp_path: Path) -> tuple[Path, list[Trip]]:
    old = [(f"p{at}", at % 3, at // 3 % 3, at) for at in range(90)]
    return release(write(old, tmp_path / "old.csv"), tmp_path / "may", method="cascade"), old


def test_trips_added_to_a_cascade_are_a_release_of_their_own(cascade: tuple[Path, list[Trip]], tmp_path: Path) -> None:
    published, old = cascade
    more = [(f"q{at}", at % 3, at % 2, at) for at in range(40)]
    made = correct(published, write([*old, *more], tmp_path / "new.csv"), tmp_path / "added")
    assert (made.supplement, made.added, made.removed) == (True, 40, 0)
    alone = InputSpec(write(more, tmp_path / "more.csv"), columns=COLUMNS, resolution=7)
    same = anonymize(alone, min_trips=K, min_persons=K, method="cascade", zones_of=published)
    assert flows_of(tmp_path / "added") == flows_of(same.save(tmp_path / "elsewhere" / "same"))
    assert set(flows_of(tmp_path / "added")) <= set(flows_of(published))
    assert "It adds trips to may" in open_release(tmp_path / "added").manifest["statement"]
    report = audit_releases([tmp_path])
    assert report.clean, report.findings


def test_a_release_is_corrected_once(cascade: tuple[Path, list[Trip]], tmp_path: Path) -> None:
    """The trips of a second correction are partly those of the first: the two can be subtracted."""
    published, old = cascade
    more = [(f"q{at}", at % 3, at % 2, at) for at in range(40)]
    first, second = (write([*old, *more[:many]], tmp_path / f"{many}.csv") for many in (30, 40))
    correct(published, first, tmp_path / "added")
    assert correct(published, first, tmp_path / "the-same").added == 30
    assert flows_of(tmp_path / "added") == flows_of(tmp_path / "the-same")
    with pytest.raises(RefusedError, match=r"was corrected before.*may.corrected.json"):
        correct(published, second, tmp_path / "more")
    with pytest.raises(RefusedError, match="it corrects another release already"):
        correct(tmp_path / "added", second, tmp_path / "more")
    assert not [*tmp_path.glob("more*")]
    # What came since can be read with the next period, each trip once, and not alone.
    assert correct(published, second, late=tmp_path / "late.csv").not_added == 10
    late = InputSpec(tmp_path / "late.csv", columns=COLUMNS, resolution=7)
    with pytest.raises(RefusedError, match="could not add: alone"):
        anonymize(late, min_trips=1)
    third = write([*old[5:], *more, *more[:1], ("r", 0, 0, 0)], tmp_path / "third.csv")
    assert correct(published, third, late=tmp_path / "later.csv").not_added == 1
    both = replace(late, source=[tmp_path / "late.csv", tmp_path / "later.csv", tmp_path / "old.csv"])
    assert spec_to_matrix(both).trips == 10 + 1 + 90
    (tmp_path / "may.corrected.json").unlink()
    assert correct(published, second, tmp_path / "more").added == 40


def test_late_trips_are_written_whatever_cannot_be_corrected(cascade: tuple[Path, list[Trip]], tmp_path: Path) -> None:
    """Also of a cube; in a file of their own they are published once, there or in a correction."""
    published, old = cascade
    new = write([*old[10:], ("q", 0, 1, 5)], tmp_path / "new.csv")
    hourly = release(tmp_path / "old.csv", tmp_path / "hourly", by=["hour:0-6,6-24"])
    for folder in (published, hourly):
        made = correct(folder, new, late=tmp_path / f"{folder.name}.csv")
        assert (made.release, made.not_added, made.not_removed) == (None, 1, 10)
    with pytest.raises(RefusedError, match=r"hourly.csv has the late trips of .* already"):
        correct(hourly, new, tmp_path / "out")


def test_a_correction_that_fails_leaves_no_mark(cascade: tuple[Path, list[Trip]], tmp_path: Path) -> None:
    published, old = cascade
    with pytest.raises(RefusedError, match="cannot be published on the rows"):
        correct(published, write([*old, ("q", 0, 1, 5)], tmp_path / "one.csv"), tmp_path / "added")
    assert not list(tmp_path.glob("*corrected*"))


def test_trips_cannot_be_taken_out_of_a_cascade(cascade: tuple[Path, list[Trip]], tmp_path: Path) -> None:
    published, old = cascade
    new = write([*old[10:], ("q", 0, 1, 5)], tmp_path / "new.csv")
    with pytest.raises(RefusedError, match=r"10 of its trips are not in the new input.*--late FILE"):
        correct(published, new, tmp_path / "less")
    assert not list(tmp_path.glob("less*"))


def test_what_is_refused_and_why(tmp_path: Path) -> None:
    old, new = story(1)
    path, corrected_file = write(old, tmp_path / "old.csv"), write(new, tmp_path / "new.csv")
    published = release(path, tmp_path / "may", **LEVEL)
    with pytest.raises(RefusedError, match="both inputs have the same trips"):
        correct(published, path, tmp_path / "out")
    with pytest.raises(InputError, match="are needed as they were"):
        correct(published, corrected_file, tmp_path / "out", trips=corrected_file)
    with pytest.raises(InputError, match="needs a folder, or a file for late trips"):
        correct(published, corrected_file)
    done = correct(published, corrected_file, tmp_path / "may-2")
    assert done.flows
    with pytest.raises(RefusedError, match="it corrects another release already"):
        correct(tmp_path / "may-2", path, tmp_path / "out")
    boxes = release(path, tmp_path / "boxes", method="mondrian")
    with pytest.raises(RefusedError, match="its zones are boxes"):
        correct(boxes, corrected_file, tmp_path / "out")
    (tmp_path / "may.recipe.json").unlink()
    with pytest.raises(InputError, match="there is no recipe beside"):
        correct(published, corrected_file, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
