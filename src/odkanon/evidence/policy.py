"""The policy of an office, read from a file, and the check of a release against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

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
# the violations, and `odkanon evidence` puts every line on the sheet, with pass, review or fail.

[rule]
# Who asked for this rule, and why. Both are printed on the sheet.
# asked_by = "Data protection officer, decision of 12 March 2024"
# reason = "ten is the threshold of the national statistical office for mobility tables"
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

# [noise]
# epsilon = 3.0          # the most that a release with noise may spend ...
# delta = 1e-6
# unit = "person"        # ... for each person (or "trip")

[attacks]
# Attacks that must be clean; they are on the sheet of `odkanon evidence`.
clean = ["complement", "differencing", "intervals", "borders"]
# "replay" can be required, too: give it time (--seconds 600), and it may still end as "not settled".
# Attacks whose outcome this office accepts without a decision on each release, unless they break a promise.
# accepted = ["replay", "membership", "homogeneity", "households"]

[limits.dominance]
# Upper limits on numbers of attacks. Two persons make at most 90 % of the trips of a flow: the (n, k) rule of output
# checkers (n = 2 and k = 0.90 in ACRO). Stricter, for one person: "largest share" = 0.50
"two largest" = 0.90

[limits.membership]
# Of one person in the data and one who is not, how often an outsider picks the right one (0.5 is tossing a coin).
"outsider AUC" = 0.90

[compare]
# Earlier releases of the same trips; paths are relative to this file.
releases = []
"""

HOUSEHOLDS = "households"
"""What is to be decided about flows of few households."""
_KEYS: dict[str, Any] = {
    "rule": (*MEASURES, *CONSTRAINTS, "asked_by", "reason"),
    "release": ("methods", "most_suppressed", "finest_resolution", "smallest_area_km2"),
    "noise": ("epsilon", "delta", "unit"),
    "attacks": ("clean", "accepted"),
    "limits": ATTACKS,
    "compare": ("releases",),
}

PolicyOutcome = Literal["pass", "review", "fail"]  # the words of output checkers: met; for a person to decide; broken


@dataclass(frozen=True)
class PolicyLine:
    """One requirement of a policy, and whether a release meets it."""

    requirement: str
    outcome: PolicyOutcome
    found: str
    """What was found; of a requirement that is not met, the line that `check_release` returns."""


@dataclass(frozen=True)
class Policy:
    """The requirements of an office on a release."""

    rule: Mapping[str, float] = field(default_factory=dict)
    """The minimum that a release must promise for every flow, by measure or constraint; ``max_share`` is a maximum."""
    methods: tuple[str, ...] = ()
    """Methods that may be used; any if empty."""
    most_suppressed: float | None = None
    """Maximum share of trips suppressed, in [0, 1]."""
    finest_resolution: int | None = None
    """The finest H3 resolution of a zone."""
    smallest_area_km2: float | None = None
    """The minimum area of a zone."""
    clean: tuple[str, ...] = ()
    """Attacks that must be clean."""
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Upper limits, by attack and number."""
    compare: tuple[Path, ...] = ()
    """Releases to compare with."""
    accepted: tuple[str, ...] = ()
    """Attacks whose outcome needs no decision, unless they break a promise."""
    asked_by: str = ""
    reason: str = ""
    """Who asked for the rule, and why."""
    noise: Mapping[str, Any] = field(default_factory=dict)
    """For releases with noise: the most ``epsilon`` and ``delta``, and the ``unit`` to protect."""

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
        advice = "`odkanon check --template` writes an example"
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
    for name in _texts(path, attacks, "accepted"):
        _check_name(path, name, (*ATTACKS, HOUSEHOLDS), "attack")
    finest, rule = _number(path, release, "finest_resolution"), content.get("rule", {})
    return Policy(
        {name: _number(path, rule, name) for name in rule if name not in ("asked_by", "reason")},
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
        _texts(path, attacks, "accepted"),
        _text(path, rule, "asked_by"),
        _text(path, rule, "reason"),
        _noise(path, content.get("noise", {})),
    )


def _noise(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    unit = _text(path, table, "unit")
    if "unit" in table and unit not in ("person", "trip"):
        raise InvalidValueError.expected(f"{path}: unit", "'person' or 'trip'", unit)
    return {name: unit if name == "unit" else _number(path, table, name) for name in table}


def _check_name(path: Path, name: str, known: Any, what: str) -> None:
    if name not in known:
        raise UnknownNameError(f"{path}: {UnknownNameError.among(what, name, known)}")


def _texts(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidValueError.expected(f"{path}: {key}", 'a list of texts, such as ["odkanon"]', value)
    return tuple(value)


def _text(path: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise InvalidValueError.expected(f"{path}: {key}", "a text", value)
    return value


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
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = release.save(Path(folder) / "release")
    ...     check_release(saved, Policy(rule={"persons": 10}))
    ['rule: the release promises nothing about persons; at least 10 are asked for']
    """
    return [line.found for line in review_release(folder, policy, evidence) if line.outcome != "pass"]


