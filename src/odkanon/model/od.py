"""The OD matrix: OD pairs with their masses, over a hierarchy of origins and one of destinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.core.arrays import Bools, Codes, Ints, group_sum, number_groups
from odkanon.core.parsing import format_number
from odkanon.core.registry import LazyModule
from odkanon.model.axes import AXES as AXES
from odkanon.model.axes import Axis as Axis
from odkanon.model.flows import Flows, record_contributions
from odkanon.model.measures import MEASURES, MeasureColumns, exact_masses
from odkanon.model.provenance import Rejected, Source, Summary
from odkanon.zoning.hierarchy import Hierarchy, single_point

if TYPE_CHECKING:
    from odkanon.pipeline import shorthands
else:
    shorthands = LazyModule("odkanon.pipeline.shorthands")

LOCATED = 10
"""H3 resolution for comparing a release with its trips, if its leaves are coarser than their coordinates."""


class Matrix(Protocol):
    """An OD matrix, whose pairs are in memory or in a database."""

    @property
    def summary(self) -> Summary:
        """The totals of the matrix and its provenance."""

    @property
    def origins(self) -> Hierarchy:
        """The tree over the origins."""

    @property
    def destinations(self) -> Hierarchy:
        """The tree over the destinations."""

    @property
    def axes(self) -> tuple[AttributeAxis, ...]:
        """The attributes of a cube."""

    @property
    def located(self) -> Matrix:
        """The same trips between smaller cells than the leaves, if their coordinates are known; else this matrix."""

    def with_axes(self, axes: Sequence[AttributeAxis], numbers: Sequence[Codes]) -> Matrix:
        """Return the matrix with other values on its attribute axes, given the number of each of the old ones."""

    def in_memory(self) -> ODMatrix:
        """Return the matrix with its pairs in memory; raise if they do not fit there."""

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> Matrix:
        """Return the matrix over other trees of the same leaves, each given with the old positions of its leaves."""


@dataclass(frozen=True, eq=False)
class ODMatrix(MeasureColumns):
    """OD pairs of leaves with their masses.

    Attributes
    ----------
    origins, destinations : Hierarchy
        The trees over the observed leaves of each place axis.
    flows : Flows
        One row for each OD pair, sorted by leaf number.
    source : Source
        Provenance, and the rows rejected on reading.
    axes : tuple of AttributeAxis
        Attribute axes of a cube; each OD pair then has one row for every combination of their values.
    finer : Matrix, optional
        The same trips between cells of resolution `LOCATED`, if leaves are coarser than their coordinates.
    """

    origins: Hierarchy
    destinations: Hierarchy
    flows: Flows
    source: Source
    axes: tuple[AttributeAxis, ...] = ()
    finer: Matrix | None = None

    def __len__(self) -> int:
        return len(self.flows)

    @property
    def located(self) -> Matrix:
        """The same trips between smaller cells than the leaves, if their coordinates are known; else this matrix."""
        return self if self.finer is None else self.finer

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy of an axis."""
        return self.origins if axis == "origin" else self.destinations

    @cached_property
    def trips(self) -> int:
        """Number of trips."""
        return int(self.flows.trips.sum())

    @cached_property
    def weight_units(self) -> int | None:
        """Sum of weights, in units of ``1 / flows.scale``."""
        return None if self.flows.weight_units is None else int(self.flows.weight_units.sum())

    @property
    def weight(self) -> float | None:
        """Sum of weights, in the unit of the input."""
        return None if self.weight_units is None else self.weight_units / self.flows.scale

    @cached_property
    def contributors(self) -> Mapping[str, int]:
        """Number of distinct contributors, by measure."""
        return {
            name: len(np.unique(contributions.contributor)) for name, contributions in self.flows.contributions.items()
        }

    @cached_property
    def summary(self) -> Summary:
        """The totals and the provenance."""
        return Summary(len(self), self.trips, self.weight_units, self.contributors, self.flows.scale, self.source)

    @property
    def mean_weight(self) -> Fraction:
        """Exact mean weight of a trip."""
        return self.summary.mean_weight

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the input has."""
        return self.summary.measures

    def node_masses(self, axis: Axis, measure: str) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        tree, leaf = self.tree(axis), getattr(self.flows, axis)
        if MEASURES[measure].counts_distinct:
            contributions = replace(self.flows.contributions[measure], masses={})
            return tuple(
                np.bincount(contributions.relabel(codes[leaf], len(ids)).flow, minlength=len(ids)).astype(np.int64)
                for codes, ids in zip(tree.codes, tree.ids, strict=True)
            )
        leaf_mass = group_sum(leaf, len(tree.leaves), exact_masses(self.flows, measure))
        return tuple(np.add.reduceat(leaf_mass, starts) for starts in tree.starts)

    def take(self, keep: Bools) -> ODMatrix:
        """Return some of the pairs, over the leaves that still occur."""
        flows = self.flows.take(keep)
        origins, flow_origin = _observed(self.origins, flows.origin)
        destinations, flow_destination = _observed(self.destinations, flows.destination)
        kept = replace(flows, origin=flow_origin, destination=flow_destination)
        return replace(self, origins=origins, destinations=destinations, flows=kept, finer=None)

    def without_attributes(self) -> ODMatrix:
        """Return the matrix without its attribute axes."""
        flows, _ = self.flows.merge(self.flows.origin, self.flows.destination)
        return replace(self, flows=replace(flows, pairs=np.ones_like(flows.pairs)), axes=())

    def reject(self, which: Bools, reason: str) -> ODMatrix:
        """Return the matrix without some of its rows, whose trips count as rejected for a reason."""
        if not which.any():
            return self
        gone = self.flows.totals(which)
        # Each trip counts as one input row, which is exact unless the input was aggregated.
        source = self.source.reject(reason, Rejected(gone.trips, gone.trips, gone.weight_units or 0))
        return replace(self.take(~which), source=source)

    def on_trees(self, origins: tuple[Hierarchy, Ints], destinations: tuple[Hierarchy, Ints]) -> ODMatrix:
        """Return the matrix over other trees of the same leaves; each comes with the old positions of its leaves."""
        first, second = (np.argsort(order).astype(np.int32) for _, order in (origins, destinations))
        moved = replace(self.flows, origin=first[self.flows.origin], destination=second[self.flows.destination])
        flows = moved.merge_attributes() if self.axes else moved.merge(moved.origin, moved.destination)[0]
        return replace(self, origins=origins[0], destinations=destinations[0], flows=flows)

    def at_one_place(self) -> ODMatrix:
        """Return a matrix whose records begin and end at the same place as a table by that place alone."""
        flows = replace(self.flows, destination=np.zeros_like(self.flows.destination))
        return replace(self, destinations=single_point(), flows=flows)

    def with_axes(self, axes: Sequence[AttributeAxis], numbers: Sequence[Codes]) -> ODMatrix:
        """Return the matrix with other values on its attribute axes, given the number of each of the old ones."""
        codes = zip(numbers, self.flows.attributes, strict=True)
        flows = replace(self.flows, attributes=tuple(number[code] for number, code in codes)).merge_attributes()
        flows = replace(flows, pairs=np.ones_like(flows.pairs))
        finer = self.finer.with_axes(axes, numbers) if self.finer is not None and self.finer.axes else self.finer
        return replace(self, flows=flows, axes=tuple(axes), finer=finer)

    def in_memory(self) -> ODMatrix:
        """Return the matrix itself."""
        return self

    def __repr__(self) -> str:
        parts = [f"{len(self):,} pairs", f"{self.trips:,} trips"]
        if self.weight is not None:
            parts.append(f"weight {format_number(self.weight)}")
        parts += [f"{count:,} {name}" for name, count in self.contributors.items()]
        leaves = f"{len(self.origins.leaves):,} origin x {len(self.destinations.leaves):,} destination leaves"
        return f"ODMatrix({', '.join(parts)}; {leaves})"

    def _repr_html_(self) -> str:
        return shorthands.od_html(self)


def od_matrix(
    origins: Hierarchy,
    destinations: Hierarchy,
    origin: Codes,
    destination: Codes,
    *,
    trips: Ints | None = None,
    weight: Ints | None = None,
    scale: int = 1,
    contributors: Mapping[str, Codes] | None = None,
    axes: tuple[AttributeAxis, ...] = (),
    attributes: tuple[Codes, ...] = (),
    source: Source,
) -> ODMatrix:
    """Return the matrix of records with numbered places; records of the same pair are merged.

    * ``origins``, ``destinations``: trees over at least the leaves that occur; other leaves are dropped.
    * ``origin``, ``destination``: for each record, the number of its leaf.
    * ``trips``: trips of each record; one each by default.
    * ``weight``: weight of each record, in units of ``1 / scale``.
    * ``contributors``: by measure, the number of the contributor (a person, a household) of each record; -1 if unknown,
      which counts as no contributor.
    * ``axes``, ``attributes``: attribute axes, and for each of them the number of the value of each record.
    """
    count = len(origin)
    origins, origin = _observed(origins, origin)
    destinations, destination = _observed(destinations, destination)
    ones = np.ones(count, dtype=np.int64)
    trips = ones if trips is None else trips
    contributions = record_contributions(
        contributors or {}, {"trips": trips} if weight is None else {"trips": trips, "weight": weight}
    )
    records = Flows(origin, destination, ones, trips, weight, contributions, scale, attributes=attributes)
    flows = records.merge_attributes() if attributes else records.merge(origin, destination)[0]
    return ODMatrix(origins, destinations, replace(flows, pairs=np.ones_like(flows.pairs)), source, axes)


def _observed(tree: Hierarchy, leaf: Codes) -> tuple[Hierarchy, Codes]:
    leaves = len(tree.ids[0])
    seen, number = number_groups(leaf.astype(np.int64), leaves)
    if len(seen) == leaves:
        return tree, leaf
    keep = np.zeros(leaves, dtype=bool)
    keep[seen] = True
    return tree.restrict(keep), number
