"""The self-contained page on the information lost by a release: a map, and the flows that changed most."""

from __future__ import annotations

from html import escape

import numpy as np

from odkanon.study.information_loss import InformationLoss
from odkanon.zoning.cells import Floats

_WIDTH = 760.0
_TABLE_ROWS = 15
"""Rows per table; the CSV file beside the page has all flows."""
_LINES = 40
_FEW = 20
"""Places with fewer trips are grey, as their shares would mean little."""
_PALE, _DARK, _GREY, _LINE = (254, 240, 217), (127, 0, 0), "#e4e4e0", "#08306b"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; padding: 0 1rem; color: #1a1a1a; }
.warning { background: #8b0000; color: #fff; padding: .6rem 1rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .5rem; text-align: right; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
svg { width: 100%; height: auto; background: #f6f6f4; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: 13px; }
.legend i { display: inline-block; width: 6rem; height: .8rem; margin: 0 .4rem; vertical-align: middle; }
.legend i.few { width: 1rem; margin-left: 0; }
.bars td:first-child { white-space: nowrap; }
.bars td { border: 0; padding: .1rem .5rem; }
.bars td.bar { width: 70%; text-align: left; }
.bar i { display: block; height: .45rem; min-width: 1px; background: #9a9a94; }
.bar i + i { background: #8b0000; }
"""


def page(loss: InformationLoss) -> str:
    """Return the page as HTML."""
    summary, total = loss.summary, float(loss.before.sum())
    lost = float(np.maximum(loss.before - loss.after, 0).sum())
    after = "none" if summary.inside_after is None else f"{summary.inside_after:.1%}"
    near = "-" if summary.large_near is None else f"{summary.large_near:.0%}"
    parts = [
        '<p class="warning">Not for publication: this page shows trips that the release hides.</p>',
        f"<h1>What {escape(loss.release)} lost</h1>",
        f"<p>Flows between places ({escape(summary.name)}) are right to {summary.cpc:.0%}{summary.context}.</p>",
        f"<p>Of {total:,.0f} trips, {lost:,.0f} are missing where they were; the release puts {loss.elsewhere:,.0f} "
        f"between places where there were none. Inside their place stay {summary.inside_before:.1%} of the trips, in "
        f"the release {after}. Of the trips in flows of 20 and more, {near} are in flows that are off by less than a "
        "quarter.</p>",
        "<h2>Where</h2>",
        _LEGEND,
        _map(loss),
        "<h2>Flows that lost most</h2>",
        _flows(loss, loss.before - loss.after),
        "<h2>Flows that gained most</h2>",
        _flows(loss, loss.after - loss.before),
        "<h2>Lengths</h2>",
        "<p>Share of the trips by length, as the crow flies: grey in the input, red in the release.</p>",
        _lengths(loss),
    ]
    meta = f'<meta charset="utf-8"><title>What {escape(loss.release)} lost</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{meta}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _flows(loss: InformationLoss, by: Floats) -> str:
    worst = [row for row in np.argsort(-by, kind="stable")[:_TABLE_ROWS].tolist() if by[row] > 0]
    rows = []
    for row in worst:
        origin, destination = (loss.places[ends[row]] for ends in (loss.origin, loss.destination))
        there = "inside" if origin == destination else escape(destination)
        off = loss.after[row] - loss.before[row]
        numbers = f"<td>{loss.before[row]:,.0f}</td><td>{loss.after[row]:,.0f}</td><td>{off:+,.0f}</td>"
        rows.append(f"<tr><td>{escape(origin)}</td><td>{there}</td>{numbers}</tr>")
    headings = "<tr><th>from</th><th>to</th><th>trips</th><th>in the release</th><th>off by</th></tr>"
    return f"<table>{headings}{''.join(rows)}</table>"


def _lengths(loss: InformationLoss) -> str:
    ends = [*(begin for begin, _, _ in loss.lengths[1:]), None]
    most = max((max(before, after) for _, before, after in loss.lengths), default=1.0) or 1.0
    rows = [
        f"<tr><td>{begin:g}{'+' if end is None else f' to {end:g}'} km</td>"
        f'<td class="bar"><i style="width:{before / most:.1%}"></i><i style="width:{after / most:.1%}"></i></td>'
        f"<td>{before:.1%}</td><td>{after:.1%}</td></tr>"
        for (begin, before, after), end in zip(loss.lengths, ends, strict=True)
        if max(before, after) >= 0.0005
    ]
    headings = "<tr><th>length</th><th></th><th>trips</th><th>in the release</th></tr>"
    return f'<table class="bars">{headings}{"".join(rows)}</table>'


def _map(loss: InformationLoss) -> str:
    rings = [ring for outline in loss.outlines for ring in outline]
    if not rings:
        return ""
    sums, missing = _missing(loss)
    busy = [ring for outline, trips in zip(loss.outlines, sums, strict=True) if trips >= _FEW for ring in outline]
    corners = np.concatenate(busy or rings)
    low, high = corners.min(axis=0), corners.max(axis=0)
    scale = _WIDTH / max(float(high[0] - low[0]), 1.0)
    height = float(high[1] - low[1]) * scale

    def placed(points: Floats) -> Floats:
        return np.stack([(points[:, 0] - low[0]) * scale, height - (points[:, 1] - low[1]) * scale], axis=1)

    def drawn(ring: Floats) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in placed(ring).tolist()) + "Z"

    shapes = [
        f'<path d="{"".join(map(drawn, outline))}" fill="{_shade(share) if trips >= _FEW else _GREY}" '
        f'stroke="#fff" stroke-width=".5"><title>{escape(name)}: {share:.0%} of {trips:,.0f} missing</title></path>'
        for outline, name, share, trips in zip(loss.outlines, loss.places, missing.tolist(), sums, strict=True)
        if outline
    ]
    centres = [placed(np.concatenate(outline)).mean(axis=0) if outline else None for outline in loss.outlines]
    lines = _lines(loss, centres)
    return f'<svg viewBox="0 0 {_WIDTH:g} {height:.1f}" role="img">{"".join(shapes)}{lines}</svg>'


def _missing(loss: InformationLoss) -> tuple[list[float], Floats]:
    """Return for each place the trips that begin or end there, and the missing share of these trips."""
    count = len(loss.places)
    lost, trips = (
        np.bincount(loss.origin, weights=mass, minlength=count)
        + np.bincount(loss.destination, weights=mass, minlength=count)
        for mass in (np.maximum(loss.before - loss.after, 0), loss.before)
    )
    missing: Floats = lost / np.maximum(trips, 1e-9)
    return trips.tolist(), missing


def _shade(missing: float) -> str:
    """Return a colour between pale and dark red."""
    share = min(max(missing, 0.0), 1.0)
    return f"rgb({','.join(str(round(a + (b - a) * share)) for a, b in zip(_PALE, _DARK, strict=True))})"


_LEGEND = (
    '<p class="legend"><span>missing of the trips of a place: none<i style="background:linear-gradient(to right,'
    f'{_shade(0)},{_shade(1)})"></i>all</span><span><i class="few" style="background:{_GREY}"></i>fewer than {_FEW} '
    "trips</span><span>lines: flows between places that lost most; rings: those inside one</span></p>"
)


def _lines(loss: InformationLoss, centres: list[Floats | None]) -> str:
    lost = loss.before - loss.after
    most = float(lost.max(initial=0.0))
    drawn = []
    for row in np.argsort(-lost, kind="stable")[:_LINES].tolist():
        start, end = centres[loss.origin[row]], centres[loss.destination[row]]
        if lost[row] <= 0 or start is None or end is None:
            continue
        share = float(lost[row]) / most
        if loss.origin[row] == loss.destination[row]:
            place = f'<circle cx="{start[0]:.1f}" cy="{start[1]:.1f}" r="{2 + 6 * share:.1f}" fill="none"'
        else:
            place = f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        drawn.append(f'{place} stroke="{_LINE}" stroke-opacity=".75" stroke-width="{1 + 3 * share:.1f}"/>')
    return "".join(drawn)
