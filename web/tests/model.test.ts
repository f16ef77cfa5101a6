import assert from "node:assert/strict";
import { test } from "node:test";
import { boundsOf, measure, unpackLine } from "../src/geometry";
import { unpack } from "../src/model";
import { packed, release } from "./made";

test("a packed line is its first corner and the steps after it", () => {
  assert.deepEqual(unpackLine([2_000_000, 48_000_000, 500_000, 0, 0, -1_000_000]), [[2, 48], [2.5, 48], [2.5, 47]]);
});

test("a square of one degree at the equator has its area and its centre", () => {
  const { area, centre } = measure([[[[0, -0.5], [1, -0.5], [1, 0.5], [0, 0.5], [0, -0.5]]]]);
  assert.ok(Math.abs(area - 12364) < 30, String(area));
  assert.deepEqual(centre?.map((value) => Math.round(value * 1e9) / 1e9), [0.5, 0]);
});

test("a hole is not part of the area", () => {
  const ring = (size: number) => [[0, 0], [size, 0], [size, size], [0, size]] as [number, number][];
  assert.ok(measure([[ring(2), ring(1)]]).area < measure([[ring(2)]]).area);
});

test("data of another version is refused", () => {
  assert.throws(() => unpack({ ...packed(release("one")), format: 1 }), /different versions/);
});

test("bounds cover everything, and nothing has none", () => {
  assert.deepEqual(boundsOf([[[[0, 0], [1, 2]]], [[[-1, 1]]]]), [[-1, 0], [1, 2]]);
  assert.equal(boundsOf([]), null);
});
