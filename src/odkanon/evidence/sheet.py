"""The content of the evidence sheet: the release, the attacks and their outcomes, for the person who signs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.audit.release_reader import PublishedRelease
from odkanon.evidence.attack import AttackRun, Question
from odkanon.evidence.attack_context import AttackContext
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, sha256

FORMAT = 1
NOTICE = (
    "For the reviewer of the release, not for publication: examples name flows, and numbers of attacks follow from the "
    "trips. What is released, the promise and the policy may be shown to anybody."
)
PRIVATE = ("trips", "attacks", "questions", "sampling")
"""The parts that must not be published."""
_PACKAGES = ("numpy", "duckdb", "h3", "pyarrow", "scipy")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence for and against a release.

    Attributes
    ----------
    content : dict
        The content of ``evidence.json``.
    """

    content: dict[str, Any]

    @property
    def clean(self) -> bool:
        """Whether no attack broke the promise of the release, and the policy, if any, is met."""
        found = any(each["verdict"] == "found" for each in self.content["attacks"])
        return not found and not (self.content["policy"] or {}).get("broken")

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


def make_sheet(context: AttackContext, runs: Sequence[AttackRun], *, sampling: dict[str, Any] | None) -> dict[str, Any]:
    """Return the content of the sheet, without a policy."""
    release = context.release
    return {
        "format": FORMAT,
        "version": __version__,
        "notice": NOTICE,
        "not_for_publication": list(PRIVATE),
        "release": _release(release),
        "trips": _trips(context),
        "earlier": [{"name": each.name, "sha256": sha256(each.folder / MANIFEST)} for each in context.earlier],
        "attacks": [each.as_dict() for each in runs],
        "questions": questions(runs, release),
        "sampling": sampling,
        "policy": None,
        "versions": versions(),
    }


def _release(release: PublishedRelease) -> dict[str, Any]:
    about = release.manifest
    return {
        "name": release.name,
        "statement": about.get("statement"),
        "rule": about.get("rule"),
        "method": about.get("method"),
        "parameters": about.get("parameters"),
        "resolution": about.get("resolution"),
        "published": about.get("published"),
        "unlisted": about.get("unlisted"),
        "made_with": about.get("version"),
        "sha256": {
            name: sha256(release.folder / name)
            for name in (MANIFEST, CSV, PARQUET, ZONES)
            if (release.folder / name).is_file()
        },
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
    found: dict[str, str | None] = {"odkanon": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def with_policy(content: Mapping[str, Any], name: str, digest: str, broken: Sequence[str]) -> dict[str, Any]:
    """Return a sheet with the outcome of a policy check."""
    return {**content, "policy": {"name": name, "sha256": digest, "kept": not broken, "broken": list(broken)}}
