/** The model a page draws: how `src/odkanon/publish/report/page_model.py` packs it, and its unpacked form. */

import { makeKinds, type Kind, type PackedKind } from "./kinds";
import type { PackedNames } from "./names";
import { makeNest, type Nest, type PackedNest } from "./nest";
import type { Column } from "./columns";
import { unpackLine, unpackShape, type Point, type Polygon } from "./geometry";
import { Outlines, type PackedBoxes } from "./outlines";

export type Axis = "origin" | "destination";
export type Measure = "trips" | "weight";
export type Count = Measure | "persons" | "households";

export const AXES: readonly Axis[] = ["origin", "destination"];
export const MEASURES: readonly Measure[] = ["trips", "weight"];
export const COUNTS: readonly Count[] = ["trips", "weight", "persons", "households"];

export interface PackedZones {
  h3: boolean;
  id: string[];
  /** Instead of all that follows where zones are thousands of boxes. */
  boxes?: PackedBoxes;
  shape?: number[];
  level?: (number | string | null)[];
  leaves?: (number | null)[];
  trips?: Column;
  weight?: Column;
  /** Square kilometres, where the release says them. */
  area?: (number | null)[];
  nest?: PackedNest;
}

/** What a row says besides its two places, such as the hour or the mode: the number of its value. */
export interface Attribute {
  values: string[];
  of: Column;
}

export interface PackedFlows {
  per_origin: Column;
  /** For each flow, how much larger the number of its destination is than that of the flow before it from the same origin. */
  destination_steps: Column;
  trips: Column;
  weight?: Column;
  persons?: Column;
  households?: Column;
  attributes?: Record<string, Attribute>;
}

/** Quality in full or rounded, under its own name; protection only where it is more than the rows tell. */
export type PackedAbout = Omit<About, "utility" | "privacy"> & Partial<Pick<About, "utility" | "privacy">> & { quality?: About["utility"] | null }

/** What people call a method and what it does, as the list of methods in Python has it. */
export interface MethodWords {
  title: string;
  hint: string;
}

export interface PackedRelease {
  name: string;
  about: PackedAbout;
  method: MethodWords;
  origin: PackedZones;
  destination: PackedZones;
  flows: PackedFlows;
}

export interface PackedBase {
  unit: number;
  box: [number, number, number, number];
  land: number[][];
  borders: number[][];
}

export interface PackedModel {
  format: number;
  shapes: number[][][][];
  releases: PackedRelease[];
  base?: PackedBase | null;
  beneath?: { shapes: number[][][][]; lines: number[][] } | null;
  names?: PackedNames | null;
  /** The name of releases that belong together and are shown one at a time. */
  switch?: string | null;
  live?: unknown;
  /** Whether the page tells more than the release: it is then for the steward alone. */
  full?: boolean;
}

export type Amounts = Partial<Record<Count, number>> & { rows?: number };

export interface Quality {
  c_dm: number;
  c_avg: number | null;
  g: number | null;
  e: number | null;
  /** Share of the trips between squares that is right, by the size of the squares. */
  cpc?: Record<string, number>;
}

export interface Protection {
  min: number | null;
  threshold: number;
  below: number;
  share: number;
}

/**
 * The content of release.json, or all that the steward has. What the public may not know is missing from the former:
 * every such field is optional, and `unlisted` then says the most that can be missing.
 */
export interface About {
  version?: string;
  input?: Amounts & { sha256?: string; rejected?: Record<string, Amounts> };
  rule: Partial<Record<Count, number>> & { k?: number; max_share?: number; min_destinations?: number };
  method: string;
  parameters: Record<string, unknown>;
  published: Amounts & { classes: number; origins: number; destinations: number; share?: number };
  suppressed?: Amounts & { pairs?: number; share?: number };
  /** How many trips can be missing at most, as far as the rows tell. */
  unlisted?: { at_most_trips: number | null };
  utility: Partial<Record<Measure, Partial<Quality>>>;
  privacy: Partial<Record<Count, Protection>>;
  limit?: { g: number | null } | null;
  /** What the steward has in full of `Quality.cpc`. */
  usefulness?: Partial<Record<Measure, { squares: { name: string; cpc: number }[] }>> | null;
  /** What rows tell besides their places, with the levels of its values. */
  axes?: PackedKind[];
}

