"""The last line of `odkanon anonymize` depends on the release, and agrees with what its audit finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.runner import odkanon, output
from odkanon import make_survey
from odkanon.core.sql import write_csv

BOTH = "--protect participants --protect persons"
READY, REVIEW, NEVER = "Ready to publish: r. ", "Look at this first: ", "Not for publication: r. "


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "trips.csv"
    write_csv(make_survey().slice(0, 9_000), path)
    return path


@pytest.mark.parametrize(
    ("options", "last", "audit"),
    [
        (f"--method odkanon {BOTH}", READY, 0),
        (f"--method cascade {BOTH}", READY, 0),
        ("--method odkanon --protect participants", REVIEW, 1),
        ("--method cascade --protect participants", REVIEW, 1),
        (f"--method cascade --allow-inference {BOTH}", REVIEW, None),
        (f"--method odkanon --segment sex {BOTH}", READY, 0),
        ("--method odkanon --segment sex --budget 0.3 --protect participants", REVIEW, 1),
        (f"--method cascade --budget 0.1 {BOTH}", NEVER, None),
        (f"--method odkanon --k 1 {BOTH}", NEVER, 1),
    ],
)
def test_the_last_line_depends_on_the_release(
    options: str, last: str, audit: int | None, survey: Path, tmp_path: Path
) -> None:
    done = odkanon("anonymize", survey, "-o", "r", "--resolution", "8", *options.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cautions = sum(line.startswith("Caution: ") for line in done.stdout.splitlines())
    assert (cautions == 0) == (last == READY)
    text = output(done)
    assert last in text
    if last == REVIEW:
        assert f"{last}{cautions} caution" in text
    assert ("run the command again with" in text.partition("Next: ")[2]) == (last == NEVER or "Protect persons" in text)
    if audit is not None:
        checked = odkanon("audit", "r.recipe.json", cwd=tmp_path)
        assert checked.returncode == audit, checked.stdout + checked.stderr


def test_rows_of_few_persons_and_households_are_counted_in_a_cascade(tmp_path: Path) -> None:
    """The audit counts them from the trips, as an upper bound; the terminal names at least as many rows."""
    table = make_survey().slice(0, 9_000)
    house = [int(name.partition("_")[2]) // 2 for name in table.column("person").to_pylist()]
    write_csv(table.append_column("household", [house]), tmp_path / "trips.csv")
    options = ("--resolution", "8", "--method", "cascade", "--protect", "participants", "--metrics")
    done = odkanon("anonymize", "trips.csv", "-o", "r", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for who in ("persons", "households"):
        rows = [line for line in done.stdout.splitlines() if line.startswith(f"cascade  different {who} ")]
        assert len(rows) == 1
        smallest, below = int(rows[0].split()[3]), int(rows[0].split()[5].replace(",", ""))
        assert smallest < 10 < below
        assert f" flows have fewer than 10 different {who} (the smallest has {smallest})." in text
    classes = (tmp_path / "r" / "classes.csv").read_text().splitlines()[0]
    assert "persons" not in classes
    assert "household" not in classes


def test_doubtful_input_is_to_be_looked_at_first(survey: Path, tmp_path: Path) -> None:
    """A tenth of the starts swapped, or a tenth of the times unreadable: what is published is not what was meant."""
    names, *rows = [line.split(",") for line in survey.read_text(encoding="utf-8").splitlines()[:3_000]]
    lat, lon, time = (names.index(name) for name in ("start_lat", "start_lon", "start_time"))
    swapped, unread = [list(row) for row in rows], [list(row) for row in rows]
    for at in range(0, len(rows), 10):
        swapped[at][lat], swapped[at][lon] = rows[at][lon], rows[at][lat]
        unread[at][time] = "soon"
    for name, table, last in (("swapped", swapped, "1 warning above"), ("unread", unread, "1 caution above")):
        text = "\n".join(",".join(row) for row in [names, *table])
        (tmp_path / f"{name}.csv").write_text(text + "\n", encoding="utf-8")
        done = odkanon("anonymize", f"{name}.csv", "-o", name, "--resolution", "8", *BOTH.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"{REVIEW}{last}" in output(done)
