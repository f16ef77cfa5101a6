/**
 * How finely the trips of a place are published. Rows of the place count whole, rows of larger areas around it with the
 * place's share of the area, as on the map: so the places inside an area add up to the area.
 */

import { other } from "./format";
import { AROUND, INSIDE } from "./kinds";
import type { Release } from "./model";
import { chain, type Nest } from "./nest";
import { massesOf, partOf, PARTS, type Part } from "./parts";
import { chosenRows, standing, type Asked, type Seen, type Standing } from "./places";

export interface Placed extends Record<Part, number> {
  /** All parts together. */
  total: number;
  /** How much of it is published for the place itself. */
  own: number;
  /** All that is published for larger areas around it, of which the total has a share. */
  around: number;
}

const nothing = (): Placed => ({ total: 0, own: 0, around: 0, precise: 0, coarse: 0, rough: 0, place: 0 });

/** The share of a larger cell that a node covers; none where either has no shape. */
const shareOf = ({ area }: Nest, node: number, larger: number): number => (area[node]! > 0 && area[larger]! > 0 ? Math.min(1, area[node]! / area[larger]!) : 0);

function add(placed: Placed, part: Part, mass: number, share: number | null): void {
  if (share === null) placed.own += mass;
  else placed.around += mass;
  placed[part] += mass * (share ?? 1);
  placed.total += mass * (share ?? 1);
}

/** Of the trips from (or to) the chosen place, or of all trips; whichever part is looked at. */
export function placedHere(release: Release, asked: Asked, { node, role }: Standing = standing(release, asked)): Placed {
  const near = other[asked.towards];
  const [ends, masses] = [release.flows.end[near], massesOf(release.flows, asked.measure)];
  const fits = chosenRows(release, { ...asked, part: null });
  const found = nothing();
  for (let row = 0; row < release.flows.count; row++) {
    const inside = role ? role[ends[row]!]! : INSIDE;
    if ((inside !== INSIDE && inside !== AROUND) || fits(row) !== INSIDE) continue;
    add(found, partOf(release, row), masses[row]!, inside === AROUND ? shareOf(release[near].nest, node, ends[row]!) : null);
  }
  return found;
}

/** Of the trips on the map, those at a cell. */
export function placedAt(nest: Nest, { partsAt }: Pick<Seen, "partsAt">, node: number): Placed {
  const found = nothing();
  for (const cell of chain(nest, node)) {
    for (const part of PARTS) add(found, part, partsAt[part][cell]!, cell === node ? null : shareOf(nest, node, cell));
  }
  return found;
}
