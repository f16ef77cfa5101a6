/** What a row tells besides its two places, such as the hour or the mode: which values lie in which, and their order. */

import type { Attribute } from "./model";

/** How release.json lists an attribute: for each finest value, its name at every level, finest level first. */
export interface PackedKind {
  name: string;
  levels: string[][];
}

export interface Kind {
  name: string;
  attribute: Attribute;
  levels: string[][];
  /** The finest values, in their order. */
  finest: string[];
  /** The coarsest values that still tell something: these and "not given" hold every row once. */
  parts: string[];
  /** True where the finest values follow each other, as hours and ages do. */
  ordered: boolean;
}

export const [OUTSIDE, INSIDE, AROUND] = [0, 1, 2];

/** How a release says that a row does not tell an attribute. */
export const isNotGiven = (value: string): boolean => ["", "any", "all", "*", "not given"].includes(value.toLowerCase());

export const valueTitle = (value: string): string => (isNotGiven(value) ? "not given" : value);

/** The attributes that the rows of a release have. */
export function makeKinds(attributes: Record<string, Attribute>, packed: PackedKind[] = []): Kind[] {
  return Object.entries(attributes).map(([name, attribute]) => {
    const given = attribute.values.filter((value) => !isNotGiven(value));
    const levels = packed.find((kind) => kind.name === name)?.levels ?? [given];
    const telling = levels.map((level) => [...new Set(level)].filter((value) => !isNotGiven(value))).filter((level) => level.length > 1);
    const all = telling[0] ?? given;
    const numbers = all.filter((value) => /^\d/.test(value));
    // "(not listed)" and the like stand for what the list of values lacks: of interest only where rows have it.
    const finest = all.filter((value) => numbers.includes(value) || attribute.values.includes(value));
    return { name, attribute, levels, finest, parts: telling.at(-1) ?? given, ordered: numbers.length > 2 && numbers.length >= finest.length - 2 };
  });
}

function leavesOf({ levels }: Kind, value: string): Set<number> {
  const found = new Set<number>();
  for (const level of levels) level.forEach((one, leaf) => one === value && found.add(leaf));
  return found;
}

const holds = (outer: Set<number>, inner: Set<number>): boolean => inner.size > 0 && [...inner].every((leaf) => outer.has(leaf));

/** For each value that a row can have: it lies in the chosen one, it holds it and may mean it, or neither. */
export function rolesOf(kind: Kind, chosen: string): Uint8Array {
  const wanted = leavesOf(kind, chosen);
  return Uint8Array.from(kind.attribute.values, (value) => {
    if (value === chosen) return INSIDE;
    if (isNotGiven(chosen)) return OUTSIDE;
    if (isNotGiven(value)) return AROUND;
    const own = leavesOf(kind, value);
    return holds(wanted, own) ? INSIDE : holds(own, wanted) ? AROUND : OUTSIDE;
  });
}
