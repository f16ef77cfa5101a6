"""Noisy releases: that a folder tells nothing but what the mechanism drew, and what everything else makes of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import odkanon
from cli.here import run
from odkanon import InputError, ReleaseWarning, make_survey, read_matrix
from odkanon.core.arrays import Ints
from odkanon.engine.dispatch import EngineName
from odkanon.errors import RefusedError, UnsafeReleaseError
from odkanon.evidence.policy import check_release, read_policy
from odkanon.methods.method_registry import anonymize as run_method
from odkanon.methods.noise import method as noise_method
from odkanon.methods.noise.mechanism import NoisePromise, NoisyCounts, PrivacyUnit, count_queries, noise_scales
from odkanon.methods.noise.public_places import public_places
from odkanon.model.release_spec import Structure
from odkanon.model.rule import NO_RULE, Rule
from odkanon.pipeline.noise_ledger import LEDGER, charge, read_ledger
from odkanon.read.area import PARIS_CENTRE
from odkanon.release_format.folder import open_release
from odkanon.release_format.names import CSV, PACKAGE, PARQUET, ZONES
from odkanon.study.experiment import PAPER_ROWS

AREA = ",".join(PARIS_CENTRE)
NAMED = ["mode:car=1+2,bus=3", "hour:0-9,9-17,17-24"]


@pytest.fixture(scope="module")
def survey() -> pa.Table:
    return make_survey().slice(0, 20_000)


@pytest.fixture
def folder(survey: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pyarrow.parquet.write_table(survey, tmp_path / "survey.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def noisy_cli(*more: object) -> int:
    return run("anonymize", "survey.parquet", "--method", "noise", "--within", AREA, "--epsilon", 3, *more)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of the mechanism that do not depend on its input, as if the noise happened to make them so."""

    def drawn(promise: NoisePromise, shares: Mapping[str, int], counts: Mapping[str, Ints]) -> dict[str, NoisyCounts]:
        scales, random = noise_scales(promise, shares), np.random.default_rng(1)
        return {
            name: NoisyCounts(random.poisson(20_000 / len(exact), len(exact)).astype(np.int64), scales[name])
            for name, exact in counts.items()
        }

    monkeypatch.setattr(noise_method, "add_noise", drawn)


@pytest.mark.filterwarnings("ignore::odkanon.ReleaseWarning")
@pytest.mark.parametrize("by", [[], NAMED, ["weekday", "sex:w=Woman,m=Man", "age"]])
@pytest.mark.usefixtures("fixed_noise")
def test_two_inputs_of_which_the_same_was_drawn_give_the_same_bytes(
    by: list[str], survey: pa.Table, tmp_path: Path
) -> None:
    """So nothing of the data gets around the mechanism: no total, rejected row, digest, file name or value."""
    first = survey.filter(pc.not_equal(survey.column("person"), survey.column("person")[0]))
    other = survey.slice(9000, 40)
    at = other.column_names.index("start_lat")
    broken = pa.concat_tables([other, other.set_column(at, "start_lat", pa.nulls(len(other), pa.float64()))])
    plain = survey.slice(0, 900).drop_columns(["weight"])
    made = []
    for name, table in (
        ("march 2024", survey),
        ("neighbour", first),
        ("others", other),
        ("broken", broken),
        ("text", plain),
    ):
        place, text = tmp_path / name, table is plain
        place.mkdir()
        file = place / f"{name}.{'csv' if text else 'parquet'}"
        (pyarrow.csv.write_csv if text else pyarrow.parquet.write_table)(table, file)
        options: dict[str, Any] = {"within": AREA, "by": by, "engine": "duckdb" if text else None}
        release = odkanon.anonymize(file, method="noise", epsilon=1.0, accept_rejected=True, **options)
        made.append(files(release.save(place / "release")))
    assert made[0].keys() >= {CSV, PARQUET, ZONES, PACKAGE, "release.json"}
    assert all(each == made[0] for each in made[1:])


