"""The table and the pictures of docs/methods-own.md: every method on the sample, and on OD files if any are named.

python benchmarks/own_methods.py [--pictures docs/images] [OD_FILE ...]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from odkanon import read_matrix
from odkanon.methods import anonymize
from odkanon.model.od import ODMatrix
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.read.area import read_area
from odkanon.read.od_matrix import build_od
from odkanon.read.trips import read_trips
from odkanon.sample.survey import CENTRAL_CELLS, make_survey
from odkanon.study.tradeoffs import plot_tradeoff, tradeoff

METHODS = ("odkanon", "oigh", "atg-soft", "mondrian", "treecut", "freezones")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pictures", type=Path)
    arguments.add_argument("files", nargs="*")
    given = arguments.parse_args()
    survey = read_trips(make_survey())
    central = build_od(survey, within=read_area(",".join(CENTRAL_CELLS)))
    for name, od in {"sample": build_od(survey), "sample, centre": central}.items():
        report(name, od)
    for file in given.files:
        report(Path(file).stem, read_matrix(file, engine="memory"))
    if given.pictures:
        draw_zones(central, given.pictures / "zones-tree-and-free.png")
        methods = ("odkanon", "oigh", "atg-soft", "treecut", "freezones")
        rows = tradeoff(central, ks=(2, 5, 10, 20, 50), budgets=(0.05, 0.10), methods=methods)
        plot_tradeoff(rows, given.pictures / "tradeoff.svg")


def report(name: str, od: ODMatrix) -> None:
    rows = tradeoff(od, ks=(10,), methods=METHODS)
    limit = rows[0].limit
    print(f"\n{name}: {od!r}; limit of G over the tree {'none' if limit is None else f'{limit:,.0f}'}")
    print("method      G        E      C_AVG   suppressed  zones        classes  seconds")
    for row in rows:
        g, e, c = (f"{v:,.3f}" if v is not None else "-" for v in (row.g, row.e, row.c_avg))
        zones = f"{row.origins} x {row.destinations}"
        left = f"{row.method:10} {g:>9} {e:>6} {c:>9} {row.suppressed:>9.2%}  {zones:12}"
        print(f"{left} {row.classes:>6} {row.seconds:>7.1f}")


def draw_zones(od: ODMatrix, path: Path) -> None:
    """Draw the origin zones of a pair of cuts and of free zones side by side, darker where they are smaller."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, method in zip(panels, ("treecut", "freezones"), strict=True):
        release = anonymize(od, Rule(trips=10), method=method)
        _draw_axis(panel, release)
        panel.set_title(f"{method}: {len(release.origins)} origin zones, {len(release.classes):,} classes")
        panel.set_aspect(1 / 0.658)
        panel.set_axis_off()
    figure.savefig(path, dpi=130)


def _draw_axis(panel: Any, release: Release) -> None:
    from matplotlib import colormaps

    zones = release.origins
    assert zones.leaves is not None
    largest = float(zones.leaves.max())
    for zone in range(len(zones)):
        shape = zones.geometry(zone)
        assert shape is not None
        parts = shape["coordinates"] if shape["type"] == "MultiPolygon" else [shape["coordinates"]]
        colour = colormaps["viridis"](1 - (zones.leaves[zone] / largest) ** 0.5)
        for part in parts:
            lng, lat = zip(*part[0], strict=True)
            panel.fill(lng, lat, facecolor=colour, edgecolor="white", linewidth=0.6)


if __name__ == "__main__":
    main()
