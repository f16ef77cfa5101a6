"""The manifests of a release: the public one with quality metrics, and the full one of its steward."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon._version import __version__
from odkanon.core.arrays import Ints
from odkanon.core.weights import from_units
from odkanon.methods.method_registry import METHODS
from odkanon.model.axes import Axis
from odkanon.model.flows import Totals
from odkanon.model.measures import ADDITIVE
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.release_format.contents import axis_zones, count_published, make_manifest, public_weights
from odkanon.release_format.public_rule import promise, publishable_rule
from odkanon.zoning.cells import cell_to_resolution, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import Zones, find_nodes

MIN_TRIPS = 10_000
"""No rounding of a quality metric was found that discloses nothing about a release of fewer trips."""
_COMMON_PARAMETERS = (
    *("segment", "dimension", "released_with", "segment_budget", "protect_intervals"),
    *("corrects", "adds_to"),
)
_DATA_DEPENDENT = ("target",)
"""Parameters of methods whose default is found in the data."""


def public_manifest(release: Release) -> dict[str, Any]:
    """Return the content of ``release.json``, without the digests of the other files."""
    return make_manifest(release, parameters=public_parameters(release), quality=public_quality(release))


def public_parameters(release: Release) -> dict[str, Any]:
    """Return the parameters that were requested of the method, without what it found in the data."""
    method = METHODS.get(release.method)
    requested = {*(() if method is None else method.options), *_COMMON_PARAMETERS} - {*_DATA_DEPENDENT}
    return {name: value for name, value in release.parameters.items() if name in requested}


def public_quality(release: Release) -> dict[str, Any] | None:
    """Return publishable quality metrics; None where few trips are published.

    C_DM, C_AVG and G are those of the rows alone (G over all leaves of the zoning) to two significant digits: the
    suppressed trips affect neither the values nor whether they are published. E and CPC compare with the data. They
    are rounded to hundredths, because two significant digits of a small value would count a few suppressed trips, and
    published only where any group below the rule has less than a hundredth of the published total, and never of nested
    rows (a cascade).
    """
    if release.is_noisy or int(release.classes.trips.sum()) < MIN_TRIPS:
        return None
    sizes = [public_leaves(release, axis) for axis in release.subject.axes]
    quality: dict[str, dict[str, Any]] = {}
    for measure in _additive(release):
        masses = release.classes.trips if measure == "trips" else public_weights(release)
        if masses is None:
            continue
        g = None
        known = [
            size[getattr(release.classes, axis)]
            for axis, size in zip(release.subject.axes, sizes, strict=True)
            if size is not None
        ]
        if len(known) == len(sizes) and len(masses):
            spread = np.sum(known, axis=0)
            g = float(np.sum(spread * (masses / masses.sum())))
        values = from_units(masses, release.input.scale if measure == "weight" else 1)
        of_rows = {
            "c_dm": float(np.sum(values**2)),
            "c_avg": float(values.mean()) / _published_k(release, measure),
            "g": g,
        }
        quality[measure] = {name: None if value is None else _two_digits(value) for name, value in of_rows.items()}
        # A cascade promises more than its rule: hundredths of E turned over with 51 unlisted trips at k = 100.
        compared = (
            release.subject.place is None and not release.is_nested and _small_groups_negligible(release, measure)
        )
        e = utility(release.input, release, measure=measure).e if compared else None
        quality[measure]["e"] = None if e is None else _hundredths(e)
        if compared and measure in release.accuracy:
            squares = release.accuracy[measure].squares
            quality[measure]["cpc"] = {square.name: _hundredths(square.cpc) for square in squares}
    return release.subject.published(quality)


def _published_k(release: Release, measure: str) -> float:
    """Return k in a measure as readers of the rows can derive it: with the mean weight of the rows."""
    rule, classes = publishable_rule(release), release.classes
    if measure == "weight" and rule.weight_from_data:
        return float(rule.disclosed_thresholds["weight"])
    mean = None
    weight = public_weights(release)
    if weight is not None:
        mean = Fraction(int(weight.sum()), int(classes.trips.sum()) * classes.scale)
    return float(rule.with_mean_weight(mean).k_of(measure))


def _small_groups_negligible(release: Release, measure: str) -> bool:
    """Return whether any group below the rule has less than a hundredth of the published total.

    For weight this holds only if the rule has no other threshold: three trips may stand for half of the population.
    """
    rule, classes = release.rule, release.classes
    if measure == "weight":
        weight = 0 if classes.weight_units is None else int(classes.weight_units.sum())
        return rule.measures == ("weight",) and weight >= 100 * rule.units("weight", classes.scale)
    thresholds = [value for name, value in rule.thresholds.items() if name != "weight"]
    return int(classes.trips.sum()) >= 100 * max([*thresholds, 1 if rule.k_from_data else rule.k])


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _hundredths(value: float) -> float:
    """Return a share in two significant digits, and no more than two decimals."""
    return float(f"{_two_digits(value):.2f}")


def public_leaves(release: Release, axis: Axis) -> Ints | None:
    """Return the number of leaves of the zoning in each zone, observed or not; None where it is not known.

    It is seven for each level below an H3 cell, and for a lookup table the leaves that it lists.
    """
    zones, matrix = axis_zones(release, axis)[0], release.matrix
    if matrix is None or zones.bounds is not None:
        return None
    tree = matrix.origins if axis == "origin" else matrix.destinations
    if tree.resolution is None:
        return _listed_leaves(zones, tree)
    if zones.resolution is None:
        return None
    cells = [(str(zone),) for zone in zones.ids.tolist()] if zones.cells is None else zones.cells
    resolution = cell_to_resolution(str_to_cell(pa.array([cell for part in cells for cell in part], pa.string())))
    world = np.array([part == ("world",) for part in cells for _ in part], dtype=bool)
    leaves = np.where(world, 2 + 120 * 7**tree.resolution, 7 ** np.maximum(tree.resolution - resolution, 0))
    first = np.cumsum([0, *(len(part) for part in cells[:-1])])
    return np.add.reduceat(leaves, first) if len(leaves) else leaves


def _listed_leaves(zones: Zones, tree: Hierarchy) -> Ints | None:
    if zones.level is None:
        return None
    # The whole table: the height of the tree over the observed leaves depends on the trips.
    full, leaves = tree.public or tree, np.zeros(len(zones), dtype=np.int64)
    for level in np.unique(zones.level).tolist():
        here = np.flatnonzero(zones.level == level)
        if level > full.top:
            return None
        leaves[here] = full.sizes[level][find_nodes(full, level, zones.ids[here])]
    return leaves


def full_manifest(release: Release, *, with_limit: bool = True) -> dict[str, Any]:
    """Return all that is known of a release: input, rule, method, published and suppressed totals, and quality.

    It is for the steward of the data, not for publication.

    Parameters
    ----------
    with_limit : bool
        Include lower bounds and accuracy, which take longer than everything else.
    """
    if release.is_noisy:
        return _noisy_manifest(release)
    published = count_published(release)
    if release.classes.weight_units is not None:
        published["weight"] = from_units(int(release.classes.weight_units.sum()), release.classes.scale)
    return {
        "version": __version__,
        **release.subject.to_dict(),
        "statement": promise(release),
        "input": _input(release),
        "rule": _full_rule(release),
        "method": release.method,
        "parameters": dict(release.parameters),
        **_full_axes(release),
        "published": {**published, "share": published["trips"] / release.input.trips},
        "suppressed": _totals(release, release.suppressed),
        **({} if release.companion is None else {"companion": _totals(release, release.companion)}),
        "utility": None
        if release.subject.place is not None
        else {measure: asdict(utility(release.input, release, measure=measure)) for measure in _additive(release)},
        **(bounds_and_accuracy(release) if with_limit else {"limit": None, "usefulness": None}),
        "privacy": {measure: asdict(report) for measure, report in privacy(release).items()},
        "seconds": round(release.seconds, 6),
    }


def _noisy_manifest(release: Release) -> dict[str, Any]:
    """Return what is known of a noisy release; nothing in it is compared with the input, which it estimates."""
    published = count_published(release)
    return {
        "version": __version__,
        "statement": promise(release),
        "input": _input(release),
        "rule": {},
        "method": release.method,
        "parameters": dict(release.parameters),
        **_full_axes(release),
        "published": {**published, "share": 1.0},
        "suppressed": {"pairs": 0, "trips": 0, "share": 0.0},
        "utility": None,
        "limit": None,
        "usefulness": None,
        "privacy": {},
        "seconds": round(release.seconds, 6),
    }


def bounds_and_accuracy(release: Release) -> dict[str, Any]:
    """Return the lower bounds for releases of the same input under the same rule, and the accuracy of this one."""
    bound = release.lower_bound
    return {
        "limit": None if bound is None else {"g": bound.g, "c_avg": bound.c_avg},
        "usefulness": {name: accuracy.as_dict() for name, accuracy in release.accuracy.items()},
    }


def _additive(release: Release) -> list[Any]:
    return [measure for measure in ADDITIVE if measure in release.input.measures]


def _totals(release: Release, part: Totals) -> dict[str, Any]:
    weight = {} if part.weight_units is None else {"weight": from_units(part.weight_units, release.input.scale)}
    return {"pairs": part.pairs, "trips": part.trips, **weight, "share": part.trips / release.input.trips}


def _full_axes(release: Release) -> dict[str, Any]:
    """Return the attributes of a cube as they were requested, with all their values."""
    matrix = release.matrix
    if matrix is None or not matrix.axes:
        return {}
    trees = [(axis, axis.public) for axis in matrix.axes]
    return {
        "axes": [
            {
                "name": axis.name,
                "asked": axis.asked,
                "levels": [ids[code].tolist() for ids, code in zip(tree.ids, tree.codes, strict=True)],
            }
            for axis, tree in trees
        ]
    }


def _input(release: Release) -> dict[str, Any]:
    whole, scale = release.input, release.input.scale
    rejected = whole.source.rejected
    totals: dict[str, Any] = {"rows": whole.source.rows, "pairs": whole.pairs}
    totals["trips"] = whole.trips + sum(part.trips for part in rejected.values())
    if whole.weight_units is not None:
        totals["weight"] = from_units(whole.weight_units + sum(part.weight for part in rejected.values()), scale)
    totals |= whole.contributors
    totals |= {"sha256": whole.source.sha256, "lookalikes": whole.source.lookalikes}
    totals["rejected"] = {
        reason: {"rows": part.rows, "trips": part.trips}
        | ({} if whole.weight_units is None else {"weight": from_units(part.weight, scale)})
        for reason, part in rejected.items()
    }
    return totals


def _full_rule(release: Release) -> dict[str, Any]:
    rule = release.rule
    mean = rule.mean_weight or (release.input.mean_weight if release.input.weight_units is not None else None)
    k = rule.k_of("trips", mean)
    described = {"k": int(k) if k.denominator == 1 else float(k), **_thresholds(rule), **rule.constraints}
    if rule.weight_from_data:
        described["weight_told"] = publishable_rule(release).disclosed_thresholds["weight"]
    return described if mean is None else {**described, "mean_weight": float(mean)}


def _thresholds(rule: Rule) -> dict[str, Any]:
    return {name: float(value) if name == "weight" else int(value) for name, value in rule.thresholds.items()}
