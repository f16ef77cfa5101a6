/** Sharpness as texture: hatching for what is only roughly placed, dashes around it. */

import type { Point, Polygon } from "../geometry";

type Piece = [Point, Point];

const shrink = (polygon: Polygon): number => Math.cos(((polygon[0]?.[0]?.[1] ?? 0) * Math.PI) / 180) || 1;

/** Slanted lines inside a polygon, `spacing` degrees of latitude apart; those of neighbours meet. */
export function hatch(polygon: Polygon, spacing: number): Piece[] {
  const narrow = shrink(polygon);
  const crossings = new Map<number, Point[]>();
  for (const ring of polygon) {
    for (let i = 0; i < ring.length; i++) {
      const [a, b] = [ring[i]!, ring[(i + 1) % ring.length]!];
      const [from, to] = [a, b].map(([x, y]) => (y - x * narrow) / spacing) as [number, number];
      const [low, high] = from < to ? [from, to] : [to, from];
      for (let line = Math.ceil(low); line < high; line++) {
        const share = (line - from) / (to - from);
        const point: Point = [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
        const known = crossings.get(line);
        if (known) known.push(point);
        else crossings.set(line, [point]);
      }
    }
  }
  const pieces: Piece[] = [];
  for (const points of crossings.values()) {
    points.sort((a, b) => a[0] - b[0]);
    for (let i = 0; i + 1 < points.length; i += 2) pieces.push([points[i]!, points[i + 1]!]);
  }
  return pieces;
}

const DASHES = 36;

/** A ring as dashes, equally many for small and large ones. */
export function dashes(ring: Point[]): Piece[] {
  const narrow = shrink([ring]);
  const length = (a: Point, b: Point): number => Math.hypot((b[0] - a[0]) * narrow, b[1] - a[1]);
  let whole = 0;
  for (let i = 0; i < ring.length; i++) whole += length(ring[i]!, ring[(i + 1) % ring.length]!);
  const step = whole / (2 * DASHES);
  const pieces: Piece[] = [];
  let walked = 0;
  for (let i = 0; i < ring.length && step > 0; i++) {
    const [a, b] = [ring[i]!, ring[(i + 1) % ring.length]!];
    const own = length(a, b);
    for (let number = Math.floor(walked / step); number * step < walked + own; number++) {
      if (number % 2) continue;
      const [from, to] = [Math.max(0, number * step - walked) / own, Math.min(own, (number + 1) * step - walked) / own];
      const at = (share: number): Point => [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
      if (to > from) pieces.push([at(from), at(to)]);
    }
    walked += own;
  }
  return pieces;
}
