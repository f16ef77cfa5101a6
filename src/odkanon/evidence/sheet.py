"""The content of the evidence sheet: the release, the attacks and their outcomes, for the person who signs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.audit.release_reader import PublishedRelease
from odkanon.evidence.attack import AttackRun, Question
from odkanon.evidence.attack_context import AttackContext
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.policy import HOUSEHOLDS, Policy, PolicyLine
from odkanon.release_format.names import FILES, MANIFEST, sha256
from odkanon.release_format.recipe import installed_versions

FORMAT = 1
NOTICE = (
    "For the reviewer of the release, not for publication: examples name flows, and numbers of attacks follow from the "
    "trips. What is released, the promise and the policy may be shown to anybody."
)
PRIVATE = ("verdict", "trips", "input", "choices", "noise", "attacks", "questions", "sampling")
"""The parts that must not be published."""
MAY_BE_PUBLISHED, DECIDE, DO_NOT_PUBLISH = "may be published", "decide these points", "do not publish"
NESTED_IN_WORDS = (
    "In other words: every trip is counted once at most, between the smallest places that enough trips share; what is "
    "too little for these is counted between larger places around them. Somebody who has the table and knows how it "
    "was made cannot prove that there is a smaller group between any two places, unless they also know the total of "
    "all trips."
)
_PACKAGES = ("numpy", "duckdb", "h3", "pyarrow", "scipy")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence for and against a release."""

    content: dict[str, Any]
    """The content of ``evidence.json``."""

    @property
    def clean(self) -> bool:
        """Whether no attack broke the promise of the release, and the policy, if any, is met."""
        found = any(each["verdict"] == "found" for each in self.content["attacks"])
        return not found and not (self.content["policy"] or {}).get("broken")

    @property
    def verdict(self) -> str:
        """``may be published``, ``decide these points`` or ``do not publish``."""
        return str(self.content["verdict"]["verdict"])

    @property
    def broken(self) -> list[str]:
        """A line for each reason not to sign."""
        lines = [
            f"{each['title']}: {each['message']}" for each in self.content["attacks"] if each["verdict"] == "found"
        ]
        return lines + list((self.content["policy"] or {}).get("broken", []))


def describe_sampling(context: AttackContext) -> dict[str, Any] | None:
    """Return the sampling rates implied by the weights, on average and where the sample is densest, with a summary.

    None without weights, or if they expand nothing.
    """
    records = context.opened.records
    if records is None or "weight" not in records.measures:
        return None
    trips, weight, least = context.opened.connection.execute(
        "SELECT sum(trips)::BIGINT, CAST(sum(weight) AS DOUBLE), CAST(min(weight / trips) AS DOUBLE) "
        f"FROM scope{context.release.number}"
    ).fetchall()[0]
    if not weight or weight <= trips:
        return None
    rate, most = trips / weight, min(1.0, 1 / least)
    words = (
        f"By the weights, the {trips:,} trips stand for {weight:,.0f}: about one in {1 / rate:,.0f} was asked about, "
        f"at most one in {1 / most:,.0f}. Somebody who only knows that a neighbour makes such a trip does not know "
        "whether the neighbour was asked, and a row of the table is most likely about others. This helps against "
        "strangers, not against those who know who took part: the household, the interviewer, the person. It is no "
        "part of the promise, and nothing on this sheet counts on it."
    )
    return {"trips": trips, "weight": weight, "rate": rate, "most": most, "words": words}


