"""The page that explains what a release lost: a map, and the flows that came off worst. It needs nothing else."""

from __future__ import annotations

from html import escape

import numpy as np

from odkanon.study.explain import Explained
from odkanon.zoning.cells import Floats

_WIDTH = 760.0
_SHOWN = 30
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; padding: 0 1rem; color: #1a1a1a; }
.warning { background: #8b0000; color: #fff; padding: .6rem 1rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .5rem; text-align: right; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
svg { width: 100%; height: auto; background: #f6f6f4; }
"""


def page(told: Explained) -> str:
    """Return the page, as HTML."""
    summary, total = told.summary, float(told.before.sum())
    lost = float(np.maximum(told.before - told.after, 0).sum())
    after = "none" if summary.inside_after is None else f"{summary.inside_after:.1%}"
    near = "-" if summary.large_near is None else f"{summary.large_near:.0%}"
    parts = [
        '<p class="warning">Not for publication: this page shows trips that the release hides.</p>',
        f"<h1>What {escape(told.release)} lost</h1>",
        f"<p>Flows between places ({escape(summary.name)}) are right to {summary.cpc:.0%}. Of {total:,.0f} trips, "
        f"{lost:,.0f} are missing where they were; the release puts {told.elsewhere:,.0f} between places where there "
        f"were none. Inside their place stay {summary.inside_before:.1%} of the trips, in the release {after}. "
        f"Of the trips in flows of 20 and more, {near} are in flows that are off by less than a quarter.</p>",
        "<h2>Where</h2>",
        "<p>The darker a place, the larger the share of its trips that is missing. Lines: flows that lost most.</p>",
        _map(told),
        "<h2>Flows that lost most</h2>",
        _flows(told, told.before - told.after),
        "<h2>Flows that gained most</h2>",
        _flows(told, told.after - told.before),
        "<h2>Lengths</h2>",
        _lengths(told),
    ]
    head = f'<meta charset="utf-8"><title>What {escape(told.release)} lost</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _flows(told: Explained, by: Floats) -> str:
    worst = [row for row in np.argsort(-by, kind="stable")[:_SHOWN].tolist() if by[row] > 0]
    rows = [
        f"<tr><td>{escape(told.places[told.origin[row]])}</td><td>{escape(told.places[told.destination[row]])}</td>"
        f"<td>{told.before[row]:,.0f}</td><td>{told.after[row]:,.1f}</td></tr>"
        for row in worst
    ]
    headings = "<tr><th>from</th><th>to</th><th>trips</th><th>in the release</th></tr>"
    return f"<table>{headings}{''.join(rows)}</table>"


def _lengths(told: Explained) -> str:
    ends = [*(begin for begin, _, _ in told.lengths[1:]), None]
    rows = [
        f"<tr><td>{begin:g} km</td><td>{'' if end is None else f'to {end:g} km'}</td>"
        f"<td>{before:.1%}</td><td>{after:.1%}</td></tr>"
        for (begin, before, after), end in zip(told.lengths, ends, strict=True)
        if max(before, after) >= 0.0005
    ]
    headings = "<tr><th>from</th><th></th><th>trips</th><th>in the release</th></tr>"
    return f"<table>{headings}{''.join(rows)}</table>"


def _map(told: Explained) -> str:
    rings = [ring for outline in told.outlines for ring in outline]
    if not rings:
        return ""
    corners = np.concatenate(rings)
    low, high = corners.min(axis=0), corners.max(axis=0)
    scale = _WIDTH / max(float(high[0] - low[0]), 1.0)
    height = float(high[1] - low[1]) * scale

    def drawn(points: Floats) -> Floats:
        return np.stack([(points[:, 0] - low[0]) * scale, height - (points[:, 1] - low[1]) * scale], axis=1)

    shapes = [
        f'<path d="{"".join(_path(drawn(ring)) for ring in outline)}" fill="rgb({_shade(missing)})" stroke="#fff" '
        f'stroke-width=".5"><title>{escape(name)}: {missing:.0%} missing</title></path>'
        for outline, name, missing in zip(told.outlines, told.places, _missing(told).tolist(), strict=True)
        if outline
    ]
    lines = _lines(
        told, [drawn(np.concatenate(outline)).mean(axis=0) if outline else None for outline in told.outlines]
    )
    return f'<svg viewBox="0 0 {_WIDTH:g} {height:.1f}" role="img">{"".join(shapes)}{lines}</svg>'


def _missing(told: Explained) -> Floats:
    """Return for each place the share of the trips from and to it that is missing."""
    count = len(told.places)
    lost = np.maximum(told.before - told.after, 0)
    sums = [
        np.bincount(told.origin, weights=mass, minlength=count)
        + np.bincount(told.destination, weights=mass, minlength=count)
        for mass in (lost, told.before)
    ]
    missing: Floats = sums[0] / np.maximum(sums[1], 1e-9)
    return missing


def _shade(missing: float) -> str:
    """Return a colour between pale and dark red."""
    pale, dark = (254, 240, 217), (127, 0, 0)
    return ",".join(str(round(a + (b - a) * min(max(missing, 0.0), 1.0))) for a, b in zip(pale, dark, strict=True))


def _path(ring: Floats) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ring.tolist()) + "Z"


def _lines(told: Explained, centres: list[Floats | None]) -> str:
    lost = told.before - told.after
    most = float(lost.max(initial=0.0))
    drawn = []
    for row in np.argsort(-lost, kind="stable")[:_SHOWN].tolist():
        start, end = centres[told.origin[row]], centres[told.destination[row]]
        if lost[row] <= 0 or start is None or end is None or told.origin[row] == told.destination[row]:
            continue
        ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        drawn.append(
            f'<line {ends} stroke="#08306b" stroke-opacity=".7" stroke-width="{1 + 4 * lost[row] / most:.1f}"/>'
        )
    return "".join(drawn)
