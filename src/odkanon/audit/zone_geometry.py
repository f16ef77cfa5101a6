"""Where zones lie: the nodes that make them up, the nodes above those, and the places that only some zones contain.

Zones are sets of nodes of a hierarchy. The table ``nodes`` lists the nodes of each zone, the table ``above`` the
ancestors of each node; nesting is a join of the two (`odkanon.audit.row_nesting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any

import h3
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.findings import Finding
from odkanon.audit.relations import share_lookup_table
from odkanon.audit.release_reader import AXES, WORLD, PublishedRelease, Zone, finding_on, load_arrow
from odkanon.core.arrays import Bools
from odkanon.methods.method_registry import METHODS
from odkanon.read.area import Area
from odkanon.zoning.cells import cell_to_parent, cell_to_resolution, cell_to_str, is_valid_cell, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.spherical_geometry import polygon_area_km2

MOST_CELLS = 300_000  # the number of cells up to which an area is listed
AREA = "\x1farea"  # the name of a study area among the zones of its release; no zone can have it


class ZonePlaces:
    """Fills the tables ``nodes`` and ``above`` for all zones, and for leaves as they are added."""

    def __init__(
        self, connection: Connection, releases: Iterable[PublishedRelease], hierarchy: Hierarchy | None
    ) -> None:
        self._connection = connection
        self._hierarchy = hierarchy
        codes: list[tuple[str, int]] = []
        if hierarchy is not None:
            codes = [(str(code), level) for level in range(hierarchy.top, -1, -1) for code in hierarchy.labels(level)]
        self._levels = dict(codes)  # the finest level of each code
        self._table = {f"{level}:{code}" for code, level in codes}
        connection.execute(
            "CREATE TABLE nodes (release INTEGER, axis VARCHAR, zone VARCHAR, node VARCHAR, size INTEGER)"
        )
        connection.execute("CREATE TABLE above (node VARCHAR, ancestor VARCHAR)")
        for release in releases:
            self._add_zones(release)
        known = [row[0] for row in connection.execute("SELECT DISTINCT node FROM nodes").fetchall()]
        self._known = set(known)
        self._areas: dict[int, int | None] = {}
        self.areas: dict[int, list[str]] = {}  # the cells of each study area, by the first release that has it
        self.add_nodes(known)

    def _add_zones(self, release: PublishedRelease) -> None:
        columns: dict[str, list[Any]] = {"axis": [], "zone": [], "node": [], "size": []}
        for axis in AXES:
            for properties, _ in release.zones[axis]:
                cells = properties.get("cells") or properties.get("places") or [properties["id"]]
                level = properties.get("level", self._levels.get(properties["id"]) if release.bare else None)
                names = [self.name(cell, level) for cell in cells]
                if self._hierarchy is not None and properties["id"] == WORLD and level is None:
                    names = [f"{self._hierarchy.top}:{self._hierarchy.labels(self._hierarchy.top)[0]}"]
                columns["axis"] += [axis] * len(names)
                columns["zone"] += [properties["id"]] * len(names)
                columns["node"] += names
                columns["size"] += [len(names)] * len(names)
        load_arrow(self._connection, f"INSERT INTO nodes SELECT {release.number}, * FROM incoming", columns)

    def name(self, place: str, level: int | None = 0) -> str:
        """Return the name of a node; a code of a lookup table may stand for zones of several levels."""
        return place if self._hierarchy is None else f"{level or 0}:{place}"

    def comparable(self, one: PublishedRelease, other: PublishedRelease) -> bool:
        """Return whether it is known which zones of two releases lie in which.

        For cells it is. Codes need a lookup table that has them, unless one release has all zones of the other, or all
        are on one level of one table.
        """
        for axis in AXES:
            first, second = (_codes(release.zones[axis]) for release in (one, other))
            if (first is None) != (second is None) and one.zones[axis] and other.zones[axis]:
                return False
            both = (first or set()) | (second or set())
            one_level = self._hierarchy is None and len({level for _, level in both}) == 1
            if not both or both in (first, second) or (one_level and share_lookup_table(one, other)):
                continue
            if self._hierarchy is None or not {self.name(*each) for each in both} <= self._table:
                return False
        return True

    def add_nodes(self, nodes: list[str]) -> None:
        """Add to the table ``above`` the ancestors of some nodes that zones are made of; a node is its own ancestor."""
        below, ancestors = self._lookup_above(nodes) if self._hierarchy is not None else _h3_above(nodes, self._known)
        columns = {"node": pa.array(below, pa.string()), "ancestor": pa.array(ancestors, pa.string())}
        distinct = "SELECT DISTINCT * FROM incoming EXCEPT SELECT * FROM above"
        load_arrow(self._connection, f"INSERT INTO above {distinct}", columns)

    def add_area(self, release: int, area: Area | None, finest: int, *, exact: bool = True) -> None:
        """Record the study area of a release: readers know that its trips start and end there.

        An area of too many cells counts as one that cannot be listed if it must be ``exact``, otherwise as none.
        """
        if area is None or self._hierarchy is not None:
            return
        if area.shape is not None:
            import shapely

            km2 = polygon_area_km2(shapely.geometry.mapping(area.shape))
            if km2 / h3.average_hexagon_area(finest, unit="km^2") > MOST_CELLS:
                self._areas |= {release: None} if exact else {}
                return
        cells = cell_to_str(area.mask(finest)).tolist()
        if len({h3.get_resolution(cell) for cell in cells}) == 1:
            cells = sorted(h3.compact_cells(cells))
        first = next((first for first, own in self.areas.items() if own == cells), release)
        self._areas[release] = first
        self.areas.setdefault(first, cells)

    def areas_of(self, releases: Iterable[int]) -> dict[int, set[int]] | None:
        """Return the study areas of some releases, with the releases of each; None if one cannot be listed."""
        found: dict[int, set[int]] = {}
        for release in releases:
            area = self._areas.get(release, -1)
            if area is None:
                return None
            if area >= 0:
                found.setdefault(area, set()).add(release)
        return found

    def _lookup_above(self, nodes: list[str]) -> tuple[list[str], list[str]]:
        tree = self._hierarchy
        assert tree is not None
        below, ancestors = list(nodes), list(nodes)
        levels = [np.char.add(f"{at}:", tree.labels(at)[tree.codes[at]].astype(np.str_)) for at in range(tree.top + 1)]
        for low, high in combinations(levels, 2):
            here = np.isin(low, nodes)
            below += low[here].tolist()
            ancestors += high[here].tolist()
        return _known_only(below, ancestors, self._known)

    def regions(self, axis: str, releases: Sequence[int]) -> list[frozenset[tuple[int, str]]]:
        """Return the parts of an axis that zones and areas of some releases distinguish, as the zones around each.

        Such a part is a node without the finer nodes inside it, unless these cover it. Places without trips count, too.
        """
        return sorted(self._parts(axis, releases), key=sorted)

    def _parts(self, axis: str, releases: Sequence[int]) -> dict[frozenset[tuple[int, str]], list[_NodeRemainder]]:
        """Return the `regions` of an axis with the nodes that make up each, and the finer nodes inside these."""
        numbers = ", ".join(map(str, releases))
        listed = self._connection.execute(
            f"SELECT node, release, zone FROM nodes WHERE axis = '{axis}' AND release IN ({numbers})"
        ).fetchall()
        zones: dict[str, set[tuple[int, str]]] = {}
        for node, release, zone in listed:
            zones.setdefault(node, set()).add((release, zone))
        areas = self.areas_of(releases) or {}
        for area in areas:
            for node in self.areas[area]:
                zones.setdefault(node, set()).add((area, AREA))
        above = self._connection.execute("SELECT node, ancestor FROM above").fetchall()
        higher: dict[str, list[str]] = {node: [] for node in zones}
        for node, ancestor in zip(*_h3_above(list(zones), set(zones)), strict=True) if areas else above:
            if node in zones and ancestor in zones and node != ancestor:
                higher[node].append(ancestor)
        size = self._sizes(list(zones))
        finer: dict[str, list[str]] = {node: [] for node in zones}
        for node, ancestors in higher.items():
            if ancestors:
                finer[min(ancestors, key=lambda each: size[each])].append(node)
        parts: dict[frozenset[tuple[int, str]], list[_NodeRemainder]] = {}
        for node, inside in finer.items():
            if sum(size[each] for each in inside) < size[node]:
                around = frozenset(zones[node].union(*(zones[each] for each in higher[node])))
                parts.setdefault(around, []).append(_NodeRemainder(node, inside))
        return parts

    def spots(self, axis: str, releases: Sequence[PublishedRelease], most: int) -> list[Spot]:
        """Return the parts of an axis; a part where a release has no zone is split if it has at most ``most`` places.

        The last part is what lies outside all zones, if there is anything.
        """
        numbers = [each.number for each in releases]
        found = []
        for region, parts in sorted(self._parts(axis, numbers).items(), key=lambda each: sorted(each[0])):
            around = {number for number, zone in region if zone != AREA}
            without = [each for each in releases if each.number not in around or _depends(axis, each)]
            levels = {self._class_level(axis, each) for each in without} - {None}
            level = None if not levels else (min if self._hierarchy is not None else max)(levels)  # type: ignore[type-var]
            if level is None or self._places(parts, level) > most:
                found.append(Spot(region, tuple(parts)))
            else:
                places = [place for part in parts for place in self._places_of(part, level)]
                found += [Spot(region, (_NodeRemainder(place, []),)) for place in places]
        everything = any(part.node == WORLD for spot in found for part in spot.parts)
        if self._hierarchy is not None:
            parts = [part for each in self._parts(axis, numbers).values() for part in each]
            everything = self._places(parts, 0) == len(self._hierarchy.leaves)
        return found if everything else [*found, Spot(frozenset(), ())]

    def _places(self, parts: Sequence[_NodeRemainder], level: int) -> float:
        """Return the number of places of a level in some parts, at least; nodes below that level have none."""
        size = self._sizes([node for part in parts for node in (part.node, *part.inside)], level)
        return float(sum(max(size[part.node] - sum(size[each] for each in part.inside), 1) for part in parts))

    def _places_of(self, part: _NodeRemainder, level: int) -> list[str]:
        """Return the places of a level in a part, or the part itself if it is finer."""
        if (self._level_of(part.node) == level and not part.inside) or not self._above_level(part.node, level):
            return [part.node]
        if self._hierarchy is None:
            finer = {each for each in part.inside if not self._above_level(each, level)}
            inside = {h3.cell_to_parent(each, level) for each in finer if h3.get_resolution(each) == level}
            for each in set(part.inside) - finer:
                inside |= {*h3.cell_to_children(each, level)}
            return sorted({*h3.cell_to_children(part.node, level)} - inside)
        taken = np.zeros(len(self._hierarchy.leaves), dtype=bool)
        for each in part.inside:
            taken |= self._below(each)
        names = self._hierarchy.labels(level)[self._hierarchy.codes[level][self._below(part.node) & ~taken]]
        return [f"{level}:{name}" for name in np.unique(names.astype(np.str_)).tolist()]

    def _below(self, node: str) -> Bools:
        """Return which leaves of the lookup table are below a node."""
        tree, (level, _, code) = self._hierarchy, node.partition(":")
        assert tree is not None
        below: Bools = tree.labels(int(level))[tree.codes[int(level)]].astype(np.str_) == code
        return below

    def class_labels(self, axis: str, release: PublishedRelease, spots: Sequence[Spot]) -> list[ClassLabel]:
        """Return, for each part of an axis, the zone of a release around it, or how many zones it may have at most."""
        level, fixed = self._class_level(axis, release), self._fixed_level(axis, release) is not None
        labels = []
        for at, spot in enumerate(spots):
            own = [zone for number, zone in spot.region if number == release.number and zone != AREA]
            if len(own) == 1 and not _depends(axis, release):
                labels.append(ClassLabel(own[0], own[0], 1, True))
            elif level is None or not spot.parts:
                labels.append(ClassLabel(f"\x1f{at}", None, inf, False))
            elif len(spot.parts) > 1 or spot.parts[0].inside or self._above_level(spot.parts[0].node, level):
                labels.append(ClassLabel(f"\x1f{at}", None, self._places(spot.parts, level), False))
            else:
                zone = self._at_level(spot.parts[0].node, level) if fixed else spot.parts[0].node
                name = zone if self._hierarchy is None else zone.partition(":")[2]
                labels.append(ClassLabel(f"\x1f{zone}", name, 1, fixed))
        return labels

    def _fixed_level(self, axis: str, release: PublishedRelease) -> int | None:
        """Return the level of all zones of a release if its method uses a single one, listed or not; else None."""
        levels = {self._level_of(self.name(each["id"], each.get("level"))) for each, _ in release.zones[axis]}
        return levels.pop() if release.manifest.get("method") == "oigh" and len(levels) == 1 else None

    def _class_level(self, axis: str, release: PublishedRelease) -> int | None:
        """Return the level of the finest zones that a release may have; None if unknown."""
        fixed = self._fixed_level(axis, release)
        finest = 0 if self._hierarchy is not None else release.manifest.get("resolution")
        if release.manifest.get("method") not in METHODS or not isinstance(finest, int):
            return None
        return finest if fixed is None else fixed

    def _level_of(self, node: str) -> int | None:
        """Return the level of a node of the lookup table, or the resolution of a cell; None if unknown."""
        if self._hierarchy is not None:
            return int(node.partition(":")[0])
        return h3.get_resolution(node) if h3.is_valid_cell(node) else None

    def _above_level(self, node: str, level: int) -> bool:
        own = self._level_of(node)
        return own is None or (own > level if self._hierarchy is not None else own < level)

    def _at_level(self, node: str, level: int) -> str:
        """Return the node of a level above a node, or the node itself."""
        if self._hierarchy is None:
            return str(h3.cell_to_parent(node, level))
        leaf = int(np.flatnonzero(self._below(node))[0])
        return f"{level}:{self._hierarchy.labels(level)[self._hierarchy.codes[level][leaf]]}"

    def _sizes(self, nodes: list[str], level: int | None = None) -> dict[str, int]:
        """Return the number of places in each node, with or without trips: leaves, or nodes of a level above them.

        Cells are counted at the finest resolution among them, or at a finer one.
        """
        if self._hierarchy is not None:
            tree, least = self._hierarchy, level or 0
            size: dict[str, int] = {}
            for at in range(least, tree.top + 1):
                pairs = np.unique(np.stack([tree.codes[at], tree.codes[least]]), axis=1)[0]
                numbers, counts = np.unique(pairs, return_counts=True)
                names = tree.labels(at)[numbers].astype(np.str_)
                size |= {f"{at}:{name}": int(count) for name, count in zip(names, counts, strict=True)}
            return {node: size.get(node, 0 if least else 1) for node in nodes}
        cells = _cells(nodes)
        finest = max(int(cell_to_resolution(cells).max(initial=0)), level or 0)
        size = {node: h3.cell_to_children_size(node, finest) if h3.is_valid_cell(node) else 1 for node in nodes}
        return size | ({WORLD: 122 * 7**finest} if WORLD in size else {})


@dataclass(frozen=True)
class ClassLabel:
    """The zone of a release around a part of an axis."""

    name: str  # equal for parts of one zone
    zone: str | None  # None if there may be several zones
    classes: float  # the number of zones of the release in it, at most
    certain: bool  # whether it is one zone of the release


@dataclass(frozen=True)
class _NodeRemainder:
    """A node without the finer nodes inside it."""

    node: str
    inside: list[str]


@dataclass(frozen=True)
class Spot:
    """A part of an axis: the zones around it, and the nodes that make it up; none for what lies outside all zones."""

    region: frozenset[tuple[int, str]]
    parts: tuple[_NodeRemainder, ...]


def _depends(axis: str, release: PublishedRelease) -> bool:
    """Return whether the zones of an axis depend on the other end of a flow."""
    method = METHODS.get(str(release.manifest.get("method")))
    return method is not None and method.overlaps and axis == AXES[1]


def _codes(zones: Sequence[Zone]) -> set[tuple[str, int]] | None:
    """Return the codes, with levels, of the lookup table that zones are made of; None if they are H3 cells."""
    listed = [properties for properties, _ in zones if properties["id"] != WORLD]
    if not all(properties.get("level") is not None or properties.get("places") for properties in listed):
        return None
    return {(code, each.get("level") or 0) for each in listed for code in each.get("places") or [each["id"]]}


def _cells(nodes: list[str]) -> Any:
    return str_to_cell(pa.array(nodes, pa.string())) if nodes else np.empty(0, dtype=np.uint64)


def _h3_above(nodes: list[str], known: AbstractSet[str]) -> tuple[list[str], list[str]]:
    """Return each node with each of its known ancestors, itself included, as two columns."""
    names, cells = np.array(nodes, dtype=object), _cells(nodes)
    below, ancestors = list(nodes), list(nodes)
    own = np.where(cells == 0, -1, cell_to_resolution(cells))
    for resolution in sorted({int(each) for each in cell_to_resolution(_cells(sorted(known)))}):
        finer = np.flatnonzero(own > resolution)
        below += names[finer].tolist()
        ancestors += cell_to_str(cell_to_parent(cells[finer], resolution)).tolist()
    if WORLD in known:
        below += nodes
        ancestors += [WORLD] * len(nodes)
    return _known_only(below, ancestors, known)


def _known_only(nodes: list[str], ancestors: list[str], known: AbstractSet[str]) -> tuple[list[str], list[str]]:
    found = [(node, ancestor) for node, ancestor in zip(nodes, ancestors, strict=True) if ancestor in known]
    return [node for node, _ in found], [ancestor for _, ancestor in found]


def check_outlines(release: PublishedRelease) -> Iterator[Finding]:
    """Check that the outline of a zone that is an H3 cell is that of the cell."""
    for axis in AXES:
        for properties, geometry in release.zones[axis]:
            cell, wrong = properties["id"], None
            if properties.get("resolution") is None or properties.get("cells", [cell]) != [cell]:
                continue
            if not bool(is_valid_cell(_cells([cell]))[0]):
                wrong = "is no H3 cell"
            elif h3.get_resolution(cell) != properties["resolution"]:
                wrong = f"is not of resolution {properties['resolution']}"
            elif not _is_outline(cell, geometry):
                wrong = "was moved: its outline is not that of its cell"
            if wrong is not None:
                yield finding_on("zones", release, f"{axis} zone {cell} {wrong}")


def _is_outline(cell: str, geometry: Any) -> bool:
    try:
        ring = geometry["coordinates"][0]
        corners = [(lat, lng) for lat, lng in h3.cell_to_boundary(cell)]
        near = [
            any(abs(lat - y) < 1e-5 and abs((lng - x + 180) % 360 - 180) < 1e-5 for lat, lng in corners)
            for x, y in ring
        ]
        return all(near) and len(ring) == len(corners) + 1
    except (TypeError, KeyError, IndexError, ValueError):
        return False