def review_release(folder: Path | str, policy: Policy, evidence: Mapping[str, Any] | None = None) -> list[PolicyLine]:
    """Return every requirement of a policy with pass, review or fail; see `check_release`."""
    folder = Path(folder)
    release = open_release(folder)
    lines, method = [*_review_rule(release, policy)], release.manifest.get("method")
    if policy.methods:
        text = f"release: made by {method}; allowed are {', '.join(policy.methods)}"
        what = f"method: {' or '.join(policy.methods)}"
        lines.append(_line(what, method in policy.methods, str(method), text))
    lines += [*_review_zones(release, policy), *_review_suppressed(folder, release, policy)]
    lines += _review_noise(release, policy)
    return lines + _review_evidence(folder, policy, evidence) if policy.needs_evidence else lines


def _line(requirement: str, met: bool, found: str, broken: str) -> PolicyLine:
    return PolicyLine(requirement, "pass", found) if met else PolicyLine(requirement, "fail", broken)


def _review_rule(release: SavedRelease, policy: Policy) -> Iterator[PolicyLine]:
    promised, implied = dict(release.manifest.get("rule", {})), 0
    for measure in ("households", "persons", "trips"):  # k households have k persons at least, and these made k trips
        implied = max(promised.get(measure, 0), implied)
        promised |= {measure: implied} if implied else {}
    for measure, least in policy.rule.items():
        value = promised.get(measure)
        if measure == "max_share":
            most = 1.0 if value is None else value
            text = f"rule: one person may have more than {least:g} of the trips of a flow, {measure}"
            yield _line(f"no person has more than {least:.0%} of a flow", most <= least, f"{most:.0%}", text)
            continue
        text = f"rule: the release promises nothing about {measure}; at least {least:,g} are asked for"
        if value is not None:
            text = f"rule: the release promises {value:,g} {measure}; {least:,g} are asked for"
        met = value is not None and value >= least * (1 - 1e-12)
        where = "of every origin" if measure == "min_destinations" else "in every flow"
        what = f"at least {least:,g} {measure.replace('_', ' ')} {where}"
        yield _line(what, met, f"promised: {value:,g}" if value is not None else "", text)


def _review_noise(release: SavedRelease, policy: Policy) -> Iterator[PolicyLine]:
    if not release.is_noisy:
        return
    promised = release.manifest["parameters"]
    for name in ("epsilon", "delta"):
        if name in policy.noise:
            most, value = policy.noise[name], promised[name]
            text = f"noise: the release spends {name} = {value:g}; {most:g} is the most allowed"
            yield _line(f"{name} of noise at most {most:g}", value <= most, f"spent: {value:g}", text)
    if policy.noise.get("unit") == "person":
        text = "noise: the release protects single trips; persons are asked for"
        yield _line("noise protects persons", promised["unit"] == "person", "persons", text)


