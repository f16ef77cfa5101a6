/** Names of towns in view: "near Maipú" beside an id, and finding a place by its name. */

import type { Point } from "./geometry";

export interface PackedNames {
  /** Steps per degree. */
  unit: number;
  name: string[];
  /** Longitude and latitude of each. */
  place: number[];
  people: number[];
}

export interface Town {
  name: string;
  at: Point;
  people: number;
}

const KM_PER_DEGREE = 111.195;
const FARTHEST_KM = 40;

/** Without accents and capitals, so that "maipu" finds Maipú. */
export const plain = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

export class Names {
  readonly towns: Town[];
  private readonly known = new Map<string, string | null>();

  constructor(packed: PackedNames | null | undefined) {
    const towns = packed?.name.map((name, i): Town => ({
      name,
      at: [packed.place[2 * i]! / packed.unit, packed.place[2 * i + 1]! / packed.unit],
      people: packed.people[i]!,
    }));
    this.towns = (towns ?? []).sort((a, b) => b.people - a.people);
  }

  /** The name of the nearest town; null where none is near. */
  nearest(place: Point | null): string | null {
    if (!place || !this.towns.length) return null;
    const key = place.join();
    let found = this.known.get(key);
    if (found === undefined) this.known.set(key, (found = this.look(place)));
    return found;
  }

  private look([x, y]: Point): string | null {
    const narrow = Math.cos((y * Math.PI) / 180);
    let [best, distance] = [null as string | null, (FARTHEST_KM / KM_PER_DEGREE) ** 2];
    for (const { name, at } of this.towns) {
      const own = ((at[0] - x) * narrow) ** 2 + (at[1] - y) ** 2;
      if (own < distance) [best, distance] = [name, own];
    }
    return best;
  }

  /** The largest town whose name is, or else begins with, what was typed. */
  find(text: string): Town | null {
    const wanted = plain(text);
    if (!wanted) return null;
    return this.towns.find(({ name }) => plain(name) === wanted) ?? this.towns.find(({ name }) => plain(name).startsWith(wanted)) ?? null;
  }
}
