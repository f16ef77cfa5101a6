"""The sheet and the policy: what they say, and what they break on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import odkanon as odkanon_package
from cli.runner import odkanon, output
from evidence.towns import release, write_town
from odkanon import (
    InputError,
    InputSpec,
    Rule,
    build_od,
    check_release,
    gather_evidence,
    make_survey,
    open_release,
    read_policy,
    read_trips,
)
from odkanon.evidence.attack_context import open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.policy import EXAMPLE, Policy, PolicyLine
from odkanon.evidence.sheet import describe_sampling, with_policy, with_verdict
from odkanon.evidence.sheet_page import page
from odkanon.methods.method_registry import anonymize


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_town(tmp_path_factory.mktemp("town") / "trips.parquet")


@pytest.fixture(scope="module")
def saved(town: Path) -> Path:
    return release(town, town.parent / "release", resolution=9)


@pytest.fixture(scope="module")
def sheet(town: Path, saved: Path) -> Path:
    """The sheet as the command writes it."""
    rules = town.parent / "policy.toml"
    rules.write_text('[rule]\ntrips = 10\npersons = 5\n[attacks]\nclean = ["intervals", "replay"]\n')
    done = odkanon(
        "evidence", saved, "--trips", town, "--resolution", 9, "--policy", rules, "-o", town.parent / "sheet"
    )
    assert done.returncode == 1, output(done)
    assert "promises nothing about persons" in output(done)
    return town.parent / "sheet.json"


def test_the_sheet_has_all_of_its_parts(sheet: Path, saved: Path) -> None:
    content = json.loads(sheet.read_text())
    assert [each["attack"] for each in content["attacks"]] == list(ATTACKS)
    assert [each["question"] for each in content["questions"]] == ["singling out", "linkability", "inference"]
    assert {one["attack"] for each in content["questions"] for one in each["attacks"]} == set(ATTACKS)
    assert "yardstick" not in content
    assert "one in 2" in content["sampling"]["words"]
    assert content["policy"]["broken"] == ["rule: the release promises nothing about persons; at least 5 are asked for"]
    text = sheet.with_suffix(".html").read_text()
    for word in ("not for publication", "Signature", content["release"]["sha256"]["release.json"]):
        assert word in text
    assert "http" not in text
    assert str(saved.parent) not in text


def test_the_verdict_comes_first_and_names_what_it_depends_on(sheet: Path) -> None:
    content = json.loads(sheet.read_text())
    verdict, policy = content["verdict"], content["policy"]
    assert verdict["verdict"] == "do not publish"
    assert verdict["stops"] == ["Policy: rule: the release promises nothing about persons; at least 5 are asked for"]
    assert "membership" in {each["about"] for each in verdict["points"]}
    assert "uniqueness" not in {each["about"] for each in verdict["points"]}
    assert [line["outcome"] for line in policy["lines"]][:2] == ["pass", "fail"]
    text = sheet.with_suffix(".html").read_text()
    digest = content["release"]["sha256"]["release.json"]
    assert text.index("do not publish") < text.index("What is promised") < text.index("Approval") < text.index(digest)
    assert "AUC" not in text


def test_a_policy_decides_what_it_accepts_or_limits(sheet: Path) -> None:
    content = json.loads(sheet.read_text())
    undecided = {each["attack"] for each in content["attacks"] if each["verdict"] in ("to weigh", "not settled")}
    lines = [PolicyLine("at least 10 trips in every flow", "pass", "promised: 10")]
    rules = Policy(accepted=tuple(undecided - {"membership"}), limits={"membership": {"outsider AUC": 1.0}})
    decided = with_verdict(with_policy(content, rules, lines, name="policy.toml", digest="0"))
    assert decided["verdict"] == {"verdict": "may be published", "stops": [], "points": []}
    found = [{**each, "verdict": "found"} if each["attack"] == "replay" else each for each in content["attacks"]]
    stopped = with_verdict({**decided, "attacks": found})["verdict"]
    assert (stopped["verdict"], len(stopped["stops"])) == ("do not publish", 1)
    review = [PolicyLine("replay is clean", "review", "attacks: replay is not clean (not settled): ...")]
    open_point = with_verdict(with_policy(content, rules, review, name="policy.toml", digest="0"))["verdict"]
    assert (open_point["verdict"], len(open_point["points"])) == ("decide these points", 1)


def test_another_k_is_the_same_request_made_again(sheet: Path, town: Path, saved: Path) -> None:
    choices = {each["k"]: each for each in json.loads(sheet.read_text())["choices"]["choices"]}
    assert set(choices) == {5, 10, 20}
    assert choices[10]["flows"] == len(open_release(saved).table)
    other = release(town, town.parent / "five", resolution=9, k=5)
    assert choices[5]["flows"] == len(open_release(other).table) > choices[10]["flows"] > choices[20]["flows"]
    assert choices[5]["right"]["2 km"] > choices[20]["right"]["2 km"]
    attacks = {each["attack"]: each["numbers"] for each in json.loads(sheet.read_text())["attacks"]}
    assert choices[10]["outsider"] == attacks["membership"]["outsider AUC"]
    assert choices[10]["largest"] == attacks["dominance"]["largest share"]


def test_a_rule_on_persons_promises_as_many_trips(town: Path) -> None:
    made = anonymize(build_od(read_trips(town), resolution=9), Rule(persons=10)).save(town.parent / "persons")
    assert check_release(made, Policy(rule={"trips": 10, "persons": 10})) == []
    assert check_release(made, Policy(rule={"trips": 11})) == ["rule: the release promises 10 trips; 11 are asked for"]


def test_the_recipe_names_the_trips_and_how_they_are_read(sheet: Path, saved: Path, tmp_path: Path) -> None:
    for at, release_or_recipe in enumerate((saved, f"{saved}.recipe.json")):
        done = odkanon("evidence", release_or_recipe, "--seconds", 1, "-o", tmp_path / f"sheet{at}")
        assert done.returncode == 0, output(done)
        assert json.loads((tmp_path / f"sheet{at}.json").read_text())["trips"] == json.loads(sheet.read_text())["trips"]
    moved = saved.parent / "elsewhere"
    moved.mkdir()
    shutil.copytree(saved, moved / "release")
    done = odkanon("evidence", moved / "release", "-o", tmp_path / "none")
    assert done.returncode == 2
    assert "were not found by its recipe; name them, with the reading options (option --trips FILE)" in output(done)


def test_the_sheet_has_the_digest_of_every_file(sheet: Path, saved: Path) -> None:
    files = {each.name for each in saved.iterdir()}
    text = sheet.with_suffix(".html").read_text()
    assert json.loads(sheet.read_text())["release"]["sha256"].keys() == files
    assert all(name in text for name in files)


def test_a_sheet_is_written_outside_the_release_only(saved: Path, town: Path) -> None:
    done = odkanon("evidence", saved, "--trips", town, "-o", saved / "sheet")
    assert done.returncode == 2
    assert "lies in the release" in output(done)


def test_check_is_for_pipelines(sheet: Path, saved: Path, tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('[rule]\ntrips = 10\n[attacks]\nclean = ["intervals"]\n')
    kept = odkanon("check", saved, "--policy", rules, "--evidence", sheet)
    assert (kept.returncode, "meets" in kept.stdout) == (0, True)
    missing = odkanon("check", saved, "--policy", rules)
    assert missing.returncode == 1
    assert "broken: attacks: the policy asks for attacks" in missing.stdout


def test_the_example_is_a_policy(tmp_path: Path) -> None:
    done = odkanon("check", "--template", "-o", tmp_path / "policy.toml")
    assert done.returncode == 0
    assert (tmp_path / "policy.toml").read_text() == EXAMPLE
    policy = read_policy(tmp_path / "policy.toml")
    assert policy.rule == {"trips": 10, "persons": 10}
    assert policy.finest_resolution == 9
    assert odkanon("check", "--template").stdout == EXAMPLE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rules]\ntrips = 10\n", "unknown table 'rules'.*rule"),
        ("[rule]\ntrip = 10\n", "unknown key of .rule. 'trip'.*trips"),
        ("[rule]\ntrips = '10'\n", "trips must be a number"),
        ('[attacks]\nclean = ["interval"]\n', "unknown attack 'interval'.*intervals"),
        ('[release]\nmethods = "odkanon"\n', "list of texts"),
        ("rule = 3\n", "must be a table"),
        ("[rule\n", "cannot be read as a policy"),
    ],
)
def test_a_wrong_policy_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_policy(path)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(rule={"trips": 11}), "promises 10 trips; 11"),
        (Policy(methods=("cascade",)), "made by odkanon"),
        (Policy(finest_resolution=3), "H3 resolution"),
        (Policy(smallest_area_km2=1e6), "km2"),
        (Policy(most_suppressed=0.0), "are left out"),
        (Policy(clean=("membership",)), "membership is not clean"),
        (Policy(limits={"dominance": {"largest share": 0.0}}), "largest share"),
        (Policy(limits={"dominance": {"largest": 1.0}}), "no number 'largest'"),
        (Policy(compare=(Path("january"),)), "does not compare with january"),
    ],
)
def test_each_broken_rule_is_one_line(policy: Policy, said: str, sheet: Path, saved: Path) -> None:
    (line,) = check_release(saved, policy, json.loads(sheet.read_text()))
    assert said in line


def test_what_is_asked_may_be_kept(sheet: Path, saved: Path) -> None:
    policy = Policy(
        {"trips": 10}, ("odkanon",), 0.1, 9, 0.01, ("intervals", "borders"), {"dominance": {"largest share": 1.0}}
    )
    assert check_release(saved, policy, json.loads(sheet.read_text())) == []


def test_evidence_of_another_release_does_not_count(sheet: Path, town: Path) -> None:
    other = release(town, town.parent / "other", resolution=9, k=20)
    (line,) = check_release(other, Policy(clean=("intervals",)), json.loads(sheet.read_text()))
    assert "about another release" in line


def test_names_do_not_become_markup(sheet: Path) -> None:
    content = json.loads(sheet.read_text())
    content["release"]["name"] = "<script>alert(1)</script>"
    assert "<script>" not in page(content)


def test_without_a_policy(town: Path, saved: Path) -> None:
    made = gather_evidence(saved, InputSpec(town, resolution=9), seconds=5)
    assert made.content["policy"] is None
    assert not made.broken or not made.clean
    with pytest.raises(InputError, match="must be above 0 seconds"):
        gather_evidence(saved, town, seconds=0)


def test_weights_tell_the_rate(town: Path, saved: Path) -> None:
    found = describe_sampling(open_context(saved, InputSpec(town, resolution=9)))
    assert found is not None
    assert found["rate"] == pytest.approx(found["trips"] / found["weight"])
    assert found["most"] == 1.0


INTERRUPTED = """
import os, signal, sys, threading, time
from odkanon.evidence.attack import Attack, AttackResult
from odkanon.evidence.attacks import ATTACKS, register_attack

