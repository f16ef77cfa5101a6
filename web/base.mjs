// Packs Natural Earth's land and country borders (public domain, through npm's world-atlas) for the report.
// All numbers are 32-bit integers, in thousandths of a degree where they are places: how many land rings and how many
// border lines; of each west, south, east, north and the number of its corners; then of each the first corner and the
// steps from corner to corner. `src/odkanon/publish/report/basemap.py` reads it.
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
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  const steps = points.flatMap(([x, y], at) => (at ? [x - xs[at - 1], y - ys[at - 1]] : [x, y]));
  return { box, steps };
}

/** The whole world, gzipped: land rings (outer ones; lakes stay land) and borders. */
export async function packWorld() {
  const land = await atlas("land-10m.json");
  const countries = await atlas("countries-10m.json");
  const polygons = feature(land, land.objects.land).features.flatMap((one) => one.geometry.coordinates);
  const inner = mesh(countries, countries.objects.countries, (a, b) => a !== b);
  const rings = polygons.map((polygon) => pack(polygon[0])).filter(({ steps }) => steps.length > 6);
  const borders = inner.coordinates.map(pack).filter(({ steps }) => steps.length > 2);
  const rows = [...rings, ...borders];
  const numbers = [
    [rings.length, borders.length],
    ...rows.map(({ box, steps }) => [...box, steps.length / 2]),
    ...rows.map(({ steps }) => steps),
  ];
  return gzipSync(Int32Array.from(numbers.flat()), { level: 9 });
}
