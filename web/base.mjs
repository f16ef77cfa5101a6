// Packs Natural Earth's land and country borders (public domain, through npm's world-atlas) for the report.
// Each row: west, south, east, north, then the first corner and the steps from corner to corner, all in
// thousandths of a degree. `src/odkanon/report/base.py` reads it.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { feature, mesh } from "topojson-client";

const UNIT = 1000;

async function atlas(name) {
  const path = createRequire(import.meta.url).resolve(`world-atlas/${name}`);
  return JSON.parse(await readFile(path, "utf8"));
}

function pack(line) {
  const points = [];
  for (const [longitude, latitude] of line) {
    const point = [Math.round(longitude * UNIT), Math.round(latitude * UNIT)];
    const last = points.at(-1);
    if (!last || last[0] !== point[0] || last[1] !== point[1]) points.push(point);
  }
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  const row = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  let [x, y] = [0, 0];
  for (const point of points) {
    row.push(point[0] - x, point[1] - y);
    [x, y] = point;
  }
  return row;
}

/** Gzipped JSON of the whole world: `land` rings (outer ones; lakes stay land) and `borders` lines. */
export async function packWorld() {
  const land = await atlas("land-10m.json");
  const countries = await atlas("countries-10m.json");
  const polygons = feature(land, land.objects.land).features.flatMap((one) => one.geometry.coordinates);
  const inner = mesh(countries, countries.objects.countries, (a, b) => a !== b);
  const world = {
    land: polygons.map((polygon) => pack(polygon[0])).filter((row) => row.length > 4 + 6),
    borders: inner.coordinates.map(pack).filter((row) => row.length > 4 + 2),
  };
  return gzipSync(JSON.stringify(world), { level: 9 });
}
