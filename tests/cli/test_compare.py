"""The paper's experiment through the real command."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.runner import odkanon, output
from odkanon.cli.summaries import LIMITS
from odkanon.study.experiment import PAPER_ROWS, all_rows


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid") / "tables"
    done = odkanon("compare", "--sample", "--all-segments", "-o", folder)
    assert done.returncode == 0, done
    (folder.parent / "said.txt").write_text(done.stdout)
    return folder


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "tables.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_whole_grid_has_no_gap(grid: Path) -> None:
    rows = rows_of(grid)
    assert len(rows) == 18 * len(PAPER_ROWS) * 2 * 2
    segments = {(row["dimension"], row["segment"]) for row in rows}
    assert [sum(d == name for d, _ in segments) for name in ("whole", "sex", "age", "category")] == [1, 2, 7, 8]
    for row in rows:
        assert row["refusal"] == ""
        assert float(row["c_dm"]) > 0
        assert float(row["c_avg"]) >= 0.5
        assert (row["g"] == "") == (row["e"] == "") == (row["method"] == "mondrian")
        assert 0 < float(row["cpc_1km"]) <= float(row["cpc_8km"]) <= 1
        most = {"odkanon-published": 0.2, "oigh-no-budget": 0, "mondrian": 0}.get(row["method"], 0.1)
        assert float(row["suppressed_share"]) <= most
        assert (row["limit_g"] == "") == (row["method"] == "mondrian")
        if row["limit_g"]:
            assert float(row["limit_g"]) <= float(row["g"]) * (1 + 1e-9)


def test_the_most_useful_method_comes_first(grid: Path) -> None:
    said = (grid.parent / "said.txt").read_text()
    for target in ("participants", "population"):
        table = said.partition(f"Protecting the {target}: the most accurate first")[2].partition("\n1 to 8 km")[0]
        shown = [re.findall(r"\b[01]\.\d\d\b", line) for line in table.splitlines()]
        at_4_km = [float(squares[2]) for squares in shown if len(squares) == 4]
        assert len(at_4_km) == len(PAPER_ROWS) + len(LIMITS)
        at_4_km = at_4_km[: len(PAPER_ROWS)]
        assert at_4_km == sorted(at_4_km, reverse=True)
        assert len(set(at_4_km)) > 1


def test_each_use_has_a_best_method(grid: Path) -> None:
    said = (grid.parent / "said.txt").read_text()
    for target in ("participants", "population"):
        after = said.partition(f"Protecting the {target}: the most accurate first")[2]
        named = dict(line[4:].split(": ", 1) for line in after.splitlines() if line.startswith("For "))
        assert set(named) >= {"flows across the whole area", "single quarters", "all trips but one in a thousand"}
        assert named["all trips but one in a thousand"].startswith(("Mondrian", "OIGH (no suppression)"))


def test_the_data_come_with_whom_they_stand_for(grid: Path) -> None:
    table = (grid / "tables.md").read_text().partition("**Table 2. ")[2].partition("\n\n**")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")][
        2:
    ]
    assert len(rows) == 18
    for column in range(2, 5):
        whole, *parts = (int(row[column].replace(",", "")) for row in rows)
        for size, first in ((2, 0), (7, 2), (8, 9)):
            # The survey names the sex, age and category of everybody; sums are rounded to whole people.
            assert abs(sum(parts[first : first + size]) - whole) <= size


def test_zones_of_both_targets_are_drawn(grid: Path) -> None:
    assert (grid / "zones.png").stat().st_size > 10_000


def test_all_methods_under_any_rule(tmp_path: Path) -> None:
    lines = ["person,start_lat,start_lon,end_lat,end_lon"]
    lines += [f"{n},48.{85 + n % 3},2.35,48.{86 + n % 2},2.3{n % 4}" for n in range(200)]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    both = ("--protect", "participants", "--protect", "persons")
    done = odkanon("compare", tmp_path / "few.csv", "--resolution", "8", *both, "-o", tmp_path / "tables")
    assert done.returncode == 0, done
    rows = rows_of(tmp_path / "tables")
    assert [row["method"] for row in rows] == list(all_rows())
    assert {row["protected"] for row in rows} == {"participants+persons"}
    assert "Protecting the participants and persons" in done.stdout


def test_protected_measures_have_no_class_below(grid: Path) -> None:
    for row in rows_of(grid):
        if row["protected"] == row["measured_on"]:
            assert row["classes_below"] == "0"


def test_tables_come_in_the_order_of_the_paper(grid: Path) -> None:
    text = (grid / "tables.md").read_text()
    positions = [text.index(f"**Table {number}. ") for number in range(2, 20)]
    assert positions == sorted(positions)
    assert text.count("**Table ") == 18
    table_8 = text[positions[6] : positions[7]]
    assert table_8.startswith("**Table 8. Result comparison segmenting on sex, protecting the participants, calc")
    methods = [line.split("|")[1].strip() for line in table_8.splitlines() if line.startswith("| ")][2:]
    titles = [
        "ODkAnon (published)",
        "ODkAnon (budget at the end)",
        "ATG-Soft",
        "OIGH",
        "OIGH (no suppression)",
        "Mondrian",
    ]
    assert methods == [title for title in titles for _ in ("Man", "Woman")]


def test_latex_has_the_captions_labels_and_columns_of_the_paper(grid: Path) -> None:
    tables = (grid / "tables.tex").read_text().split(r"\begin{table}[ht]")[1:]
    labels = [re.findall(r"\\label\{(.*)\}", table) for table in tables]
    assert labels == [["tab:1"], ["tab:whole-dataset-anonymity"]] + [
        [f"tab:{of}-{protected}-{measured}"]
        for of in ("whole", "sex", "age", "cat")
        for protected in ("dataset", "population")
        for measured in ("dataset", "population")
    ]
    names = [f"${name}$" for name in ("C_{DM}", "C_{AVG}", r"\bar{G}", "E")]
    for at, table in enumerate(tables):
        (caption,) = re.findall(r"\\caption\{(.*)\}", table)
        assert "Table" not in caption  # LaTeX numbers it
        check_columns(table)
        if at < 2:
            continue
        who, measured = ("participants", "population")[(at - 2) // 2 % 2], ("participants", "population")[at % 2]
        where = "on the whole dataset" if at < 6 else "segmenting on "
        assert caption.startswith(f"Result comparison {where}")
        assert f", protecting the {who}, calculating metrics on the {measured}. $" in caption
        headings = re.findall(r"\\multicolumn\{1\}\{c\}\{(.*?)\} (?:&|\\)", table)
        assert headings == names + (["Time (s)"] if at < 6 else [])
        assert r"\times10^{" in table
        assert [line.partition(" & ")[0] for line in table.splitlines() if line.startswith("OIGH")] == [
            "OIGH",
            "OIGH (no suppression)",
        ]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_latex_typesets_without_any_package(grid: Path, tmp_path: Path) -> None:
    page = r"\documentclass{article}\begin{document}\input{tables}Table~\ref{tab:sex-dataset-dataset}.\end{document}"
    (tmp_path / "page.tex").write_text(page)
    shutil.copy(grid / "tables.tex", tmp_path)
    for _ in range(2):  # references are known the second time
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert not re.search(r"Warning|undefined|Overfull", done.stdout), done.stdout
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def check_columns(table: str) -> None:
    """The parts that LaTeX stops at: as many cells in each row as columns, and each brace and dollar closed."""
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", table)
    assert table.count(r"\end{tabular}") == table.count(r"\end{table}") == 1
    for row in re.findall(r"(.*) \\\\\n", table):
        spans = sum(int(number) - 1 for number in re.findall(r"\\multicolumn\{(\d+)\}", row))
        assert len(re.split(r"(?<!\\)&", row)) + spans == len(columns)
        assert not re.search(r"(?<!\\)[%#]", row)
    bare = re.sub(r"\\[{}$]", "", table)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0


def test_a_stopped_grid_goes_on(grid: Path, tmp_path: Path) -> None:
    lines = (grid / "runs.jsonl").read_text().splitlines(keepends=True)
    stopped = tmp_path / "tables"
    stopped.mkdir()
    marked = json.loads(lines[1])
    marked["seconds"] = 12345.0
    (stopped / "runs.jsonl").write_text("".join([lines[0], json.dumps(marked), "\n", *lines[2:-3], lines[-3][:40]]))
    assert odkanon("compare", "--sample", "--all-segments", "-o", stopped).returncode == 0
    resumed, fresh = rows_of(stopped), rows_of(grid)
    assert [float(row["seconds"]) for row in resumed][:2] == [12345.0, 12345.0]
    for row in (*resumed, *fresh):
        del row["seconds"]
    assert resumed == fresh


def test_other_settings_do_not_mix(grid: Path) -> None:
    done = odkanon("compare", "--sample", "--all-segments", "--k", "5", "-o", grid)
    assert done.returncode == 2
    assert "other settings" in done.stderr


def test_a_refused_run_is_a_row_that_says_why(tmp_path: Path) -> None:
    lines = ["person,start_lat,start_lon,end_lat,end_lon,weight,sex"]
    lines += [f"{n},48.85,2.35,48.86,2.36,10,{'M' if n else 'F'}" for n in range(30)]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    done = odkanon("compare", tmp_path / "few.csv", "--segment", "sex", "-o", tmp_path / "tables")
    assert done.returncode == 0, done
    rows = rows_of(tmp_path / "tables")
    refused = [row for row in rows if row["refusal"]]
    assert {row["segment"] for row in refused} == {"F"}
    assert {row["method"] for row in refused} == set(PAPER_ROWS)
    assert all("cannot be met" in row["refusal"] for row in refused)
    assert "refused: " in (tmp_path / "tables/tables.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "either a file of trips, or --sample"),
        (["--sample", "--methods", "odkanom"], "did you mean 'odkanon'?"),
        (["--sample", "--segment", "sexe"], "did you mean 'sex'?"),
        (["--sample", "--segment", "age", "--age-bands", "20,x"], "at which bands begin"),
        (["--sample", "--segment", "age", "--age-bands", "30,20"], "ascending"),
        (["--sample", "--budget", "2"], "from 0 to below 1"),
    ],
)
def test_bad_options(tmp_path: Path, options: list[str], message: str) -> None:
    done = odkanon("compare", "-o", tmp_path / "tables", *options)
    assert done.returncode == 2, done
    assert message in output(done)
