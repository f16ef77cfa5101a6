"""The queue of a reviewer: sheets and decisions beside the recipes, and a page with all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import odkanon as library
from cli.runner import odkanon, output
from evidence.towns import write_town
from odkanon import InputError, InputSpec, Rule, open_release
from odkanon.evidence.review_queue import record_decision, review_queue
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_table import spec_to_matrix


def publish(trips: Path, folder: Path, k: int = 10) -> Path:
    return anonymize(spec_to_matrix(InputSpec(trips, resolution=9)), Rule(trips=k, persons=k)).save(folder, force=True)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("office")
    (root / "releases").mkdir()
    for seed, month in enumerate(("may", "june"), 1):
        publish(write_town(root / f"{month}.parquet", seed=seed), root / "releases" / month)
    (root / "policy.toml").write_text(
        '[rule]\ntrips = 10\npersons = 10\n[attacks]\naccepted = ["replay", "membership", "homogeneity", "dominance"]\n'
    )
    return root / "releases"


def test_the_queue_from_the_sheets_to_the_decisions(releases: Path) -> None:
    policy = releases.parent / "policy.toml"
    done = odkanon("evidence", "--queue", releases, "--policy", policy, "--seconds", 5)
    assert done.returncode == 0, output(done)
    entries = review_queue(releases, policy=policy)
    assert [(each.name, each.verdict, each.waiting) for each in entries] == [
        ("june", "may be published", True),
        ("may", "may be published", True),
    ]
    before = (releases / "may.evidence.json").stat().st_mtime_ns
    decided = odkanon("evidence", releases / "may", "--decide", "approved", "--by", "R. Soto", "--note", "<until 2030>")
    assert decided.returncode == 0, output(decided)
    kept = json.loads((releases / "may.decision.json").read_text())
    assert (kept["decision"], kept["by"], len(kept["sha256"])) == ("approved", "R. Soto", 64)
    first, second = review_queue(releases, policy=policy)
    assert (releases / "may.evidence.json").stat().st_mtime_ns == before  # a current sheet is not made again
    assert (first.name, second.name, second.waiting) == ("june", "may", False)
    text = (releases / "queue.html").read_text()
    assert "1 waiting for a decision" in text
    assert "&lt;until 2030&gt;" in text
    assert 'href="may.evidence.html"' in text
    assert "http" not in text
    open_release(releases / "may")  # nothing was written into the folder that is published

    publish(releases.parent / "may.parquet", releases / "may", k=20)
    changed = {each.name: each for each in review_queue(releases, policy=policy, seconds=5)}["may"]
    assert changed.outdated
    assert changed.waiting
    assert "decide again" in (releases / "queue.html").read_text()


def test_a_release_without_its_trips_waits_with_the_reason(releases: Path, tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    trips = write_town(tmp_path / "trips.parquet")
    publish(trips, tmp_path / "shelf" / "may")
    trips.unlink()
    (entry,) = review_queue(tmp_path / "shelf")
    assert (entry.verdict, entry.points) == ("no sheet", ("the trips behind it were not found",))


def test_wrong_decisions_are_refused(releases: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="approved or refused or returned"):
        record_decision(releases / "june", "yes", by="R. Soto")
    with pytest.raises(InputError, match="needs a name"):
        record_decision(releases / "june", "approved", by=" ")
    with pytest.raises(InputError, match="not a release"):
        record_decision(tmp_path, "approved", by="R. Soto")
    with pytest.raises(InputError, match="there is no release in"):
        review_queue(tmp_path)


def test_a_month_on_the_rows_of_the_last_one_gets_a_sheet(tmp_path: Path) -> None:
    """A cascade on given rows cannot be repeated from its recipe alone, which is a point to decide, not an error."""
    months = tmp_path / "releases"
    months.mkdir()
    for seed, month in enumerate(("may", "june"), 1):
        trips = write_town(tmp_path / f"{month}.parquet", seed=seed)
        earlier = None if month == "may" else months / "may"
        library.anonymize(InputSpec(trips, resolution=9), k=5, method="cascade", zones_of=earlier).save(months / month)
    june = next(each for each in review_queue(months, seconds=2) if each.name == "june")
    assert june.verdict == "decide these points"
    assert any(each.startswith("Replay: it was not made") for each in june.points)
