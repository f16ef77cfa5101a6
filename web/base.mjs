// Packs the world for the report: land and lakes of OpenStreetMap (ODbL, through npm's geo-maps, right to 100 m) and
// borders of countries (Natural Earth, public domain, through npm's world-atlas).
// All numbers are 32-bit integers, in quarters of thousandths of a degree where they are places: how many land rings, lakes and
// border lines; of each west, south, east, north and the number of its corners; then of each the first corner and the
// steps from corner to corner. `src/odkanon/publish/report/basemap.py` reads it.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { mesh } from "topojson-client";

const UNIT = 4000;
/** Smaller waters are fragments of rivers more often than lakes. */
const LEAST_LAKE_KM2 = 10;
const KM_PER_DEGREE = 111.2;

const read = async (name) => JSON.parse(await readFile(createRequire(import.meta.url).resolve(name), "utf8"));

function pack(line) {
  const points = [];
  for (const [longitude, latitude] of line) {
    const point = [Math.round(longitude * UNIT), Math.round(latitude * UNIT)];
    const last = points.at(-1);
    if (!last || last[0] !== point[0] || last[1] !== point[1]) points.push(point);
  }
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    for (const [side, value, pick] of [[0, x, Math.min], [1, y, Math.min], [2, x, Math.max], [3, y, Math.max]]) box[side] = pick(box[side], value);
  }
  const steps = points.flatMap(([x, y], at) => (at ? [x - points[at - 1][0], y - points[at - 1][1]] : [x, y]));
  return { box, steps };
}

function area(ring) {
  const twice = ring.reduce((sum, [x, y], at) => {
    const [u, v] = ring[(at + 1) % ring.length];
    return sum + x * v - u * y;
  }, 0);
  return (Math.abs(twice) / 2) * KM_PER_DEGREE ** 2 * Math.cos((ring[0][1] * Math.PI) / 180);
}

/** The whole world, gzipped: land rings, lakes in them, and borders. */
async function makeWorld() {
  const { geometries } = await read("@geo-maps/earth-lands-100m/map.geo.json");
  const polygons = geometries.flatMap(({ type, coordinates }) => (type === "MultiPolygon" ? coordinates : [coordinates]));
  const countries = await read("world-atlas/countries-10m.json");
  const inner = mesh(countries, countries.objects.countries, (a, b) => a !== b);
  const land = polygons.map(([outer]) => pack(outer)).filter(({ steps }) => steps.length > 6);
  const lakes = polygons.flatMap(([, ...holes]) => holes).filter((hole) => area(hole) >= LEAST_LAKE_KM2).map(pack);
  const borders = inner.coordinates.map(pack).filter(({ steps }) => steps.length > 2);
  const rows = [...land, ...lakes, ...borders];
  const table = rows.flatMap(({ box, steps }) => [...box, steps.length / 2]);
  const length = rows.reduce((sum, { steps }) => sum + steps.length, 0);
  const numbers = new Int32Array(3 + table.length + length);
  numbers.set([land.length, lakes.length, borders.length]);
  numbers.set(table, 3);
  let at = 3 + table.length;
  for (const { steps } of rows) {
    numbers.set(steps, at);
    at += steps.length;
  }
  return gzipSync(numbers, { level: 9 });
}

/** The same, kept beside the packages that it is made of until this file changes. */
export async function packWorld() {
  const stamp = createHash("sha256").update(await readFile(fileURLToPath(import.meta.url))).digest("hex").slice(0, 16);
  const kept = fileURLToPath(new URL(`node_modules/.world-${stamp}`, import.meta.url));
  try {
    return await readFile(kept);
  } catch {
    const made = await makeWorld();
    await writeFile(kept, made);
    return made;
  }
}
