"""Utility of a release: C_DM, C_AVG, G and E, attribute coverage, and the metrics that other packages register."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.attributes.spec import ANY
from odkanon.core.arrays import Ints
from odkanon.core.parsing import check_result
from odkanon.core.registry import Registry
from odkanon.core.weights import from_units
from odkanon.errors import InputError, InvalidValueError, RefusedError
from odkanon.model.measures import ADDITIVE, exact_masses
from odkanon.model.od import ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.published_flows import deviation, even_share
from odkanon.model.release import Release

UtilityMeasure = Literal["trips", "weight"]


@dataclass(frozen=True)
class Utility:
    """The four utility metrics of a release in one measure; lower is better for all."""

    c_dm: float
    """Discernibility: ``sum |Eq|^2 + |D| * suppressed``."""
    c_avg: float | None
    """Mean class size over k; 1 is the best possible. None if nothing is published."""
    g: float | None
    """Mean generalisation error: ``sum (|o| + |d|) |Eq| / |D+|``; 2 if every zone is a leaf. None without a hierarchy
    (Mondrian), or if nothing is published."""
    e: float | None
    """Reconstruction loss, in [0, 2]: 0 if nothing changed, 1 if nothing is published. None without a hierarchy, and
    for a cube, whose rows also differ by attributes."""


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
    Bayardo, Agrawal: "Data privacy through optimal k-anonymization", ICDE 2005 (C_DM). LeFevre, DeWitt, Ramakrishnan:
    "Mondrian multidimensional k-anonymity", ICDE 2006 (C_AVG). Matet, Côme, Furno, Bonnetain, Oukhellou, El Faouzi:
    "Adaptative generalisation over a value hierarchy for the k-anonymisation of Origin-Destination matrices",
    Transportation Research Part C 2023 (G, E).

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
    units = exact_masses(release.classes, measure)
    classes = from_units(units, unit)
    total, suppressed = (float(from_units(exact_masses(part, measure), unit)) for part in (whole, release.suppressed))
    published = float(from_units(int(units.sum()), unit))
    k = float(release.rule.k_of(measure, whole.mean_weight if whole.weight_units is not None else None))
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
        masses, share = exact_masses(release.od.flows, measure), even_share(classes, leaf_pairs)
        release.compared[measure] = deviation(release.area_of_pair, masses, share)
    found = release.compared[measure]
    # A class whose leaf pairs all have finer classes spreads nothing: the mass it lists is already missing there.
    spread = np.where(leaf_pairs > 0, from_units(classes, unit), 0.0) / np.maximum(leaf_pairs, 1)
    excess = from_units(found.above, unit) - from_units(found.inside - found.above, unit)
    off = excess + (leaf_pairs - 2 * found.above_pairs) * spread
    return float(off.sum()) + float(from_units(found.outside, unit))


@dataclass(frozen=True)
class Coverage:
    """Coverage of some attributes, as shares of the trips of the input."""

    axes: tuple[str, ...]
    """The names of the attributes."""
    full: float
    """Share of trips in rows with the value of every attribute."""
    part: float
    """Share of trips in rows with the value of every attribute or a group of values that contains it."""


def attribute_coverage(release: Release) -> list[Coverage]:
    """Return the coverage of each attribute of a cube and, if there are several, of all combined.

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.quality.utility import attribute_coverage
    >>> from odkanon.read.od_matrix import build_od
    >>> cube = build_od(read_trips(make_survey()), by=["sex"], resolution=8)
    >>> [sex] = attribute_coverage(anonymize(cube, Rule(trips=10), method="cascade", drop_order="place,sex"))
    >>> sex.axes, sex.full > 0.99
    (('sex',), True)
    """
    if release.refusal:
        raise RefusedError.nothing_publishable(release.refusal)
    if release.matrix is None or not release.matrix.axes:
        raise InputError("the release has no attributes; publish a cube by one")
    axes = release.matrix.axes
    found = [_coverage(release, [axis]) for axis in axes]
    return found if len(axes) == 1 else [*found, _coverage(release, axes)]


def _coverage(release: Release, axes: Sequence[AttributeAxis]) -> Coverage:
    full = np.ones(len(release.classes), dtype=bool)
    part = full.copy()
    for axis in axes:
        labels = release.classes.attributes[axis.name]
        part &= labels != ANY
        full &= (labels != ANY) & np.isin(labels, axis.public.leaves)
    shares = (int(release.classes.trips[rows].sum()) / max(release.input.trips, 1) for rows in (full, part))
    return Coverage(tuple(axis.name for axis in axes), *shares)


MetricFunction = Callable[[ODMatrix | Summary, Release, UtilityMeasure], float | None]


@dataclass(frozen=True)
class Metric:
    """A metric of releases."""

    name: str
    """Its column in tables of numbers: lower case letters, digits and underscores."""
    title: str
    """Its heading in tables for readers."""
    function: MetricFunction
    """``(input, release, measure) -> float | None``, where None stands for a release that it cannot evaluate."""
    needs_pairs: bool = False
    """Whether ``input`` must be the matrix with its OD pairs in memory; by default it is the summary of the input."""
    measures: tuple[str, ...] = ADDITIVE
    """The measures that it is defined for."""

    def evaluate(self, release: Release, measure: UtilityMeasure) -> float | None:
        """Return the metric of a release; None if it is not defined for the measure, or nothing is published."""
        if measure not in self.measures or release.refusal is not None:
            return None
        return self.function(release.od if self.needs_pairs else release.input, release, measure)


def _check(metric: Metric) -> None:
    if not isinstance(metric, Metric):
        raise InvalidValueError.expected("a metric", "an odkanon.Metric", metric)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", metric.name):
        raise InvalidValueError.expected("the name of a metric", "lower case letters, digits and _", metric.name)


BUILTIN = (
    Metric("c_dm", "C_DM", lambda od, release, measure: utility(od, release, measure=measure).c_dm),
    Metric("c_avg", "C_AVG", lambda od, release, measure: utility(od, release, measure=measure).c_avg),
    Metric("g", "G", lambda od, release, measure: utility(od, release, measure=measure).g),
    Metric("e", "E", lambda od, release, measure: utility(od, release, measure=measure).e),
)
METRICS: Registry[Metric] = Registry("metric", BUILTIN, check=_check)


def register_metric(metric: Metric) -> Metric:
    """Add a metric to the tables of `odkanon compare`, and return it.

    A package that declares its metric as an entry point of the group ``odkanon.metrics`` need not call this.

    Examples
    --------
    >>> from odkanon import Metric, register_metric
    >>> zones = Metric("zones", "Zones", lambda od, release, measure: len(release.origins))
    >>> register_metric(zones).title
    'Zones'
    >>> METRICS.unregister("zones")
    """
    return METRICS.register(metric)


def extra_metrics() -> list[Metric]:
    """Return the registered metrics, without our own."""
    own = {metric.name for metric in BUILTIN}
    return [metric for name, metric in METRICS.items() if name not in own]


def evaluate_extra_metrics(release: Release, measure: UtilityMeasure) -> dict[str, float | None]:
    """Return the registered metrics of a release by name, without our own."""
    return {metric.name: metric.evaluate(release, measure) for metric in extra_metrics()}
