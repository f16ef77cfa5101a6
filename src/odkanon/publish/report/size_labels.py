"""How large the flows of a release are, as a histogram for a still picture."""

from __future__ import annotations

import math
from typing import Any

from odkanon.model.measures import MEASURES
from odkanon.release_format.folder import SavedRelease

BAR, BELOW = "#225ea8", "#d55e00"


def draw_sizes(axes: Any, release: SavedRelease) -> None:
    """Draw how many flows are of which size, in the measure of the rule, with its threshold."""
    rule = release.about["rule"]
    counted = next((name for name in MEASURES if rule.get(name) is not None), "trips")
    sizes = release.measure(counted if counted in release.flows.column_names else "trips").tolist()
    threshold = rule.get(counted) or min(sizes)
    edges = _edges(min(sizes), max(sizes), threshold, whole=counted != "weight")
    axes.hist(sizes, bins=edges, color=BAR, edgecolor="white", linewidth=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(plain)
    axes.set_ylim(top=1.22 * axes.get_ylim()[1])
    axes.axvline(threshold, color=BELOW, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"threshold {plain(round(threshold, 1))}", (threshold, 1.0), (4, -2), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", color=BELOW,
    )  # fmt: skip
    words = "weighted trips" if counted == "weight" else MEASURES[counted].title
    axes.set_xlabel(f"{words} in one published flow")
    axes.set_ylabel("flows")
    axes.set_title(f"{release.name}: sizes of {len(sizes):,} published flows", loc="left")


def plain(value: float, _: int | None = None) -> str:
    """Return a number without powers of ten, as the labels of an axis need it."""
    return f"{value:,.10g}"


def _edges(least: float, most: float, threshold: float, *, whole: bool) -> list[float]:
    """Return bins that grow by equal factors; the threshold is one boundary, so no bar stands on both sides of it."""
    factor = 2**0.5
    while math.log(most / least) > 24 * math.log(factor):
        factor *= 2**0.5
    step = math.floor(math.log(least / threshold) / math.log(factor))
    edges: list[float] = []
    while not edges or edges[-1] <= most:
        edge = threshold * factor**step
        edge = round(edge) if whole else edge
        if edge > 0 and (not edges or edge > edges[-1]):
            edges.append(edge)
        step += 1
    return edges if len(edges) > 1 else [edges[0], edges[0] * factor]
