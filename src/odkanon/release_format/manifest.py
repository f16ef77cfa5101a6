"""What is said about a release: everything, for its steward, and what may be published with it.

The public account follows from the rows, the zones and public parameters. Anything else that looks harmless (observed
leaves, exact totals, a quality number with all its digits) shows groups that the rows do not.
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa

from odkanon._version import __version__
from odkanon.core.arrays import Ints
from odkanon.core.weights import from_units
from odkanon.methods.method_registry import METHODS
from odkanon.model.flows import Totals
from odkanon.model.measures import ADDITIVE, DISTINCT
from odkanon.model.od import AXES, Axis
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.release_format.names import axis_of
from odkanon.release_format.public_rule import public_rule, publishable_rule
from odkanon.zoning.cells import cell_to_resolution, str_to_cell
from odkanon.zoning.hierarchy import Hierarchy
from odkanon.zoning.zones import Zones, find_nodes

FORMAT = 1
ENOUGH_TRIPS = 10_000
"""Of an input with fewer trips, no rounding of a quality number was found that shows nothing."""
_OF_ANY_METHOD = ("segment", "dimension", "released_with", "segment_budget", "protect_intervals")
_FOUND = ("target",)
"""Options of methods that are looked for in the data where they are not given."""


def public_manifest(release: Release) -> dict[str, Any]:
    """Return what ``release.json`` says, without the digests of the other files."""
    matrix = release.matrix
    return {
        "format": FORMAT,
        "version": __version__,
        "statement": promise(release),
        "rule": public_rule(publishable_rule(release)),
        "method": release.method,
        "parameters": public_parameters(release),
        "resolution": None if matrix is None else matrix.origins.resolution,
        "zones": {axis: _attributes(axis_of(release, axis)[0]) for axis in AXES},
        **public_axes(release),
        **_period(release),
        "published": _published(release),
        "unlisted": {"at_most_trips": at_most_unlisted(release)},
        "quality": public_quality(release),
        "units": {
            "trips": "trips of the input",
            **({"weight": "sum of the weights of these trips"} if release.classes.weight is not None else {}),
            "area_km2": "square kilometres",
        },
    }


def _period(release: Release) -> dict[str, Any]:
    """Return from which day to before which day trips start, and on which clock; nothing where that was not said."""
    reading = release.input.source.reading
    days = {name: reading[name] for name in ("since", "until", "timezone") if name in reading}
    return {"period": days} if days.keys() - {"timezone"} else {}


def public_axes(release: Release) -> dict[str, Any]:
    """Return the axes of a cube besides its places, as its readers know them; nothing for other releases."""
    matrix = release.matrix
    if matrix is None or not matrix.axes:
        return {}
    return {
        "axes": [
            {"name": axis.name, "levels": axis.listed(release.classes.attributes[axis.name].tolist())}
            for axis in matrix.axes
        ]
    }


def _all_axes(release: Release) -> dict[str, Any]:
    """Return the axes of a cube as they were asked for, with all values that they have; see `public_axes`."""
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


def public_parameters(release: Release) -> dict[str, Any]:
    """Return what was asked of the method, without what it found in the data."""
    method = METHODS.get(release.method)
    asked = {*(() if method is None else method.options), *_OF_ANY_METHOD} - {*_FOUND}
    return {name: value for name, value in release.parameters.items() if name in asked}


def at_most_unlisted(release: Release) -> int | None:
    """Return how many trips can be missing from the rows at most, as anybody can work it out; None for no bound.

    Of a budget of a share b of the trips, at most ``b / (1 - b)`` times the others are missing. A share of OD pairs
    says nothing about trips, unless it is none at all. Beyond the budget the smallest flow may be missing, too, where
    the rest of what is would be too few (see `odkanon.model.residual_suppression`). Whether it is must not be
    disclosed, so it always counts: as the smallest that is published, which has no fewer trips. Of a rule that
    does not count trips first it may have any.
    """
    if release.unlisted is not None or release.budget is None:
        return release.unlisted
    share, trips, rule = Fraction(str(release.budget.share)), release.classes.trips, release.rule
    if share == 0:
        return 0
    if release.budget.of != "trips" or (rule.thresholds_only and rule.main_measure != "trips"):
        return None
    beyond = int(trips.min()) if rule.thresholds_only and len(trips) else 0
    return floor(share / (1 - share) * (int(trips.sum()) + beyond)) + beyond


def public_quality(release: Release) -> dict[str, Any] | None:
    """Return what may be told of the utility; None where few trips are published.

    C_DM, C_AVG and G are those of the rows alone, G over all leaves of the zoning, in two significant digits; what is
    not listed has no part in them, nor in whether they are told. E and CPC compare with the data. They are told in
    hundredths, of a small number two digits would count the few trips that are not listed; and only where a group below
    the rule is less than a hundredth.
    """
    if int(release.classes.trips.sum()) < ENOUGH_TRIPS:
        return None
    sizes = [public_leaves(release, axis) for axis in AXES]
    quality: dict[str, dict[str, Any]] = {}
    for measure in _additive(release):
        masses = getattr(release.classes, measure)
        g = None
        if sizes[0] is not None and sizes[1] is not None and len(masses):
            spread = sizes[0][release.classes.origin] + sizes[1][release.classes.destination]
            g = float(np.sum(spread * (masses / masses.sum())))
        own = from_units(masses, release.input.scale if measure == "weight" else 1)
        of_rows = {"c_dm": float(np.sum(own**2)), "c_avg": float(own.mean()) / _told_k(release, measure), "g": g}
        quality[measure] = {name: None if value is None else two_digits(value) for name, value in of_rows.items()}
        compared = _small_groups(release, measure)
        e = utility(release.input, release, measure=measure).e if compared else None
        quality[measure]["e"] = None if e is None else hundredths(e)
        if compared and measure in release.accuracy:
            places = release.accuracy[measure].squares
            quality[measure]["cpc"] = {place.name: hundredths(place.cpc) for place in places}
    return quality


def _told_k(release: Release, measure: str) -> float:
    """Return what k is in a measure for somebody who has the rows: where it takes a mean weight, that of the rows."""
    rule, classes = publishable_rule(release), release.classes
    if measure == "weight" and rule.weight_from_data:
        return float(rule.disclosed_thresholds["weight"])
    mean = None
    if classes.weight is not None:
        mean = Fraction(int(classes.weight.sum()), int(classes.trips.sum()) * classes.scale)
    return float(rule.remembering(mean).k_of(measure))


def _small_groups(release: Release, measure: str) -> bool:
    """Tell whether a group below the rule has less than a hundredth of what is published, whoever is in it.

    Of weight that holds only where nothing else is asked for: three trips may stand for half of the population, and a
    cascade needs trips for every row.
    """
    rule, classes = release.rule, release.classes
    if measure == "weight":
        weight = 0 if classes.weight is None else int(classes.weight.sum())
        alone = rule.measures == ("weight",) and not release.is_nested
        return alone and weight >= 100 * rule.units("weight", classes.scale)
    asked = [value for name, value in rule.thresholds.items() if name != "weight"]
    return int(classes.trips.sum()) >= 100 * max([*asked, 1 if rule.k_from_data else rule.k])


def two_digits(value: float) -> float:
    """Return a number in two significant digits."""
    return float(f"{value:.2g}")


def hundredths(value: float) -> float:
    """Return a share of the data in two significant digits, none of them behind the hundredths."""
    return float(f"{two_digits(value):.2f}")


def public_leaves(release: Release, axis: Axis) -> Ints | None:
    """Return how many leaves the zoning itself has in each zone, observed or not; None where that is not known.

    For H3 these are seven for each level below a cell, for a lookup table the leaves that it lists.
    """
    zones, matrix = axis_of(release, axis)[0], release.matrix
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
    # The whole table: how high the tree over the trips reaches depends on them.
    full, leaves = tree.public or tree, np.zeros(len(zones), dtype=np.int64)
    for level in np.unique(zones.level).tolist():
        here = np.flatnonzero(zones.level == level)
        if level > full.top:
            return None
        leaves[here] = full.sizes[level][find_nodes(full, level, zones.ids[here])]
    return leaves


def manifest(release: Release, *, with_limit: bool = True) -> dict[str, Any]:
    """Return all that is known about a release: input, rule, method, what was published, and how good it is.

    It is for the steward of the data, not for publishing.

    Parameters
    ----------
    with_limit : bool
        Find out how good it could be at best and how useful it is, which takes longer than all the rest.
    """
    published = _published(release)
    return {
        "version": __version__,
        "statement": promise(release),
        "input": _input(release),
        "rule": _rule(release),
        "method": release.method,
        "parameters": dict(release.parameters),
        **_all_axes(release),
        "published": {**published, "share": published["trips"] / release.input.trips},
        "suppressed": _totals(release, release.suppressed),
        **({} if release.companion is None else {"companion": _totals(release, release.companion)}),
        "utility": {
            measure: asdict(utility(release.input, release, measure=measure)) for measure in _additive(release)
        },
        **(how_good(release) if with_limit else {"limit": None, "usefulness": None}),
        "privacy": {measure: asdict(report) for measure, report in privacy(release).items()},
        "seconds": round(release.seconds, 6),
    }


def promise(release: Release) -> str:
    """Return what a release promises: its rule, and what its rows imply where some lie in others."""
    told = statement(publishable_rule(release))
    if not release.is_nested:
        return told
    if release.budget is not None:
        more = "Which rows are left out depends on the data and tells of it: for comparing, not for publishing."
    elif release.parameters.get("implications") == "safe":
        more = "No group below that can be shown to exist."
    else:
        more = "Whoever knows the method can work out smaller groups from several rows."
    return f"{told} A row lists the trips that no finer row lists. {more}"


def _totals(release: Release, part: Totals) -> dict[str, Any]:
    weight = {} if part.weight is None else {"weight": from_units(part.weight, release.input.scale)}
    return {"pairs": part.pairs, "trips": part.trips, **weight, "share": part.trips / release.input.trips}


def statement(rule: Rule) -> str:
    """Return the promise of a rule in one plain sentence."""
    parts = {
        "trips": lambda value: f"{value:,} trips",
        "weight": lambda value: f"a weight of {float(value):,.10g} (people that the trips stand for)",
    } | {name: lambda value, name=name: f"{value:,} {DISTINCT[name].title}" for name in DISTINCT}
    told = " and ".join(parts[measure](value) for measure, value in rule.disclosed_thresholds.items())
    return " ".join([f"Every published flow is shared by at least {told}.", *_constraints(rule)])


def _constraints(rule: Rule) -> list[str]:
    told = []
    if rule.max_share is not None:
        what = "trips or of the weight" if "weight" in rule.measures else "trips"
        contributors = " or ".join(measure.column or name for name, measure in DISTINCT.items())
        told.append(
            f"No {contributors} that the data names has more than {100 * rule.max_share:.10g} % of the {what} of a "
            "flow."
        )
    if rule.min_destinations is not None:
        told.append(f"From every origin zone flows to at least {rule.min_destinations} destinations are published.")
    return told


def how_good(release: Release) -> dict[str, Any]:
    """Return what no release of the same input under the same rule can beat, and how useful this one is."""
    best = release.lower_bound
    return {
        "limit": None if best is None else {"g": best.g, "c_avg": best.c_avg},
        "usefulness": {name: found.as_dict() for name, found in release.accuracy.items()},
    }


def _additive(release: Release) -> list[Any]:
    return [measure for measure in ADDITIVE if measure in release.input.measures]


def _published(release: Release) -> dict[str, Any]:
    classes = release.classes
    told: dict[str, Any] = {
        "classes": len(classes),
        "origins": len(release.origins),
        "destinations": len(release.destinations),
        "trips": int(classes.trips.sum()),
    }
    if classes.weight is not None:
        told["weight"] = from_units(int(classes.weight.sum()), classes.scale)
    return told


def _attributes(zones: Zones) -> list[str]:
    return sorted({zones.kind(zone) for zone in range(len(zones))})


def _input(release: Release) -> dict[str, Any]:
    whole, scale = release.input, release.input.scale
    rejected = whole.source.rejected
    account: dict[str, Any] = {"rows": whole.source.rows, "pairs": whole.pairs}
    account["trips"] = whole.trips + sum(part.trips for part in rejected.values())
    if whole.weight is not None:
        account["weight"] = from_units(whole.weight + sum(part.weight for part in rejected.values()), scale)
    account |= whole.contributors
    account |= {"sha256": whole.source.sha256, "lookalikes": whole.source.lookalikes}
    account["rejected"] = {
        reason: {"rows": part.rows, "trips": part.trips}
        | ({} if whole.weight is None else {"weight": from_units(part.weight, scale)})
        for reason, part in rejected.items()
    }
    return account


def _rule(release: Release) -> dict[str, Any]:
    mean = release.rule.mean_weight or (release.input.mean_weight if release.input.weight is not None else None)
    k = release.rule.k_of("trips", mean)
    told = {"k": int(k) if k.denominator == 1 else float(k), **_thresholds(release.rule), **release.rule.constraints}
    if release.rule.weight_from_data:
        told["weight_told"] = publishable_rule(release).disclosed_thresholds["weight"]
    return told if mean is None else {**told, "mean_weight": float(mean)}


def _thresholds(rule: Rule) -> dict[str, Any]:
    return {name: float(value) if name == "weight" else int(value) for name, value in rule.thresholds.items()}