def _review_zones(release: SavedRelease, policy: Policy) -> Iterator[PolicyLine]:
    about = [zone["properties"] for zone in release.features]
    if policy.finest_resolution is not None:
        cells = sorted({cell for zone in about for cell in zone.get("cells") or [zone["id"]]})
        numbers = str_to_cell(pa.array(cells, pa.string())) if cells else None
        finest = -1 if numbers is None else int(cell_to_resolution(numbers[is_valid_cell(numbers)]).max(initial=-1))
        text = f"release: a zone has H3 resolution {finest}; {policy.finest_resolution} is the finest allowed"
        found = "no H3 cells" if finest < 0 else f"finest: {finest}"
        what = f"no zone finer than H3 resolution {policy.finest_resolution}"
        yield _line(what, finest <= policy.finest_resolution, found, text)
    if policy.smallest_area_km2 is not None:
        areas = [(zone["area_km2"], zone["id"]) for zone in about if zone.get("area_km2") is not None]
        least, name = min(areas, default=(float("inf"), ""))
        text = f"release: zone {name} has {least:g} km2; {policy.smallest_area_km2:g} are asked for"
        found = f"smallest: {least:.3g} km2" if areas else "no areas are known"
        what = f"no zone smaller than {policy.smallest_area_km2:g} km2"
        yield _line(what, least >= policy.smallest_area_km2, found, text)


def _review_suppressed(folder: Path, release: SavedRelease, policy: Policy) -> Iterator[PolicyLine]:
    if policy.most_suppressed is None:
        return
    recipe, what = read_recipe(folder), f"at most {policy.most_suppressed:.2%} of the trips left out"
    if recipe is not None:
        share = float(recipe["about"]["suppressed"]["share"])
    else:
        most, listed = release.manifest.get("unlisted", {}).get("at_most_trips"), release.manifest["published"]["trips"]
        if most is None:
            yield PolicyLine(what, "fail", "release: how much was left out is not known without the recipe")
            return
        share = most / (most + listed) if most + listed else 0.0
    text = f"release: {share:.2%} of the trips are left out; {policy.most_suppressed:.2%} are allowed"
    yield _line(what, share <= policy.most_suppressed + 1e-12, f"{share:.2%}", text)


def _review_evidence(folder: Path, policy: Policy, evidence: Mapping[str, Any] | None) -> list[PolicyLine]:
    what = "attacks were made on this release"
    if evidence is None:
        return [PolicyLine(what, "fail", "attacks: the policy asks for attacks, and no evidence was given")]
    try:
        if evidence["release"]["sha256"][MANIFEST] != sha256(folder / MANIFEST):
            text = "attacks: the evidence is about another release, or this one was changed since"
            return [PolicyLine(what, "fail", text)]
        made = {each["attack"]: each for each in evidence["attacks"]}
        compared = {each["sha256"] for each in evidence["earlier"]}
    except (KeyError, TypeError):
        raise DamagedReleaseError.because("the evidence", "is incomplete", advice="gather it again") from None
    lines = [*_review_clean(policy.clean, made), *_review_limits(policy.limits, made)]
    for other in policy.compare:
        same = (other / MANIFEST).is_file() and sha256(other / MANIFEST) in compared
        text = f"compare: the evidence does not compare with {other.name}"
        lines.append(_line(f"compared with {other.name}", same, "compared", text))
    return lines


def _review_clean(names: Sequence[str], made: Mapping[str, Mapping[str, Any]]) -> Iterator[PolicyLine]:
    for name in names:
        if name not in made:
            yield PolicyLine(f"{name} is clean", "fail", f"attacks: {name} was not made")
            continue
        outcome = made[name]["verdict"]
        if outcome in ("clean", "does not apply"):
            yield PolicyLine(f"{name} is clean", "pass", outcome)
        else:
            text = f"attacks: {name} is not clean ({outcome}): {made[name]['message']}"
            yield PolicyLine(f"{name} is clean", "fail" if outcome == "found" else "review", text)


def _review_limits(
    limits: Mapping[str, Mapping[str, float]], made: Mapping[str, Mapping[str, Any]]
) -> Iterator[PolicyLine]:
    for name, number, most in ((name, number, most) for name, own in limits.items() for number, most in own.items()):
        value, what = made.get(name, {}).get("numbers", {}).get(number), f"{name}, {number}: at most {most:g}"
        if name in made and made[name]["verdict"] == "does not apply":
            yield PolicyLine(what, "pass", "does not apply")
        elif value is None:
            yield PolicyLine(what, "fail", f"limits: {name} has no number {number!r}")
        else:
            text = f"limits: {name}, {number}: {value:.3g} is above {most:g}"
            yield _line(what, value <= most, f"{value:.3g}", text)