export interface Zones {
  axis: Axis;
  h3: boolean;
  id: string[];
  level: (number | string | null)[];
  leaves: (number | null)[];
  mass: Partial<Record<Measure, Column>>;
  outlines: Outlines;
  centre: (Point | null)[];
  area: number[];
  /** The number of each id; made when it is first needed. */
  readonly number: Map<string, number>;
  nest: Nest;
}

export interface Flows {
  count: number;
  end: Record<Axis, Uint32Array>;
  mass: Partial<Record<Count, Column>>;
  /** For each axis: flows of zone z are `order[start[z] .. start[z + 1])`. */
  of: Record<Axis, { start: Uint32Array; order: Uint32Array }>;
  attributes: Record<string, Attribute>;
}

export interface Release {
  name: string;
  about: About;
  method: MethodWords;
  origin: Zones;
  destination: Zones;
  flows: Flows;
  kinds: Kind[];
}

export interface Base {
  land: Point[][];
  borders: Point[][];
  box: [number, number, number, number] | null;
}

export interface Model {
  releases: Release[];
  base: Base;
  beneath: { polygons: Polygon[]; lines: Point[][] };
  names: PackedNames | null;
  switch: string | null;
  live: unknown;
  full: boolean;
}

/** The smallest flow in each measure, as far as its threshold is public. */
function protection(rule: About["rule"], mass: Flows["mass"]): About["privacy"] {
  const found: About["privacy"] = {};
  for (const name of COUNTS) {
    const sizes = mass[name];
    const threshold = rule[name] ?? (name === "weight" ? undefined : rule.k);
    if (!sizes || threshold == null) continue;
    let min: number | null = null;
    let below = 0;
    for (let flow = 0; flow < sizes.length; flow++) {
      min = Math.min(min ?? Infinity, sizes[flow]!);
      if (sizes[flow]! < threshold * (1 - 1e-6)) below++;
    }
    found[name] = { min, threshold, below, share: below / (sizes.length || 1) };
  }
  return found;
}

function withSquares(utility: About["utility"], told: About["usefulness"]): About["utility"] {
  const found: About["utility"] = {};
  for (const measure of MEASURES) {
    const own = utility[measure];
    const squares = told?.[measure]?.squares;
    if (own) found[measure] = squares ? { ...own, cpc: Object.fromEntries(squares.map(({ name, cpc }) => [name, cpc])) } : own;
  }
  return found;
}

/** What takes longer to find out about a release than the release itself. */
export type Goodness = Pick<About, "limit" | "usefulness">;

export function withGoodness(about: About, found: Goodness | undefined): About {
  return { ...about, ...found, utility: withSquares(about.utility, found?.usefulness) };
}

function unpackAbout({ quality, ...about }: PackedAbout, flows: Flows): About {
  return { ...about, utility: withSquares(about.utility ?? quality ?? {}, about.usefulness), privacy: about.privacy ?? protection(about.rule, flows.mass) };
}

/** What the flows of each zone of an axis add up to. */
function sumsOf(ends: Uint32Array, zones: number, masses: Column | undefined): Column | undefined {
  if (!masses) return undefined;
  const sums = new Float64Array(zones);
  ends.forEach((zone, flow) => (sums[zone]! += masses[flow]!));
  return sums;
}

