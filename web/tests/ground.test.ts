/** Land and borders are drawn only as far as they can be seen. */
import assert from "node:assert/strict";
import test from "node:test";
import { clipRing, inside, thin, type Bounds, type Point } from "../src/geometry";
import { groundAt } from "../src/map/ground";

/** A coast of many corners around (0, 0). */
const coast = Array.from({ length: 3600 }, (_, i): Point => {
  const [angle, radius] = [(i * Math.PI) / 1800, 10 + 2 * Math.sin(i / 25)];
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});
const base = { land: [coast], water: [], borders: [[[-9, 0], [9, 0]] as Point[]], box: null };
const box: Bounds = [[6, -2], [10, 3]];

test("a ring that is cut to a box holds the same places of the box", () => {
  const cut = clipRing(coast, box);
  for (let x = 6.03; x < 10; x += 0.21) {
    for (let y = -1.97; y < 3; y += 0.23) assert.equal(inside([cut], [x, y]), inside([coast], [x, y]), `${x}, ${y}`);
  }
  assert.ok(cut.every(([x, y]) => x >= 6 && x <= 10 && y >= -2 && y <= 3));
  assert.deepEqual(clipRing(coast, [[20, 20], [21, 21]]), []);
  assert.deepEqual(clipRing(coast, [[-20, -20], [20, 20]]), coast);
});

test("corners that share a pixel are one, and the ends of a line stay", () => {
  const line: Point[] = [[0, 0], [0.1, 0], [0.2, 0], [1, 0], [1.05, 0]];
  assert.deepEqual(thin(line, 0.5), [[0, 0], [1, 0], [1.05, 0]]);
  assert.deepEqual(thin(line, 0), line);
});

test("what cannot be seen is not prepared, and what can is there", () => {
  const near = groundAt(base, { bounds: box, zoom: 9 });
  const far = groundAt(base, { bounds: [[-20, -20], [20, 20]], zoom: 0 });
  const all = coast.length + 1;
  assert.ok(near.borders.length < all / 4, `${near.borders.length}`);
  assert.ok(far.borders.length < all / 2, `${far.borders.length}`);
  assert.ok(near.borders.some(({ from, to }) => from[0] === -9 && to[0] === 9), "a line that only passes through is seen");
  for (let x = 6.03; x < 10; x += 0.21) assert.equal(near.land.some((ring) => inside([ring], [x, 1])), inside([coast], [x, 1]));
});
