"""Releases beside an earlier one: on its zones, or of the trips after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odkanon.core.arrays import Codes, Ints, locate
from odkanon.errors import InputError
from odkanon.methods.method_registry import is_nested
from odkanon.model.assemble import assemble
from odkanon.model.od import AXES, ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec
from odkanon.model.rule import Rule
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import (
    WORLD,
    Cells,
    cell_to_parent,
    cell_to_resolution,
    cell_to_str,
    is_valid_cell,
    str_to_cell,
)
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import Zones, find_nodes


@dataclass(frozen=True, eq=False)
class AxisZones:
    """The zones of one axis as sets of tree nodes, without any data."""

    ids: npt.NDArray[np.str_]
    """Names of the zones."""
    node: npt.NDArray[np.str_]
    """Nodes that make up the zones: each zone's own cell, or the several cells of a free zone."""
    zone_of_node: Ints
    """For each node, the number of its zone."""
    level: Ints
    """For each node of a lookup table, its level; -1 if it does not matter."""
    outlines: Mapping[str, dict[str, Any]]
    """GeoJSON geometries by zone, unless they follow from the ids."""

    @property
    def plain(self) -> bool:
        """Whether each zone is one node."""
        return len(self.ids) == len(self.node)

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """For each zone, the nodes that make it up."""
        first = np.searchsorted(self.zone_of_node, np.arange(1, len(self.ids)))
        return tuple(tuple(part.tolist()) for part in np.split(self.node, first))


@dataclass(frozen=True, eq=False)
class Zoning:
    """The zones of both axes of a release."""

    origins: AxisZones
    destinations: AxisZones

    def over(self, od: ODMatrix, full: Hierarchy | None = None) -> tuple[Zones, Zones, Codes, Codes]:
        """Return the zones of both axes over a matrix, and for each pair the zones of its ends; see `lay_over`."""
        origins, zone_of_origin = lay_over(self.origins, od.origins, full)
        destinations, zone_of_destination = lay_over(self.destinations, od.destinations, full)
        return origins, destinations, zone_of_origin[od.flows.origin], zone_of_destination[od.flows.destination]


def zoning_of(release: Release | SavedRelease) -> Zoning:
    """Return the zones of a release, in memory or opened from its folder, for use with other data.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey()), resolution=7), Rule(trips=10), method="odkanon")
    >>> len(zoning_of(release).origins.ids) == len(release.origins)
    True
    """
    if isinstance(release, SavedRelease):
        return _saved_zoning(release)
    if release.classes.attributes:
        raise InputError("the zones of a cube differ by kind of trip; they cannot be used for other data")
    if release.is_nested:
        raise InputError("the release is a cascade: its rows lie in each other, and are no zoning")
    return Zoning(_of_zones(release.origins), _of_zones(release.destinations))


def _of_zones(zones: Zones) -> AxisZones:
    if zones.leaves is None:
        raise InputError("zones that are boxes cannot be used for other data; choose a method on a hierarchy")
    features = [
        {
            "properties": {**zones.describe(number), "id": name},
            "geometry": None if zones.resolution is not None else zones.geometry(number),
        }
        for number, name in enumerate(zones.ids.tolist())
    ]
    return _of_features(features, "the release")


def _saved_zoning(release: SavedRelease) -> Zoning:
    name = release.name
    if release.axes:
        raise InputError(
            f"{name} is a cube: its zones nest and depend on the attributes, so they are no zoning for other data; "
            "make a cube of that data"
        )
    if is_nested(str(release.manifest.get("method"))):
        raise InputError(f"{name} is a cascade: its zones nest, so they are no zoning for other data")
    try:
        return Zoning(*(_of_features(release.axis_features(axis), name) for axis in AXES))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"the zones of {name} cannot be read ({error}); they are not those of a release") from None


