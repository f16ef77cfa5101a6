"""Data that grow: only whole new periods are published, and nobody who has all releases learns of fewer than k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from attacks.cascades import Replay, World, every_input
from cli.here import run
from odkanon import InputError, InputSpec, Release, Rule, audit_releases, make_survey, read_trips
from odkanon.linked.fixed_zoning import only_new, release_on_zones, zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od
from odkanon.read.od_table import spec_to_matrix

MONTHS = 24
K = 10
Table = dict[tuple[str, str], int]
DAYS = [f"{2024 + month // 12}-{month % 12 + 1:02}-01" for month in range(MONTHS + 1)]


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample survey, its trips spread over 24 months; the flows of a month vary a lot."""
    survey = make_survey().slice(0, 12_000)
    month = (np.arange(survey.num_rows) * 7919 % 8191) % MONTHS
    times = pa.array([f"{DAYS[at][:8]}{1 + n % 28:02} 08:{n % 60:02}:00" for n, at in enumerate(month.tolist())])
    path = tmp_path_factory.mktemp("growing") / "all.parquet"
    pyarrow.parquet.write_table(
        survey.set_column(survey.column_names.index("start_time"), "start_time", times).drop_columns("end_time"), path
    )
    return path


def shown_by_subtracting(tables: Sequence[Table], periods: Sequence[range], k: int) -> int:
    """Return how many groups below k a reader works out who subtracts one table from another, flow by flow.

    Unknown are the trips of each flow in each month; a row is their sum over the months of its table. On the same zones
    all that combinations of rows can tell is told by such differences.
    """
    found = 0
    for (one, months), (other, longer) in combinations(zip(tables, periods, strict=True), 2):
        if set(months) < set(longer):
            found += sum(0 < other[flow] - trips < k for flow, trips in one.items() if flow in other)
    return found


def test_a_linear_attacker_over_24_months(growing: Path) -> None:
    trips = read_trips(growing)
    start = np.array(trips.table.column("start_time").to_numpy().astype("datetime64[D]"))
    days = np.array(DAYS, dtype="datetime64[D]")
    rule = Rule(trips=K)
    zones = zoning_of(anonymize(build_od(trips.select(start < days[6]), resolution=6), rule))

    def table(since: np.datetime64, until: np.datetime64) -> Table:
        part = build_od(trips.select((since <= start) & (start < until)), resolution=6)
        return _flows(release_on_zones(part, rule, zones))

    naive = [table(days[0], days[month + 1]) for month in range(MONTHS)]
    ours = [table(days[month], days[month + 1]) for month in range(MONTHS)]
    assert shown_by_subtracting(naive, [range(month + 1) for month in range(MONTHS)], K) > 1000
    assert shown_by_subtracting(ours, [range(month, month + 1) for month in range(MONTHS)], K) == 0
    assert all(trips >= K for table in ours for trips in table.values())
    assert sum(map(len, ours)) > 100
    fifth = only_new(
        InputSpec(growing, resolution=6, until=DAYS[5]), {"since": DAYS[0], "until": DAYS[4]}, "the fourth"
    )
    assert _flows(release_on_zones(spec_to_matrix(fifth), rule, zones)) == ours[4]


def _flows(release: Release) -> Table:
    table = release.to_arrow()
    columns = (table.column(name).to_pylist() for name in ("origin", "destination", "trips"))
    return {(origin, destination): trips for origin, destination, trips in zip(*columns, strict=True)}


THREE = (0, 0, 0)
WORLDS = [(World((THREE,)), 2), (World((THREE,)), 3), (World(((0, 0), (0,))), 2), (World((((0, 0), (0, 0)),)), 2)]


