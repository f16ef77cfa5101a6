/** How precisely a row is published. Everything on the page that speaks of it counts these parts, in these words. */

import { isNotGiven } from "./kinds";
import type { Flows, Measure, Release } from "./model";

/** Square kilometres up to which both ends of a row count as placed precisely, and up to which they still tell a district. */
export const SHARP = 1;
export const DISTRICT = 7;

export const PARTS = ["precise", "coarse", "rough", "place"] as const;

/** Both ends within 1 km²; within 7 km²; in larger areas; or told, but not all else, such as the hour. */
export type Part = (typeof PARTS)[number];

export const massesOf = (flows: Flows, measure: Measure): ArrayLike<number> => flows.mass[measure] ?? flows.mass.trips!;

/** A zone without a shape can be anywhere. */
const known = (area: number): number => (area > 0 ? area : Infinity);

/** The larger of the two areas that a row names. */
function sizeOf({ origin, destination, flows }: Release, row: number): number {
  return Math.max(known(origin.area[flows.end.origin[row]!]!), known(destination.area[flows.end.destination[row]!]!));
}

/** Which part a row belongs to. */
export function partOf(release: Release, row: number): Part {
  for (const { values, of } of Object.values(release.flows.attributes)) {
    if (isNotGiven(values[of[row]!]!)) return "place";
  }
  const size = sizeOf(release, row);
  return size <= SHARP ? "precise" : size <= DISTRICT ? "coarse" : "rough";
}

/** Square kilometres within which half of the published trips are known at both ends; null without shapes. */
export function typicalSize(release: Release): number | null {
  const masses = massesOf(release.flows, "trips");
  const rows = Array.from({ length: release.flows.count }, (_, row) => [sizeOf(release, row), masses[row]!] as const);
  rows.sort((a, b) => a[0] - b[0]);
  const half = rows.reduce((sum, [, mass]) => sum + mass, 0) / 2;
  let seen = 0;
  for (const [size, mass] of rows) if ((seen += mass) >= half) return Number.isFinite(size) ? size : null;
  return null;
}
