/** The model a page draws: how `src/odkanon/publish/report/page_model.py` packs it, and its unpacked form. */

import type { Column } from "./columns";
import { unpackLine, unpackShape, type Point, type Polygon } from "./geometry";
import { unpackLevels, type Level, type PackedLevel } from "./levels";

export type Measure = "trips" | "weight";
export type Count = Measure | "persons" | "households";

export const MEASURES: readonly Measure[] = ["trips", "weight"];
export const COUNTS: readonly Count[] = ["trips", "weight", "persons", "households"];

/** The sizes of the published flows, in no order that says between which places they are. */
export type PackedFlows = Partial<Record<Count, Column>> & { trips: Column };

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
  flows: PackedFlows;
  /** Areas that some flows are only known between, the largest first. */
  rough: number[];
}

export interface PackedBase {
  unit: number;
  box: [number, number, number, number];
  land: number[][];
  water: number[][];
  borders: number[][];
}

/** Towns to find on the map. */
export interface PackedTowns {
  unit: number;
  name: string[];
  place: number[];
  people: number[];
}

/** What the steward calls the page. */
export interface Titles {
  title?: string;
  source?: string;
  period?: string;
  licence?: string;
  language?: string;
}

export interface PackedModel {
  format: number;
  shapes: number[][][][];
  releases: PackedRelease[];
  levels?: PackedLevel[];
  titles?: Titles | null;
  /** The town that the page is about. */
  city?: string | null;
  base?: PackedBase | null;
  beneath?: { shapes: number[][][][]; lines: number[][] } | null;
  names?: PackedTowns | null;
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
  /** What rows tell besides their places, with the levels of its values, the finest first. */
  axes?: { name: string; levels: string[][] }[];
}

/** What a release with noise promises; null for counts. */
export function noiseOf({ epsilon, unit }: About["parameters"]): { epsilon: number; unit: "person" | "trip" } | null {
  return typeof epsilon === "number" ? { epsilon, unit: unit === "trip" ? "trip" : "person" } : null;
}

export interface Release {
  name: string;
  about: About;
  method: MethodWords;
  flows: { mass: Partial<Record<Count, Column>> };
  rough: Polygon[][];
}

export interface Town {
  name: string;
  at: Point;
}

export interface Base {
  land: Point[][];
  water: Point[][];
  borders: Point[][];
  box: [number, number, number, number] | null;
}

export interface Model {
  releases: Release[];
  levels: Level[];
  titles: Titles;
  city: string | null;
  base: Base;
  beneath: { polygons: Polygon[]; lines: Point[][] };
  /** The largest first. */
  towns: Town[];
  switch: string | null;
  full: boolean;
}

/** The smallest flow in each measure, as far as its threshold is public. */
function protection(rule: About["rule"], mass: Release["flows"]["mass"]): About["privacy"] {
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

function unpackAbout({ quality, ...about }: PackedAbout, flows: Release["flows"]): About {
  return { ...about, utility: withSquares(about.utility ?? quality ?? {}, about.usefulness), privacy: about.privacy ?? protection(about.rule, flows.mass) };
}

export function unpack(packed: PackedModel): Model {
  if (packed.format !== 2) throw new Error("This page and its data come from different versions of ODkAnon.");
  const { base, beneath, names } = packed;
  return {
    releases: packed.releases.map(({ name, about, method, flows: mass, rough }) => {
      const flows = { mass };
      return { name, about: unpackAbout(about, flows), method, flows, rough: rough.map((shape) => unpackShape(packed.shapes[shape] ?? [])) };
    }),
    levels: unpackLevels(packed.levels, packed.shapes),
    titles: packed.titles ?? {},
    city: packed.city ?? null,
    base: {
      land: base?.land.map((ring) => unpackLine(ring, base.unit)) ?? [],
      water: base?.water.map((ring) => unpackLine(ring, base.unit)) ?? [],
      borders: base?.borders.map((line) => unpackLine(line, base.unit)) ?? [],
      box: base ? (base.box.map((side) => side / base.unit) as [number, number, number, number]) : null,
    },
    beneath: {
      polygons: beneath?.shapes.flatMap(unpackShape) ?? [],
      lines: beneath?.lines.map((line) => unpackLine(line)) ?? [],
    },
    towns: names?.name.map((name, i) => ({ name, at: [names.place[2 * i]! / names.unit, names.place[2 * i + 1]! / names.unit] })) ?? [],
    switch: packed.switch ?? null,
    full: packed.full ?? false,
  };
}
