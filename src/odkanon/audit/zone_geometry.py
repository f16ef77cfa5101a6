"""Where zones lie: which zone is inside which, and on what they are drawn.

Zones are sets of nodes of a hierarchy, and each node knows those above it. The table ``nodes`` says which nodes make
up each zone, the table ``above`` which node lies below which; everything about nesting is a join of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import duckdb
import h3
import numpy as np
import pyarrow as pa

from odkanon.audit.findings import Finding
from odkanon.audit.nested_flows import check_nesting
from odkanon.audit.release_reader import AXES, WORLD, Published, Zone, rows
from odkanon.audit.study_area import same_table
from odkanon.methods.method_registry import METHODS
from odkanon.read.area import Area
from odkanon.zoning.cells import cell_to_parent, cell_to_resolution, cell_to_str, is_valid_cell, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.spherical_geometry import polygon_area_km2

MOST_CELLS = 300_000
"""How many cells of an area are listed."""
AREA = "\x1farea"
"""What the area of a release is called among its zones; no zone that people name is called so."""


class Places:
    """The tables ``nodes`` and ``above`` over all zones, and over leaves as they come.

    Attributes
    ----------
    areas : dict of int to list of str
        The cells of each area that releases were kept to, by the number of the first of them.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, releases: Iterable[Published], hierarchy: Hierarchy | None
    ) -> None:
        self._connection = connection
        self._hierarchy = hierarchy
        self._levels = {} if hierarchy is None else _finest_levels(hierarchy)
        self._table = set() if hierarchy is None else _names(hierarchy)
        connection.execute(
            "CREATE TABLE nodes (release INTEGER, axis VARCHAR, zone VARCHAR, node VARCHAR, size INTEGER)"
        )
        connection.execute("CREATE TABLE above (node VARCHAR, ancestor VARCHAR)")
        for release in releases:
            self._add_zones(release)
        known = [row[0] for row in connection.execute("SELECT DISTINCT node FROM nodes").fetchall()]
        self._known = set(known)
        self._areas: dict[int, int | None] = {}
        self.areas: dict[int, list[str]] = {}
        self.add_nodes(known)

    def _add_zones(self, release: Published) -> None:
        columns: dict[str, list[Any]] = {"axis": [], "zone": [], "node": [], "size": []}
        for axis in AXES:
            for about, _ in release.zones[axis]:
                cells = about.get("cells") or about.get("places") or [about["id"]]
                level = about.get("level", self._levels.get(about["id"]) if release.bare else None)
                names = [self.name(cell, level) for cell in cells]
                columns["axis"] += [axis] * len(names)
                columns["zone"] += [about["id"]] * len(names)
                columns["node"] += names
                columns["size"] += [len(names)] * len(names)
        self._insert("nodes", f"SELECT {release.number}, * FROM incoming", pa.table(columns))

    def name(self, place: str, level: int | None = 0) -> str:
        """Return the name of a node; in a lookup table the same code may stand for zones of several levels."""
        return place if self._hierarchy is None else f"{level or 0}:{place}"

    def comparable(self, one: Published, other: Published) -> bool:
        """Tell whether it is known which zones of two releases lie in which.

        Cells know it of each other. Codes need a lookup table that has them, unless one release has all zones of the
        other, or all are of one level of one table.
        """
        for axis in AXES:
            first, second = (_codes(release.zones[axis]) for release in (one, other))
            if (first is None) != (second is None) and one.zones[axis] and other.zones[axis]:
                return False
            both = (first or set()) | (second or set())
            if (
                not both
                or both in (first, second)
                or (self._hierarchy is None and len({level for _, level in both}) == 1 and same_table(one, other))
            ):
                continue
            if self._hierarchy is None or not {self.name(*each) for each in both} <= self._table:
                return False
        return True

    def add_nodes(self, nodes: list[str]) -> None:
        """Tell the table ``above`` what lies above some nodes, themselves included, as far as zones are made of it."""
        below, ancestors = self._lookup_above(nodes) if self._hierarchy is not None else _h3_above(nodes, self._known)
        table = pa.table({"node": pa.array(below, pa.string()), "ancestor": pa.array(ancestors, pa.string())})
        self._insert("above", "SELECT DISTINCT * FROM incoming EXCEPT SELECT * FROM above", table)

    def add_area(self, release: int, area: Area | None, finest: int, *, exact: bool = True) -> None:
        """Take note of where the trips of a release can begin and end, as everybody knows of whom it tells.

        An area of too many cells is taken for one that cannot be listed where that is to be ``exact``, else for none.
        """
        if area is None or self._hierarchy is not None:
            return
        if area.shape is not None and _cells_in(area.shape, finest) > MOST_CELLS:
            self._areas |= {release: None} if exact else {}
            return
        cells = cell_to_str(area.mask(finest)).tolist()
        if len({h3.get_resolution(cell) for cell in cells}) == 1:
            cells = sorted(h3.compact_cells(cells))
        first = next((first for first, own in self.areas.items() if own == cells), release)
        self._areas[release] = first
        self.areas.setdefault(first, cells)

    def areas_of(self, releases: Iterable[int]) -> dict[int, set[int]] | None:
        """Return the areas that some releases were kept to, and which were; None where one cannot be listed."""
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
        wanted, below, ancestors = set(nodes), list(nodes), list(nodes)
        levels = [np.char.add(f"{at}:", tree.labels(at)[tree.codes[at]].astype(np.str_)) for at in range(tree.top + 1)]
        for low in range(tree.top + 1):
            here = np.isin(levels[low], list(wanted))
            for high in range(low + 1, tree.top + 1):
                below += levels[low][here].tolist()
                ancestors += levels[high][here].tolist()
        kept = [at for at, ancestor in enumerate(ancestors) if ancestor in self._known]
        return [below[at] for at in kept], [ancestors[at] for at in kept]

    def regions(self, axis: str, releases: Sequence[int]) -> list[frozenset[tuple[int, str]]]:
        """Return the parts of an axis that zones and areas of some releases tell apart, each by those that it lies in.

        A node less all finer nodes is a part, unless they make it up: places are those that the world knows.
        """
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
        covered = dict.fromkeys(zones, 0)
        for node, ancestors in higher.items():
            if ancestors:
                covered[min(ancestors, key=lambda each: size[each])] += size[node]
        return sorted(
            {
                frozenset(zones[node].union(*(zones[each] for each in higher[node])))
                for node in zones
                if covered[node] < size[node]
            },
            key=sorted,
        )

    def _sizes(self, nodes: list[str]) -> dict[str, int]:
        """Return how many places there are in each node, whether or not anybody goes there."""
        if self._hierarchy is not None:
            tree = self._hierarchy
            size: dict[str, int] = {}
            for level in range(tree.top + 1):
                names, counts = np.unique(tree.labels(level)[tree.codes[level]].astype(np.str_), return_counts=True)
                size |= {f"{level}:{name}": int(count) for name, count in zip(names, counts, strict=True)}
            return {node: size.get(node, 1) for node in nodes}
        cells = _cells(nodes)
        finest = int(cell_to_resolution(cells).max(initial=0))
        everything = 122 * 7**finest
        return {
            node: everything
            if node == WORLD
            else h3.cell_to_children_size(node, finest)
            if h3.is_valid_cell(node)
            else 1
            for node in nodes
        }

    def _insert(self, table: str, select: str, incoming: pa.Table) -> None:
        self._connection.register("incoming", incoming)
        self._connection.execute(f"INSERT INTO {table} {select}")
        self._connection.unregister("incoming")


