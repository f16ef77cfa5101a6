/** A small model to test with. */
import type { PackedLevel, PackedNumbers, PackedTable } from "../src/levels";
import type { About, PackedAbout, PackedModel, PackedRelease } from "../src/model";

export const about: About = {
  version: "0.1.0",
  input: { rows: 105, trips: 100, weight: 250, rejected: { "missing coordinates": { rows: 5, trips: 5 } } },
  rule: { trips: 10, k: 10 },
  method: "odkanon",
  parameters: { budget: 0.1 },
  published: { classes: 4, origins: 2, destinations: 3, trips: 95, weight: 240, share: 0.95 },
  suppressed: { pairs: 3, trips: 5, weight: 10, share: 0.05 },
  utility: { trips: { c_dm: 1, c_avg: 2, g: 852, e: 1 } },
  privacy: { trips: { min: 10, threshold: 10, below: 0, share: 0 } },
};

/** The same release as anybody may read it. */
export const publicAbout: PackedAbout = {
  version: "0.1.0",
  rule: about.rule,
  method: about.method,
  parameters: about.parameters,
  published: { classes: 4, origins: 2, destinations: 3, trips: 95, weight: 240 },
  unlisted: { at_most_trips: 10 },
  quality: null,
};

export const release = (name: string): PackedRelease => ({
  name,
  about,
  method: { title: "ODkAnon", hint: "merges cells" },
  flows: { trips: [50, 20, 10, 15], weight: [100, 30, 60, 50] },
  rough: [],
});

const square = (x: number): number[][][] => [[[x * 1e6, 0, 1e6, 0, 0, 1e6, -1e6, 0, 0, -1e6]]];

const around = (trips: number[], by = 0): PackedNumbers => ({
  trips,
  low: trips.map((one) => Math.max(0, one - 2 * by)),
  high: trips.map((one) => one + 2 * by),
  interval_low: trips.map((one) => Math.max(0, one - by)),
  interval_high: trips.map((one) => one + by),
});

/** Flows between three places: a to a, b and c, b to a, c to b; the third place has no shape. */
export const table = (by = 0): PackedTable => ({
  total: { trips: 95, low: 95, high: 95, interval_low: 95, interval_high: 95 },
  starts: around([60, 20, 15], by),
  ends: around([40, 35, 20], by),
  origin: [0, 0, 0, 1, 2],
  destination: [0, 1, 2, 0, 1],
  pairs: around([20, 20, 20, 20, 15], by),
  least: 3,
});

export const level: PackedLevel = { level: "zones", id: ["a", "b", "c"], shape: [0, 1, -1], name: ["A", "B", null], tables: [{ "": table() }] };

export const packed = (...releases: PackedRelease[]): PackedModel => ({ format: 2, shapes: [square(0), square(1)], releases, levels: [level], base: null, beneath: null });

/** Text with plain spaces where the page keeps a number and its unit on one line. */
export const plainly = (text: string): string => text.replaceAll("\u00a0", " ");
