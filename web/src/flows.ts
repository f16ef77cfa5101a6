/** Which flows to draw and to list. */

import { other } from "./format";
import type { Axis, Flows, Measure } from "./model";

/** Numbers of the `limit` largest flows, largest first; ties keep their order. */
export function strongest(masses: ArrayLike<number>, candidates: ArrayLike<number>, limit: number): number[] {
  if (limit <= 0) return [];
  const picked = Array.from(candidates);
  picked.sort((a, b) => masses[b]! - masses[a]! || a - b);
  return picked.slice(0, limit);
}

export interface Partner {
  flow: number;
  zone: number;
  mass: number;
}

/** The flows of one zone, largest first, each with the zone at its other end. */
export function partners(flows: Flows, axis: Axis, zone: number, measure: Measure): Partner[] {
  const { start, order } = flows.of[axis];
  const masses = flows.mass[measure] ?? flows.mass.trips!;
  const own = order.subarray(start[zone], start[zone + 1]);
  const ends = flows.end[other[axis]];
  return strongest(masses, own, own.length).map((flow) => ({ flow, zone: ends[flow]!, mass: masses[flow]! }));
}

const everything = new WeakMap<Flows, Map<Measure, number[]>>();

/** All flows of a release, largest first; sorted once for each measure. */
export function ranked(flows: Flows, measure: Measure): number[] {
  let sorted = everything.get(flows);
  if (!sorted) everything.set(flows, (sorted = new Map()));
  let order = sorted.get(measure);
  if (!order) {
    const masses = flows.mass[measure] ?? flows.mass.trips!;
    order = strongest(masses, Array.from({ length: flows.count }, (_, flow) => flow), flows.count);
    sorted.set(measure, order);
  }
  return order;
}
