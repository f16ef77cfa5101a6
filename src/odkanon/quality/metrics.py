"""Metrics of releases by name: the four of the paper, and those that other packages register for comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from odkanon.core.registry import Registry
from odkanon.errors import InvalidValueError
from odkanon.model.measures import ADDITIVE
from odkanon.model.od import ODMatrix
from odkanon.model.provenance import Summary
from odkanon.model.release import Release
from odkanon.quality.utility import UtilityMeasure, utility

MetricFunction = Callable[[ODMatrix | Summary, Release, UtilityMeasure], float | None]


@dataclass(frozen=True)
class Metric:
    """A metric of releases.

    Attributes
    ----------
    name : str
        Its column in tables of numbers: lower case letters, digits and underscores.
    title : str
        Its heading in tables for readers.
    function : callable
        ``(input, release, measure) -> float | None``, where None stands for a release that it cannot evaluate.
    needs_pairs : bool
        Whether ``input`` must be the matrix with its OD pairs in memory; by default it is the summary of the input.
    measures : tuple of str
        The measures that it is defined for.
    """

    name: str
    title: str
    function: MetricFunction
    needs_pairs: bool = False
    measures: tuple[str, ...] = ADDITIVE

    def evaluate(self, release: Release, measure: UtilityMeasure) -> float | None:
        """Return the metric of a release; None if it is not defined for the measure, or nothing is published."""
        if measure not in self.measures or release.refusal is not None:
            return None
        return self.function(release.od if self.needs_pairs else release.input, release, measure)


def _utility_metric(name: str, title: str) -> Metric:
    return Metric(name, title, lambda od, release, measure: getattr(utility(od, release, measure=measure), name))


def _check(metric: Metric) -> None:
    if not isinstance(metric, Metric):
        raise InvalidValueError.expected("a metric", "an odkanon.Metric", metric)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", metric.name):
        raise InvalidValueError.expected("the name of a metric", "lower case letters, digits and _", metric.name)


BUILTIN = tuple(
    _utility_metric(name, title) for name, title in (("c_dm", "C_DM"), ("c_avg", "C_AVG"), ("g", "G"), ("e", "E"))
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
