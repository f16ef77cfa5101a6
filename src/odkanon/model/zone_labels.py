"""Releases of zones that are given as labels, one for each leaf or for each OD pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odkanon.core.arrays import Codes, Ints
from odkanon.errors import InputError, InvalidValueError
from odkanon.model.assemble import assemble
from odkanon.model.od import AXES, Axis, ODMatrix
from odkanon.model.release import Release
from odkanon.model.release_spec import ReleaseSpec, Structure
from odkanon.zoning.hierarchy import Hierarchy, cut_at
from odkanon.zoning.zones import Zones, zones_of_cut, zones_of_nodes


def release_from_labels(
    od: ODMatrix, spec: ReleaseSpec, labels: Mapping[Axis, npt.ArrayLike], structure: str
) -> Release:
    """Return the release of zones that are given as labels; see `Release.from_labels`."""
    if structure not in (Structure.PARTITION, Structure.OVERLAPPING):
        raise InvalidValueError.expected("the structure of labelled zones", "partition or overlapping", structure)
    if od.axes:
        raise InputError("labels are zones of places; this matrix has further attributes: read it without them")
    rule, budget = spec.rule, spec.budget
    rule.check_available(od.measures)
    origins, destinations = (
        _label_zones(od, axis, labels[axis], whole=structure == Structure.PARTITION) for axis in AXES
    )
    if structure == Structure.OVERLAPPING:
        _check_disjoint(od, origins, destinations)
    merged, _ = od.flows.merge(origins.number, destinations.number)
    good = rule.satisfied_jointly(merged)
    if not good.any():
        return Release.empty(od, spec, f"no class meets {rule}; choose coarser zones, or lower the thresholds")
    if budget is not None and budget.mass(merged, ~good) > budget.allowance(merged):
        why = (
            f"classes with {budget.mass(merged, ~good):,} {budget.of} do not meet {rule}, and no more than "
            f"{budget.allowance(merged):,} may be suppressed; choose coarser zones, or raise the budget"
        )
        return Release.empty(od, spec, why)
    return assemble(
        od,
        spec,
        origins=origins.zones,
        destinations=destinations.zones,
        origin_zone=origins.number,
        destination_zone=destinations.number,
        structure=Structure(structure),
    )


@dataclass(frozen=True, eq=False)
class _LabelledZones:
    """The zones of one axis."""

    zones: Zones
    number: Codes
    """For each OD pair, the number of its zone."""
    level: Ints | None = None
    node: Ints | None = None
    """For each OD pair, the level of its zone and its node within the level; None for free labels."""


def _label_zones(od: ODMatrix, axis: Axis, labels: npt.ArrayLike, *, whole: bool) -> _LabelledZones:
    tree, leaf = od.tree(axis), getattr(od.flows, axis).astype(np.int64)
    place = np.arange(len(tree.leaves)) if whole else leaf
    names, label = _distinct(labels, axis, len(place), "leaf" if whole else "OD pair")
    full = tree.public or tree
    if not any(np.isin(names, full.labels(level)).any() for level in range(full.top + 1)):
        if whole:
            leaves = np.bincount(label, minlength=len(names))
        else:
            width = int(leaf.max(initial=0)) + 1
            leaves = np.bincount(np.unique(label * width + leaf) // width, minlength=len(names))
        return _LabelledZones(Zones(names, leaves), (label[leaf] if whole else label).astype(np.int32))
    level_of_label = _levels_of_nodes(tree, names, label, place, whole=whole)
    wrong = np.flatnonzero(level_of_label < 0)
    if len(wrong):
        raise InputError(
            f"the {axis} label {str(names[wrong[0]])!r} is no node of the hierarchy that has just the leaves with this "
            "label; label each axis with nodes of its hierarchy only, or with names that no node has"
        )
    level = level_of_label[label]
    if whole:
        zones, zone_of_leaf = zones_of_cut(tree, cut_at(tree, level.astype(np.int8)))
        return _LabelledZones(zones, zone_of_leaf[leaf], level[leaf], _nodes(tree, level[leaf], leaf))
    node = _nodes(tree, level, leaf)
    return _LabelledZones(*zones_of_nodes(tree, level, node), level, node)


def _distinct(labels: npt.ArrayLike, axis: Axis, count: int, unit: str) -> tuple[npt.NDArray[np.str_], Ints]:
    """Return the distinct labels as text, sorted, and for each place the number of its label."""
    values = pa.array(np.asarray(labels), from_pandas=True)
    if len(values) != count:
        raise InvalidValueError.expected(f"{axis} labels", f"{count:,} in number, one for each {unit}", len(values))
    if values.null_count or not (pa.types.is_integer(values.type) or pa.types.is_string(values.type)):
        raise InvalidValueError.expected(f"{axis} labels", "text or whole numbers, none missing", str(values.type))
    names, label = np.unique(np.asarray(pc.cast(values, pa.string())).astype(np.str_), return_inverse=True)
    return names, label.reshape(-1)


def _levels_of_nodes(tree: Hierarchy, names: npt.NDArray[np.str_], label: Ints, place: Ints, *, whole: bool) -> Ints:
    """Return for each label the lowest level with a node of this name that contains all its places; -1 for none.

    With ``whole``, the node must have no other leaves.
    """
    count, found = np.bincount(label, minlength=len(names)), np.full(len(names), -1)
    for level in range(tree.top, -1, -1):
        node = tree.codes[level][place]
        same = tree.labels(level)[node] == names[label]
        if whole:
            same &= tree.sizes[level][node] == count[label]
        found[np.bincount(label[same], minlength=len(names)) == count] = level
    return found


def _nodes(tree: Hierarchy, level: Ints, leaf: Ints) -> Ints:
    """Return for each pair the node of its leaf at its level."""
    node = np.empty(len(leaf), dtype=np.int64)
    for at in np.unique(level).tolist():
        node[level == at] = tree.codes[at][leaf[level == at]]
    return node


def _check_disjoint(od: ODMatrix, origins: _LabelledZones, destinations: _LabelledZones) -> None:
    """Raise if an OD pair lies between the zones of more than one class."""
    if origins.level is None or origins.node is None or destinations.level is None or destinations.node is None:
        return  # free labels have no extent beyond the pairs that they label
    classes = np.zeros(len(od), dtype=np.int64)
    for first, second in np.unique(np.stack([origins.level, destinations.level]), axis=1).T.tolist():
        here = (origins.level == first) & (destinations.level == second)
        width = len(od.destinations.ids[second])
        own = origins.node[here] * width + destinations.node[here]
        ends = od.origins.codes[first][od.flows.origin], od.destinations.codes[second][od.flows.destination]
        classes += np.isin(ends[0].astype(np.int64) * width + ends[1], own)
    if (classes > 1).any():
        raise InputError(
            f"{np.count_nonzero(classes > 1):,} OD pairs lie between the zones of more than one class; label all pairs "
            "between two zones alike"
        )
