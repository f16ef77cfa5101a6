"""Trade-offs and their pictures: utility against k and the budget, and the detail kept by each drop order of a cube."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa

from odkanon.core.registry import import_extra
from odkanon.errors import InputError, UnknownNameError
from odkanon.methods.method_registry import METHODS, anonymize
from odkanon.model.od import Matrix, ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.publish.report.pictures import write_picture
from odkanon.quality.accuracy.accuracy import SIZES
from odkanon.quality.lower_bound import lower_bound
from odkanon.quality.utility import UtilityMeasure, attribute_coverage, utility
from odkanon.study.experiment import Experiment


@dataclass(frozen=True)
class TradeoffRow:
    """One release, with its settings and metrics."""

    k: int
    budget: float
    method: str
    """The settings; ``budget`` is a share of trips."""
    g: float | None
    e: float | None
    c_avg: float | None
    """Its utility; None if the metric is undefined or nothing can be published."""
    cpc_1km: float | None
    cpc_2km: float | None
    cpc_4km: float | None
    cpc_8km: float | None
    """The CPC of flows between squares of that side, from 0 to 1."""
    suppressed: float  # share of trips suppressed
    origins: int
    destinations: int
    classes: int
    """The number of zones and classes."""
    limit: float | None
    """The lower bound of G for any method over the hierarchies; methods with other zones (freezones) may go below."""
    seconds: float  # the running time


def tradeoff(
    od: ODMatrix,
    *,
    ks: Sequence[int] = (2, 5, 10, 20, 50),
    budgets: Sequence[float] = (0.10,),
    methods: Sequence[str] = ("odkanon", "treecut"),
    target: str | Sequence[str] = "participants",
    measure: UtilityMeasure = "trips",
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[TradeoffRow]:
    """Evaluate every method for every k and budget.

    Parameters
    ----------
    od : ODMatrix
        The input.
    ks : sequence of int
        Thresholds, each in [1, inf).
    budgets : sequence of float
        Shares of trips that may be suppressed, each in [0, 1). Methods that suppress nothing ignore it.
    methods : sequence of str
        Names from `odkanon.METHODS`.
    target : str or sequence of str
        The protection targets; see `Rule.protect`.
    measure : {"trips", "weight"}
        The measure of utility.
    options : mapping of str to mapping, optional
        Further options by method, such as ``{"treecut": {"iterations": 4}}``.

    Returns
    -------
    list of TradeoffRow
        Sorted by budget, k and method.

    Examples
    --------
    >>> from odkanon import make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> od = build_od(read_trips(make_survey()), resolution=7)
    >>> rows = tradeoff(od, ks=[5, 20], methods=["odkanon"])
    >>> rows[0].g < rows[1].g  # more protection, coarser zones
    True
    """
    if any(METHODS[method].noisy for method in methods):
        raise InputError("a tradeoff varies k, and noise keeps none; compare it with other methods at one k and budget")
    targets: Sequence[str] = (target,) if isinstance(target, str) else target
    rows = []
    for budget in budgets:
        for k in ks:
            rule = Rule.protect(*targets, k=k, of=od)
            bound = lower_bound(od, rule, budget=budget, measure=measure).g
            for method in methods:
                usual = {"budget": budget, "budget_of": "trips"}.items()
                given = {name: value for name, value in usual if name in METHODS[method].options}
                release = anonymize(od, rule, method=method, **given | dict((options or {}).get(method, {})))
                rows.append(_row(release, (k, budget, method), bound, measure))
    return rows


def _row(
    release: Release, settings: tuple[int, float, str], bound: float | None, measure: UtilityMeasure
) -> TradeoffRow:
    utilities, found = utility(release.od, release, measure=measure), release.accuracy.get(measure)
    places = [None if found is None else found.on_squares(km) for km in SIZES]
    one, two, four, eight = (None if place is None else place.right for place in places)
    e = None if utilities.g is None else utilities.e
    suppressed = 1 - int(release.classes.trips.sum()) / release.od.trips
    counts = len(release.origins), len(release.destinations), len(release.classes)
    return TradeoffRow(
        *settings, utilities.g, e, utilities.c_avg, one, two, four, eight, suppressed, *counts, bound, release.seconds
    )


def compare_orders(od: Matrix, rule: Rule, orders: Sequence[str]) -> pa.Table:
    """Compare the orders in which a cube drops detail, one row per order.

    The columns are the order (``drop_order``), the number of ``flows``, the share of trips ``published``, ``g`` of the
    places, and the share of trips with known value for each axis and for all axes combined. Choose the order on other
    data than those to be published: the guarantee takes it for public knowledge, and an order chosen by its results
    discloses something about them.

    Parameters
    ----------
    od : Matrix
        A cube, from `odkanon.build_od` or `odkanon.read_matrix` with ``by``.
    rule : Rule
        The rule of every row.
    orders : sequence of str
        Drop orders, such as ``"place:6,hour,mode,place"``.

    Examples
    --------
    >>> from odkanon import Rule, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> from odkanon.study.tradeoffs import compare_orders
    >>> cube = build_od(read_trips(make_survey()), by=["sex"], resolution=8)
    >>> kept = compare_orders(cube, Rule(trips=10), ["place,sex", "sex,place"])
    >>> kept["sex"][0].as_py() > kept["sex"][1].as_py()
    True
    """
    if not od.axes:
        raise InputError("drop orders apply to cubes, and this matrix has no attributes")
    if not orders or len(set(orders)) < len(orders):
        raise InputError("give at least one drop order, and each only once")
    return pa.Table.from_pylist([_order_row(od, rule, order) for order in orders])


def _order_row(od: Matrix, rule: Rule, order: str) -> dict[str, Any]:
    release = anonymize(od, rule, method="cascade", drop_order=order)
    names = [axis.name for axis in od.axes]
    kept: dict[str, float] = dict.fromkeys(names, 0.0) | ({" and ".join(names): 0.0} if len(names) > 1 else {})
    if release.refusal is None:
        kept = {" and ".join(found.axes): found.full for found in attribute_coverage(release)}
    return {
        "drop_order": order,
        "flows": len(release.classes),
        "published": float(release.classes.trips.sum()) / max(release.input.trips, 1),
        "g": utility(od.summary, release).g,
        **kept,
    }


Metric = Literal["g", "e", "c_avg", "cpc_2km", "cpc_4km"]

_LABELS: dict[Metric, str] = {
    "g": "G: leaves of the two zones of a trip",
    "e": "E: reconstruction loss",
    "c_avg": "C_AVG: mean class size over k",
    "cpc_2km": "flows between squares of 2 km that are right (CPC)",
    "cpc_4km": "flows between squares of 4 km that are right (CPC)",
}


def check_plotting() -> None:
    """Raise unless matplotlib is installed."""
    import_extra("matplotlib.figure", purpose="a picture", extra="plot")


def plot_tradeoff(rows: Iterable[TradeoffRow], path: str | Path, *, metric: Metric = "g") -> Path:
    """Plot utility against k, one panel per budget and one line per method, with the lower bound of G.

    * ``rows``: the result of `tradeoff`.
    * ``path``: the target; its suffix decides the format (png, svg, pdf).
    * ``metric``: the metric to plot.
    """
    if metric not in _LABELS:
        raise UnknownNameError.among("metric", metric, _LABELS)
    check_plotting()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = [(budget, list(part)) for budget, part in groupby(rows, key=lambda row: row.budget)]
    if not panels:
        raise InputError("there is nothing to draw: give at least one k, one budget and one method")
    figure = Figure(figsize=(3 + 4.5 * len(panels), 4.2), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (budget, part) in zip(axes, panels, strict=True):
        _draw(panel, part, metric)
        panel.set_title(f"at most {budget:.0%} of trips suppressed")
    axes[0].set_ylabel(_LABELS[metric])
    axes[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    with rc_context({"svg.hashsalt": "odkanon"}):  # for the same bytes in every run
        figure.savefig(path, dpi=150, metadata={"Date": None} if str(path).endswith(".svg") else None)
    return Path(path)


def _draw(panel: Any, rows: list[TradeoffRow], metric: Metric) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for method in dict.fromkeys(row.method for row in rows):
        points = [(row.k, getattr(row, metric)) for row in rows if row.method == method]
        points = [(k, value) for k, value in points if value is not None]
        panel.plot(*zip(*points, strict=True), marker="o", label=method) if points else None
    bounds = sorted({(row.k, row.limit) for row in rows if row.limit is not None})
    if metric == "g" and bounds:
        panel.plot(*zip(*bounds, strict=True), color="black", linestyle="--", label="limit of any tree method")
    panel.set_xscale("log")
    logarithmic = metric in ("g", "c_avg")
    if logarithmic:
        panel.set_yscale("log")
    ks = sorted({row.k for row in rows})
    panel.set_xticks(ks, [str(k) for k in ks])
    panel.xaxis.set_minor_locator(NullLocator())
    if logarithmic:
        low, high = panel.get_ylim()
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else range(1, 10)))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter("{x:,g}")
    panel.set_xlabel("k")
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def draw_targets(experiment: Experiment, target: Path) -> str | None:
    """Draw the origin zones of ODkAnon as published for each target, as the paper does.

    Returns the reason if there is no picture.
    """
    whole = experiment.whole
    if find_spec("matplotlib") is None:
        return "pictures need matplotlib: pip install 'odkanon[plot]'"
    if whole.origins.resolution is None and not whole.origins.outlines:
        return "the boundaries of the zones are unknown"
    with TemporaryDirectory() as folder:
        saved = []
        for name, rule in experiment.rules().items():
            release = anonymize(whole, rule, method="odkanon", suppress="before", budget=experiment.budget)
            if release.refusal is None:
                saved.append(release.save(Path(folder) / f"ODkAnon as published, {name}"))
        if saved:
            write_picture(saved, target, paper=len(saved) == 2)
    return None if saved else "ODkAnon as published can publish nothing under these rules"