def make_sheet(
    context: AttackContext,
    runs: Sequence[AttackRun],
    *,
    sampling: dict[str, Any] | None,
    choices: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content of the sheet, without a policy and a verdict."""
    release = context.release
    return {
        "format": FORMAT,
        "version": __version__,
        "notice": NOTICE,
        "not_for_publication": list(PRIVATE),
        "release": _release(release.name, release.folder, release.manifest),
        "trips": _trips(context),
        "input": _input(context),
        "choices": choices,
        "not_promised": not_promised(release),
        "in_words": NESTED_IN_WORDS if release.nested and release.parameters.get("allow_inference") is False else None,
        "earlier": [{"name": each.name, "sha256": sha256(each.folder / MANIFEST)} for each in context.earlier],
        "attacks": [each.as_dict() for each in runs],
        "questions": questions(runs, release),
        "sampling": sampling,
        "policy": None,
        "versions": versions(),
    }


def make_noise_sheet(folder: Path, manifest: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of the sheet of a noisy release, which has no counts to attack: what was checked instead."""
    return {
        "format": FORMAT,
        "version": __version__,
        "notice": NOTICE,
        "not_for_publication": list(PRIVATE),
        "release": _release(folder.name, folder, manifest),
        "trips": {"name": "not read", "sha256": None},
        "input": None,
        "choices": None,
        "not_promised": [
            "Silence about groups: what rows show of everybody in a place holds for each of them.",
            "Anything about people who share an id: they are protected as one. Of who has two ids, each is protected.",
            "Safety of exact counts of the same trips, published beside this release.",
        ],
        "in_words": None,
        "earlier": [],
        "attacks": list(checks),
        "questions": [],
        "sampling": None,
        "policy": None,
        "versions": versions(),
    }


def _release(name: str, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "statement": about.get("statement"),
        "rule": about.get("rule"),
        "method": about.get("method"),
        "parameters": about.get("parameters"),
        "resolution": about.get("resolution"),
        "published": about.get("published"),
        "unlisted": about.get("unlisted"),
        "period": about.get("period"),
        "made_with": about.get("version"),
        "sha256": {name: sha256(folder / name) for name in FILES if (folder / name).is_file()},
    }


def _trips(context: AttackContext) -> dict[str, Any]:
    records, trips = context.opened.records, context.trips
    return {
        "name": Path(context.spec.name).name,
        "sha256": None if records is None else records.sha256,
        "trips": int(trips.trips.sum()),
        "persons": trips.persons or None,
        "listed": int(trips.trips[trips.row >= 0].sum()),
    }


def _input(context: AttackContext) -> dict[str, Any]:
    """Return what was read, rejected and left out."""
    about = context.release.provenance or {}
    given = about.get("input", {})
    return {
        "rows": given.get("rows"),
        "trips": given.get("trips"),
        "rejected": given.get("rejected", {}),
        "suppressed": about.get("suppressed"),
        "persons": given.get("persons"),
        "households": given.get("households"),
    }


def not_promised(release: PublishedRelease) -> list[str]:
    """Return what a release does not promise, a sentence each."""
    protected = release.disclosed_thresholds
    lines = [
        "Protection from people who know almost everything: whoever knows the trips of all others can subtract them, "
        "and find those of the last one.",
        "Silence about groups: what a flow shows of all who share it holds for each of them.",
        "Safety beside tables that were not compared here, earlier or later, of the same trips.",
    ]
    if "persons" not in protected and "households" not in protected:
        lines.append("That different persons share a flow: the rule counts trips, and ten of them may be one person's.")
    elif "households" not in protected:
        lines.append("That different households share a flow: ten persons may live together.")
    if release.nested:
        lines.append("Anything to a reader who knows the total of the input: it must not be published beside the rows.")
    return lines


def questions(runs: Sequence[AttackRun], release: PublishedRelease) -> list[dict[str, Any]]:
    """Return the three questions of the Article 29 Working Party, with the numbers that answer them."""
    numbers = {each.attack.name: dict(each.result.numbers) for each in runs}
    disclosed = {name: value for name, value in release.disclosed_thresholds.items() if value is not None}
    thresholds = " and ".join(f"{value:,.10g} {name}" for name, value in disclosed.items())
    unique = numbers.get("uniqueness", {})
    before, after = unique.get("unique by 4 trips, before"), unique.get("unique by 4 trips, by rows")
    answers: dict[Question, str] = {
        "singling out": (
            f"Is it still possible to single out an individual? Every row is shared by at least {thresholds}; "
            "rows carry no identifiers and no times of single trips."
        ),
        "linkability": (
            "Is it still possible to link records of an individual? Each trip is in one row at most, and no row "
            "identifies whose trips they are." + _before_and_after(before, after)
        ),
        "inference": (
            "Can information be inferred about an individual? A row holds for all who share it. Whoever knows enough "
            "about the others learns about the remaining ones; the numbers show how much."
        ),
    }
    return [
        {
            "question": question,
            "answer": answer,
            "attacks": [
                {
                    "attack": each.attack.name,
                    "title": each.attack.title,
                    "verdict": each.verdict,
                    "number": each.attack.number,
                    "value": each.result.numbers.get(each.attack.number),
                }
                for each in runs
                if each.attack.question == question
            ],
        }
        for question, answer in answers.items()
    ]


def _before_and_after(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return (
        f" In the input, four trips single out {before:.0%} of persons; by rows it would be {after:.0%}, if "
        "trips could be linked."
    )


def versions() -> dict[str, str | None]:
    """Return the versions of the program and its main dependencies."""
    own = {"odkanon": __version__, "python": platform.python_version()}
    return {**own, **dict.fromkeys(_PACKAGES), **installed_versions(_PACKAGES)}


def with_policy(
    content: Mapping[str, Any], policy: Policy, lines: Sequence[PolicyLine], *, name: str, digest: str
) -> dict[str, Any]:
    """Return a sheet with the outcome of a policy check, line by line."""
    broken = [line.found for line in lines if line.outcome != "pass"]
    described = {
        "name": name,
        "sha256": digest,
        "kept": not broken,
        "broken": broken,
        "lines": [asdict(line) for line in lines],
        "asked_by": policy.asked_by,
        "reason": policy.reason,
        "decided": sorted({*policy.accepted, *policy.limits}),
    }
    return {**content, "policy": described}


def with_verdict(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sheet with its verdict and the points that it depends on.

    Whatever breaks a promise or the policy stops a release. What is left to a person is what k-anonymity never ruled
    out, what was not settled, and what the policy wants reviewed, unless the policy has decided it: it accepts an
    attack, or sets a limit for it that is met.
    """
    policy = content["policy"] or {}
    stops = [f"{each['title']}: {each['message']}" for each in content["attacks"] if each["verdict"] == "found"]
    stops += [f"Policy: {line['found']}" for line in policy.get("lines", []) if line["outcome"] == "fail"]
    points = [
        {"about": "policy", "question": f"Policy: {line['requirement']}?", "because": line["found"]}
        for line in policy.get("lines", [])
        if line["outcome"] == "review"
    ]
    if not policy:
        question = "Policy: is this rule what your office requires?"
        points.append({"about": "policy", "question": question, "because": "No policy was given to compare with."})
    few = (content.get("input") or {}).get("few_households")
    if few and few["below"] and HOUSEHOLDS not in policy.get("decided", ()):
        question = f"Households: may flows be of fewer than {few['k']:,} households?"
        because = f"{few['below']:,} of {few['of']:,} flows are. {few['price'] or ''}".strip()
        points.append({"about": HOUSEHOLDS, "question": question, "because": because})
    reviewed = {line["requirement"].split()[0] for line in policy.get("lines", []) if line["outcome"] == "review"}
    for each in content["attacks"]:
        asked = _question(each)
        if asked is not None and each["attack"] not in {*policy.get("decided", ()), *reviewed}:
            because = each["message"].partition(". ")[0].rstrip(".") + "."
            points.append({"about": each["attack"], "question": f"{each['title']}: {asked}", "because": because})
    verdict = DO_NOT_PUBLISH if stops else DECIDE if points else MAY_BE_PUBLISHED
    return {**content, "verdict": {"verdict": verdict, "stops": stops, "points": points}}


def _question(attack: Mapping[str, Any]) -> str | None:
    """Return what there is to decide about the outcome of an attack."""
    known = ATTACKS.get(attack["attack"])
    if attack["verdict"] == "to weigh":
        return "is what came out acceptable?" if known is None else known.decision
    if attack["verdict"] == "not settled":
        return "is what was not settled acceptable? More time may settle it (--seconds)."
    return "it was not made; is that acceptable?" if attack["verdict"] == "not made" else None
