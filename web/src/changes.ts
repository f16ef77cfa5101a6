/**
 * What changed between two releases with rows at several resolutions. A row of such a release lists what no finer row
 * does, so rows of two releases are never subtracted one by one. Both are rolled up to the same public cells first; what
 * is only known coarser stays apart, and says how sure a change is.
 */

import { other } from "./format";
import { AROUND, INSIDE } from "./kinds";
import type { About, Axis, Measure, Release } from "./model";
import { chain, type Nest } from "./nest";
import { Outlines } from "./outlines";
import { details, firstDetail, hasSeveral, see, standsFor, type Asked, type Seen } from "./places";

/** True where rows lie in each other: their numbers mean nothing without the finer ones. */
export const areNested = (releases: Release[]): boolean => releases.some(hasSeveral);

/** True for two releases that can be compared on cells that the world knows, whatever their own zones. */
export const comparable = (releases: Release[]): boolean =>
  releases.length === 2 && areNested(releases) && releases.every(({ origin, destination }) => origin.nest.known && destination.nest.known);

/** The ranks at which all releases can be looked at, coarsest first. */
export function commonDetails([first, ...others]: Release[]): number[] {
  return details(first!).filter((rank) => others.every((release) => details(release).includes(rank)));
}

/** Where to start looking: the finest rank at which most trips of every release are known, and where of two some change is sure. */
export function firstCommon(releases: Release[]): number {
  const most = Math.min(...releases.map(firstDetail));
  const ranks = commonDetails(releases).filter((rank) => rank <= most);
  return ranks.findLast((rank) => !comparable(releases) || tellsChange(releases as [Release, Release], rank)) ?? ranks.at(-1) ?? most;
}

/** Whether some cell of a rank surely changed. */
function tellsChange(releases: [Release, Release], detail: number): boolean {
  const change = changeOf(releases, { measure: "trips", towards: "destination", detail, place: null, part: null, only: {} });
  return change.cells.some((cell) => isSure(cell, "trips", change));
}

interface Joint {
  nest: Nest;
  /** For each release, the joint number of each of its nodes. */
  of: [Int32Array, Int32Array];
}

const joints = new WeakMap<Nest, WeakMap<Nest, Joint>>();

/** The cells of two releases in one nest; made once. */
export function joined(one: Nest, two: Nest): Joint {
  let known = joints.get(one);
  if (!known) joints.set(one, (known = new WeakMap()));
  let joint = known.get(two);
  if (!joint) known.set(two, (joint = join(one, two)));
  return joint;
}

function join(one: Nest, two: Nest): Joint {
  const number = new Map(one.id.map((id, node) => [id, node]));
  const added: number[] = [];
  const second = Int32Array.from(two.id, (id, node) => number.get(id) ?? one.id.length + added.push(node) - 1);
  const all = <T>(pick: (nest: Nest) => T[]): T[] => [...pick(one), ...added.map((node) => pick(two)[node]!)];
  const parent = new Int32Array(one.id.length + added.length).fill(-1);
  parent.set(one.parent);
  second.forEach((node, own) => {
    if (parent[node]! < 0 && two.parent[own]! >= 0) parent[node] = second[two.parent[own]!]!;
  });
  const nest: Nest = {
    zones: parent.length,
    id: all(({ id }) => id),
    parent,
    rank: all(({ rank }) => rank),
    outlines: Outlines.of(all(({ outlines }) => outlines.all())),
    centre: all(({ centre }) => centre),
    area: all(({ area }) => area),
    ranks: [...new Set([...one.ranks, ...two.ranks])].sort((a, b) => a - b),
    known: one.known && two.known,
  };
  return { nest, of: [Int32Array.from(one.id, (_, node) => node), second] };
}

/** How a cell came to be what it is; "gone" may be none, too few to be listed, or only known coarser. */
export type CellKind = "both" | "new" | "gone";

export interface Cell {
  node: number;
  kind: CellKind;
  before: number;
  after: number;
  /** As listed at this detail: second minus first. */
  by: number;
  /** What it may have had at most, before and after, with what is only known coarser or left out. */
  most: [number, number];
}

/** How a change is told: in trips, in percent of what was, or as a share of all trips before and after. */
export type Unit = "trips" | "percent" | "share";

/** What share of all trips a cell had, before and after. */
export const sharesOf = ({ before, after }: Cell, { seen: [one, two] }: Change): [number, number] => [before / (one.total || 1), after / (two.total || 1)];

/** The change of a cell: in trips, in percent, or in percentage points of all trips; of what is new there is no percentage. */
export function changeIn(cell: Cell, unit: Unit, change: Change): number {
  const { kind, by, before } = cell;
  if (unit === "share") {
    const [one, two] = sharesOf(cell, change);
    return 100 * (two - one);
  }
  return unit === "trips" ? by : kind === "new" ? 0 : (100 * by) / before;
}

/** What would be after as many before, were nothing changed. */
const expected = (before: number, unit: Unit, { growth }: Change): number => (unit === "share" ? growth : 1) * before;

/** Whether a cell changed at all, as it is told. */
export const hasChanged = ({ before, after }: Cell, unit: Unit, change: Change): boolean => Math.abs(after - expected(before, unit, change)) >= 0.5;

