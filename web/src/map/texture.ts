/** Sharpness as texture: hatching for what is only roughly placed, dashes around it. Each line is made once. */

import type { Point, Polygon } from "../geometry";
import type { Segment } from "./strokes";

const shrink = (polygon: Polygon | undefined): number => Math.cos(((polygon?.[0]?.[0]?.[1] ?? 0) * Math.PI) / 180) || 1;

/** Intervals of a slanted line that lie in a polygon; `narrow` turns degrees of longitude into those of latitude. */
function cross(polygon: Polygon, spacing: number, narrow: number, found: Map<number, [Point, Point][]>): void {
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
  for (const [line, points] of crossings) {
    points.sort((a, b) => a[0] - b[0]);
    const pieces = found.get(line) ?? [];
    for (let i = 0; i + 1 < points.length; i += 2) pieces.push([points[i]!, points[i + 1]!]);
    found.set(line, pieces);
  }
}

/** Slanted lines inside polygons, `spacing` degrees of latitude apart; where polygons touch, a line goes on as one. */
export function hatch(polygons: Polygon[], spacing: number): Segment[] {
  const narrow = shrink(polygons[0]);
  const found = new Map<number, [Point, Point][]>();
  for (const polygon of polygons) cross(polygon, spacing, narrow, found);
  const lines: Segment[] = [];
  for (const pieces of found.values()) {
    pieces.sort(([a], [b]) => a[0] - b[0]);
    let last: Segment | null = null;
    for (const [from, to] of pieces) {
      if (last && from[0] <= last.to[0] + spacing / 100) last.to = to[0] > last.to[0] ? to : last.to;
      else lines.push((last = { zone: 0, from, to }));
    }
  }
  return lines;
}

const DASHES = 36;
const PER_DEGREE = 1e6;

/** The sides of polygons, those of neighbours once; with dashes, equally many for small and large polygons. */
export function sides(polygons: Polygon[]): Segment[] {
  const first = polygons[0]?.[0]?.[0] ?? [0, 0];
  const seen = new Set<number>();
  const found: Segment[] = [];
  for (const ring of polygons.flat()) {
    const narrow = shrink([ring]);
    const corners = ring.map((from, i) => ({ from, to: ring[(i + 1) % ring.length]! }));
    const lengths = corners.map(({ from, to }) => Math.hypot((to[0] - from[0]) * narrow, to[1] - from[1]));
    const step = lengths.reduce((sum, one) => sum + one, 0) / (2 * DASHES);
    let walked = 0;
    corners.forEach(({ from, to }, i) => {
      if (!lengths[i]) return;
      // Two sides with one middle are one side.
      const [x, y] = [0, 1].map((axis) => Math.round((from[axis]! + to[axis]! - 2 * first[axis]!) * PER_DEGREE)) as [number, number];
      const key = x * 2 ** 27 + y;
      const along: [number, number] = [walked / step, (walked += lengths[i]!) / step];
      if (!seen.has(key)) found.push({ zone: 0, from, to, along });
      seen.add(key);
    });
  }
  return found;
}
