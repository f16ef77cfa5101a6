"""Utility of a release: C_DM, C_AVG, G and E, with one definition for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from odkanon.core.arrays import Ints
from odkanon.core.parsing import check_result
from odkanon.core.weights import from_units
from odkanon.errors import InputError
from odkanon.model.assignment import deviation, even_share
from odkanon.model.od import ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.release import Release

UtilityMeasure = Literal["trips", "weight"]


@dataclass(frozen=True)
class Utility:
    """The four utility metrics of a release in one measure; lower is better for all.

    Attributes
    ----------
    c_dm : float
        Discernibility: ``sum |Eq|^2 + |D| * suppressed``.
    c_avg : float or None
        Mean class size over k; 1 is the best possible. None if nothing is published.
    g : float or None
        Mean generalisation error: ``sum (|o| + |d|) |Eq| / |D+|``; 2 if every zone is a leaf. None without a hierarchy
        (Mondrian), or if nothing is published.
    e : float or None
        Reconstruction loss, in [0, 2]: 0 if nothing changed, 1 if nothing is published. None without a hierarchy, and
        for a cube, whose rows also differ by attributes.
    """

    c_dm: float
    c_avg: float | None
    g: float | None
    e: float | None


def utility(od: ODMatrix | Summary, release: Release, *, measure: UtilityMeasure = "trips") -> Utility:
    """Return the utility of a release, independently of its rule.

    Parameters
    ----------
    od : ODMatrix or Summary
        The whole input, before any suppression.
    release : Release
        A release of it.
    measure : {"trips", "weight"}
        The measure of masses.

    References
    ----------
    Bayardo and Agrawal 2005 (C_DM); LeFevre et al. 2006 (C_AVG); Matet et al. 2023 (G, E).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import Rule, anonymize, read_hierarchy, read_matrix
    >>> tree = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> flows = {"origin": ["a1", "a1", "a2", "b1"], "destination": ["b1", "b2", "b1", "a1"], "trips": [6, 4, 3, 12]}
    >>> od = read_matrix(pa.table(flows), hierarchy=tree)
    >>> utility(od, anonymize(od, Rule(trips=10)))
    Utility(c_dm=313.0, c_avg=1.25, g=3.04, e=0.28)
    >>> utility(od, anonymize(od, Rule(trips=1))).g  # nothing has to be merged: two leaves a flow
    2.0
    """
    check_result("the input", od, "measures" if isinstance(od, Summary) else "in_memory", "read_matrix or build_od")
    check_result("the release", release, "spec", "anonymize")
    whole = od if isinstance(od, Summary) else od.summary
    if measure not in whole.measures:
        raise InputError(f"utility in {measure} needs an input with {measure}")
    unit = whole.scale if measure == "weight" else 1
    units = getattr(release.classes, measure)
    classes = from_units(units, unit)
    total, suppressed = (float(from_units(getattr(part, measure), unit)) for part in (whole, release.suppressed))
    published = float(from_units(int(units.sum()), unit))
    k = float(release.rule.k_of(measure, whole.mean_weight if whole.weight is not None else None))
    empty = len(classes) == 0
    sizes = _sizes(release)
    own = release.classes.finest_pairs
    leaf_pairs = own if own is not None or sizes is None else sizes[0] * sizes[1]
    if release.classes.attributes:
        leaf_pairs = None
    return Utility(
        c_dm=float(np.sum(classes**2)) + total * suppressed,
        c_avg=None if empty else published / len(classes) / k,
        g=None if empty or sizes is None else float(np.sum((sizes[0] + sizes[1]) * classes)) / published,
        e=None if leaf_pairs is None else _reconstruction_loss(release, measure, units, leaf_pairs, unit) / total,
    )


def _sizes(release: Release) -> tuple[Ints, Ints] | None:
    if release.origins.leaves is None or release.destinations.leaves is None:
        return None
    return release.origins.leaves[release.classes.origin], release.destinations.leaves[release.classes.destination]


def _reconstruction_loss(
    release: Release, measure: UtilityMeasure, classes: Ints, leaf_pairs: Ints, unit: int
) -> float:
    """Return the sum of ``|v~ - v|`` over all leaf pairs, in time linear in the observed ones.

    A class spreads its mass evenly over the leaf pairs whose finest class it is. Pairs above the even share v~ are off
    by ``v - v~``, the others, most of them empty, by ``v~ - v``, and pairs in no published class by their whole ``v``.
    """
    if measure not in release.compared:
        masses, share = getattr(release.od.flows, measure), even_share(classes, leaf_pairs)
        release.compared[measure] = deviation(release.area_of_pair, masses, share)
    found = release.compared[measure]
    # A class whose leaf pairs all have finer classes spreads nothing: the mass it lists is already missing there.
    spread = np.where(leaf_pairs > 0, from_units(classes, unit), 0.0) / np.maximum(leaf_pairs, 1)
    excess = from_units(found.above, unit) - from_units(found.inside - found.above, unit)
    off = excess + (leaf_pairs - 2 * found.above_pairs) * spread
    return float(off.sum()) + float(from_units(found.outside, unit))
