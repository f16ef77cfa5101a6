import assert from "node:assert/strict";
import { test } from "node:test";
import { unpackColumns } from "../src/columns";
import { unpack, type PackedModel } from "../src/model";
import { Outlines } from "../src/outlines";
import { packed, release } from "./made";

// As Python packs 500 times 5, 4, 4, 70000 and 500 times 0.5, -3.25, 1000000.75, 0.
const whole = {"of": "steps", "count": 2000, "per": 1, "steps": "H4sIAAAAAAACA+3FMQ0AMAgAsPER/FtCAsnkIIOnfVrxfud02rZt27btoxfJjRl1ng8AAA=="};
const parts = {"of": "steps", "count": 2000, "per": 100, "steps": "H4sIAAAAAAACA+3GIQEAIAwAMEXOm1fB4PE0eDI6vMTlppZ/vVNxd0Wqqqqqqqqqqqqq6kwbzUiTXnwVAAA="};

test("packed columns are what they were, and everything else stays", async () => {
  const one = release("one");
  const flows = { ...one.flows, trips: whole, weight: parts, attributes: { mode: { values: ["a"], of: whole } } };
  const model = { ...packed(one), releases: [{ ...one, flows }] } as unknown as PackedModel;
  const read = (await unpackColumns(model)).releases[0]!;
  assert.ok(read.flows.trips instanceof Int32Array);
  assert.deepEqual(Array.from(read.flows.trips).slice(0, 5), [5, 4, 4, 70000, 5]);
  assert.equal(read.flows.trips.length, 2000);
  assert.deepEqual(Array.from(read.flows.weight!).slice(-4), [0.5, -3.25, 1000000.75, 0]);
  assert.deepEqual(read.flows.attributes!.mode!.of, read.flows.trips);
  assert.deepEqual(read.origin, one.origin);
});

const lines = { lon: [2_000_000, 2_100_000, 2_300_000], lat: [48_000_000, 48_500_000] };
const boxes = { ...lines, west: [0, 1], east: [1, 2], south: [0, 0], north: [1, 1] };

test("boxes are told by their sides, and counted by their flows", async () => {
  const one = release("one");
  const named = { h3: false, id: { prefix: "o", digits: 2, count: 2 }, boxes };
  const model = { ...packed(one), releases: [{ ...one, origin: named }] } as unknown as PackedModel;
  const { origin } = unpack(await unpackColumns(model)).releases[0]!;
  assert.deepEqual(origin.id, ["o00", "o01"]);
  assert.equal(origin.number.get("o01"), 1);
  assert.deepEqual(Array.from(origin.mass.trips as Float64Array), [80, 15]);
  assert.deepEqual(origin.outlines.at(1), [[[[2.1, 48], [2.3, 48], [2.3, 48.5], [2.1, 48.5]]]]);
  assert.deepEqual(origin.centre[0], [2.05, 48.25]);
  assert.ok(Math.abs(origin.area[0]! - 411.5) < 1, String(origin.area[0]));
});

test("an outline knows what it holds, whatever it is made of", () => {
  const made = Outlines.ofBoxes(boxes);
  const same = Outlines.of(made.all());
  for (const outlines of [made, same]) {
    assert.ok(outlines.areBoxes());
    assert.ok(outlines.holds(0, [2.05, 48.2]) && !outlines.holds(1, [2.05, 48.2]));
    assert.deepEqual(outlines.whole(), [[2, 48], [2.3, 48.5]]);
  }
  assert.ok(Math.abs(made.measure(1).area / same.measure(1).area - 1) < 1e-3);
});
