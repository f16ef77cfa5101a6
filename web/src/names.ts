/** Names of towns in view: "near Maipú" beside an id, and finding a place by its name. */

import { united } from "./format";
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
/** About how far a town reaches, by the root of its people; numbers of larger ones than this count their suburbs. */
const REACH_KM = 0.004;
const MOST_REACH_KM = 6;
const FARTHEST_KM = 40;

/** Without accents and capitals, so that "maipu" finds Maipú. */
export const plain = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

const COMPASS = ["E", "NE", "N", "NW", "W", "SW", "S", "SE"];

/** An H3 cell: an id that tells nobody where it is. */
export const isCell = (id: string): boolean => /^8[0-9a-f]{14}$/.test(id);

interface Near {
  town: Town;
  /** Kilometres from the town to the east and to the north. */
  by: Point;
}

export class Names {
  readonly towns: Town[];
  private readonly known = new Map<string, Near | null>();

  constructor(packed: PackedNames | null | undefined) {
    const towns = packed?.name.map((name, i): Town => ({
      name,
      at: [packed.place[2 * i]! / packed.unit, packed.place[2 * i + 1]! / packed.unit],
      people: packed.people[i]!,
    }));
    this.towns = (towns ?? []).sort((a, b) => b.people - a.people);
  }

  /** The name of the nearest town, from its edge; null where none is near. */
  nearest(place: Point | null): string | null {
    return this.look(place)?.town.name ?? null;
  }

  /** The largest town in a cell of this size in km² where that is larger than a town, else the nearest, and how far off in which direction: "Paris, 3 km NE". */
  where(place: Point | null, size = 0): string | null {
    const radius = Math.sqrt(size / Math.PI);
    const near = this.look(place, radius > MOST_REACH_KM ? radius : 0);
    if (!near) return null;
    const [east, north] = near.by;
    const distance = Math.round(Math.hypot(east, north));
    const direction = COMPASS[Math.round((Math.atan2(north, east) / Math.PI) * 4 + 8) % 8]!;
    return distance ? `${near.town.name}, ${united(distance, "km")}\u00a0${direction}` : near.town.name;
  }

  private look(place: Point | null, radius = 0): Near | null {
    if (!place) return null;
    const key = [...place, radius].join();
    let found = this.known.get(key);
    if (found === undefined) this.known.set(key, (found = this.search(place, radius)));
    return found;
  }

  private search([x, y]: Point, radius: number): Near | null {
    const narrow = Math.cos((y * Math.PI) / 180);
    let [best, distance] = [null as Near | null, FARTHEST_KM];
    for (const town of this.towns) {
      const by: Point = [(x - town.at[0]) * narrow * KM_PER_DEGREE, (y - town.at[1]) * KM_PER_DEGREE];
      // The largest come first.
      if (Math.hypot(...by) < radius) return { town, by };
      const own = Math.hypot(...by) - Math.min(REACH_KM * Math.sqrt(town.people), MOST_REACH_KM);
      if (own < distance) [best, distance] = [{ town, by }, own];
    }
    return best;
  }

  /** The largest town of that very name: "Mission" is not Mission Viejo. */
  find(text: string): Town | null {
    const wanted = plain(text);
    if (!wanted) return null;
    return this.towns.find(({ name }) => plain(name) === wanted) ?? null;
  }
}