def told_of_changes(world: World, k: int, months: Sequence[Replay], signatures: Sequence[np.ndarray]) -> int:
    """Return in how many (input, box, month) a reader knows of trips, and that they are fewer than k.

    A reader holds every input possible that publishes the same, in all months.
    """
    mixed = np.zeros(len(signatures[0]), dtype=np.uint64)
    for signature in signatures:
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + signature
    order = np.argsort(mixed, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(mixed[order]) != 0]))
    sizes = np.diff(starts, append=len(order))
    found = 0
    for box in world.boxes:
        for month in months:
            trips = month.total(box)[order]
            least, most = np.minimum.reduceat(trips, starts), np.maximum.reduceat(trips, starts)
            found += int(sizes[(least > 0) & (most < k)].sum())
    return found


def test_an_attacker_who_tries_every_input() -> None:
    """Both naive ways leak: a cascade of all trips each month, and January's rows counted again."""
    again, reused, ours = 0, 0, 0
    for world, k in WORLDS:
        inputs = every_input(world, k)
        both = np.arange(len(inputs) ** 2)
        first, second = inputs[both // len(inputs)], inputs[both % len(inputs)]
        january, february = Replay(world, first, k).run(), Replay(world, second, k).run()
        so_far = Replay(world, (first + second).astype(np.int16), k).run()
        months = [january, february]
        again += told_of_changes(world, k, months, [january.signature(), so_far.signature()])
        reused += told_of_changes(world, k, months, [january.signature(), _counted_again(january, so_far)])
        ours += told_of_changes(world, k, months, [january.signature(), february.signature()])
    assert again > 0
    assert reused > 0
    assert ours == 0


def _counted_again(january: Replay, so_far: Replay) -> np.ndarray:
    """Return the signature of January's rows with the trips of both months."""
    mix = np.random.default_rng(1).integers(1, 2**63, len(january.listed), dtype=np.uint64) | np.uint64(1)
    total = np.zeros(len(january.counts), dtype=np.uint64)
    for (node, listed), factor in zip(january.listed.items(), mix, strict=True):
        total += np.where(listed > 0, so_far.total(node[1]), 0).astype(np.uint64) * factor
    return total


def test_the_command_and_the_audit(growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    how = ("--resolution", 6, "--method", "cascade", "--protect", "participants", "--protect", "persons")
    run("anonymize", growing, "-o", "one", *how, "--until", DAYS[6])
    run("anonymize", growing, "-o", "two", *how, "--after", "one", "--until", DAYS[12])
    run("rerun", "two", "--input", growing, "-o", "three", "--until", DAYS[18])
    report = audit_releases(["one", "two", "three"], trips=InputSpec(growing, resolution=6))
    assert report.clean, report.findings
    assert {(each.relation, each.how) for each in report.compared} == {("disjoint", "by the trips")}
    alone = audit_releases(["one", "two", "three"])
    assert {(each.relation, each.how) for each in alone.compared} == {("disjoint", "by their periods")}
    run("anonymize", growing, "-o", "naive", *how, "--until", DAYS[7])
    assert not audit_releases(["one", "naive"], trips=InputSpec(growing, resolution=6)).clean


def test_what_cannot_be_told_apart_is_refused(growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = InputSpec("trips.csv")
    for earlier, said in (
        ({}, "has no end date"),
        ({"until": DAYS[1], "timezone": "Europe/Paris"}, "another timezone"),
        ({"until": DAYS[1], "time_format": "%d"}, "another time format"),
        ({"until": DAYS[1], "columns": {"start_time": "t"}}, "another column"),
        ({"until": DAYS[1], "columns": {"t": "start_time"}}, "another column"),
    ):
        with pytest.raises(InputError, match=said):
            only_new(plain, earlier, "january")
    with pytest.raises(InputError, match="is empty; choose a later end"):
        only_new(InputSpec("trips.csv", until=DAYS[1]), {"until": DAYS[1]}, "january")
    with pytest.raises(InputError, match="such as 2024-02-01"):
        InputSpec("trips.csv", since="February")
    run("anonymize", growing, "-o", "one", "--resolution", 5, "--until", DAYS[6])
    with pytest.raises(InputError, match="--until DAY"):
        run("rerun", "one", "--input", growing, "-o", "two")
    with pytest.raises(InputError, match="--since does not apply with --after"):
        run("anonymize", growing, "-o", "two", "--after", "one", "--since", DAYS[6])
