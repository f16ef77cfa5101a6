"""``odkanon audit releases/``: recipes say which trips each release was made from, and nothing has to be repeated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet
import pytest

from cli.runner import odkanon
from odkanon import InputError, InputSpec, anonymize, audit_releases, make_survey
from worlds.people import findings

MONTHS = {"may": ("2022-11-14", "2022-11-17"), "june": ("2022-11-17", "2022-11-21")}


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder of months with a file of trips each, and two releases of one of them that can be subtracted."""
    releases = tmp_path / "releases"
    releases.mkdir()
    survey = make_survey()
    for at, (month, (since, until)) in enumerate(MONTHS.items()):
        path = tmp_path / f"{month}.parquet"
        pyarrow.parquet.write_table(survey.slice(20_000 * at, 20_000), path)
        spec = InputSpec(path, resolution=7, since=since, until=until)
        anonymize(spec, k=10, protect=["trips", "persons"], method="odkanon").save(releases / month)
        if month == "june":
            women = InputSpec(path, resolution=7, since=since, until=until, where='sex == "Woman"')
            anonymize(women, k=10, protect=["trips", "persons"], method="odkanon").save(releases / "women")
    return releases


def test_each_release_is_counted_with_its_own_trips(shelf: Path) -> None:
    report = audit_releases([shelf])
    by_hand = audit_releases(
        [shelf / "june", shelf / "women"], trips=InputSpec(shelf.parent / "june.parquet", resolution=7)
    )
    assert set(report.releases) == {"may", "june", "women"}
    assert report.trips is not None
    assert report.trips.count(".parquet") == 2
    assert len(findings(report, "difference")) == len(findings(by_hand, "difference")) > 0
    pairs = {each.releases: each for each in report.compared}
    assert pairs["june", "may"].relation == "disjoint"
    assert not findings(report, "recount")
    assert not [each for each in report.findings if each.check == "recount"]


@pytest.mark.parametrize(("june", "clean"), [("2024-06", True), ("2024-05", False)])
def test_months_without_a_stated_period_are_told_apart_by_their_times(june: str, clean: bool, tmp_path: Path) -> None:
    """Files whose trips start at different times share none; of others that is not known without persons."""
    for name, month in (("may", "2024-05"), ("june", june)):
        rows = [
            f"48.86,2.3{n % 2},48.8{5 + n % 2},2.35,{month}-{n % 28 + 1:02} 08:{n % 60:02}"
            for n in range(300 + len(name))
        ]
        (tmp_path / f"{name}.csv").write_text("start_lat,start_lon,end_lat,end_lon,start_time\n" + "\n".join(rows))
        anonymize(tmp_path / f"{name}.csv", k=10, protect="participants", resolution=7).save(tmp_path / name)
    report = audit_releases([tmp_path])
    assert report.clean == clean
    assert report.compared[0].relation == ("disjoint" if clean else "unknown")


def test_trips_that_were_moved_or_renamed_are_found_by_their_digest(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    for month in MONTHS:
        shutil.move(tmp_path / f"{month}.parquet", tmp_path / "archive" / f"{month} as delivered.parquet")
    missing = [each.message for each in audit_releases([shelf]).findings if each.check == "recount"]
    assert len(missing) == 3
    assert all("were not found, so its rows were not counted again; looked for" in text for text in missing)
    found = audit_releases([shelf], trips=tmp_path / "archive")
    assert not [each for each in found.findings if each.check == "recount"]
    assert findings(found, "difference")


def test_a_file_for_all_releases_is_refused(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the recipes in .* name the trips of each release"):
        audit_releases([shelf], trips=tmp_path / "may.parquet")


def test_a_row_that_was_changed_is_found_without_naming_the_trips(shelf: Path) -> None:
    path = shelf / "may" / "classes.parquet"
    table = pyarrow.parquet.read_table(path)
    trips = table.column("trips").to_pylist()
    changed = table.set_column(table.column_names.index("trips"), "trips", [[trips[0] + 1, *trips[1:]]])
    pyarrow.parquet.write_table(changed, path)
    assert any(
        "its count was changed" in each.message or "only" in each.message
        for each in findings(audit_releases([shelf]), "recount")
    )


def test_several_files_of_trips_and_the_recipe_alone(tmp_path: Path) -> None:
    survey = make_survey().slice(0, 12_000)
    parts = [tmp_path / f"part-{at}.parquet" for at in (1, 2)]
    for at, path in enumerate(parts):
        pyarrow.parquet.write_table(survey.slice(6_000 * at, 6_000), path)
    made = ["--resolution", "8", "--protect", "participants", "--protect", "persons", "--where", "hour < 20"]
    assert odkanon("anonymize", *parts, "-o", "whole", *made, cwd=tmp_path).returncode == 0
    assert odkanon("anonymize", "part-*.parquet", "-o", "pattern", *made, cwd=tmp_path).returncode == 0
    reading = ("--resolution", "8", "--where", "hour < 20")
    several = [word for path in parts for word in ("--trips", path)]
    for command in (("audit", "whole", *several), ("audit", "whole", "--trips", "part-*.parquet")):
        done = odkanon(*command, *reading, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "recount" in done.stdout
    for recipe in ("whole.recipe.json", "pattern.recipe.json"):
        done = odkanon("audit", recipe, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "recount" in done.stdout
        assert "not found" not in done.stdout
    done = odkanon("explain", "whole", *several, *reading, "-o", "lost.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    few = odkanon("audit", "whole", "--trips", parts[0], *reading, cwd=tmp_path)
    assert few.returncode == 1  # half of the trips are not those of the release
    pyarrow.parquet.write_table(survey.slice(6_000, 5_000), parts[1])
    changed = odkanon("audit", "whole.recipe.json", cwd=tmp_path)
    assert changed.returncode == 1
