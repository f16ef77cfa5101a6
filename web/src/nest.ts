/** Which zones of an axis lie in which, with the cells above them: what rolling up and the ladder of a place need. */

import type { Point } from "./geometry";
import type { Outlines } from "./outlines";

export interface PackedNest {
  /** Cells that are no zones but hold some; they are numbered after the zones. */
  id: string[];
  shape: number[];
  level: number[];
  /** Of the zones, then of the added cells; -1: none. */
  parent: number[];
}

/** The zones of an axis (nodes with the zone's own number) and the cells above them. */
export interface Nest {
  /** Nodes below this number are zones. */
  zones: number;
  id: string[];
  parent: Int32Array;
  /** Larger is finer: the H3 resolution, or the place among the sizes of zones of other kinds. */
  rank: number[];
  outlines: Outlines;
  centre: (Point | null)[];
  area: number[];
  /** The ranks at which something can be shown, coarsest first. */
  ranks: number[];
  /** True where nodes are cells that the world knows, so that those of two releases are the same. */
  known: boolean;
}

interface Parts {
  id: string[];
  level: (number | string | null)[];
  outlines: Outlines;
  centre: (Point | null)[];
  area: number[];
}

/** Zones whose sizes differ by less than this do not lie in each other, whatever their centres say. */
const LARGER = 1.3;

/** The smallest zone that is larger than a zone and holds its centre, for every zone. */
function parentsByOutline({ centre, area, outlines }: Parts): Int32Array {
  const bySize = area.map((_, zone) => zone).sort((a, b) => area[a]! - area[b]!);
  const parent = new Int32Array(area.length).fill(-1);
  bySize.forEach((zone, position) => {
    const place = centre[zone];
    if (!place) return;
    for (const larger of bySize.slice(position + 1)) {
      if (area[larger]! > LARGER * area[zone]! && outlines.holds(larger, place)) {
        parent[zone] = larger;
        return;
      }
    }
  });
  return parent;
}

/** Levels in the order of the largest zone that each has, coarsest first. */
function ranksByLevel({ level, area }: Parts): number[] {
  const largest = new Map<unknown, number>();
  level.forEach((one, zone) => largest.set(one, Math.max(largest.get(one) ?? 0, area[zone]!)));
  const coarsestFirst = [...largest].sort((a, b) => b[1] - a[1]).map(([one]) => one);
  return level.map((one) => coarsestFirst.indexOf(one));
}

/** Builds the nest of H3 zones from what the model says, and of other zones from their outlines. */
export function makeNest(zones: Parts, added: Parts, parent: number[] | null): Nest {
  const join = <T>(a: T[], b: T[]): T[] => (b.length ? [...a, ...b] : a);
  const all: Parts = {
    id: join(zones.id, added.id),
    level: join(zones.level, added.level),
    outlines: zones.outlines.and(added.outlines),
    centre: join(zones.centre, added.centre),
    area: join(zones.area, added.area),
  };
  const several = new Set(zones.level).size > 1;
  const rank = parent ? all.level.map((level) => (typeof level === "number" ? level : -1)) : ranksByLevel(all);
  return {
    ...all,
    zones: zones.id.length,
    parent: parent ? Int32Array.from(parent) : several ? parentsByOutline(all) : new Int32Array(all.id.length).fill(-1),
    rank,
    ranks: [...new Set(rank)].filter((one) => one >= 0).sort((a, b) => a - b),
    known: parent !== null,
  };
}

/** The node of at most this rank that a node lies in: itself where it is as coarse already. */
export function climb({ parent, rank }: Nest, node: number, most: number): number {
  let at = node;
  while (rank[at]! > most && parent[at]! >= 0) at = parent[at]!;
  return at;
}

/** A node and all that it lies in, finest first. */
export function chain({ parent }: Nest, node: number): number[] {
  const found: number[] = [];
  for (let at = node; at >= 0; at = parent[at]!) found.push(at);
  return found;
}

/** The finest node at a place; -1 where there is none. */
export function nodeAt(nest: Nest, place: Point): number {
  let best = -1;
  for (let node = 0; node < nest.id.length; node++) {
    if (best >= 0 && (nest.rank[node]! < nest.rank[best]! || nest.area[node]! >= nest.area[best]!)) continue;
    if (nest.outlines.holds(node, place)) best = node;
  }
  return best;
}

/** True where zones of one axis lie in each other, so that one place has several rows. */
export function isNested({ zones, parent }: Nest): boolean {
  for (let zone = 0; zone < zones; zone++) {
    for (let at = parent[zone]!; at >= 0; at = parent[at]!) if (at < zones) return true;
  }
  return false;
}