def _codes(zones: Sequence[Zone]) -> set[tuple[str, int]] | None:
    """Return the codes of a lookup table, and their levels, that zones are made of; None where they are H3 cells."""
    listed = [about for about, _ in zones if about["id"] != WORLD]
    if not all(about.get("level") is not None or about.get("places") for about in listed):
        return None
    return {(code, about.get("level") or 0) for about in listed for code in about.get("places") or [about["id"]]}


def _names(tree: Hierarchy) -> set[str]:
    """Return all nodes of a lookup table by their names."""
    return {f"{level}:{code}" for level in range(tree.top + 1) for code in tree.labels(level)}


def _finest_levels(tree: Hierarchy) -> dict[str, int]:
    """Return, for each code of a lookup table, the finest level on which it stands for a zone."""
    return {str(code): level for level in range(tree.top, -1, -1) for code in tree.labels(level)}


def _cells(nodes: list[str]) -> Any:
    return str_to_cell(pa.array(nodes, pa.string())) if nodes else np.empty(0, dtype=np.uint64)


def _cells_in(shape: Any, resolution: int) -> float:
    """Return about how many cells of a resolution a polygon has."""
    import shapely

    area = polygon_area_km2(shapely.geometry.mapping(shape))
    return area / float(h3.average_hexagon_area(resolution, unit="km^2"))


def _h3_above(nodes: list[str], known: AbstractSet[str]) -> tuple[list[str], list[str]]:
    """Return nodes, and for each of them what lies above it among those that are known, itself included."""
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
    kept = [at for at, ancestor in enumerate(ancestors) if ancestor in known]
    return [below[at] for at in kept], [ancestors[at] for at in kept]


def check_outlines(release: Published) -> list[Finding]:
    """Check that zones which are H3 cells are drawn where those cells are."""
    findings = []
    for axis in AXES:
        for about, geometry in release.zones[axis]:
            if about.get("resolution") is None or about.get("cells", [about["id"]]) != [about["id"]]:
                continue
            cell = about["id"]
            if not bool(is_valid_cell(_cells([cell]))[0]):
                findings.append(_finding(release, f"{axis} zone {cell} is no H3 cell"))
            elif h3.get_resolution(cell) != about["resolution"]:
                findings.append(_finding(release, f"{axis} zone {cell} is not of resolution {about['resolution']}"))
            elif not _is_outline(cell, geometry):
                findings.append(_finding(release, f"{axis} zone {cell} was moved: its outline is not that of its cell"))
    return findings


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


