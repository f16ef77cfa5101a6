"""The policy of an office, read from a file, and the check of a release against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from odkanon.core.parsing import parse_toml
from odkanon.errors import DamagedReleaseError, InvalidValueError, UnknownNameError, UnreadableFileError
from odkanon.evidence.attacks import ATTACKS
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import MEASURES
from odkanon.model.rule import CONSTRAINTS
from odkanon.release_format.folder import SavedRelease, open_release
from odkanon.release_format.names import MANIFEST, sha256
from odkanon.release_format.recipe import read_recipe
from odkanon.zoning.cells import cell_to_resolution, is_valid_cell, str_to_cell

EXAMPLE = """\
# What this office requires of a release. Delete what you do not require. `odkanon check RELEASE --policy FILE` lists
# the violations, and `odkanon evidence` puts them on the sheet.

[rule]
# The minimum that every published flow must promise, by measure.
trips = 10
persons = 10          # if the data identify persons, require them: ten trips of one person hide nobody
# households = 5
# weight = 25000.0
# max_share = 0.5        # no person or household contributes more than half of the trips of a flow
# min_destinations = 2   # no origin zone with a single published destination

[release]
methods = ["odkanon", "cascade"]   # methods that may be used
most_suppressed = 0.10             # maximum share of trips suppressed
finest_resolution = 9              # no zone finer than this H3 resolution (10 is a block, 9 a few of them)
smallest_area_km2 = 0.05           # no zone smaller than this

[attacks]
# Attacks that must be clean; they are on the sheet of `odkanon evidence`.
clean = ["complement", "differencing", "intervals", "borders"]
# "replay" can be required, too: give it time (--seconds 600), and it may still end as "not settled".

[limits.dominance]
# Upper limits on numbers of attacks, by their names on the sheet.
"largest share" = 0.75

[limits.membership]
"outsider AUC" = 0.90

[compare]
# Earlier releases of the same trips; paths are relative to this file.
releases = []
"""

_KEYS: dict[str, Any] = {
    "rule": (*MEASURES, *CONSTRAINTS),
    "release": ("methods", "most_suppressed", "finest_resolution", "smallest_area_km2"),
    "attacks": ("clean",),
    "limits": ATTACKS,
    "compare": ("releases",),
}


@dataclass(frozen=True)
class Policy:
    """The requirements of an office on a release.

    Attributes
    ----------
    rule : mapping of str to float
        The minimum that a release must promise for every flow, by measure or constraint; ``max_share`` is a maximum.
    methods : tuple of str
        Methods that may be used; any if empty.
    most_suppressed : float or None
        Maximum share of trips suppressed, in [0, 1].
    finest_resolution : int or None
        The finest H3 resolution of a zone.
    smallest_area_km2 : float or None
        The minimum area of a zone.
    clean : tuple of str
        Attacks that must be clean.
    limits : mapping of str to mapping of str to float
        Upper limits, by attack and number.
    compare : tuple of Path
        Releases to compare with.
    """

    rule: Mapping[str, float] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    most_suppressed: float | None = None
    finest_resolution: int | None = None
    smallest_area_km2: float | None = None
    clean: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    compare: tuple[Path, ...] = ()

    @property
    def needs_evidence(self) -> bool:
        """Whether it requires attacks."""
        return bool(self.clean or self.limits or self.compare)


def read_policy(path: Path | str) -> Policy:
    r"""Read a policy from a TOML file.

    Raises
    ------
    InputError
        If the file cannot be read, or has unknown names or wrong values.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "policy.toml"
    ...     _ = file.write_text("[rule]\ntrips = 10\n")
    ...     read_policy(file).rule
    {'trips': 10}
    """
    path = Path(path)
    try:
        content = parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        advice = "`odkanon policy` prints an example"
        raise UnreadableFileError.because(path, error, as_="a policy", advice=advice) from None
    for table, keys in content.items():
        _check_name(path, table, _KEYS, "table")
        if not isinstance(keys, dict):
            raise InvalidValueError.expected(f"{path}: {table}", f"a table, written [{table}]", keys)
        for key in keys:
            _check_name(path, key, _KEYS[table], f"key of [{table}]")
    release, attacks = content.get("release", {}), content.get("attacks", {})
    for name in _texts(path, release, "methods"):
        _check_name(path, name, METHODS, "method")
    for name in _texts(path, attacks, "clean"):
        _check_name(path, name, ATTACKS, "attack")
    finest = _number(path, release, "finest_resolution")
    return Policy(
        {name: _number(path, content["rule"], name) for name in content.get("rule", {})},
        _texts(path, release, "methods"),
        _number(path, release, "most_suppressed"),
        None if finest is None else int(finest),
        _number(path, release, "smallest_area_km2"),
        _texts(path, attacks, "clean"),
        {
            attack: {name: _number(path, numbers, name) for name in numbers}
            for attack, numbers in content.get("limits", {}).items()
        },
        tuple(path.parent / name for name in _texts(path, content.get("compare", {}), "releases")),
    )


def _check_name(path: Path, name: str, known: Any, what: str) -> None:
    if name not in known:
        raise UnknownNameError(f"{path}: {UnknownNameError.among(what, name, known)}")


def _texts(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidValueError.expected(f"{path}: {key}", 'a list of texts, such as ["odkanon"]', value)
    return tuple(value)


def _number(path: Path, table: Mapping[str, Any], key: str) -> Any:
    value = table.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise InvalidValueError.expected(f"{path}: {key}", "a number of at least 0", value)
    return value


def check_release(folder: Path | str, policy: Policy, evidence: Mapping[str, Any] | None = None) -> list[str]:
    """Return a line for each requirement of a policy that a release violates.

    Parameters
    ----------
    folder : path
        The release; the recipe beside it has the share suppressed.
    policy : Policy
        The requirements.
    evidence : mapping, optional
        The content of ``evidence.json``, if the policy requires attacks.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.evidence.policy import Policy
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     check_release(saved, Policy(rule={"persons": 10}))
    ['rule: the release promises nothing about persons; at least 10 are asked for']
    """
    folder = Path(folder)
    release = open_release(folder)
    broken = [*_check_rule(release, policy), *_check_method(release, policy), *_check_zones(release, policy)]
    broken += _check_suppressed(folder, release, policy)
    if policy.needs_evidence:
        broken += _check_evidence(folder, policy, evidence)
    return broken


def _check_rule(release: SavedRelease, policy: Policy) -> list[str]:
    broken, promised = [], release.manifest.get("rule", {})
    for measure, least in policy.rule.items():
        if measure == "max_share":
            if promised.get(measure, 1.0) > least:
                broken.append(f"rule: one person may have more than {least:g} of the trips of a flow, {measure}")
        elif measure not in promised:
            broken.append(f"rule: the release promises nothing about {measure}; at least {least:,g} are asked for")
        elif promised[measure] < least * (1 - 1e-12):
            broken.append(f"rule: the release promises {promised[measure]:,g} {measure}; {least:,g} are asked for")
    return broken


def _check_method(release: SavedRelease, policy: Policy) -> list[str]:
    method = release.manifest.get("method")
    if not policy.methods or method in policy.methods:
        return []
    return [f"release: made by {method}; allowed are {', '.join(policy.methods)}"]


def _check_zones(release: SavedRelease, policy: Policy) -> list[str]:
    broken = []
    about = [zone["properties"] for zone in release.features]
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
        most, listed = release.manifest.get("unlisted", {}).get("at_most_trips"), release.manifest["published"]["trips"]
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
        raise DamagedReleaseError.because("the evidence", "is incomplete", advice="gather it again") from None
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