def test_a_release_is_written_read_and_asked(folder: Path) -> None:
    assert noisy_cli("-o", "out", "--resolution", 9) == 0
    saved = open_release(folder / "out")
    assert saved.table.column_names == ["origin", "destination", "trips", "standard_error"]
    about = saved.manifest
    assert (about["rule"], about["quality"], about["unlisted"]) == ({}, None, {"at_most_trips": None})
    assert about["parameters"] == {"epsilon": 3.0, "delta": 1e-06, "unit": "person", "trips_per_person": 4}
    assert sum(query["share"] for query in about["noise"].values()) == pytest.approx(1, abs=1e-5)
    assert "Differential privacy of a person, with epsilon = 3" in about["statement"]
    assert min(saved.table["trips"].to_pylist()) >= 1
    assert min(saved.table["standard_error"].to_pylist()) > 0
    flows = saved.estimate(onto=7).table
    assert flows.column("low").to_pylist() == [0] * len(flows)
    assert flows.column("high").null_count == len(flows)
    assert pc.all(pc.less_equal(flows["interval_low"], flows["estimate"])).as_py()
    assert pc.sum(flows["estimate"]).as_py() == pytest.approx(about["published"]["trips"], rel=0.02)


def test_estimates_and_their_errors_are_about_right(survey: pa.Table) -> None:
    """With hardly any noise, sums over an area are the trips of it, within what is said of them."""
    od = read_matrix(survey, resolution=9, within=AREA)
    release = run_method(od, NO_RULE, method="noise", epsilon=100.0, unit="trip")
    assert int(release.classes.trips.sum()) == pytest.approx(od.summary.trips, rel=0.01)
    saved = release.estimate(onto=6)
    counts = run_method(od, Rule(trips=1), method="oigh", at_level="6", budget=0.0)
    truth = counts.to_pandas().set_index(["origin", "destination"])
    both = saved.to_pandas().set_index(["origin", "destination"]).join(truth["trips"]).fillna({"trips": 0})
    inside = both["trips"].between(both["interval_low"], both["interval_high"])
    assert inside.mean() > 0.7
    assert np.abs(both["estimate"] - both["trips"]).sum() < 0.1 * od.summary.trips


def test_by_attributes_with_public_values(folder: Path) -> None:
    assert noisy_cli("-o", "out", "--resolution", 8, "--by", NAMED[0], "--by", NAMED[1]) == 0
    saved = open_release(folder / "out")
    assert saved.axes == ["mode", "hour"]
    assert set(saved.table["mode"].to_pylist()) <= {"car", "bus", "other", "missing", "any"}
    assert {"attribute mode", "attribute hour"} <= saved.manifest["noise"].keys()
    assert saved.without_attributes().is_noisy
    assert len(saved.estimate(onto=6)) > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"within": None}, "needs a public area"),
        ({"epsilon": None}, "noise needs epsilon"),
        ({"by": ["mode"]}, "public values of 'mode'"),
        ({"k": 20}, "keeps no threshold"),
        ({"protect": "persons"}, "keeps no threshold"),
        ({"segment": "sex"}, "no segments"),
        ({"columns": {"person": "nobody"}}, "nobody"),
        ({"unit": "household"}, "unit of privacy"),
        ({"trips_per_person": 0}, "trips_per_person"),
        ({"budget": 0.1}, "no option 'budget'"),
        ({"zones_of": "there"}, "no earlier zones"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str, survey: pa.Table) -> None:
    given = {"epsilon": 1.0, "within": AREA, "resolution": 7, **options}
    with pytest.raises(InputError, match=words):
        odkanon.anonymize(survey, method="noise", **given)


def test_other_methods_take_no_ledger(survey: pa.Table) -> None:
    with pytest.raises(InputError, match="ledger is of noise"):
        odkanon.anonymize(survey, k=10, ledger="l.json")


def test_persons_are_needed_to_protect_them(survey: pa.Table) -> None:
    nobody = survey.drop_columns(["person"])
    with pytest.raises(InputError, match="names none"):
        odkanon.anonymize(nobody, method="noise", epsilon=1.0, within=AREA, resolution=7)
    with pytest.warns(ReleaseWarning, match="no ledger"):
        release = odkanon.anonymize(nobody, method="noise", epsilon=1.0, within=AREA, resolution=7, unit="trip")
    assert release.parameters["unit"] == "trip"