def check_overlap(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    """Check that no place is in two zones (where zones are the same for all partners), and none in two flows."""
    if release.nested:
        return check_nesting(connection, release)
    if release.has_boxes:
        return _check_boxes(connection, release)
    method = METHODS.get(release.manifest.get("method", ""))
    findings = []
    for axis in AXES:
        overlaps = rows(connection, f"SELECT DISTINCT outside, inside FROM ({_touching(release, axis)}) ORDER BY 1, 2")
        # Zones of one axis may depend on the other end; flows may never overlap.
        if overlaps and not (method is not None and method.overlaps):
            first = overlaps[0]
            text = f"{axis} zone {first['inside']} lies in zone {first['outside']}: places must be in one zone only"
            findings.append(_finding(release, text, overlaps))
    both = rows(connection, _overlapping_flows(release))
    if both:
        first = both[0]
        text = f"{len(both):,} pairs of flows overlap: {first['one']} and {first['other']} count some trips twice"
        findings.append(_finding(release, text, both))
    return findings


def _touching(release: Published, axis: str) -> str:
    return (
        "SELECT o.zone AS outside, i.zone AS inside FROM nodes i JOIN above a ON a.node = i.node "
        f"JOIN nodes o ON o.node = a.ancestor AND o.release = i.release AND o.axis = i.axis "
        f"WHERE i.release = {release.number} AND i.axis = '{axis}' AND o.zone <> i.zone"
    )


def _overlapping_flows(release: Published) -> str:
    def touch(axis: str) -> str:
        pairs = _touching(release, axis)
        return (
            f"(SELECT outside AS one, inside AS other FROM ({pairs}) UNION SELECT inside, outside FROM ({pairs}) "
            f"UNION SELECT DISTINCT {axis}, {axis} FROM classes WHERE release = {release.number})"
        )

    name = "{0}.origin || ' -> ' || {0}.destination"
    return (
        f"SELECT {name.format('c')} AS one, {name.format('e')} AS other FROM classes c JOIN {touch('origin')} o "
        f"ON o.one = c.origin JOIN {touch('destination')} d ON d.one = c.destination "
        "JOIN classes e ON e.origin = o.other AND e.destination = d.other AND e.release = c.release "
        f"WHERE c.release = {release.number} "
        "AND (c.origin, c.destination) < (e.origin, e.destination) ORDER BY 1, 2"
    )


def box_table(connection: duckdb.DuckDBPyConnection, release: Published) -> str:
    """Create a table of the flows between boxes with their bounds, and return its name."""
    columns: dict[str, list[Any]] = {name: [] for name in ("axis", "zone", "west", "south", "east", "north")}
    for axis in AXES:
        for about, geometry in release.zones[axis]:
            x, y = zip(*geometry["coordinates"][0], strict=True)
            for name, value in zip(columns, (axis, about["id"], min(x), min(y), max(x), max(y)), strict=True):
                columns[name].append(value)
    name = f"boxes{release.number}"
    connection.register("incoming", pa.table(columns))
    sides = ", ".join(f"o.{side} AS o_{side}, d.{side} AS d_{side}" for side in ("west", "south", "east", "north"))
    connection.execute(
        f"CREATE OR REPLACE TABLE {name} AS SELECT c.rowid AS class, c.origin, c.destination, {sides} FROM classes c "
        "JOIN incoming o ON o.axis = 'origin' AND o.zone = c.origin JOIN incoming d ON d.axis = 'destination' "
        f"AND d.zone = c.destination WHERE c.release = {release.number}"
    )
    connection.unregister("incoming")
    return name


def _check_boxes(connection: duckdb.DuckDBPyConnection, release: Published) -> list[Finding]:
    name = box_table(connection, release)
    apart = " AND ".join(
        f"a.{end}_{low} < b.{end}_{high} AND b.{end}_{low} < a.{end}_{high}"
        for end in "od"
        for low, high in (("west", "east"), ("south", "north"))
    )
    both = rows(
        connection,
        "SELECT a.origin || ' -> ' || a.destination AS one, b.origin || ' -> ' || b.destination AS other "
        f"FROM {name} a JOIN {name} b ON {apart} AND (a.origin, a.destination) < (b.origin, b.destination)",
    )
    if not both:
        return []
    text = f"{len(both):,} pairs of flows overlap: {both[0]['one']} and {both[0]['other']} count some trips twice"
    return [_finding(release, text, both)]


def _finding(release: Published, message: str, details: tuple[dict[str, Any], ...] = ()) -> Finding:
    return Finding("zones", (release.name,), message, details=details)
