"""What protection costs: utility against k and the budget, for several methods, beside the limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from odkanon.errors import InputError
from odkanon.methods.method_registry import METHODS, anonymize, find_method
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.quality.lower_bounds.lower_bound import limit
from odkanon.quality.utility import UtilityMeasure, utility

Metric = Literal["g", "e", "c_avg", "cpc_2km", "cpc_4km"]

_LABELS: dict[Metric, str] = {
    "g": "G: leaves of the two zones of a trip",
    "e": "E: reconstruction loss",
    "c_avg": "C_AVG: mean class size over k",
    "cpc_2km": "flows between squares of 2 km that are right (CPC)",
    "cpc_4km": "flows between squares of 4 km that are right (CPC)",
}


@dataclass(frozen=True)
class TradeoffRow:
    """One release of a sweep, measured.

    Attributes
    ----------
    k, budget, method
        How it was made; ``budget`` is a share of trips.
    g, e, c_avg : float or None
        Its utility; None where the metric is not defined or nothing can be published.
    cpc_1km, cpc_2km, cpc_4km, cpc_8km : float or None
        Its usefulness: how far flows between squares of that side are right, from 0 to 1.
    suppressed : float
        Share of trips that are not published.
    origins, destinations, classes : int
        How many zones and classes there are.
    limit : float or None
        The smallest G that any method over the hierarchies could reach. Methods with other zones (freezones) may
        go below.
    seconds : float
        How long it took.
    """

    k: int
    budget: float
    method: str
    g: float | None
    e: float | None
    c_avg: float | None
    cpc_1km: float | None
    cpc_2km: float | None
    cpc_4km: float | None
    cpc_8km: float | None
    suppressed: float
    origins: int
    destinations: int
    classes: int
    limit: float | None
    seconds: float


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
    """Measure every method for every k and budget.

    Parameters
    ----------
    od : ODMatrix
        The input.
    ks : sequence of int
        Thresholds to try, each in [1, inf).
    budgets : sequence of float
        Shares of trips that may be suppressed, each in [0, 1). Methods that suppress nothing ignore it.
    methods : sequence of str
        Some of `odkanon.methods.METHODS`.
    target : str or sequence of str
        What to protect; see `Rule.protect`.
    measure : {"trips", "weight"}
        What utility counts.
    options : mapping of str to mapping, optional
        More options for single methods, such as ``{"treecut": {"iterations": 4}}``.

    Returns
    -------
    list of TradeoffRow
        Sorted by budget, k, and the order of the methods.

    Examples
    --------
    >>> from odkanon import build_od, make_survey, read_trips
    >>> od = build_od(read_trips(make_survey()), resolution=7)
    >>> rows = tradeoff(od, ks=[5, 20], methods=["odkanon"])
    >>> rows[0].g < rows[1].g  # more protection, coarser zones
    True
    """
    for method in methods:
        find_method(method)
    targets: Sequence[str] = (target,) if isinstance(target, str) else target
    rows = []
    for budget in budgets:
        for k in ks:
            rule = Rule.protect(*targets, k=k, of=od)
            bound = limit(od, rule, budget=budget, measure=measure).g
            for method in methods:
                given = {**_budget(method, budget), **(options or {}).get(method, {})}
                rows.append(_row(od, rule, k, budget, method, given, bound, measure))
    return rows


def _budget(method: str, budget: float) -> dict[str, Any]:
    accepted = METHODS[method].options
    wanted = {"budget": budget, "budget_of": "trips"}
    return {name: value for name, value in wanted.items() if name in accepted}


def _row(
    od: ODMatrix,
    rule: Rule,
    k: int,
    budget: float,
    method: str,
    options: Mapping[str, Any],
    bound: float | None,
    measure: UtilityMeasure,
) -> TradeoffRow:
    release = anonymize(od, rule, method=method, **options)
    found = utility(od, release, measure=measure)
    return TradeoffRow(
        k,
        budget,
        method,
        found.g,
        found.e if found.g is not None else None,
        found.c_avg,
        *_cpc(release, measure),
        1 - int(release.classes.trips.sum()) / od.trips,
        len(release.origins),
        len(release.destinations),
        len(release.classes),
        bound,
        release.seconds,
    )


def check_plotting() -> None:
    """Raise if pictures cannot be drawn; worth asking before minutes of work."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("pictures need matplotlib; install it with: pip install 'odkanon[plot]'") from error


def _cpc(release: Release, measure: UtilityMeasure) -> tuple[float | None, float | None, float | None, float | None]:
    found = release.accuracy.get(measure)
    if found is None:
        return None, None, None, None
    one, two, four, eight = (place.cpc for place in found.squares)
    return one, two, four, eight


def plot_tradeoff(rows: Iterable[TradeoffRow], path: str | Path, *, metric: Metric = "g") -> Path:
    """Draw utility against k, one panel for each budget and one line for each method, with the limit of G.

    Parameters
    ----------
    rows : iterable of TradeoffRow
        What `tradeoff` returned.
    path : str or Path
        Where to; the ending decides on the format (png, svg, pdf).
    metric : {"g", "e", "c_avg", "cpc_2km", "cpc_4km"}
        What to draw.
    """
    if metric not in _LABELS:
        raise InputError(f"draw one of {', '.join(_LABELS)}, not {metric!r}")
    check_plotting()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = [(budget, list(part)) for budget, part in groupby(rows, key=lambda row: row.budget)]
    if not panels:
        raise InputError("there is nothing to draw: sweep at least one k, one budget and one method")
    figure = Figure(figsize=(3 + 4.5 * len(panels), 4.2), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (budget, part) in zip(axes, panels, strict=True):
        _draw(panel, part, metric)
        panel.set_title(f"at most {budget:.0%} of trips suppressed")
    axes[0].set_ylabel(_LABELS[metric])
    axes[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    with rc_context({"svg.hashsalt": "odkanon"}):  # otherwise every drawing has other names for its parts
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
