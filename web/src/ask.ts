/** The question that the state of the page asks, and the numbers that answer it. */

import type { Flow, Level, Table } from "./levels";
import { none } from "./levels";
import type { Numbers } from "./words";

/** A place, or -1 for anywhere. */
export interface Question {
  level: Level;
  from: number;
  to: number;
}

export interface Entry extends Numbers {
  place: number;
  /** In a comparison, what it was before. */
  before?: Numbers;
}

export interface Answer {
  /** What the question as a whole counts; null where it is too small to be listed. */
  total: Numbers | null;
  /** Trips that stay in the place asked about. */
  stay: Numbers | null;
  /** The places at the other end, the largest first. */
  list: Entry[];
}

const byTrips = (a: Entry, b: Entry): number => b.trips - a.trips || a.place - b.place;

const entry = (place: number, { trips, low, high, interval_low, interval_high, asked }: Numbers): Entry => ({ place, trips, low, high, interval_low, interval_high, ...(asked ? { asked } : {}) });

export function answer({ level, from, to }: Question, table: Table): Answer {
  if (from >= 0 && to >= 0) return { total: table.pair(from, to), stay: null, list: table.from(from).map((flow) => entry(flow.destination, flow)).sort(byTrips) };
  if (from >= 0) return { total: table.starts(from), stay: table.pair(from, from), list: table.from(from).map((flow) => entry(flow.destination, flow)).sort(byTrips) };
  if (to >= 0) return { total: table.ends(to), stay: table.pair(to, to), list: table.to(to).map((flow) => entry(flow.origin, flow)).sort(byTrips) };
  const all = level.id.map((_, place) => entry(place, table.ends(place)));
  return { total: table.total, stay: null, list: all.filter(({ trips }) => trips >= 0.5).sort(byTrips) };
}

export type Certainty = "surely" | "likely" | "unsure";

/** How certain it is that two numbers differ: by their bounds, else by their intervals. */
export function certainty(before: Numbers, after: Numbers): Certainty {
  if (after.low > before.high || after.high < before.low) return "surely";
  if (after.interval_low > before.interval_high || after.interval_high < before.interval_low) return "likely";
  return "unsure";
}

export interface Change {
  origin: number;
  destination: number;
  before: Numbers;
  after: Numbers;
  by: number;
  certainty: Certainty;
}

const UNKNOWN: Numbers = none;

/** What is known of a pair that is not listed: no more than the largest estimate that is left out. */
const unlisted = (table: Table): Numbers => ({ ...UNKNOWN, high: Infinity, interval_high: Math.max(1, table.least) });

/** The flows that changed most, the largest change first. */
export function changes({ from, to }: Question, first: Table, second: Table, many: number): Change[] {
  const keep = ({ origin, destination }: Flow): boolean => (from < 0 || origin === from) && (to < 0 || destination === to);
  const found = new Map<string, Change>();
  for (const { origin, destination } of [...first.largest(4 * many, keep), ...second.largest(4 * many, keep)]) {
    const key = `${origin} ${destination}`;
    if (found.has(key)) continue;
    const [before, after] = [first.pair(origin, destination) ?? unlisted(first), second.pair(origin, destination) ?? unlisted(second)];
    found.set(key, { origin, destination, before, after, by: after.trips - before.trips, certainty: certainty(before, after) });
  }
  return [...found.values()].sort((a, b) => Math.abs(b.by) - Math.abs(a.by)).slice(0, many);
}

/** How each place changed, the largest change first: its ends, or its trips to or from the place asked about. */
export function placeChanges(question: Question, first: Table, second: Table): (Entry & { by: number })[] {
  const [before, after] = [first, second].map((table) => new Map(answer(question, table).list.map((one) => [one.place, one])));
  const places = new Set([...before!.keys(), ...after!.keys()]);
  const found = [...places].map((place) => {
    const then = before!.get(place) ?? { ...unlisted(first), place };
    const now = after!.get(place) ?? { ...unlisted(second), place };
    return { ...now, before: then, by: now.trips - then.trips };
  });
  return found.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || a.place - b.place);
}