def test_a_release_that_is_none_cannot_be_made(survey: pa.Table) -> None:
    od = read_matrix(survey, resolution=6, within=AREA)
    release = run_method(od, NO_RULE, method="noise", epsilon=1.0)
    with pytest.raises(UnsafeReleaseError, match="standard error"):
        replace(release, structure=Structure.NESTED)
    with pytest.raises(InputError, match="keeps no threshold"):
        run_method(od, Rule(trips=10), method="noise", epsilon=1.0)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_person_in_two_spellings_and_two_files_counts_m_times(
    engine: EngineName, survey: pa.Table, tmp_path: Path
) -> None:
    inside = survey.filter(pc.less(pc.abs(pc.subtract(survey["start_lat"], 48.86)), 0.01)).slice(0, 200)
    parts = []
    for number, name in enumerate(("g7", " G7", "ｇ7", "G7 ")):
        own = inside.slice(50 * number, 50)
        parts.append(own.set_column(own.column_names.index("person"), "person", pa.array([name] * len(own))))
    for number, table in enumerate((pa.concat_tables(parts[:2]), pa.concat_tables(parts[2:]))):
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    od = read_matrix([tmp_path / "0.parquet", tmp_path / "1.parquet"], resolution=7, within=AREA, engine=engine)
    assert od.summary.trips > 100
    _, trips = noise_method.NoiseDomain.of(od.in_memory()).counted(NoisePromise(1.0, trips_per_person=3))
    assert sum(trips) == 3


@pytest.mark.parametrize(("unit", "most"), [("person", 3), ("trip", 1)])
def test_from_files_on_nobody_changes_a_query_by_more_than_the_bound(
    unit: PrivacyUnit, most: int, tmp_path: Path
) -> None:
    """Ids that look like numbers, dates or booleans beside others, copies and odd values: every person is left out."""
    spellings = [["G7", " g7", "ｇ7"], ["1", "01", "1.0"], ["1e5", "1E5"], ["9007199254740993"], ["true"], ["1,5"]]
    points = [h3.cell_to_latlng(cell) for cell in sorted(h3.cell_to_children(PARIS_CENTRE[0], 8))[:6]]
    random = np.random.default_rng(1)
    rows = []
    for person, names in enumerate(spellings):
        for _ in range(int(random.choice([1, 3, 9]))):
            start, end = (points[at] for at in random.integers(0, 6, 2).tolist())
            when = f"2024-01-0{random.integers(1, 6)}T{random.integers(0, 24):02d}:10:00"
            texts = (random.choice(names), *start, *end, when, random.choice(["1", "3", "9", "", "x"]))
            rows.append((person, ",".join(f'"{text}"' for text in texts)))
    rows.append(rows[-1])

    def measured(kept: list[tuple[int, str]]) -> dict[str, Ints]:
        paths = tmp_path / "0.csv", tmp_path / "1.csv"
        for at, path in enumerate(paths):
            own = [line for number, (_, line) in enumerate(kept) if (number + at) % 2]
            path.write_text("\n".join(["person,start_lat,start_lon,end_lat,end_lon,start_time,mode", *own]) + "\n")
        od = read_matrix(list(paths), engine="memory", resolution=9, within=AREA, by=NAMED, accept_rejected=True)
        domain = noise_method.NoiseDomain.of(od.in_memory())
        keys, trips = domain.counted(NoisePromise(1.0, 1e-6, unit, most))
        return count_queries(domain.queries(keys), trips)

    whole, changed = measured(rows), []
    smaller = [[row for row in rows if row[0] != person] for person in range(len(spellings))]
    for rest in smaller if unit == "person" else [rows[:at] + rows[at + 1 :] for at in (0, 7, len(rows) - 1)]:
        left = measured(rest)
        assert [len(each) for each in left.values()] == [len(each) for each in whole.values()]
        changed += [float(np.linalg.norm(whole[name] - left[name])) for name in whole]
    assert 0 < max(changed) <= most