/** Whether it did, and what is only known coarser, or left out, could not make up for the difference; of shares nothing is sure. */
export const isSure = (cell: Cell, unit: Unit, change: Change): boolean =>
  unit !== "share" && hasChanged(cell, unit, change) && (cell.after > expected(cell.most[0], unit, change) || cell.most[1] < expected(cell.before, unit, change));

/** Totals that differ by more than this share hide which places changed otherwise than the rest. */
const ALIKE = 0.1;

/** How to tell the change at first. */
export function firstUnit(releases: Release[]): Unit {
  const [before, after] = releases.map(({ flows }) => Array.from(flows.mass.trips!).reduce((sum, mass) => sum + mass, 0));
  return comparable(releases) && before! > 0 && Math.abs(after! / before! - 1) > ALIKE ? "share" : "trips";
}

export interface Change {
  seen: [Seen, Seen];
  /** Cells of both releases on the painted axis. */
  nest: Nest;
  /** For each release, mass at each of these cells; coarser rows stay where they are. */
  at: [Float64Array, Float64Array];
  cells: Cell[];
  /** How many times as many trips as before there are, known at this detail or not. */
  growth: number;
  /** The cell of the other axis that was asked for; null: everywhere. */
  near: { nest: Nest; node: number } | null;
}

/** Rows of one release that start (or end) in a cell of the joint nest, and those that may. */
function standing(own: Nest, { nest, of }: Joint, side: 0 | 1, node: number): Uint8Array {
  const above = new Set(chain(nest, node).slice(1));
  return Uint8Array.from({ length: own.zones }, (_, zone) => {
    const at = of[side]![zone]!;
    return above.has(at) ? AROUND : chain(nest, at).includes(node) ? INSIDE : 0;
  });
}

/** The most that no row lists; without a number it could be anything. */
function mostMissing({ suppressed, unlisted }: About, measure: Measure): number {
  if (measure === "weight") return suppressed?.weight ?? Infinity;
  return suppressed?.trips ?? unlisted?.at_most_trips ?? Infinity;
}

/** Answers one question for two releases. */
export function changeOf(releases: [Release, Release], asked: Asked): Change {
  const near: Axis = other[asked.towards];
  const [first, second] = releases;
  const starts = joined(first[near].nest, second[near].nest);
  const ends = joined(first[asked.towards].nest, second[asked.towards].nest);
  const node = asked.place ? standsFor(starts.nest, asked.place, asked.detail) : -1;
  const seen = releases.map((release, side) => {
    const role = asked.place ? standing(release[near].nest, starts, side as 0 | 1, node) : null;
    return see(release, asked, { node, role });
  }) as Change["seen"];
  const spread = (masses: Float64Array, side: 0 | 1): Float64Array => {
    const found = new Float64Array(ends.nest.id.length);
    masses.forEach((mass, own) => (found[ends.of[side]![own]!]! += mass));
    return found;
  };
  const at = [spread(seen[0].at, 0), spread(seen[1].at, 1)] as Change["at"];
  const maybe = [spread(seen[0].maybe, 0), spread(seen[1].maybe, 1)] as Change["at"];
  const out = releases.map((release) => mostMissing(release.about, asked.measure)) as [number, number];
  const most = (side: 0 | 1, cell: number): number => {
    const around = chain(ends.nest, cell).reduce((sum, one) => sum + maybe[side][one]! + (one === cell ? 0 : at[side][one]!), 0);
    return at[side][cell]! + around + out[side];
  };
  const cells = ends.nest.id.flatMap((_, cell): Cell[] => {
    const [before, after] = [at[0][cell]!, at[1][cell]!];
    if (ends.nest.rank[cell]! < asked.detail || (!before && !after)) return [];
    const kind = !before ? "new" : !after ? "gone" : "both";
    return [{ node: cell, kind, before, after, by: after - before, most: [most(0, cell), most(1, cell)] }];
  });
  const growth = seen[0].total > 0 ? seen[1].total / seen[0].total : 1;
  return { seen, nest: ends.nest, at, cells, growth, near: asked.place ? { nest: starts.nest, node } : null };
}

export interface BundleChange {
  origin: string;
  destination: string;
  by: number;
}

/** Changes of flows that both releases list between the same two cells of this detail, the largest first. */
export function bundleChanges([first, second]: [Release, Release], { seen }: Change, detail: number): BundleChange[] {
  const fine = (release: Release, axis: Axis, node: number): boolean => release[axis].nest.rank[node]! >= detail;
  const masses = [first, second].map((release, side) => {
    const own = seen[side as 0 | 1].bundles.filter(({ origin, destination }) => fine(release, "origin", origin) && fine(release, "destination", destination));
    return new Map(own.map(({ origin, destination, mass }) => [`${release.origin.nest.id[origin]} ${release.destination.nest.id[destination]}`, mass]));
  });
  const found: BundleChange[] = [];
  for (const [key, mass] of masses[0]!) {
    const after = masses[1]!.get(key);
    const [origin, destination] = key.split(" ") as [string, string];
    if (after !== undefined && after !== mass && origin !== destination) found.push({ origin, destination, by: after - mass });
  }
  return found.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || (a.origin + a.destination < b.origin + b.destination ? -1 : 1));
}
