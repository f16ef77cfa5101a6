"""`odkanon.compare` is what ``odkanon compare`` runs: the same numbers, as a DataFrame."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pandas")

import pandas
import pyarrow.parquet

import odkanon
from cli.runner import odkanon as command
from odkanon import InputError, compare, explain_release, make_survey, read_area, read_trips
from odkanon.sample.survey import CENTRAL_CELLS
from odkanon.study.experiment import Experiment, GridCell, find_row
from odkanon.study.method_comparison import MethodComparison
from odkanon.study.tables import PaperTable
from odkanon.study.tradeoffs import draw_targets
from worlds.matrices import town

METHODS = ["odkanon", "oigh-no-budget"]


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "trips.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, 4000), path)
    return path


@pytest.fixture(scope="module")
def found(trips: Path) -> MethodComparison:
    return compare(trips, METHODS, protect=["trips", "persons"], segment="sex", resolution=7)


def test_one_row_per_segment_method_and_measure(found: MethodComparison) -> None:
    frame = found.to_pandas()
    keys = ["segment", "protected", "method", "measured_on"]
    assert len(frame) == len(frame[keys].drop_duplicates()) == 3 * len(METHODS) * 2
    assert set(frame["protected"]) == {"participants+persons"}
    assert list(dict.fromkeys(frame["method"])) == METHODS
    assert frame["suppressed_share"].between(0, 0.1).all()
    assert (frame["cpc_1km"] <= frame["cpc_8km"]).all()


def test_the_command_finds_the_same_numbers(found: MethodComparison, trips: Path, tmp_path: Path) -> None:
    options = ["--methods", ",".join(METHODS), "--protect", "participants", "--protect", "persons", "--segment", "sex"]
    done = command("compare", trips, "-o", tmp_path / "tables", "--resolution", 7, *options)
    assert done.returncode == 0, done.stderr
    left_out = ["seconds", "refusal"]  # times differ; nothing was refused
    written = pandas.read_csv(tmp_path / "tables" / "tables.csv").drop(columns=left_out)
    own = found.to_pandas().drop(columns=left_out)
    assert found.to_pandas()["refusal"].isna().all()
    pandas.testing.assert_frame_equal(written, own, check_dtype=False)
    best = found.ranking("participants+persons")[0]
    assert find_row(best.cell.row).title in done.stdout


def test_tables_are_those_of_the_command(found: MethodComparison, tmp_path: Path) -> None:
    found.save(tmp_path / "tables")
    assert {path.name for path in (tmp_path / "tables").iterdir()} >= {"tables.md", "tables.tex", "tables.csv"}
    assert "**Table 2. " in (tmp_path / "tables" / "tables.md").read_text()
    assert [use for use, *_ in found.recommendations(found.targets[0])]


def test_latex_escapes_names_and_reasons() -> None:
    rows = (("50%_{a}\\b", "x & y~^", "1 x 10^6"), ("50%_{a}\\b", "z", "refused: too few"))
    latex = PaperTable(None, "By my_attribute.", "x", ("Method", "My_attribute", "C_DM"), ("C_DM",), rows).to_latex()
    assert r"\caption{By my\_attribute.}" in latex
    assert r"50\%\_\{a\}\textbackslash{}b & x \& y\textasciitilde{}\textasciicircum{} & $1\times10^{6}$ \\" in latex
    assert r" & z & \multicolumn{1}{c}{N/A} \\" in latex


def test_the_picture_shows_the_variant_of_the_paper_and_labels_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    centre = read_area(",".join(CENTRAL_CELLS))
    experiment = Experiment(read_trips(make_survey()), rows=("odkanon-published", "odkanon"), within=centre)
    assert draw_targets(experiment, tmp_path / "zones.svg") is None
    picture = (tmp_path / "zones.svg").read_text()
    zones = {outcome.cell: outcome.origins for outcome in (run() for _, run in experiment.run({}))}
    for target in ("participants", "population"):
        published, ours = (zones[GridCell("whole", "whole", target, row)] for row in experiment.rows)
        assert published != ours
        assert f"ODkAnon as published, {target}: {published} origin zones" in picture


def test_a_logged_comparison_resumes(trips: Path, tmp_path: Path) -> None:
    log = tmp_path / "runs.jsonl"
    first = compare(trips, ["oigh"], protect="trips", resolution=7, log=log)
    seconds = [outcome.seconds for outcome in first.outcomes]
    again = compare(trips, ["oigh"], protect="trips", resolution=7, log=log)
    assert [outcome.seconds for outcome in again.outcomes] == seconds
    with pytest.raises(InputError, match="other settings"):
        compare(trips, ["oigh"], protect="trips", k=20, resolution=7, log=log)


def test_a_matrix_is_compared_as_it_is() -> None:
    found = compare(town(1, trips=300), ["odkanon"], k=5)
    assert found.to_arrow()["method"].to_pylist() == ["odkanon"] * found.to_arrow().num_rows
    with pytest.raises(InputError, match="resolution is an option for reading"):
        compare(town(1, trips=300), ["odkanon"], resolution=8)


def test_unknown_methods_and_wrong_budgets_are_refused(trips: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'odkanon'"):
        compare(trips, ["odkanom"])
    with pytest.raises(InputError, match="from 0"):
        compare(trips, ["odkanon"], budget=2.0)


@pytest.mark.filterwarnings("ignore::odkanon.errors.ReleaseWarning")
def test_a_release_is_explained_from_a_file(trips: Path, tmp_path: Path) -> None:
    od = odkanon.build_od(odkanon.read_trips(trips), resolution=7)
    saved = odkanon.anonymize(od, odkanon.Rule(trips=10)).save(tmp_path / "release")
    loss = explain_release(saved, trips, km=4, resolution=7)
    assert loss.to_pandas()["trips"].sum() == od.trips
    with pytest.raises(InputError, match=r"from 0\.05 to 1000 km"):
        explain_release(saved, trips, km=0, resolution=7)
