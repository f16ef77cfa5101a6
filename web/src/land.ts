/** Where to put the end of an arrow: in the middle of a zone, but not in the sea where some of it is land. */

import { boundsOf, inside, type Point, type Polygon } from "./geometry";
import type { Base, Zones } from "./model";

/** Places to try along each side of a zone. */
const TRIES = 15;
/** Smaller zones hardly reach into the sea, and the coast is not drawn that finely. Square kilometres. */
const LARGE = 20;

const spots = (polygons: Polygon[]): Point[] => {
  const bounds = boundsOf(polygons);
  if (!bounds) return [];
  const [[west, south], [east, north]] = bounds;
  const steps = Array.from({ length: TRIES }, (_, i) => (i + 0.5) / TRIES);
  const all = steps.flatMap((x) => steps.map((y): Point => [west + x * (east - west), south + y * (north - south)]));
  return all.filter((place) => polygons.some((polygon) => inside(polygon, place)));
};

/** The middle of the part of a shape that is land; null where all or nothing of it is. */
export function middleOnLand(polygons: Polygon[], land: Point[][]): Point | null {
  const own = spots(polygons);
  const dry = own.filter((place) => land.some((ring) => inside([ring], place)));
  if (!dry.length || dry.length === own.length) return null;
  const mean = [0, 1].map((axis) => dry.reduce((sum, place) => sum + place[axis]!, 0) / dry.length) as Point;
  const distance = ([x, y]: Point): number => (x - mean[0]) ** 2 + (y - mean[1]) ** 2;
  // The mean of a bay's shores can lie in its water: the nearest of the places does not.
  return dry.reduce((best, place) => (distance(place) < distance(best) ? place : best));
}

const looked = new WeakMap<Base, Map<string, Point | null>>();

/** Where cells that the world knows belong on this land, if not in their middle: looked up once, as a slider shows them again and again. */
function known(base: Base): Map<string, Point | null> {
  let found = looked.get(base);
  if (!found) looked.set(base, (found = new Map()));
  return found;
}

/** Moves the centres of large zones, and of the cells above them, onto land. */
export function moveOntoLand({ centre, nest }: Zones, base: Base): void {
  const { land } = base;
  if (!land.length) return;
  const before = nest.known ? known(base) : new Map<string, Point | null>();
  nest.centre.forEach((place, node) => {
    if (!place || nest.area[node]! < LARGE) return;
    const id = nest.id[node]!;
    if (!before.has(id)) before.set(id, land.some((ring) => inside([ring], place)) ? null : middleOnLand(nest.outlines.at(node), land));
    const moved = before.get(id);
    if (!moved) return;
    nest.centre[node] = moved;
    if (node < nest.zones) centre[node] = moved;
  });
}
