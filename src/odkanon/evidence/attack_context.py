"""The context of an attack: one release, the trips behind it, other releases, and what can be derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from odkanon.attributes.spec import AttributeSpec
from odkanon.audit.auditor import OpenReleases, open_releases
from odkanon.audit.release_reader import BETWEEN, PublishedRelease
from odkanon.core.arrays import Ints
from odkanon.errors import InputError
from odkanon.evidence.attack import AttackTimer, Need
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import MEASURES
from odkanon.model.od import ODMatrix
from odkanon.model.rule import CONSTRAINTS, Rule
from odkanon.read.input_spec import InputSpec, attributes_from_recipe
from odkanon.read.od_table import spec_to_matrix


@dataclass(frozen=True, eq=False)
class TripRecords:
    """The trips behind a release, one entry per record."""

    row: Ints  # the published row of each record; -1 for none
    person: Ints  # the number of the person; -1 if unknown
    pair: Ints  # the number of the OD pair
    trips: Ints  # how many trips the record stands for
    published: Ints  # how many trips each published row has
    persons: int
    names: list[str]  # a label for each row

    @property
    def rows(self) -> int:
        """Number of published rows."""
        return len(self.published)


@dataclass(eq=False)
class AttackContext:
    """The context that an attack is given; what is derived from the release and the trips is computed once."""

    opened: OpenReleases
    """The release (number 0), the other releases and the trips, in the database of the audit."""
    spec: InputSpec
    """The trips, and how they are read."""
    attributes: Sequence[AttributeSpec] = ()
    """The attributes of the rows, as the recipe has them."""
    timer: AttackTimer = field(default_factory=AttackTimer)
    """The time limit of the attack that is being made; every attack has its own."""
    seed: int = 0
    """The seed of random samples."""

    @cached_property
    def od(self) -> ODMatrix:
        """The input as an OD matrix."""
        return spec_to_matrix(self.spec, attributes=self.attributes)

    @cached_property
    def trips(self) -> TripRecords:
        """The trips behind the release."""
        number = self.opened.releases[0].number
        connection = self.opened.connection
        listed = connection.execute(
            f"SELECT rtrim(origin || ' -> ' || destination || ', ' || replace(attributes, '{BETWEEN}', ', '), ', '), "
            f"trips::BIGINT FROM classes WHERE release = {number} ORDER BY origin, destination, attributes"
        ).fetchall()
        found = connection.sql(
            "SELECT coalesce(c.row, -1) AS row, coalesce(p.person, -1) AS person, q.pair, m.trips "
            f"FROM member{number} m "
            "LEFT JOIN (SELECT *, row_number() OVER (ORDER BY origin, destination, attributes) - 1 AS row "
            f"FROM classes WHERE release = {number}) c "
            "ON c.origin = m.co AND c.destination = m.cd AND c.attributes = m.ca "
            "LEFT JOIN (SELECT person AS name, row_number() OVER (ORDER BY person) - 1 AS person FROM "
            f"(SELECT DISTINCT person FROM member{number} WHERE person IS NOT NULL)) p ON p.name = m.person "
            "JOIN (SELECT *, row_number() OVER (ORDER BY origin, destination, attributes) - 1 AS pair FROM "
            f"(SELECT DISTINCT origin, destination, attributes FROM member{number})) q "
            "ON q.origin = m.origin AND q.destination = m.destination AND q.attributes = m.attributes ORDER BY m.row"
        ).fetchnumpy()
        row, person, pair, trips = (
            np.asarray(found[name], dtype=np.int64) for name in ("row", "person", "pair", "trips")
        )
        persons = int(person.max(initial=-1)) + 1
        published = np.array([number for _, number in listed], dtype=np.int64)
        return TripRecords(row, person, pair, trips, published, persons, [name for name, _ in listed])

    def has(self, need: Need) -> bool:
        """Return whether a requirement of an attack is met."""
        if need in ("persons", "several persons"):
            return self.trips.persons >= (1 if need == "persons" else 2)
        return bool(self.earlier) if need == "other releases" else self.release.has_boxes

    @property
    def release(self) -> PublishedRelease:
        """The release under attack."""
        return self.opened.releases[0]

    @property
    def earlier(self) -> tuple[PublishedRelease, ...]:
        """Other releases that the attacker has."""
        return self.opened.releases[1:]

    @property
    def about(self) -> Mapping[str, Any]:
        """The provenance of the release: from the recipe if there is one, else from the public manifest."""
        return self.release.provenance or self.release.manifest

    @property
    def method(self) -> str:
        """The method that made the release."""
        return str(self.release.manifest.get("method", ""))

    @property
    def options(self) -> dict[str, Any]:
        """The options given to the method."""
        method = METHODS.get(self.method)
        known = () if method is None else method.options
        return {name: value for name, value in self.release.parameters.items() if name in known}

    @property
    def min_trips(self) -> int:
        """The number of trips below which a group is too small."""
        return max(self.release.min_trips, self.release.k)

    @property
    def counts_trips_only(self) -> bool:
        """Whether the rule counts nothing but trips."""
        return set(self.release.disclosed_thresholds) == {"trips"}

    @property
    def matrix_matches(self) -> bool:
        """Whether the matrix has the trips of the release: the audit knows its filter, the matrix may lack it."""
        return self.od.trips == int(self.trips.trips.sum())

    @cached_property
    def rule(self) -> Rule:
        """The rule of the release, with the exact mean weight of the input where the two agree."""
        disclosed = self.about["rule"]
        mean = self.od.mean_weight if self.od.weight_units is not None else None
        if mean is not None and "mean_weight" in disclosed and float(mean) != disclosed["mean_weight"]:
            mean = Fraction(disclosed["mean_weight"])  # the input is part of what the mean was taken over
        constraints = {name: disclosed[name] for name in (*MEASURES, *CONSTRAINTS) if name in disclosed}
        rule = Rule(k=disclosed.get("k"), mean_weight=mean, **constraints)
        if "weight" not in disclosed or mean is None or not isinstance(disclosed.get("k"), int):
            return rule
        exact = Rule(**{**constraints, "k": disclosed["k"], "mean_weight": mean, "weight": disclosed["k"] * mean})
        # Exact in the recipe, rounded in the manifest; a threshold given by itself is no multiple of the mean.
        possible = (float(exact.thresholds["weight"]), exact.disclosed_thresholds["weight"])
        return exact if disclosed["weight"] in possible else rule


def open_context(
    release: Path | str, trips: InputSpec | Path | str, *, earlier: Sequence[Path | str] = (), seed: int = 0
) -> AttackContext:
    """Open a release together with the trips that it was made from.

    * ``release``: the folder of a release.
    * ``trips``: its trips, to be read as they were for the release.
    * ``earlier``: other releases that an attacker has: earlier ones, or segments released together.
    * ``seed``: the seed of random samples.

    Raises `InputError` if the release was made from other trips.
    """
    spec = trips if isinstance(trips, InputSpec) else InputSpec(trips)
    opened = open_releases([release, *earlier], trips=spec)
    first = opened.releases[0]
    if first.number not in opened.exact:
        reasons = [each.message for each in opened.findings if each.check == "recount" and first.name in each.releases]
        raise InputError(
            f"evidence needs the trips of the release: {reasons[0] if reasons else 'these are different ones'}"
        )
    attributes = attributes_from_recipe(first.recipe, first.folder.absolute().parent, spec)
    return AttackContext(opened, spec, attributes, seed=seed)