def stop(context):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    if os.environ["DURING"] == "query":
        context.opened.connection.execute("SELECT sum(a.range * b.range) FROM range(60000) a, range(60000) b")
    time.sleep(10)
    return AttackResult("not interrupted")

for name in list(ATTACKS):
    ATTACKS.unregister(name)
register_attack(Attack("stop", "Stop", "Is it stopped?", "inference", "none", True, stop))
from odkanon.cli import main
main()
"""


@pytest.mark.parametrize("during", ["attack", "query"])  # DuckDB turns an interruption into an error of its own
def test_an_interruption_ends_the_command_without_a_sheet(during: str, town: Path, saved: Path, tmp_path: Path) -> None:
    arguments = ("evidence", saved, "--trips", town, "--resolution", "9", "-o", tmp_path / "sheet")
    command = [sys.executable, "-c", INTERRUPTED, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "DURING": during}, timeout=120
    )
    assert done.returncode == 130, done.stdout + done.stderr
    assert done.stderr.endswith("error: stopped; nothing was written\n")
    assert not list(tmp_path.iterdir())


def test_persons_imply_trips_and_households_imply_persons(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    odkanon_package.anonymize(make_survey().slice(0, 9_000), resolution=7, min_persons=10, min_trips=5).save(folder)
    assert check_release(folder, Policy(rule={"trips": 10, "persons": 10})) == []
    assert check_release(folder, Policy(rule={"trips": 11}))
    assert check_release(folder, Policy(rule={"households": 1}))


@pytest.mark.slow
def test_the_example_policy_passes_on_the_default_release_of_the_sample(tmp_path: Path) -> None:
    trips = tmp_path / "survey.parquet"
    pyarrow.parquet.write_table(make_survey(), trips)
    odkanon_package.anonymize(trips).save(tmp_path / "r")
    (tmp_path / "policy.toml").write_text(EXAMPLE)
    found = gather_evidence(tmp_path / "r", InputSpec(trips), policy=tmp_path / "policy.toml", seconds=60)
    assert found.broken == []
