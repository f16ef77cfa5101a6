"""The page of a table by one place: a map of counts as SVG, and the same counts as a list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from odkanon.core.arrays import Ints, group_sum
from odkanon.release_format.folder import SavedRelease
from odkanon.zoning.cells import Floats
from odkanon.zoning.spherical_geometry import list_polygons

_WIDTH = 900
_LISTED = 200
"""At most this many places are listed below the map."""
_COLOURS = ("#eef3f7", "#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#2c7fb8", "#253494")
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; margin: .2rem 0; } label { margin-right: 1rem; } svg { width: 100%; height: auto; }
path { stroke: #fff; stroke-width: .5; } path:hover { stroke: #000; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #ddd; padding: .15rem .6rem; text-align: left; }
td:last-child, th:last-child { text-align: right; } #key span { display: inline-block; padding: 0 .5rem; }
"""
_SCRIPT = """
const model = JSON.parse(document.getElementById("model").textContent);
const format = (number) => number.toLocaleString("en");
function show(counts) {
  const density = counts.map((count, zone) => count / (model.area[zone] || 1));
  const known = density.filter((each) => each > 0).sort((a, b) => a - b);
  const step = known.length / (model.colours.length - 1);
  const steps = model.colours.slice(2).map((_, at) => known[Math.floor((at + 1) * step)]);
  const rank = (each) => (each > 0 ? 1 + steps.filter((step) => each >= step).length : 0);
  for (const path of document.querySelectorAll("path[data-zone]")) {
    const zone = Number(path.dataset.zone);
    path.setAttribute("fill", model.colours[rank(density[zone])]);
    path.firstChild.textContent = `${model.id[zone]}: ${format(counts[zone])} ${model.unit} listed here`;
  }
  const order = counts.map((_, zone) => zone).filter((zone) => counts[zone] > 0).sort((a, b) => counts[b] - counts[a]);
  document.getElementById("rows").replaceChildren(...order.slice(0, model.most).map((zone) => {
    const row = document.createElement("tr");
    for (const text of [model.id[zone], format(counts[zone])]) {
      row.appendChild(document.createElement("td")).textContent = text;
    }
    return row;
  }));
  const total = counts.reduce((sum, count) => sum + count, 0);
  document.getElementById("total").textContent = `${format(total)} ${model.unit} in ${format(order.length)} places`;
}
const select = document.querySelector("select");
const choose = () => {
  const counts = new Array(model.id.length).fill(0);
  const [zones, numbers] = model.counts[select.value];
  zones.forEach((zone, at) => { counts[zone] = numbers[at]; });
  show(counts);
};
select.addEventListener("change", choose);
choose();
"""


def make_place_page(release: SavedRelease) -> str:
    """Return a page with a map of the counts of a table by one place; it makes no requests.

    Each place is coloured by what rows list at just this place, for everybody or for one value of an attribute. What is
    only known of a larger place is drawn on that one, which lies beneath.
    """
    unit, place = release.subject.unit, str(release.subject.place)
    properties = [feature["properties"] for feature in release.features]
    ids = [str(each["id"]) for each in properties]
    position = {zone: number for number, zone in enumerate(ids)}
    zone_of_row = np.array([position[zone] for zone in release.table.column(place).to_pylist()], dtype=np.int64)
    counts = dict(_counts(release, zone_of_row, len(ids)))
    model = {
        "id": ids,
        "unit": unit,
        "area": [each.get("area_km2") for each in properties],
        "colours": _COLOURS,
        "most": _LISTED,
        "counts": counts,
    }
    options = "".join(f'<option value="{escape(name, quote=True)}">{escape(name)}</option>' for name in counts)
    at_most = (release.manifest.get("unlisted") or {}).get(f"at_most_{unit}")
    left_out = "" if at_most is None else f" At most {at_most:,} {escape(unit)} are in no row."
    text = json.dumps(model, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'script-src \'unsafe-inline\'"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(release.name)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(release.name)}: {escape(unit)} by {escape(place)}</h1>"
        f"<p>{escape(str(release.manifest['statement']))}{left_out}</p>"
        f'<p><label>Show <select>{options}</select></label> <strong id="total"></strong></p>'
        f"{_map([feature['geometry'] for feature in release.features], ids)}"
        f"<p>Coloured by {escape(unit)} per km² in six classes of equal size. More may be listed under a larger place "
        "or in rows without that attribute: a number is what is certain, never all.</p>"
        f"<table><thead><tr><th>{escape(place)}</th><th>{escape(unit)}</th></tr></thead>"
        f'<tbody id="rows"></tbody></table><script type="application/json" id="model">{text}</script>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _counts(release: SavedRelease, zone_of_row: Ints, zones: int) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield what is counted, with the places that have any of it and the counts there."""
    listed = release.table.column(release.subject.unit).to_numpy()

    def packed(rows: Any) -> list[list[int]]:
        totals = group_sum(zone_of_row[rows], zones, listed[rows])
        some = np.flatnonzero(totals)
        return [some.tolist(), totals[some].tolist()]

    yield "all", packed(np.arange(len(listed)))
    for axis in release.axes:
        column = release.table.column(axis).combine_chunks().dictionary_encode()
        codes = column.indices.to_numpy()
        for code, value in sorted(enumerate(column.dictionary.to_pylist()), key=lambda each: str(each[1])):
            yield f"{axis} = {value}", packed(np.flatnonzero(codes == code))


def _map(geometries: Sequence[dict[str, Any] | None], ids: Sequence[str]) -> str:
    """Return the places with an outline as SVG, the largest first; nothing where none has one."""
    shapes = [
        (zone, [ring for polygon in list_polygons(each) for ring in polygon]) for zone, each in enumerate(geometries)
    ]
    rings = {zone: [np.asarray(ring, dtype=np.float64)[:, :2] for ring in found] for zone, found in shapes if found}
    if not rings:
        return "<p>The places have no outlines, so there is no map; give them with <code>--boundaries</code>.</p>"
    middles = np.array([np.concatenate(found).mean(axis=0) for found in rings.values()])
    (west, south), (east, north) = np.quantile(middles, [0.02, 0.98], axis=0)
    margin = 0.1 * max(east - west, north - south, 1e-3)
    west, south, east, north = west - margin, south - margin, east + margin, north + margin
    stretch = float(np.cos(np.radians((south + north) / 2)))
    scale = _WIDTH / ((east - west) * stretch)

    def path(ring: Floats) -> str:
        x, y = (ring[:, 0] - west) * stretch * scale, (north - ring[:, 1]) * scale
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)) + "Z"

    def size(zone: int) -> float:
        corners = np.concatenate(rings[zone])
        return float(np.ptp(corners, axis=0).prod())

    paths = "".join(
        f'<path data-zone="{zone}" fill-rule="evenodd" d="{"".join(map(path, rings[zone]))}"><title>{escape(ids[zone])}'
        "</title></path>"
        for zone in sorted(rings, key=lambda zone: (-size(zone), zone))
    )
    return (
        f'<svg role="img" aria-label="Map of counts" viewBox="0 0 {_WIDTH} {(north - south) * scale:.0f}">{paths}</svg>'
    )
