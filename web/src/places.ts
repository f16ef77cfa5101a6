/**
 * A release seen from a place: which rows cover it, rolled up to a detail, without ever losing or counting a trip twice.
 * Every row stays where it is published or moves up to the cell that holds it; no row is ever split.
 */

import { other } from "./format";
import { AROUND, INSIDE, OUTSIDE, rolesOf } from "./kinds";
import type { Point } from "./geometry";
import type { Axis, Measure, Release } from "./model";
import { chain, climb, isNested, nodeAt, type Nest } from "./nest";
import { massesOf, partOf, PARTS, type Part } from "./parts";

export interface Asked {
  measure: Measure;
  /** The axis that is painted: where trips from here go, or where trips to here come from. */
  towards: Axis;
  /** The finest rank to show. */
  detail: number;
  place: Point | null;
  part: Part | null;
  /** For each attribute the value that rows must have. */
  only: Readonly<Record<string, string>>;
}

/** True where a release has rows at several resolutions, at either end. */
export const hasSeveral = ({ origin, destination }: Release): boolean => isNested(origin.nest) || isNested(destination.nest);

/** The ranks at which a release can be looked at, coarsest first. */
export function details({ origin, destination }: Release): number[] {
  return [...new Set([...origin.nest.ranks, ...destination.nest.ranks])].sort((a, b) => a - b);
}

const MOSTLY = 2 / 3;

/** The finest rank at which most trips are known at both ends: where to start looking. */
export function firstDetail(release: Release): number {
  const ranks = details(release);
  const { flows, origin, destination } = release;
  const masses = massesOf(flows, "trips");
  const sums = new Map<number, number>();
  let total = 0;
  for (let row = 0; row < flows.count; row++) {
    const rank = Math.min(origin.nest.rank[flows.end.origin[row]!]!, destination.nest.rank[flows.end.destination[row]!]!);
    sums.set(rank, (sums.get(rank) ?? 0) + masses[row]!);
    total += masses[row]!;
  }
  let known = 0;
  for (const rank of ranks.toReversed()) if ((known += sums.get(rank) ?? 0) >= MOSTLY * total) return rank;
  return ranks[0] ?? 0;
}

/** The node that stands for a place at a detail; -1 where nothing is published around it. */
export const standsFor = (nest: Nest, place: Point, detail: number): number => {
  const finest = nodeAt(nest, place);
  return finest < 0 ? -1 : climb(nest, finest, detail);
};

/** What the choices say of a row, apart from the place: it is meant, it may be meant but tells too little, or neither. */
export function chosenRows(release: Release, { part, only }: Omit<Asked, "place">): (row: number) => number {
  const chosen = release.kinds.filter(({ name }) => only[name] !== undefined);
  const tests = chosen.map((kind) => ({ of: kind.attribute.of, role: rolesOf(kind, only[kind.name]!) }));
  return (row) => {
    if (part && partOf(release, row) !== part) return OUTSIDE;
    let found = INSIDE;
    for (const { of, role } of tests) {
      const own = role[of[row]!]!;
      if (own === OUTSIDE) return OUTSIDE;
      if (own === AROUND) found = AROUND;
    }
    return found;
  };
}

export interface Bundle {
  origin: number;
  destination: number;
  mass: number;
  /** One end lies in the other: these trips stay inside. */
  stays: boolean;
}

export interface Seen {
  /** The node that was asked for; -1: none, everything is seen. */
  node: number;
  /** Mass of all rows that answer. */
  total: number;
  /** Mass of rows whose near end is larger than the place: some part of them may belong to it. */
  around: number;
  /** Mass of rows of this place that do not tell the chosen hour, mode and so on, or only roughly: some may be meant. */
  loose: number;
  stays: number;
  /** Mass for each node of the far axis, rolled up; rows coarser than the detail stay where they are. */
  at: Float64Array;
  /** How much of it comes from rows that are that precise, whatever the detail. */
  partsAt: Record<Part, Float64Array>;
  /** The same for rows whose near end is larger than the place. */
  maybe: Float64Array;
  /** The estimate: trips per square kilometre, each row spread evenly over its cell. NaN: nothing here. */
  density: Float64Array;
  /** Flows between nodes at this detail, largest first. */
  bundles: Bundle[];
}

/** The node that stands for the place, and what each zone is to it; null: everything is meant. */
export interface Standing {
  node: number;
  role: Uint8Array | null;
}

