"""The whole and its segments, released on one zoning."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odkanon.attributes.dimensions import Dimension, parent_dimension
from odkanon.core.parsing import check_share
from odkanon.core.registry import LazyModule
from odkanon.errors import InputError, RefusedError
from odkanon.linked.fixed_zoning import Zoning
from odkanon.linked.suppression_pattern import find_rare, jointly_rare
from odkanon.linked.zoning_search import Attempt, LinkedTables, join_rare, search_joining
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.read.area import Area
from odkanon.read.od_matrix import count_trips
from odkanon.read.trips import Trips

if TYPE_CHECKING:
    from odkanon.pipeline import shorthands
else:
    shorthands = LazyModule("odkanon.pipeline.shorthands")

RARE = "of segments too small for a table, even linked"

TOO_FEW = "too few to publish"
NO_SAFE_TABLE = "no safe table: its flows could be derived from the other tables"


@dataclass(frozen=True, eq=False)
class Part:
    """A segment and its release."""

    dimension: str
    segment: dict[str, str]
    title: str
    release: Release | None
    """None if nothing of it can be published."""
    joined: list[dict[str, str]]
    """The segments that it combines, if several were too rare for tables of their own."""
    reason: str | None = None
    """The reason why nothing of it can be published."""


@dataclass(frozen=True, eq=False)
class LinkedReleases:
    """The whole and all segments, safe to publish side by side.

    Attributes
    ----------
    whole : Release
        The release of all trips.
    parts : tuple of Part
        The segments with their releases, by dimension and value.
    coarseness : float
        The factor by which thresholds were raised when the zones were chosen, so that segments fit them too.
    suppressed : mapping of str to float
        Share of trips that the tables of each dimension suppress.
    budget : float or None
        The largest share that they may suppress; None on given zones.
    """

    whole: Release
    parts: tuple[Part, ...]
    coarseness: float
    suppressed: dict[str, float]
    budget: float | None

    @property
    def over_budget(self) -> dict[str, float]:
        """The dimensions whose tables exceed the budget on every zoning that was tried."""
        limit = 1.0 if self.budget is None else self.budget
        return {name: share for name, share in self.suppressed.items() if share > limit}

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """The cautions about them, one text each."""
        return tuple(shorthands.cautions_of(self))

    def save(self, folder: str | Path, *, force: bool = False, matrix: Any = None) -> Path:
        """Write the releases as one folder, all or nothing; see `odkanon.publish.save.save_linked`."""
        return shorthands.save_linked(self, Path(folder), force=force, matrix=matrix)

    def __repr__(self) -> str:
        published = sum(part.release is not None for part in self.parts)
        dimensions = ", ".join(dict.fromkeys(part.dimension for part in self.parts))
        cautions = f"; {len(self.cautions)} caution{'s' * (len(self.cautions) > 1)}" if self.cautions else ""
        return f"LinkedReleases(the whole and {published} of {len(self.parts)} tables by {dimensions}{cautions})"

    def _repr_html_(self) -> str:
        return shorthands.linked_html(self)


def release_linked(
    trips: Trips | ODMatrix,
    rule: Rule,
    dimensions: Sequence[Dimension],
    *,
    resolution: int = 10,
    within: Area | None = None,
    segment_budget: float = 0.10,
    zoning: Zoning | None = None,
    protect_intervals: bool = False,
    method: str = "odkanon",
    **options: Any,
) -> LinkedReleases:
    """Release trips as a whole and by segments, so that no sum or difference of the tables isolates a small group.

    Parameters
    ----------
    trips : Trips or ODMatrix
        The trips, or a matrix of them by the values of the dimensions; see `odkanon.build_od`.
    rule : Rule
        What every flow of every table meets, and every group whose mass follows from the tables.
    dimensions : sequence of Dimension
        The dimensions; see `odkanon.attributes.dimensions.make_dimensions`.
    resolution, within
        As for `odkanon.build_od`; ignored for a matrix.
    segment_budget : float
        Share of trips that the tables of a dimension may suppress, in [0, 1). Zones become coarse enough for it, and
        the rarest values are joined. If that is not enough, ``over_budget`` of the result lists the dimension.
    zoning : Zoning, optional
        Given zones, instead of a search; see `odkanon.open_release` and `zoning_of`.
    protect_intervals : bool
        Suppress more, so that a reader of all tables and of the totals of the segments cannot show that a flow below
        the rule exists, nor bound it more narrowly than the rule.
    method, **options
        How zones are chosen; see `odkanon.methods.anonymize`.

    Examples
    --------
    >>> from odkanon import Rule, make_survey, read_trips
    >>> from odkanon.read.od_matrix import make_dimensions
    >>> trips = read_trips(make_survey())
    >>> linked = release_linked(trips, Rule(trips=10), make_dimensions(trips, ["sex"]), resolution=7)
    >>> [part.title for part in linked.parts]
    ['sex=Man', 'sex=Woman']
    """
    if not dimensions:
        raise InputError("segments released together need at least one way to split the trips", option="segment")
    check_share("the segment budget", segment_budget)
    if not rule.thresholds_only:
        raise InputError(
            "linked tables support thresholds only, as complementary suppression is computed for those; leave out the "
            "largest share and the number of destinations, or the segments"
        )
    started = time.perf_counter()
    od, dimensions = (
        (trips, list(dimensions)) if isinstance(trips, ODMatrix) else _counted(trips, dimensions, resolution, within)
    )
    parents = [parent_dimension(dimensions, number) for number in range(len(dimensions))]
    if protect_intervals and any(parent is not None for parent in parents):
        raise InputError(
            "intervals are protected where no way of splitting refines another: the tables of the finer one would "
            "narrow those of the coarser; leave out one of the two, or the protection of intervals"
        )
    before = dimensions
    od, dimensions = _without_rare(od, dimensions, parents, rule)
    left_out = [
        each.segment(int(value))
        for each, now in zip(before, dimensions, strict=True)
        for value in np.setdiff1d(each.value, now.value)
    ]
    tables = join_rare(LinkedTables(od, dimensions, parents, rule, intervals=protect_intervals))
    if zoning is None:
        tables, attempt = search_joining(tables, segment_budget, method, options)
        parameters = {**attempt.parameters, "coarseness": attempt.factor, "segment_budget": segment_budget}
    else:
        method, attempt, parameters = "zones", tables.on(zoning, 1.0, {}), {}
    if protect_intervals:
        parameters["protect_intervals"] = True
    if left_out:
        parameters["left_out"] = left_out
    dimensions = list(tables.dimensions)
    if not attempt.plan.whole.any():
        raise RefusedError(
            f"nothing can be published: no flow between the zones meets {rule}, or only one, which the others disclose"
        )
    names = [dimension.name for dimension in dimensions]
    spec = ReleaseSpec(rule, None, method, parameters)
    whole = tables.release(tables.pairs, spec.with_parameters(released_with=names), attempt, attempt.plan.whole)
    whole = replace(whole, seconds=time.perf_counter() - started)
    parts = [part for number in range(len(dimensions)) for part in _parts(tables, spec, attempt, number)]
    shares = {each.name: share for each, share in zip(dimensions, attempt.plan.shares, strict=True)}
    return LinkedReleases(whole, tuple(parts), attempt.factor, shares, segment_budget if zoning is None else None)


def _counted(
    trips: Trips, dimensions: Sequence[Dimension], resolution: int, within: Area | None
) -> tuple[ODMatrix, list[Dimension]]:
    """Count trips by pair and value; the returned dimensions refer to the rows of the matrix."""
    if within is not None or trips.zoning is not None:
        dimensions = [each.select(trips.inside(resolution, within)) for each in dimensions]
    od = count_trips(trips, resolution, within, lambda inside: ((), tuple(each.value for each in dimensions)))
    return od, [replace(each, value=value) for each, value in zip(dimensions, od.flows.attributes, strict=True)]


def _without_rare(
    od: ODMatrix, dimensions: list[Dimension], parents: Sequence[int | None], rule: Rule
) -> tuple[ODMatrix, list[Dimension]]:
    keep = np.ones(len(od), dtype=bool)
    while True:
        here, split = od.flows.take(keep), [each.select(keep) for each in dimensions]
        gone = np.zeros(len(here), dtype=bool)
        for each, parent in zip(split, parents, strict=True):
            gone |= jointly_rare(here, each, None if parent is None else split[parent], rule)
        if not gone.any():
            break
        keep[np.flatnonzero(keep)[gone]] = False
    if not keep.any():
        raise RefusedError(f"nothing can be published: no segment meets {rule}")
    return od.reject(~keep, RARE), split


def _parts(tables: LinkedTables, spec: ReleaseSpec, attempt: Attempt, number: int) -> list[Part]:
    dimension, published = tables.dimensions[number], attempt.plan.cells[number]
    rare = find_rare(tables.od.flows, dimension, tables.rule)
    parts = []
    for value in np.unique(dimension.value).tolist():
        segment, joined = dimension.segment(value), dimension.segments_of(value)
        combined = {} if joined == [segment] else {"joined": joined}
        release = None
        if published[:, value].any():
            od = tables.od.take(dimension.value == value).without_attributes()
            # Rows rejected on reading belong to no segment; the provenance of the whole lists them.
            od = replace(od, source=replace(od.source, rows=od.trips, rejected={}, lookalikes=0))
            own = spec.with_parameters(dimension=dimension.name, segment=segment, **combined)
            release = tables.release(od, own, attempt, published[:, value])
        reason = None if release else TOO_FEW if rare[value] else NO_SAFE_TABLE
        title = dimension.title(value)
        parts.append(Part(dimension.name, segment, title, release, combined.get("joined", []), reason))
    return parts
