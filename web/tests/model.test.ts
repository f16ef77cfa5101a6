import assert from "node:assert/strict";
import { test } from "node:test";
import { difference } from "../src/compare";
import { partners, ranked } from "../src/flows";
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

test("flows know both ends and are grouped by either", () => {
  const { flows } = unpack(packed(release("one"))).releases[0]!;
  assert.deepEqual([...flows.end.origin], [0, 0, 0, 1]);
  assert.deepEqual(partners(flows, "origin", 0, "trips").map(({ zone, mass }) => [zone, mass]), [[0, 50], [1, 20], [2, 10]]);
  assert.deepEqual(partners(flows, "destination", 1, "trips").map(({ zone, mass }) => [zone, mass]), [[0, 20], [1, 15]]);
});

test("the ranking follows the measure", () => {
  const { flows } = unpack(packed(release("one"))).releases[0]!;
  assert.deepEqual(ranked(flows, "trips"), [0, 1, 3, 2]);
  assert.deepEqual(ranked(flows, "weight"), [0, 2, 3, 1]);
});

test("a zone without a shape has no place but keeps its number", () => {
  const { destination } = unpack(packed(release("one"))).releases[0]!;
  assert.equal(destination.centre[2], null);
  assert.equal(destination.number.get("z"), 2);
});

test("two releases differ in exactly the zones that one of them lacks", () => {
  const { releases } = unpack(packed(release("one", ["a", "b"]), release("two", ["b", "c"])));
  assert.deepEqual(difference(releases[0]!, releases[1]!, "origin"), [["a"], ["c"]]);
  assert.deepEqual(difference(releases[0]!, releases[1]!, "destination"), [[], []]);
});

test("data of another version is refused", () => {
  assert.throws(() => unpack({ ...packed(release("one")), format: 2 }), /different versions/);
});

test("bounds cover everything, and nothing has none", () => {
  assert.deepEqual(boundsOf([[[[0, 0], [1, 2]]], [[[-1, 1]]]]), [[-1, 0], [1, 2]]);
  assert.equal(boundsOf([]), null);
});