def _of_features(features: list[dict[str, Any]], name: str) -> AxisZones:
    about = [feature["properties"] for feature in features]
    if any(zone.get("kind") == "box" for zone in about):
        raise InputError(f"the zones of {name} are boxes, which cannot be used for other data; choose another release")
    nodes = [zone.get("cells") or zone.get("places") or [zone["id"]] for zone in about]
    for what, codes in (
        ("zone", [zone["id"] for zone in about]),
        ("cell", [code for cells in nodes for code in cells]),
    ):
        distinct, counts = np.unique(np.array(codes, dtype=np.str_), return_counts=True)
        if (counts > 1).any():
            raise InputError(f"{name} lists the {what} {str(distinct[counts > 1][0])!r} twice; its zones were changed")
    sizes = [len(cells) for cells in nodes]
    outlines = {
        zone["id"]: feature["geometry"]
        for zone, feature in zip(about, features, strict=True)
        if feature.get("geometry") and zone.get("resolution") is None and not zone.get("cells")
    }
    return AxisZones(
        np.array([zone["id"] for zone in about], dtype=np.str_),
        np.array([cell for cells in nodes for cell in cells], dtype=np.str_),
        np.repeat(np.arange(len(about)), sizes),
        np.repeat(np.array([zone.get("level", -1) for zone in about], dtype=np.int64), sizes),
        outlines,
    )


def lay_over(zones: AxisZones, tree: Hierarchy, full: Hierarchy | None = None) -> tuple[Zones, Codes]:
    """Return the zones over the leaves of other data, and for each leaf the number of its zone, -1 for none.

    * ``tree``: the tree over the leaves of the new data.
    * ``full``: for lookup tables: the whole tree, with the levels above the root of ``tree``; by default the table from
      which it was made.
    """
    if tree.resolution is None:
        zone_of_leaf = _lookup_leaves(zones, full or tree.public or tree, tree.leaves)
        level, places = (zones.level, None) if zones.plain and (zones.level >= 0).all() else (None, zones.lists)
        leaves = _sizes(zones, zone_of_leaf)
        return Zones(zones.ids, leaves, None, level, outlines=zones.outlines, places=places), zone_of_leaf
    zone_of_leaf, of_node = _h3_leaves(zones, tree.leaves, tree.resolution)
    nodes = np.bincount(zones.zone_of_node, minlength=len(zones.ids))
    first = np.cumsum(nodes) - nodes
    resolution = np.where(nodes == 1, of_node[first], -1) if len(of_node) else of_node
    cells = None if zones.plain else zones.lists
    return Zones(zones.ids, _sizes(zones, zone_of_leaf), resolution, cells=cells), zone_of_leaf


def _sizes(zones: AxisZones, zone_of_leaf: Codes) -> Ints:
    return np.bincount(zone_of_leaf[zone_of_leaf >= 0], minlength=len(zones.ids)).astype(np.int64)


def _h3_leaves(zones: AxisZones, leaves: Cells, finest: int) -> tuple[Codes, Ints]:
    cells = str_to_cell(pa.array(zones.node.tolist(), pa.string())) if len(zones.node) else np.empty(0, np.uint64)
    world = zones.node == cell_to_str(np.array([WORLD]))[0]
    wrong = np.flatnonzero(~is_valid_cell(cells) & ~world)
    if len(wrong):
        raise InputError(
            f"the zone {zones.node[wrong[0]]!r} is no H3 cell; was the release made with a hierarchy of zones?"
        )
    resolution = np.where(world, -1, cell_to_resolution(cells))
    if len(cells) and resolution.max() > finest:
        raise InputError(
            f"the earlier zones go down to resolution {resolution.max()}, finer than the new data's {finest}; "
            f"use resolution {resolution.max()} or finer"
        )
    zone_of_leaf = np.full(len(leaves), -1, dtype=np.int32)
    for level in np.unique(resolution).tolist():
        here = np.flatnonzero(resolution == level)
        above = np.zeros(len(leaves), dtype=np.uint64) if level < 0 else cell_to_parent(leaves, level)
        _assign(zone_of_leaf, above, np.where(world, WORLD, cells)[here], zones.zone_of_node[here])
    return zone_of_leaf, resolution