function unpackZones(axis: Axis, packed: PackedZones, shapes: Polygon[][], { end, mass }: Flows): Zones {
  const { id } = packed;
  const outlines = packed.boxes ? Outlines.ofBoxes(packed.boxes) : Outlines.of(packed.shape!.map((number) => shapes[number] ?? []));
  const measured = id.map((_, zone) => outlines.measure(zone));
  const centre = measured.map((one) => one.centre);
  const area = measured.map((one, zone) => packed.area?.[zone] ?? one.area);
  const level = packed.level ?? id.map(() => null);
  const [trips, weight] = packed.boxes ? MEASURES.map((measure) => sumsOf(end[axis], id.length, mass[measure])) : [packed.trips, packed.weight];
  let numbers: Map<string, number> | null = null;
  return {
    axis,
    h3: packed.h3,
    id,
    level,
    leaves: packed.leaves ?? id.map(() => null),
    mass: weight ? { trips: trips!, weight } : { trips: trips! },
    outlines,
    centre,
    area,
    get number() {
      return (numbers ??= new Map(id.map((one, zone) => [one, zone])));
    },
    nest: makeNest({ id, level, outlines, centre, area }, addedCells(packed.nest, shapes), packed.nest?.parent ?? null),
  };
}

function addedCells(nest: PackedNest | undefined, shapes: Polygon[][]): Parameters<typeof makeNest>[1] {
  const outlines = Outlines.of(nest?.shape.map((number) => shapes[number] ?? []) ?? []);
  const measured = nest?.id.map((_, cell) => outlines.measure(cell)) ?? [];
  const [centre, area] = [measured.map((one) => one.centre), measured.map((one) => one.area)];
  return { id: nest?.id ?? [], level: nest?.level ?? [], outlines, centre, area };
}

/** Groups flows by the zone at one end (a counting sort). */
function groupBy(ends: Uint32Array, zones: number): { start: Uint32Array; order: Uint32Array } {
  const start = new Uint32Array(zones + 1);
  for (const zone of ends) start[zone + 1]!++;
  for (let zone = 0; zone < zones; zone++) start[zone + 1]! += start[zone]!;
  const next = start.slice();
  const order = new Uint32Array(ends.length);
  for (let flow = 0; flow < ends.length; flow++) order[next[ends[flow]!]!++] = flow;
  return { start, order };
}

function unpackFlows(packed: PackedFlows, origins: number, destinations: number): Flows {
  const count = packed.destination_steps.length;
  const [origin, destination] = [new Uint32Array(count), new Uint32Array(count)];
  let flow = 0;
  for (let zone = 0; zone < packed.per_origin.length; zone++) {
    const many = packed.per_origin[zone]!;
    origin.fill(zone, flow, flow + many);
    for (let end = 0, last = flow + many; flow < last; flow++) destination[flow] = end += packed.destination_steps[flow]!;
  }
  const mass: Flows["mass"] = {};
  for (const name of COUNTS) if (packed[name]) mass[name] = packed[name];
  return {
    count,
    end: { origin, destination },
    mass,
    of: { origin: groupBy(origin, origins), destination: groupBy(destination, destinations) },
    attributes: packed.attributes ?? {},
  };
}

export function unpack(packed: PackedModel): Model {
  if (packed.format !== 1) throw new Error("This page and its data come from different versions of ODkAnon.");
  const shapes = packed.shapes.map(unpackShape);
  const { base, beneath } = packed;
  return {
    releases: packed.releases.map((release) => {
      const flows = unpackFlows(release.flows, release.origin.id.length, release.destination.id.length);
      return {
        name: release.name,
        about: unpackAbout(release.about, flows),
        method: release.method,
        origin: unpackZones("origin", release.origin, shapes, flows),
        destination: unpackZones("destination", release.destination, shapes, flows),
        flows,
        kinds: makeKinds(flows.attributes, release.about.axes),
      };
    }),
    base: {
      land: base?.land.map((ring) => unpackLine(ring, base.unit)) ?? [],
      borders: base?.borders.map((line) => unpackLine(line, base.unit)) ?? [],
      box: base ? (base.box.map((side) => side / base.unit) as [number, number, number, number]) : null,
    },
    beneath: {
      polygons: beneath?.shapes.flatMap(unpackShape) ?? [],
      lines: beneath?.lines.map((line) => unpackLine(line)) ?? [],
    },
    names: packed.names ?? null,
    switch: packed.switch ?? null,
    live: packed.live ?? null,
    full: packed.full ?? false,
  };
}