/** What a question is about; see `Standing`. */
export function standing(release: Release, { towards, detail, place }: Asked): Standing {
  const { nest } = release[other[towards]];
  const node = place ? standsFor(nest, place, detail) : -1;
  return { node, role: place ? roles(nest, node) : null };
}

/** Answers one question; see `Seen`. */
export function see(release: Release, asked: Asked, { node, role }: Standing = standing(release, asked)): Seen {
  const { towards, detail, measure } = asked;
  const near = release[other[towards]].nest;
  const far = release[towards].nest;
  const [nearAt, farAt] = [near, far].map((nest) => Int32Array.from({ length: nest.zones }, (_, zone) => climb(nest, zone, detail)));
  const masses = massesOf(release.flows, measure);
  const [nearEnd, farEnd] = [release.flows.end[other[towards]], release.flows.end[towards]];
  const fits = chosenRows(release, asked);
  const found = { total: 0, around: 0, loose: 0, stays: 0 };
  const empty = (): Float64Array => new Float64Array(far.id.length);
  const [at, maybe] = [empty(), empty()];
  const partsAt = Object.fromEntries(PARTS.map((part) => [part, empty()])) as Seen["partsAt"];
  const bundles = new Map<number, number>();
  for (let row = 0; row < release.flows.count; row++) {
    const inside = role ? role[nearEnd[row]!]! : INSIDE;
    if (inside === OUTSIDE) continue;
    const fit = fits(row);
    if (fit === OUTSIDE) continue;
    const mass = masses[row]!;
    if (fit === AROUND) {
      if (inside === INSIDE) found.loose += mass;
      continue;
    }
    const end = farAt![farEnd[row]!]!;
    if (inside === AROUND) {
      found.around += mass;
      maybe[end]! += mass;
      continue;
    }
    found.total += mass;
    partsAt[partOf(release, row)][end]! += mass;
    at[end]! += mass;
    const key = nearAt![nearEnd[row]!]! * far.id.length + end;
    bundles.set(key, (bundles.get(key) ?? 0) + mass);
  }
  const list = bundlesOf(bundles, near, far, towards);
  found.stays = list.reduce((sum, one) => sum + (one.stays ? one.mass : 0), 0);
  return { ...found, node, at, maybe, partsAt, density: densities(far, at), bundles: list };
}

/** For each zone: it lies in the node, it is larger than the node and holds it, or neither. */
export function roles(nest: Nest, node: number): Uint8Array {
  const found = new Uint8Array(nest.zones);
  if (node < 0) return found;
  const above = new Set(chain(nest, node).slice(1));
  for (let zone = 0; zone < nest.zones; zone++) {
    if (above.has(zone)) found[zone] = AROUND;
    else if (chain(nest, zone).includes(node)) found[zone] = INSIDE;
  }
  return found;
}

/** Every node's own mass by its area, plus that of all it lies in. */
function densities(nest: Nest, at: Float64Array): Float64Array {
  return Float64Array.from(at, (mass, node) => {
    if (!mass) return NaN;
    return chain(nest, node).reduce((sum, one) => sum + (nest.area[one]! > 0 ? at[one]! / nest.area[one]! : 0), 0);
  });
}

function bundlesOf(found: Map<number, number>, near: Nest, far: Nest, towards: Axis): Bundle[] {
  const list = Array.from(found, ([key, mass]): Bundle => {
    const [start, end] = [Math.floor(key / far.id.length), key % far.id.length];
    const stays = holdsById(near, start, far, end) || holdsById(far, end, near, start);
    return towards === "destination" ? { origin: start, destination: end, mass, stays } : { origin: end, destination: start, mass, stays };
  });
  return list.sort((a, b) => b.mass - a.mass || a.origin - b.origin || a.destination - b.destination);
}

/** Whether a node of one axis is, or lies in, a node of the other. */
function holdsById(one: Nest, node: number, two: Nest, outer: number): boolean {
  const id = two.id[outer]!;
  for (let at = node; at >= 0; at = one.parent[at]!) if (one.id[at] === id) return true;
  return false;
}

export interface Rung {
  node: number;
  mass: number;
  area: number;
}

/** What is published at a place: in its finest cell, in the one around it, and so on. */
export function ladder(nest: Nest, at: ArrayLike<number>, node: number): Rung[] {
  return chain(nest, node)
    .filter((one) => at[one]! > 0)
    .map((one) => ({ node: one, mass: at[one]!, area: nest.area[one]! }));
}
