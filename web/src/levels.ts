/** The levels of detail of the page, as `src/odkanon/publish/report/detail_levels.py` packs them: shown here, computed there. */

import type { Column } from "./columns";
import { boundsOf, inside, measure, unpackShape, type Bounds, type Point, type Polygon } from "./geometry";
import type { Numbers, Speech } from "./words";

export interface PackedNumbers {
  trips: Column;
  low: Column;
  high: Column;
  interval_low: Column;
  interval_high: Column;
  /** Where the release has weights, the weight of what is counted and its interval. */
  weight?: Column;
  weight_low?: Column;
  weight_high?: Column;
}

export interface PackedTable {
  total: Numbers & { weight?: number; weight_low?: number; weight_high?: number };
  starts: PackedNumbers;
  ends: PackedNumbers;
  origin: Column;
  destination: Column;
  pairs: PackedNumbers;
  /** Pairs with a smaller estimate than this are not listed. */
  least: number;
}

export interface PackedLevel {
  level: string;
  id: string[];
  shape: number[];
  name: (string | null)[];
  km?: number[];
  direction?: number[];
  tables: Record<string, PackedTable>[];
}

const NAMES = ["trips", "low", "high", "interval_low", "interval_high"] as const;
const NOTHING: Numbers = { trips: 0, low: 0, high: 0, interval_low: 0, interval_high: 0 };

/** An upper bound below 0 says that there is none. */
const bounded = (numbers: Numbers): Numbers => (numbers.high < 0 ? { ...numbers, high: Infinity } : numbers);

const at = (columns: PackedNumbers, i: number): Numbers => bounded(Object.fromEntries(NAMES.map((name) => [name, columns[name][i]!])) as unknown as Numbers);

/** The weight of trips: an interval, and no bounds, since any trip could weigh anything. */
const weightOf = (asked: Numbers, trips: number, low: number, high: number): Numbers => ({ trips, low: 0, high: Infinity, interval_low: low, interval_high: high, asked });

export interface Flow extends Numbers {
  origin: number;
  destination: number;
}

/** Flows between the places of a level, for all trips or some of them. */
export class Table {
  private readonly order: Uint32Array;
  private readonly begin: Record<"origin" | "destination", Uint32Array>;
  private ranking: Uint32Array | null = null;

  constructor(private readonly packed: PackedTable, places: number, private readonly weighted = false) {
    this.order = Uint32Array.from(packed.destination, (_, i) => i).sort((a, b) => packed.destination[a]! - packed.destination[b]! || a - b);
    this.begin = { origin: starts(packed.origin, places), destination: starts(packed.destination, places) };
  }

  get total(): Numbers {
    const { weight, weight_low: low, weight_high: high, ...asked } = this.packed.total;
    return this.weighted ? weightOf(bounded(asked), weight!, low!, high!) : bounded(asked);
  }

  get hasWeights(): boolean {
    return this.packed.total.weight !== undefined && this.packed.total.weight > 0;
  }

  private at(columns: PackedNumbers, i: number): Numbers {
    const asked = at(columns, i);
    return this.weighted ? weightOf(asked, columns.weight![i]!, columns.weight_low![i]!, columns.weight_high![i]!) : asked;
  }

  /** How many of all trips are certain between the places of the level. */
  get certain(): number {
    return Array.from(this.packed.pairs.low).reduce((sum, low) => sum + low, 0);
  }

  get least(): number {
    const { trips, weight } = this.packed.total;
    return this.weighted ? (this.packed.least * weight!) / Math.max(trips, 1) : this.packed.least;
  }

  starts = (place: number): Numbers => this.at(this.packed.starts, place);
  ends = (place: number): Numbers => this.at(this.packed.ends, place);

  private flow = (i: number): Flow => ({ ...this.at(this.packed.pairs, i), origin: this.packed.origin[i]!, destination: this.packed.destination[i]! });

  from(origin: number): Flow[] {
    return Array.from({ length: this.begin.origin[origin + 1]! - this.begin.origin[origin]! }, (_, i) => this.flow(this.begin.origin[origin]! + i));
  }

  to(destination: number): Flow[] {
    const [first, last] = [this.begin.destination[destination]!, this.begin.destination[destination + 1]!];
    return Array.from(this.order.subarray(first, last), this.flow);
  }

