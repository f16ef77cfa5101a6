"""The pictures of studies: utility against k, and zones for different targets side by side."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from odkanon.core.registry import import_extra
from odkanon.errors import InputError, UnknownNameError
from odkanon.methods.method_registry import anonymize
from odkanon.publish.report.pictures import write_picture
from odkanon.study.experiment import Experiment
from odkanon.study.tradeoffs import TradeoffRow

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
