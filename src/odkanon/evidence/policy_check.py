"""A release held against the policy of an office, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from odkanon.errors import InputError
from odkanon.evidence.policy import Policy
from odkanon.release_format.folder import SavedRelease, read_release
from odkanon.release_format.names import MANIFEST, sha256
from odkanon.release_format.recipe import read_recipe
from odkanon.zoning.cells import cell_to_resolution, is_valid_cell, str_to_cell


def check_release(folder: Path | str, policy: Policy, evidence: Mapping[str, Any] | None = None) -> list[str]:
    """Return a line for each thing that a release breaks of a policy; none where it keeps all of it.

    Parameters
    ----------
    folder : path
        The release, with its recipe beside it where it is to be known how much was left out.
    policy : Policy
        What is asked of it.
    evidence : mapping, optional
        The content of the file that `odkanon.gather_evidence` leads to, where the policy asks for attacks.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Policy, Rule, anonymize, build_od, make_survey, read_trips
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     check_release(saved, Policy(rule={"persons": 10}))
    ['rule: the release promises nothing about persons; at least 10 are asked for']
    """
    folder = Path(folder)
    release = read_release(folder)
    broken = [*_check_rule(release, policy), *_check_method(release, policy), *_check_zones(release, policy)]
    broken += _check_suppressed(folder, release, policy)
    if policy.needs_evidence:
        broken += _check_evidence(folder, policy, evidence)
    return broken


def _check_rule(release: SavedRelease, policy: Policy) -> list[str]:
    broken, disclosed_thresholds = [], release.about.get("rule", {})
    for measure, least in policy.rule.items():
        if measure == "max_share":
            if disclosed_thresholds.get(measure, 1.0) > least:
                broken.append(f"rule: one person may have more than {least:g} of the trips of a flow, {measure}")
        elif measure not in disclosed_thresholds:
            broken.append(f"rule: the release promises nothing about {measure}; at least {least:,g} are asked for")
        elif disclosed_thresholds[measure] < least * (1 - 1e-12):
            broken.append(
                f"rule: the release promises {disclosed_thresholds[measure]:,g} {measure}; {least:,g} are asked for"
            )
    return broken


def _check_method(release: SavedRelease, policy: Policy) -> list[str]:
    method = release.about.get("method")
    if not policy.methods or method in policy.methods:
        return []
    return [f"release: made by {method}; allowed are {', '.join(policy.methods)}"]


def _check_zones(release: SavedRelease, policy: Policy) -> list[str]:
    broken = []
    about = [zone["properties"] for zone in release.zones]
    if policy.finest_resolution is not None:
        cells = sorted({cell for zone in about for cell in zone.get("cells") or [zone["id"]]})
        numbers = str_to_cell(pa.array(cells, pa.string())) if cells else None
        finest = -1 if numbers is None else int(cell_to_resolution(numbers[is_valid_cell(numbers)]).max(initial=-1))
        if finest > policy.finest_resolution:
            broken.append(
                f"release: a zone has H3 resolution {finest}; {policy.finest_resolution} is the finest allowed"
            )
    if policy.smallest_area_km2 is not None:
        areas = [(zone["area_km2"], zone["id"]) for zone in about if zone.get("area_km2") is not None]
        if areas and min(areas)[0] < policy.smallest_area_km2:
            least, name = min(areas)
            broken.append(f"release: zone {name} has {least:g} km2; {policy.smallest_area_km2:g} are asked for")
    return broken


def _check_suppressed(folder: Path, release: SavedRelease, policy: Policy) -> list[str]:
    if policy.most_suppressed is None:
        return []
    recipe = read_recipe(folder)
    if recipe is not None:
        share = float(recipe["about"]["suppressed"]["share"])
    else:
        most, listed = release.about.get("unlisted", {}).get("at_most_trips"), release.about["published"]["trips"]
        if most is None:
            return ["release: how much was left out is not known without the recipe"]
        share = most / (most + listed) if most + listed else 0.0
    if share <= policy.most_suppressed + 1e-12:
        return []
    return [f"release: {share:.2%} of the trips are left out; {policy.most_suppressed:.2%} are allowed"]


def _check_evidence(folder: Path, policy: Policy, evidence: Mapping[str, Any] | None) -> list[str]:
    if evidence is None:
        return ["attacks: the policy asks for attacks, and no evidence was given"]
    try:
        if evidence["release"]["sha256"][MANIFEST] != sha256(folder / MANIFEST):
            return ["attacks: the evidence is about another release, or this one was changed since"]
        made = {each["attack"]: each for each in evidence["attacks"]}
        compared = {each["sha256"] for each in evidence["earlier"]}
    except (KeyError, TypeError):
        raise InputError("the evidence lacks something that every such file has; make it again") from None
    broken = [*_check_clean(policy.clean, made), *_check_limits(policy.limits, made)]
    return broken + [
        f"compare: the evidence does not compare with {other.name}"
        for other in policy.compare
        if not (other / MANIFEST).is_file() or sha256(other / MANIFEST) not in compared
    ]


def _check_clean(names: Sequence[str], made: Mapping[str, Mapping[str, Any]]) -> list[str]:
    broken = []
    for name in names:
        if name not in made:
            broken.append(f"attacks: {name} was not made")
        elif made[name]["verdict"] not in ("clean", "does not apply"):
            broken.append(f"attacks: {name} is not clean ({made[name]['verdict']}): {made[name]['message']}")
    return broken


def _check_limits(limits: Mapping[str, Mapping[str, float]], made: Mapping[str, Mapping[str, Any]]) -> list[str]:
    broken = []
    for name, numbers in limits.items():
        for number, most in numbers.items():
            value = made.get(name, {}).get("numbers", {}).get(number)
            if name in made and made[name]["verdict"] == "does not apply":
                continue
            if value is None:
                broken.append(f"limits: {name} has no number {number!r}")
            elif value > most:
                broken.append(f"limits: {name}, {number}: {value:.3g} is above {most:g}")
    return broken