def _lookup_leaves(zones: AxisZones, full: Hierarchy, leaves: npt.NDArray[Any]) -> Codes:
    if not np.isin(leaves, full.leaves).all():
        raise InputError(
            "the lookup table does not list every place of the data; give the one that was used to read it"
        )
    position = find_nodes(full, 0, leaves)
    zone_of_leaf = np.full(len(leaves), -1, dtype=np.int32)
    for level in range(full.top + 1):
        above = full.labels(level)[full.codes[level][position]]
        here = np.flatnonzero((zones.level == level) | ((zones.level < 0) & np.isin(zones.node, full.labels(level))))
        _assign(zone_of_leaf, above, zones.node[here], zones.zone_of_node[here])
    return zone_of_leaf


def _assign(zone_of_leaf: Codes, above: npt.NDArray[Any], nodes: npt.NDArray[Any], zone: Ints) -> None:
    """Assign each leaf to the zone of its ancestor; raise if a leaf is in two zones."""
    at, found = locate(nodes, above)
    if np.any(zone_of_leaf[found] >= 0):
        raise InputError(
            "zones of this release overlap, because its method cuts destinations for each origin anew; "
            "choose a release of a homogeneous method, such as odkanon"
        )
    zone_of_leaf[found] = zone[at[found]]


def release_on_zones(od: ODMatrix, rule: Rule, zoning: Zoning, *, full: Hierarchy | None = None) -> Release:
    """Return the release of a matrix on given zones; any number of flows below the rule is suppressed.

    ``parameters["trips_outside"]`` counts the trips with an end outside all zones, which are also suppressed.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> january, february = (build_od(read_trips(make_survey(seed)), resolution=7) for seed in (1, 2))
    >>> zones = zoning_of(anonymize(january, Rule(trips=10), method="odkanon"))
    >>> release = release_on_zones(february, Rule(trips=10), zones)
    >>> release.refusal is None
    True
    """
    rule.check_available(od.measures)
    origins, destinations, origin_zone, destination_zone = zoning.over(od, full)
    inside = (origin_zone >= 0) & (destination_zone >= 0)
    spec = ReleaseSpec(rule, None, "zones", {"trips_outside": int(od.flows.trips[~inside].sum())})
    release = assemble(
        od,
        spec,
        origins=origins,
        destinations=destinations,
        origin_zone=origin_zone,
        destination_zone=destination_zone,
        candidate=inside,
    )
    if len(release.classes):
        return release
    return Release.empty(od, spec, f"no flow between the given zones meets {rule}")


_CLOCK = ("timezone", "time_format")


def only_new(reading: InputSpec, earlier: Mapping[str, Any], name: str) -> InputSpec:
    """Return the description of an input that has grown, restricted to the trips after an earlier release.

    A release of all trips so far could be compared with the earlier one: a flow of 40 that was 38 discloses two people.
    Releases of disjoint trips disclose nothing jointly that they do not disclose singly: the inputs that fit both are
    all combinations of an input that fits the first and one that fits the second. This holds for every method, and on
    the public zones of the earlier release. Late trips of a published period are left out.

    * ``reading``: the whole input.
    * ``earlier``: the reading options in the recipe of the earlier release.
    * ``name``: the name of that release in messages.

    Raises `InputError` if the earlier release has no end date or another clock, or if no day lies after it.

    Examples
    --------
    >>> only_new(InputSpec("trips.csv"), {"since": "2024-01-01", "until": "2024-02-01"}, "january").since
    '2024-02-01'
    """
    until = earlier.get("until")
    if until is None:
        raise InputError(
            f"{name} has no end date, so the trips since then cannot be identified; make it again "
            "with one, or select the new trips yourself",
            option="until DAY",
        )
    for option in _CLOCK:
        if earlier.get(option) != getattr(reading, option):
            what = option.replace("_", " ")
            raise InputError(
                f"the times of {name} were read with another {what}, so its days may begin at another moment; read "
                "them in the same way",
                option=what.replace(" ", "-"),
            )
    if _start_column(earlier.get("columns")) != _start_column(reading.columns):
        raise InputError(f"{name} took another column for the start of a trip; take the same", option="column")
    return replace(reading, since=until)


def _start_column(columns: Mapping[str, str] | None) -> str | None:
    """Return the column that was named as the start of a trip, in a mapping of either direction."""
    turned = {theirs: ours for ours, theirs in (columns or {}).items()}
    return (columns or {}).get("start_time", turned.get("start_time"))
