/** Where most trips are: a far-off zone or two should not shrink the city to a dot. */

import { joinBounds, type Bounds, type Point } from "./geometry";
import type { Zones } from "./model";

const TAIL = 0.04;
const MARGIN = 0.2;
/** A heart that is nearly everything is not worth hiding the rest for. */
const WORTH_IT = 0.6;

function quantiles(values: [number, number][]): [number, number] {
  values.sort((a, b) => a[0] - b[0]);
  const total = values.reduce((sum, [, mass]) => sum + mass, 0);
  let seen = 0;
  let low: number | undefined;
  for (const [value, mass] of values) {
    seen += mass;
    if (low === undefined && seen > total * TAIL) low = value;
    if (seen >= total * (1 - TAIL)) return [low ?? value, value];
  }
  return [values[0]![0], values.at(-1)![0]];
}

/** The bounds of the middle 92 % of trips in either direction, or null if they are most of the map anyway. */
export function heart(axes: Zones[]): Bounds | null {
  const places = axes.flatMap((zones) =>
    zones.centre.flatMap((centre, zone): [Point, number][] => (centre ? [[centre, zones.mass.trips![zone]!]] : [])),
  );
  if (places.length < 8) return null;
  const spans = ([0, 1] as const).map((side) => {
    const values = places.map(([centre]) => centre[side]);
    const [low, high] = quantiles(places.map(([centre, mass]) => [centre[side], mass]));
    const margin = (high - low) * MARGIN;
    const whole = values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
    return { low: low - margin, high: high + margin, share: (high - low) / (whole || 1) };
  });
  const [x, y] = spans as [(typeof spans)[0], (typeof spans)[0]];
  if (x.high <= x.low || y.high <= y.low || Math.max(x.share, y.share) > WORTH_IT) return withoutLargest(axes);
  return [[x.low, y.low], [x.high, y.high]];
}

/** The bounds of all zones but the largest, which hold few trips; null if that is most of the map anyway. */
function withoutLargest(axes: Zones[]): Bounds | null {
  const zones = axes.flatMap(({ outlines, area, mass }) => area.map((size, zone) => ({ bounds: outlines.bounds(zone), area: size, mass: mass.trips![zone]! })));
  zones.sort((a, b) => a.area - b.area);
  const most = zones.reduce((sum, { mass }) => sum + mass, 0) * (1 - 2 * TAIL);
  let seen = 0;
  const kept = zones.filter(({ mass }) => (seen += mass) - mass < most);
  const [part, whole] = [kept, zones].map((all) => joinBounds(all.map(({ bounds }) => bounds)));
  if (!part || !whole) return null;
  const shares = ([0, 1] as const).map((side) => (part[1][side] - part[0][side]) / (whole[1][side] - whole[0][side] || 1));
  return Math.max(...shares) > WORTH_IT ? null : part;
}