def test_engines_measure_the_same_before_noise(survey: pa.Table, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(survey, tmp_path / "s.parquet")
    found = []
    engines: tuple[EngineName, ...] = ("memory", "duckdb")
    for engine in engines:
        od = read_matrix(tmp_path / "s.parquet", engine=engine, resolution=9, within=AREA, by=NAMED)
        keys, trips = noise_method.NoiseDomain.of(od.in_memory()).counted(NoisePromise(1.0))
        found.append((keys.tolist(), trips.tolist()))
    assert found[0] == found[1]


def test_places_are_those_of_the_area_whatever_the_trips(survey: pa.Table) -> None:
    some, few = (read_matrix(survey.slice(0, n), resolution=9, within=AREA) for n in (20_000, 300))
    one, other = public_places(some), public_places(few)
    assert one.tree.leaves.tolist() == other.tree.leaves.tolist()
    assert len(one) == 5 * 49
    assert one.block_levels == other.block_levels == (0, 1)


class TestLedger:
    def test_it_adds_up_and_refuses(self, folder: Path) -> None:
        for name in ("january", "february"):
            assert noisy_cli("-o", name, "--resolution", 7, "--epsilon-limit", 5) == 0
        ledger = read_ledger(folder / LEDGER)
        assert [entry.epsilon for entry in ledger.releases] == [3.0, 3.0]
        epsilon, delta = ledger.spent("person")
        assert 3 < epsilon < 5
        assert delta == 2e-6
        with pytest.raises(RefusedError, match=r"from epsilon 4.* to 5.*allows 5"):
            noisy_cli("-o", "march", "--resolution", 7)
        assert not (folder / "march").exists()
        with pytest.raises(RefusedError, match="allows 5"):  # a limit cannot be raised so
            noisy_cli("-o", "march", "--resolution", 7, "--epsilon-limit", 50)
        for more in ([], ["--epsilon-limit", 50]):  # nor evaded
            with pytest.raises(RefusedError, match="protect persons"):
                noisy_cli("-o", "march", "--resolution", 7, "--unit", "trip", *more)
        assert len(read_ledger(folder / LEDGER).releases) == 2
        content = json.loads((folder / LEDGER).read_text())
        assert content["spent"]["person"]["epsilon"] == epsilon
        assert noisy_cli("-o", "march", "--resolution", 7, "--ledger", "others.json") == 0

    def test_what_is_refused_spends_nothing(self, folder: Path) -> None:
        many = [f"hour:{','.join(f'{hour}-{hour + 1}' for hour in range(23))}", "weekday", "age", "sex:m=Man,w=Woman"]
        few = [f"category:{','.join(f'c{each}={each}' for each in range(900))}"]
        refused: list[tuple[dict[str, Any], str]] = [
            ({"by": [*many, *few]}, "too many"),
            ({"columns": {"person": "trip_id"}}, "no column"),
            ({"within": None}, "public area"),
            ({"budget": 0.1}, "no option"),
        ]
        for options, words in refused:
            with pytest.raises(InputError, match=words):
                odkanon.anonymize("survey.parquet", **{"epsilon": 1.0, "within": AREA, "resolution": 8, **options})
            assert not (folder / LEDGER).exists()

    @pytest.mark.parametrize("error", [InputError("no"), KeyboardInterrupt()])
    def test_what_fails_once_it_is_drawn_is_spent(
        self, error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whether it fails may depend on the noisy counts; a free draw after each failure would choose among them."""

        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(noise_method, "join_counts", fail)
        with pytest.raises(type(error)):
            odkanon.anonymize("survey.parquet", epsilon=1.0, within=AREA, resolution=7)
        assert len(read_ledger(folder / LEDGER).releases) == 1

    @pytest.mark.filterwarnings("ignore:the estimate is:odkanon.ReleaseWarning")
    def test_releases_of_single_trips_leave_persons_unbounded(self, folder: Path) -> None:
        assert noisy_cli("-o", "trips", "--resolution", 7, "--unit", "trip") == 0
        with pytest.warns(ReleaseWarning, match="nothing bounds what all releases disclose about persons"):
            release = odkanon.anonymize("survey.parquet", epsilon=3.0, within=AREA, resolution=7)
        assert release.parameters["spent"]["epsilon"] is None
        spent = json.loads((folder / LEDGER).read_text())["spent"]
        assert spent["person"]["epsilon"] is None
        assert 6 < spent["trip"]["epsilon"] < 30
        with pytest.raises(RefusedError, match="protect persons"):
            noisy_cli("-o", "more", "--resolution", 7, "--epsilon-limit", 100)

    @pytest.mark.filterwarnings("ignore::odkanon.ReleaseWarning")
    def test_however_a_file_is_named_it_has_one_ledger(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By a relative path, a link, its folder, a pattern, or as the matrix that was read from it."""
        data, other = folder / "data", folder / "elsewhere"
        data.mkdir()
        other.mkdir()
        Path("survey.parquet").rename(data / "survey.parquet")
        (other / "link.parquet").symlink_to(data / "survey.parquet")
        monkeypatch.chdir(other)
        reading: dict[str, Any] = {"within": AREA, "resolution": 7}
        named = ["../data/survey.parquet", "link.parquet", "../data", str(data / "*.parquet"), data / ".." / "data"]
        matrices = [read_matrix(data / "survey.parquet", **reading)]
        for number, source in enumerate([*named, *matrices], 1):
            options = {} if source in matrices else reading
            release = odkanon.anonymize(source, epsilon=0.5, **options)
            assert release.parameters["spent"]["releases"] == number
        assert [path.parent for path in folder.rglob(LEDGER)] == [data]

    @pytest.mark.filterwarnings("ignore::odkanon.ReleaseWarning")
    def test_a_ledger_above_the_data_counts_and_two_ledgers_are_refused(self, folder: Path, survey: pa.Table) -> None:
        for number, name in enumerate(("january", "february")):
            (folder / name).mkdir()
            pyarrow.parquet.write_table(survey.slice(number * 9000, 9000), folder / name / "trips.parquet")
        asked: dict[str, Any] = {"epsilon": 0.5, "within": AREA, "resolution": 7}
        both = ["january/trips.parquet", "february/trips.parquet"]
        with pytest.raises(InputError, match="different ledgers"):
            odkanon.anonymize(both, **asked)
        odkanon.anonymize(both, **asked, ledger=LEDGER)
        assert odkanon.anonymize(both[1], **asked).parameters["spent"]["releases"] == 2
        assert odkanon.anonymize(both, **asked).parameters["spent"]["releases"] == 3

    def test_an_edited_ledger_is_noticed(self, folder: Path) -> None:
        assert noisy_cli("-o", "out", "--resolution", 7) == 0
        written = (folder / LEDGER).read_text()
        edits: list[dict[str, Any]] = [
            {"epsilon": 0.1},
            {"standard_deviations": [1e6]},
            {"standard_deviations": []},
            {"trips_per_person": 40},
            {"unit": "nobody"},
        ]
        for edit in edits:
            content = json.loads(written)
            content["releases"][0] |= edit
            (folder / LEDGER).write_text(json.dumps(content))
            with pytest.raises(InputError, match="not a ledger"):
                noisy_cli("-o", "next", "--resolution", 7)
        (folder / LEDGER).write_text(written.replace('"limits": {}', '"limits": {"persn": 3}'))
        with pytest.raises(InputError, match="not a ledger"):
            noisy_cli("-o", "next", "--resolution", 7)

    def test_processes_at_the_same_time_are_all_counted(self, tmp_path: Path) -> None:
        promise, shares = NoisePromise(1.0), {"origins": 1}
        with ThreadPoolExecutor(8) as threads:
            for _ in threads.map(lambda _: charge(tmp_path / LEDGER, promise, shares), range(16)):
                pass
        assert len(read_ledger(tmp_path / LEDGER).releases) == 16

    def test_a_damaged_ledger_is_not_an_empty_one(self, folder: Path) -> None:
        for text in ("", "{}", '{"format": 1, "limits": {}, "releases": [{"epsilon": 1}]}', '{"format": 2}'):
            (folder / LEDGER).write_text(text)
            with pytest.raises(InputError, match="not a ledger"):
                noisy_cli("-o", "out", "--resolution", 7)
            assert (folder / LEDGER).read_text() == text

    def test_a_limit_needs_a_ledger(self, survey: pa.Table) -> None:
        with pytest.raises(InputError, match="needs a ledger"):
            odkanon.anonymize(survey, method="noise", epsilon=1.0, within=AREA, resolution=7, epsilon_limit=3)

    @pytest.mark.filterwarnings("ignore::odkanon.ReleaseWarning")
    def test_python_charges_the_same_ledger(self, folder: Path) -> None:
        release = odkanon.anonymize("survey.parquet", method="noise", epsilon=1.0, within=AREA, resolution=7)
        assert release.parameters["spent"]["epsilon"] == pytest.approx(1)
        with pytest.raises(RefusedError, match="nothing was drawn"):
            odkanon.anonymize(
                "survey.parquet", method="noise", epsilon=1.0, within=AREA, resolution=7, epsilon_limit=1.1
            )


def test_rerun_draws_again_and_says_what_that_costs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert noisy_cli("-o", "out", "--resolution", 7) == 0
    with pytest.raises(InputError, match="drawn anew"):
        run("rerun", "out")
    assert len(read_ledger(folder / LEDGER).releases) == 1
    assert run("rerun", "out", "-o", "again") == 0
    assert len(read_ledger(folder / LEDGER).releases) == 2
    assert "spent again" in " ".join(capsys.readouterr().out.split())
    assert files(folder / "out")[CSV] != files(folder / "again")[CSV]


def test_a_comparison_states_that_noise_promises_something_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = ("survey.parquet", "--within", AREA, "--resolution", 7, "--protect", "participants", "-o")
    methods = ("--methods", "cascade,noise")
    for wrong, words in (
        (methods, "noise needs epsilon"),
        (("--methods", "cascade", "--epsilon", 3), "need noise among"),
        (("--delta", 1e-9, "--methods", "cascade"), "need noise among"),
        ((*methods, "--epsilon", -1), "epsilon"),
    ):
        with pytest.raises(InputError, match=words):
            run("compare", *reading, "grid", *wrong)
    with pytest.raises(InputError, match="noise keeps none"):
        run("compare", *reading, "k.svg", *methods, "--k", "5,10")
    assert run("compare", *reading, "grid", *methods, "--epsilon", 3) == 0
    told = " ".join(capsys.readouterr().out.split())
    promise = "each person with at most 4 trips, by epsilon = 3 and delta = 1e-06"
    assert f"Noise promises something else than k: it protects {promise}" in told
    assert "For single quarters: Cascade" in told
    assert "For single quarters: Noise" not in told
    cascade, noise = (
        pyarrow.csv.read_csv("grid/tables.csv").filter(pc.field("measured_on") == "participants").to_pylist()
    )
    assert 0 < noise["cpc_1km"] < noise["cpc_8km"] < cascade["cpc_8km"]
    assert {noise[name] for name in ("c_dm", "g", "e", "suppressed_share", "smallest_class")} == {None}
    assert f"| {promise} | - | - |" in Path("grid/tables.md").read_text()
    assert not (folder / LEDGER).exists()
    seconds = noise["seconds"]
    assert run("compare", *reading, "grid", *methods, "--epsilon", 3) == 0  # resumes, and draws nothing
    assert pyarrow.csv.read_csv("grid/tables.csv")["seconds"].to_pylist()[-1] == seconds
    with pytest.raises(InputError, match="other settings"):
        run("compare", *reading, "grid", *methods, "--epsilon", 1)


def test_all_methods_are_compared_with_noise_if_it_has_a_promise(survey: pa.Table) -> None:
    grid: dict[str, Any] = {"resolution": 6, "within": AREA, "protect": "trips", "segment": "sex"}
    found = odkanon.compare(survey, noise={"epsilon": 3.0, "unit": "trip"}, **grid)
    noisy = [each for each in found.outcomes if each.promise]
    assert [each.cell.segment for each in noisy] == ["whole", "Man", "Woman"]
    assert all((each.cpc("trips", 8) or 0) > 0.5 for each in noisy)
    assert {each.cell.row for each in odkanon.compare(survey, **grid).outcomes} == {*PAPER_ROWS}


def test_what_else_is_made_of_a_release(folder: Path) -> None:
    assert noisy_cli("-o", "out", "--resolution", 8) == 0
    with pytest.raises(InputError, match="estimates with noise"):
        odkanon.audit_releases([folder / "out"])
    with pytest.raises(InputError, match="no zoning"):
        run("anonymize", "survey.parquet", "-o", "next", "--zones-of", "out")
    square = [[2.3, 48.8], [2.4, 48.8], [2.4, 48.9], [2.3, 48.9], [2.3, 48.8]]
    zone = {"type": "Feature", "properties": {"id": "here"}, "geometry": {"type": "Polygon", "coordinates": [square]}}
    Path("zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [zone]}))
    assert run("export", "out", "--to", "csv", "--onto", "zones.geojson", "-o", "onto") == 0
    assert "trips_exact" not in pyarrow.csv.read_csv("onto/flows.csv").column_names
    assert run("report", "out", "-o", "page.html") == 0
    package = json.loads(Path("out", PACKAGE).read_text())
    assert package["promise"] == {"epsilon": 3.0, "delta": 1e-6, "unit": "person", "trips_per_person": 4}
    assert "differential privacy" in package["keywords"]
    assert "k-anonymity" not in package["keywords"]
    assert run("export", "out", "--to", "omx", "-o", "matrix.omx") == 0


def test_a_series_compares_estimates_with_their_intervals(folder: Path) -> None:
    for name in ("may", "june"):
        assert noisy_cli("-o", name, "--resolution", 8) == 0
    assert run("series", "may", "june", "-o", "series") == 0
    table = pyarrow.csv.read_csv("series/changes.csv")
    assert sum(column.null_count for column in table.columns) == 0
    for name in ("may", "june"):
        total = open_release(folder / name).manifest["published"]["trips"]
        assert pc.sum(table[f"trips {name}"]).as_py() == pytest.approx(total, rel=0.02)
        assert pc.all(pc.less_equal(table[f"interval_low {name}"], table[f"trips {name}"])).as_py()
    # The same trips: nearly all changes are noise.
    same = pc.and_(
        pc.less_equal(table["interval_low may"], table["interval_high june"]),
        pc.less_equal(table["interval_low june"], table["interval_high may"]),
    )
    assert pc.mean(pc.cast(same, "float64")).as_py() > 0.9
    assert run("anonymize", "survey.parquet", "-o", "counts", "--within", AREA) == 0
    with pytest.raises(InputError, match="would be mostly noise"):
        run("series", "may", "counts", "-o", "mixed")


@pytest.mark.slow
def test_accuracy_grows_with_epsilon_and_stands_beside_the_release(folder: Path) -> None:
    from odkanon.evidence.noise_comparison import compare_with_noise

    assert run("anonymize", "survey.parquet", "-o", "counts", "--within", AREA) == 0
    od = read_matrix("survey.parquet", engine="memory", within=AREA)
    found = compare_with_noise(folder / "counts", od, epsilons=(0.3, 3.0, 30.0), draws=4)
    rows = {row["name"]: row["cpc"] for row in found["rows"]}
    for unit in ("trip", "person"):
        for size in ("1 km", "2 km", "4 km", "8 km"):
            cpc = [rows[f"noise for each {unit}, epsilon = {epsilon}"][size] for epsilon in ("0.3", "3", "30")]
            assert all(after > before - 0.01 for before, after in pairwise(cpc))
    assert rows["this release, read well"]["4 km"] > rows["floor: margins and distances only"]["4 km"] - 0.05
    assert all(0 < cpc < 1 for row in rows.values() for cpc in row.values())
    assert found["sentences"]


def test_evidence_of_noise_says_what_can_be_checked(folder: Path) -> None:
    """There are no counts to attack, but the noise, what it bounds, and what all releases come to can be looked at."""
    assert noisy_cli("-o", "out", "--resolution", 7, "--epsilon-limit", 3.5) == 0
    assert run("evidence", "out", "-o", "sheet") == 0
    found = {each["attack"]: each for each in json.loads(Path("sheet.json").read_text())["attacks"]}
    assert [each["verdict"] for each in found.values()] == ["clean", "to weigh", "clean"]
    assert "comes to epsilon = 3 at" in found["noise"]["message"]
    assert found["membership"]["numbers"]["guess"] == pytest.approx(np.exp(3) / (1 + np.exp(3)), abs=1e-6)
    assert "1 release spent epsilon = 3; 3.5 is allowed" in found["ledger"]["message"]
    assert "Approval" in Path("sheet.html").read_text()
    Path("policy.toml").write_text("[noise]\nepsilon = 2.0\n")
    assert run("evidence", "out", "-o", "strict", "--policy", "policy.toml") == 1
    manifest = json.loads(Path("out/release.json").read_text())
    manifest["noise"]["fine blocks"]["standard_deviation"] /= 2
    Path("out/release.json").write_text(json.dumps(manifest))
    assert run("evidence", "out", "-o", "tampered", "--trips", "survey.parquet") == 1
    assert json.loads(Path("tampered.json").read_text())["attacks"][0]["verdict"] == "found"


def test_a_policy_limits_epsilon(folder: Path) -> None:
    assert noisy_cli("-o", "out", "--resolution", 7, "--unit", "trip") == 0
    for text, words in (
        ("epsilon = 3", []),
        ("epsilon = 2.5", ["spends epsilon = 3"]),
        ('unit = "person"', ["persons"]),
    ):
        Path("policy.toml").write_text(f"[noise]\n{text}\n")
        broken = check_release("out", read_policy("policy.toml"))
        assert len(broken) == len(words)
        assert all(word in line for word, line in zip(words, broken, strict=True))
    Path("policy.toml").write_text('[noise]\nunit = "household"\n')
    with pytest.raises(InputError, match="unit"):
        read_policy("policy.toml")
