"""A case: one release, the trips that it was made of, earlier releases, and all that an attack may ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.audit.auditor import OpenReleases, open_releases
from odkanon.audit.release_reader import PublishedRelease
from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.evidence.finding import Watch
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import MEASURES
from odkanon.model.od import ODMatrix
from odkanon.model.rule import CONSTRAINTS, Rule
from odkanon.read.input_matrix import matrix_of
from odkanon.read.input_spec import InputSpec

UNLIMITED = 1e9


@dataclass(frozen=True, eq=False)
class Trips:
    """The trips of a release, one entry for each record.

    Attributes
    ----------
    row : array of int
        The published row of each; -1 for none.
    person : array of int
        The number of the person who made it; -1 for nobody known.
    pair : array of int
        The number of its two places.
    trips : array of int
        How many trips it stands for.
    rows, persons : int
        How many published rows and persons there are.
    names : list of str
        For each row, what to call it.
    """

    row: Ints
    person: Ints
    pair: Ints
    trips: Ints
    rows: int
    persons: int
    names: list[str]


@dataclass(frozen=True, eq=False)
class Known:
    """What several attacks need, worked out when the first asks for it."""

    opened: OpenReleases
    reading: InputSpec

    @cached_property
    def od(self) -> ODMatrix:
        """The input as a matrix."""
        return matrix_of(self.reading)

    @cached_property
    def trips(self) -> Trips:
        """The trips of the release."""
        number = self.opened.releases[0].number
        connection = self.opened.connection
        listed = connection.execute(
            f"SELECT origin || ' -> ' || destination FROM classes WHERE release = {number} ORDER BY origin, destination"
        ).fetchall()
        found = connection.sql(
            "SELECT coalesce(c.row, -1) AS row, coalesce(p.person, -1) AS person, q.pair, m.trips "
            f"FROM member{number} m "
            f"LEFT JOIN (SELECT origin, destination, row_number() OVER (ORDER BY origin, destination) - 1 AS row "
            f"FROM classes WHERE release = {number}) c ON c.origin = m.co AND c.destination = m.cd "
            "LEFT JOIN (SELECT person AS name, row_number() OVER (ORDER BY person) - 1 AS person FROM "
            f"(SELECT DISTINCT person FROM member{number} WHERE person IS NOT NULL)) p ON p.name = m.person "
            "JOIN (SELECT origin, destination, row_number() OVER (ORDER BY origin, destination) - 1 AS pair FROM "
            f"(SELECT DISTINCT origin, destination FROM member{number})) q "
            "ON q.origin = m.origin AND q.destination = m.destination ORDER BY m.row"
        ).fetchnumpy()
        row, person, pair, trips = (
            np.asarray(found[name], dtype=np.int64) for name in ("row", "person", "pair", "trips")
        )
        return Trips(
            row, person, pair, trips, len(listed), int(person.max(initial=-1)) + 1, [name for (name,) in listed]
        )


@dataclass(frozen=True, eq=False)
class Case:
    """What attacks are given.

    Attributes
    ----------
    known : Known
        The releases, the trips, and what was worked out of them.
    watch : Watch
        How much time the attack has.
    seed : int
        For drawing samples; the same seed draws the same.
    """

    known: Known
    watch: Watch = field(default_factory=lambda: Watch(UNLIMITED))
    seed: int = 0

    @property
    def opened(self) -> OpenReleases:
        """The release (number 0) and the earlier ones in the audit's database, with the trips."""
        return self.known.opened

    @property
    def reading(self) -> InputSpec:
        """The trips and how they are read."""
        return self.known.reading

    @property
    def release(self) -> PublishedRelease:
        """The release that is attacked."""
        return self.opened.releases[0]

    @property
    def earlier(self) -> tuple[PublishedRelease, ...]:
        """Other releases that are known to the attacker."""
        return self.opened.releases[1:]

    @property
    def about(self) -> Mapping[str, Any]:
        """The steward's account of the release: that of the recipe, else the public one."""
        return self.release.provenance or self.release.manifest

    @property
    def method(self) -> str:
        """The method that made the release."""
        return str(self.release.manifest.get("method", ""))

    @property
    def options(self) -> dict[str, Any]:
        """What was asked of the method."""
        method = METHODS.get(self.method)
        asked = () if method is None else method.options
        return {name: value for name, value in self.release.parameters.items() if name in asked}

    @property
    def few(self) -> int:
        """Below how many trips a group is too small."""
        return max(self.release.min_trips, self.release.k)

    @property
    def by_trips(self) -> bool:
        """Whether trips are all that the rule counts."""
        return set(self.release.disclosed_thresholds) == {"trips"}

    @property
    def od(self) -> ODMatrix:
        """The input as a matrix."""
        return self.known.od

    @property
    def reads_alike(self) -> bool:
        """Whether the matrix has the trips of the release: the audit finds its filter by itself, a reading does not."""
        return self.od.trips == int(self.trips.trips.sum())

    @cached_property
    def rule(self) -> Rule:
        """The rule of the release, with its mean weight as the input has it; the input may be a part of what it was."""
        told = self.about["rule"]
        mean = self.od.mean_weight if self.od.weight is not None else None
        if mean is not None and "mean_weight" in told and float(mean) != told["mean_weight"]:
            mean = Fraction(told["mean_weight"])
        constraints = {name: told[name] for name in (*MEASURES, *CONSTRAINTS) if name in told}
        rule = Rule(k=told.get("k"), mean_weight=mean, **constraints)
        if "weight" not in told or mean is None or not isinstance(told.get("k"), int):
            return rule
        exact = Rule(**{**constraints, "k": told["k"], "mean_weight": mean, "weight": told["k"] * mean})
        # In full, or rounded as it is told; thresholds that were given one by one are no multiple of the mean.
        possible = (float(exact.thresholds["weight"]), exact.disclosed_thresholds["weight"])
        return exact if told["weight"] in possible else rule

    @property
    def trips(self) -> Trips:
        """The trips of the release."""
        return self.known.trips


def open_case(
    release: Path | str, trips: InputSpec | Path | str, *, earlier: Sequence[Path | str] = (), seed: int = 0
) -> Case:
    """Open a release with the trips that it was made of.

    Parameters
    ----------
    release : path
        The folder of a release.
    trips : Reading or path
        Its trips, to be read as they were then.
    earlier : sequence of path
        Other releases that an attacker has: earlier ones, or segments released together.

    Raises
    ------
    InputError
        If the trips are not those of the release, or it is a cube.
    """
    reading = trips if isinstance(trips, InputSpec) else InputSpec(trips)
    opened = open_releases([release, *earlier], trips=reading)
    first = opened.releases[0]
    if first.axes:
        raise InputError(f"{first.name} has flows by kind of trip, which attacks do not know how to look at yet")
    if first.number not in opened.exact:
        told = [each.message for each in opened.findings if each.check == "recount" and first.name in each.releases]
        raise InputError(
            f"there is no evidence without the trips of the release: {told[0] if told else 'these are other ones'}"
        )
    return Case(Known(opened, reading), seed=seed)
