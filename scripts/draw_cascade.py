"""Draw the picture of the README: the same trips on one zoning, and as a cascade."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h3
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import LogNorm
from matplotlib.patches import Polygon

from odkanon import Release, Rule, make_survey, read_trips
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od

PLACE = h3.latlng_to_cell(48.868, 2.355, 10)
"""Where the trips of the picture start: the right bank of the Seine."""
WEST, SOUTH, EAST, NORTH = 2.22, 48.79, 2.50, 48.93


def covers(zone: str, cell: str) -> bool:
    """Tell whether a cell lies in a zone."""
    return zone == "world" or bool(h3.cell_to_parent(cell, h3.get_resolution(zone)) == zone)


def draw(axes: Any, release: Release, title: str, scale: LogNorm) -> None:
    """Draw where the trips go that start around the place, in trips per square kilometre."""
    flows = [row for row in release.to_arrow().to_pylist() if covers(row["origin"], PLACE)]
    drawn = [row for row in flows if row["destination"] != "world"]
    for row in sorted(drawn, key=lambda row: h3.get_resolution(row["destination"])):
        corners = [(lon, lat) for lat, lon in h3.cell_to_boundary(row["destination"])]
        density = row["trips"] / h3.cell_area(row["destination"], unit="km^2")
        colour = plt.get_cmap("YlGnBu")(scale(max(density, scale.vmin)))
        axes.add_patch(Polygon(corners, facecolor=colour, edgecolor="white", linewidth=0.6))
    axes.plot(*reversed(h3.cell_to_latlng(PLACE)), marker="o", markersize=6, color="#d55e00", markeredgecolor="white")
    total = sum(row["trips"] for row in flows)
    axes.set_title(f"{title}\n{len(flows)} flows, {total:,} trips from around the dot", fontsize=10, loc="left")
    axes.set_xlim(WEST, EAST)
    axes.set_ylim(SOUTH, NORTH)
    axes.set_aspect(1.5)
    axes.set_axis_off()


def main(target: Path) -> None:
    """Write the picture."""
    od = build_od(read_trips(make_survey()), resolution=10)
    rule = Rule(trips=10)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    scale = LogNorm(0.3, 300)
    draw(axes[0], anonymize(od, rule, method="odkanon"), "One zoning for all flows (ODkAnon)", scale)
    draw(axes[1], anonymize(od, rule, method="cascade"), "Each flow at its own fineness (cascade)", scale)
    bar = figure.colorbar(plt.cm.ScalarMappable(scale, "YlGnBu"), ax=axes, shrink=0.7)
    bar.set_label("trips per km2 of the destination")
    figure.savefig(target, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/cascade.png"))
