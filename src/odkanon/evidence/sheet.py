"""The sheet: what was released, what was tried against it, and what came out, for whoever signs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from odkanon._version import __version__
from odkanon.audit.release_reader import PublishedRelease
from odkanon.evidence.attack_context import Case
from odkanon.evidence.finding import Question
from odkanon.evidence.noise_comparison import Yardstick
from odkanon.evidence.runner import Attempt
from odkanon.evidence.sampling import Sampling
from odkanon.release_format.names import CSV, MANIFEST, PARQUET, ZONES, sha256

FORMAT = 1
NOTICE = (
    "For the reviewer of the release, not for publication: examples name flows, and numbers of attacks follow from the "
    "trips. What is released, the promise and the policy may be shown to anybody."
)
PRIVATE = ("trips", "attacks", "questions", "sampling", "yardstick")
"""The parts that are not for publication."""
_PACKAGES = ("numpy", "duckdb", "h3", "pyarrow", "scipy", "opendp")


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that is known for or against a release.

    Attributes
    ----------
    content : dict
        What the file of the evidence says.
    """

    content: dict[str, Any]

    @property
    def clean(self) -> bool:
        """Whether no attack found what the release promises not to have, and the policy, if any, is kept."""
        found = any(each["verdict"] == "found" for each in self.content["attacks"])
        return not found and not (self.content["policy"] or {}).get("broken")

    @property
    def broken(self) -> list[str]:
        """A line for each thing that speaks against signing."""
        lines = [
            f"{each['title']}: {each['message']}" for each in self.content["attacks"] if each["verdict"] == "found"
        ]
        return lines + list((self.content["policy"] or {}).get("broken", []))


def make_sheet(
    case: Case, made: Sequence[Attempt], *, sampling: Sampling | None, yardstick: Yardstick | None
) -> dict[str, Any]:
    """Return the content of the sheet, without a policy."""
    release = case.release
    return {
        "format": FORMAT,
        "version": __version__,
        "notice": NOTICE,
        "not_for_publication": list(PRIVATE),
        "release": _release(release),
        "trips": _trips(case),
        "earlier": [{"name": each.name, "sha256": sha256(each.folder / MANIFEST)} for each in case.earlier],
        "attacks": [each.as_dict() for each in made],
        "questions": questions(made, release),
        "sampling": None if sampling is None else asdict(sampling),
        "yardstick": None if yardstick is None else _yardstick(yardstick),
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


def _trips(case: Case) -> dict[str, Any]:
    records = case.opened.records
    return {
        "name": Path(case.reading.name).name,
        "sha256": None if records is None else records.sha256,
        "trips": int(case.trips.trips.sum()),
        "persons": case.trips.persons or None,
        "listed": int(case.trips.trips[case.trips.row >= 0].sum()),
    }


def _yardstick(found: Yardstick) -> dict[str, Any]:
    """Return a yardstick as JSON can hold it: no infinite numbers, no numbers as keys."""
    return {
        "release": {f"{km:g} km": cpc for km, cpc in found.release.items()},
        "points": [
            {**asdict(point), "cpc": {f"{km:g} km": cpc for km, cpc in point.cpc.items()}} for point in found.points
        ],
        "trips_of_a_person": found.at_most,
        "as_useful_as_epsilon": {
            unit: {f"{km:g} km": None if value in (None, float("inf")) else value for km, value in by_km.items()}
            for unit, by_km in found.equals.items()
        },
        "words": found.words,
    }


def questions(made: Sequence[Attempt], release: PublishedRelease) -> list[dict[str, Any]]:
    """Return the three questions of the Article 29 working party, with the numbers that answer them."""
    numbers = {each.attack.name: dict(each.finding.numbers) for each in made}
    few = {name: value for name, value in release.disclosed_thresholds.items() if value is not None}
    disclosed_thresholds = " and ".join(f"{value:,.10g} {name}" for name, value in few.items())
    unique = numbers.get("uniqueness", {})
    before, after = unique.get("unique by 4 trips, before"), unique.get("unique by 4 trips, by rows")
    asked: dict[Question, str] = {
        "singling out": (
            f"Is it still possible to single out an individual? Every row is shared by at least "
            f"{disclosed_thresholds}; rows carry no identifiers and no times of single trips."
        ),
        "linkability": (
            "Is it still possible to link records of an individual? Each trip is in one row at most, and no row says "
            "whose trips they are." + _before_and_after(before, after)
        ),
        "inference": (
            "Can information be inferred about an individual? What a row tells holds for all who share it. Who knows "
            "enough about the others learns about the rest; the numbers say how much."
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
                    "value": each.finding.numbers.get(each.attack.number),
                }
                for each in made
                if each.attack.question == question
            ],
        }
        for question, answer in asked.items()
    ]


def _before_and_after(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return (
        f" In the input, four trips tell {before:.0%} of persons from all others; by rows it would be {after:.0%}, if "
        "trips could be linked."
    )


def versions() -> dict[str, str | None]:
    """Return what this was made with."""
    found: dict[str, str | None] = {"odkanon": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def with_policy(content: Mapping[str, Any], name: str, digest: str, broken: Sequence[str]) -> dict[str, Any]:
    """Return a sheet that says what a policy found."""
    return {**content, "policy": {"name": name, "sha256": digest, "kept": not broken, "broken": list(broken)}}