  /** The estimate between two places, null where it is smaller than what is listed. */
  pair(origin: number, destination: number): Flow | null {
    let [low, high] = [this.begin.origin[origin]!, this.begin.origin[origin + 1]!];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.packed.destination[middle]! < destination) low = middle + 1;
      else high = middle;
    }
    return low < this.begin.origin[origin + 1]! && this.packed.destination[low] === destination ? this.flow(low) : null;
  }

  /** The largest flows, the largest first. */
  largest(many: number, keep: (flow: Flow) => boolean = () => true): Flow[] {
    const { pairs } = this.packed;
    const trips = this.weighted ? pairs.weight! : pairs.trips;
    this.ranking ??= Uint32Array.from(trips, (_, i) => i).sort((a, b) => trips[b]! - trips[a]! || a - b);
    const found: Flow[] = [];
    for (const i of this.ranking) {
      if (found.length >= many) break;
      const flow = this.flow(i);
      if (keep(flow)) found.push(flow);
    }
    return found;
  }

}

function starts(column: Column, places: number): Uint32Array {
  const begin = new Uint32Array(places + 1);
  for (let i = 0; i < column.length; i++) begin[column[i]! + 1]!++;
  for (let place = 0; place < places; place++) begin[place + 1]! += begin[place]!;
  return begin;
}

export const none = NOTHING;

export class Level {
  readonly name: string;
  readonly id: string[];
  readonly polygons: Polygon[][];
  readonly centre: (Point | null)[];
  readonly area: number[];
  readonly typical: number;
  readonly number: Map<string, number>;
  private readonly bounds: (Bounds | null)[];
  private readonly tables: Map<string, Table>[];
  private readonly weighed = new Map<string, Table>();

  constructor(private readonly packed: PackedLevel, shapes: Polygon[][]) {
    this.name = packed.level;
    this.id = packed.id;
    this.polygons = packed.shape.map((shape) => shapes[shape] ?? []);
    const measured = this.polygons.map(measure);
    this.centre = measured.map(({ centre }) => centre);
    this.area = measured.map(({ area }) => area);
    this.typical = [...this.area].sort((a, b) => a - b)[this.area.length >> 1] ?? 0;
    this.number = new Map(this.id.map((one, place) => [one, place]));
    this.bounds = this.polygons.map(boundsOf);
    this.tables = packed.tables.map((own) => new Map(Object.entries(own).map(([key, table]) => [key, new Table(table, this.id.length)])));
  }

  /** The flows of a release with some values, or null where they are not told at this level. */
  table(release: number, only: Readonly<Record<string, string>> = {}, weighted = false): Table | null {
    const key = keyOf(only);
    const table = this.tables[release]?.get(key) ?? null;
    if (!weighted || !table?.hasWeights) return table;
    const own = `${release} ${key}`;
    if (!this.weighed.has(own)) this.weighed.set(own, new Table(this.packed.tables[release]![key]!, this.id.length, true));
    return this.weighed.get(own)!;
  }

  /** What people call a place. */
  title(place: number, { words, decimal }: Speech): string {
    const name = this.packed.name[place];
    const direction = this.packed.direction?.[place] ?? -1;
    const km = this.packed.km?.[place] ?? 0;
    if (name === null || name === undefined) return words.unnamed(this.centre[place]?.toReversed().map((one) => one.toFixed(3)).join(", ") ?? "–");
    return words.by(name, direction < 0 ? null : words.compass[direction]!, km ? decimal(km) : null);
  }

  /** The name without distance and direction, for labels. */
  label(place: number): string | null {
    return (this.packed.direction?.[place] ?? -1) < 0 ? (this.packed.name[place] ?? null) : null;
  }

  /** The place that a point lies in, -1 for none. */
  at(point: Point): number {
    return this.bounds.findIndex((bounds, place) => bounds !== null && covers(bounds, point) && this.polygons[place]!.some((polygon) => inside(polygon, point)));
  }

  boundsOf = (place: number): Bounds | null => this.bounds[place]!;
}

const covers = ([low, high]: Bounds, [x, y]: Point): boolean => x >= low[0] && x <= high[0] && y >= low[1] && y <= high[1];

/** How a choice of values is named among the tables. */
export const keyOf = (only: Readonly<Record<string, string>>): string =>
  Object.keys(only).sort().map((name) => `${name}=${only[name]}`).join("&");

export const unpackLevels = (levels: PackedLevel[] | undefined, shapes: number[][][][]): Level[] => {
  const polygons = shapes.map(unpackShape);
  return (levels ?? []).map((level) => new Level(level, polygons));
};
