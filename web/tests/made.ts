/** A small model to test with: two origins, three destinations, squares side by side. */
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

export function release(name: string, origins: string[] = ["a", "b"]): PackedRelease {
  return {
    name,
    about,
    method: { title: "ODkAnon", hint: "merges cells" },
    origin: { h3: false, id: origins, shape: [0, 1], level: [1, 2], leaves: [4, 2], trips: [60, 35], weight: [150, 90] },
    destination: { h3: false, id: ["x", "y", "z"], shape: [0, 1, -1], level: [1, 1, null], leaves: [4, 2, null], trips: [50, 35, 10] },
    flows: { per_origin: [3, 1], destination_steps: [0, 1, 1, 1], trips: [50, 20, 10, 15], weight: [100, 30, 60, 50] },
  };
}

const square = (x: number): number[][][] => [[[x * 1e6, 0, 1e6, 0, 0, 1e6, -1e6, 0, 0, -1e6]]];

export const packed = (...releases: PackedRelease[]): PackedModel => ({
  format: 1,
  shapes: [square(0), square(1)],
  releases,
  base: null,
  beneath: null,
});

/** Text with plain spaces where the page keeps a number and its unit on one line. */
export const plainly = (text: string): string => text.replaceAll("\u00a0", " ");
