import assert from "node:assert/strict";
import { test } from "node:test";
import { unpackColumns } from "../src/columns";
import type { PackedModel } from "../src/model";
import { level, packed, release } from "./made";

// As Python packs 500 times 5, 4, 4, 70000 and 500 times 0.5, -3.25, 1000000.75, 0.
const whole = {"of": "steps", "count": 2000, "per": 1, "steps": "H4sIAAAAAAACA+3FMQ0AMAgAsPER/FtCAsnkIIOnfVrxfud02rZt27btoxfJjRl1ng8AAA=="};
const parts = {"of": "steps", "count": 2000, "per": 100, "steps": "H4sIAAAAAAACA+3GIQEAIAwAMEXOm1fB4PE0eDI6vMTlppZ/vVNxd0Wqqqqqqqqqqqqq6kwbzUiTXnwVAAA="};

test("packed columns are what they were, and everything else stays", async () => {
  const one = release("one");
  const flows = { trips: whole, weight: parts };
  const table = { ...level.tables[0]![""]!, origin: whole };
  const model = { ...packed(one), releases: [{ ...one, flows }], levels: [{ ...level, tables: [{ "": table }] }] } as unknown as PackedModel;
  const read = await unpackColumns(model);
  const { trips, weight } = read.releases[0]!.flows;
  assert.ok(trips instanceof Int32Array);
  assert.deepEqual(Array.from(trips).slice(0, 5), [5, 4, 4, 70000, 5]);
  assert.deepEqual(Array.from(weight!).slice(-4), [0.5, -3.25, 1000000.75, 0]);
  assert.deepEqual(read.levels![0]!.tables[0]![""]!.origin, trips);
  assert.deepEqual(read.levels![0]!.tables[0]![""]!.starts, level.tables[0]![""]!.starts);
  assert.deepEqual(read.releases[0]!.about, one.about);
});
