"""The picture of cost against size: processor time with its fitted line, and the peak of memory."""

from __future__ import annotations

from math import log10, sqrt
from pathlib import Path
from typing import Any

JOBS = {
    "release": ("trips to saved release", "#1b6ca8", "o"),
    "cells": ("one group-by into OD pairs", "#d1662a", "s"),
    "grid": ("one group-by of rounded coordinates", "#6b6b6b", "^"),
}


def draw_cost(scale: dict[str, Any], path: Path) -> None:
    """Draw what `bench_scale.run` measured; both axes of both panels are logarithmic."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(9.6, 4.2), facecolor="white", layout="constrained")
    time, memory = figure.subplots(1, 2)
    sizes = [row["trips"] for row in scale["rows"]]
    for name, (label, colour, marker) in JOBS.items():
        for panel, value in ((time, "cpu"), (memory, "gib")):
            values = [row[name][value] for row in scale["rows"]]
            panel.loglog(sizes, values, color=colour, marker=marker, markersize=5, linewidth=1.4, label=label)
    _draw_fit(time, scale.get("fit"), sizes[-1])
    for panel, title in ((time, "processor time, seconds"), (memory, "peak of memory, GiB")):
        panel.set_title(title, loc="left", fontsize=11)
        panel.set_xlabel("trips")
        panel.set_xticks(sizes, [f"{size / 10**3:g} k" if size < 10**6 else f"{size / 10**6:g} M" for size in sizes])
        panel.minorticks_off()
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(color="#e2e2e2", linewidth=0.7)
        panel.spines[["top", "right"]].set_visible(False)
    figure.legend(*time.get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=150, metadata={"Software": None} if path.suffix == ".png" else None)


def _draw_fit(panel: Any, line: dict[str, float] | None, largest: int) -> None:
    if line is None:
        return
    heights = [10 ** (line["intercept"] + line["slope"] * log10(size)) for size in (line["from"], largest)]
    label = f"least squares from {line['from']:,.0f} trips on"
    panel.loglog((line["from"], largest), heights, color="black", linestyle="--", linewidth=1.2, label=label, zorder=3)
    middle = sqrt(line["from"] * largest), sqrt(heights[0] * heights[1])
    text = f"slope {line['slope']:.2f}"
    panel.annotate(text, middle, xytext=(-8, 4), textcoords="offset points", ha="right", va="bottom", fontsize=10)
