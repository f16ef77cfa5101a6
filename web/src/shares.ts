/** How many of the trips that answer have which hour, mode and so on. */

import { other } from "./format";
import { INSIDE, isNotGiven, rolesOf, type Kind } from "./kinds";
import type { Release } from "./model";
import { massesOf } from "./parts";
import { chosenRows, roles, standsFor, type Asked } from "./places";

/** Masses of the rows that answer, apart from a choice of this attribute: for each value that rows can have. */
function massesBy(release: Release, { name, attribute }: Kind, asked: Asked): Float64Array {
  const { [name]: _, ...only } = asked.only;
  const fits = chosenRows(release, { ...asked, only, part: null });
  const near = release[other[asked.towards]].nest;
  const role = asked.place ? roles(near, standsFor(near, asked.place, asked.detail)) : null;
  const ends = release.flows.end[other[asked.towards]];
  const masses = massesOf(release.flows, asked.measure);
  const sums = new Float64Array(attribute.values.length);
  for (let row = 0; row < release.flows.count; row++) {
    if ((!role || role[ends[row]!] === INSIDE) && fits(row) === INSIDE) sums[attribute.of[row]!]! += masses[row]!;
  }
  return sums;
}

export interface Share {
  value: string;
  mass: number;
}

export interface Shares {
  /** The finest values; rows that tell less than that are in none of them. */
  finest: Share[];
  /** The coarsest values that tell something, then what is not given: together every row once. */
  parts: Share[];
}

/** How many trips have which value, as far as the rows tell. */
export function sharesOf(release: Release, kind: Kind, asked: Asked): Shares {
  const masses = massesBy(release, kind, asked);
  const share = (value: string): Share => {
    const role = rolesOf(kind, value);
    return { value, mass: masses.reduce((sum, mass, number) => (role[number] === INSIDE ? sum + mass : sum), 0) };
  };
  const missing = kind.attribute.values.filter(isNotGiven).map(share);
  const parts = kind.parts.map(share).filter(({ mass, value }) => mass > 0 || asked.only[kind.name] === value);
  return { finest: kind.finest.map(share), parts: [...parts, ...missing] };
}
