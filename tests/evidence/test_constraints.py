"""What attacks find without a largest share and a least number of destinations, and with them; audit and policy."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from cli.runner import odkanon, output, told
from evidence.towns import attack
from odkanon import Rule, check_release, read_policy
from odkanon.evidence.policy import Policy
from odkanon.methods.method_registry import anonymize
from worlds.people import Person, Trip, audit_with_trips, crowd, findings, matrix, write

CONSTRAINTS: dict[str, Any] = {"max_share": 0.5, "min_destinations": 2}
BOSS = Person("boss", "Woman", 50, 1.0)


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crowds between all of three places; one busy person among few from there to a fourth, and a road to one place."""
    made = [Trip(who, *ends) for ends in permutations((0, 4, 7), 2) for who in crowd(60, prefix=str(ends))]
    made += [Trip(who, 0, 10) for who in [BOSS] * 30 + crowd(10)]
    made += [Trip(who, 10, 0) for who in crowd(20)]
    return write(made, tmp_path_factory.mktemp("besides") / "trips.parquet")


@pytest.fixture(scope="module")
def plain(trips: Path) -> Path:
    return anonymize(matrix(trips), Rule(trips=10), budget=0.2).save(trips.parent / "plain")


@pytest.fixture(scope="module")
def kept(trips: Path) -> Path:
    return anonymize(matrix(trips), Rule(trips=10, **CONSTRAINTS), budget=0.2).save(trips.parent / "kept")


def test_dominance_is_found_without_a_largest_share_and_not_with_it(trips: Path, plain: Path, kept: Path) -> None:
    assert attack("dominance", plain, trips).numbers["largest share"] == 0.75
    found = attack("dominance", kept, trips)
    assert found.found == 0
    assert found.numbers["largest share"] <= 0.5  # type: ignore[operator]


def test_homogeneity_is_found_without_destinations_and_not_with_them(trips: Path, plain: Path, kept: Path) -> None:
    assert attack("homogeneity", plain, trips).found > 0
    assert attack("homogeneity", kept, trips).found == 0


def test_the_release_is_made_again_with_all_that_it_asks(trips: Path, kept: Path) -> None:
    """It has the same rows; and as no group is below the rule, nothing more is to be tried."""
    assert "No group of these trips is below the rule" in (attack("replay", kept, trips).skipped or "")


def test_the_audit_counts_again(trips: Path, kept: Path) -> None:
    assert not findings(audit_with_trips(trips, kept))


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"max_share": 0.5}, "one person has more than the 50%"),
        ({"min_destinations": 2}, "fewer than the 2 destinations"),
    ],
)
def test_the_audit_finds_a_promise_that_was_never_kept(
    constraints: dict[str, Any], said: str, trips: Path, plain: Path
) -> None:
    file = plain / "release.json"
    before = file.read_text()
    about = json.loads(before)
    about["rule"] |= constraints
    file.write_text(json.dumps(about))
    found = [each.message for each in findings(audit_with_trips(trips, plain), "rule")]
    file.write_text(before)
    assert any(said in each for each in found)
    assert any("does not promise" in each for each in found)


def test_a_policy_can_ask_for_it(plain: Path, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[rule]\nmax_share = 0.5\nmin_destinations = 2\n")
    policy = read_policy(tmp_path / "policy.toml")
    assert check_release(kept, policy) == []
    assert len(check_release(plain, policy)) == 2
    assert len(check_release(kept, Policy(rule={"max_share": 0.4, "min_destinations": 3}))) == 2


def test_the_command_says_what_was_asked(trips: Path, tmp_path: Path) -> None:
    asked = ("--max-share", 0.5, "--min-destinations", 2)
    done = odkanon("anonymize", trips, "-o", tmp_path / "out", "--budget", 0.2, *asked)
    assert done.returncode == 0, done.stderr
    assert "has more than 50 % of the trips" in output(done)
    public = json.loads((tmp_path / "out" / "release.json").read_text())
    assert public["rule"] == {"k": 10, "trips": 10, "persons": 10, **CONSTRAINTS}
    assert {name: told(tmp_path / "out")["rule"][name] for name in CONSTRAINTS} == CONSTRAINTS
    again = odkanon("rerun", tmp_path / "out.recipe.json")
    assert "The same bytes" in output(again)
    refused = odkanon("anonymize", trips, "-o", tmp_path / "no", "--segment", "sex", *asked)
    assert refused.returncode == 2
    assert "--max-share does not apply with --segment" in output(refused)
