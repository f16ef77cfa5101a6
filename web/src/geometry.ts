/** Lines and polygons on the globe: unpacking, areas, centres, bounds. */

export type Point = [number, number];
export type Polygon = Point[][];
export type Bounds = [Point, Point];

const PER_DEGREE = 1_000_000;

export function unpackLine(packed: readonly number[], unit = PER_DEGREE): Point[] {
  const points: Point[] = [];
  let x = 0;
  let y = 0;
  for (let i = 0; i + 1 < packed.length; i += 2) {
    x += packed[i]!;
    y += packed[i + 1]!;
    points.push([x / unit, y / unit]);
  }
  return points;
}

/** A ring that says its first corner again at its end. */
export function closed(ring: Point[]): Point[] {
  const [first, last] = [ring[0], ring.at(-1)];
  return first && last && (first[0] !== last[0] || first[1] !== last[1]) ? [...ring, first] : ring;
}

/** Rings of polygons; two corners alone are those of a box. */
export const unpackShape = (shape: number[][][]): Polygon[] => shape.map((polygon) => polygon.map((ring) => (ring.length === 4 ? boxOf(unpackLine(ring) as Bounds) : unpackLine(ring))));

export const boxOf = ([low, high]: Bounds): Point[] => [low, [high[0], low[1]], high, [low[0], high[1]]];

/** Twice the signed area and the centre of a ring, in degrees. */
function ringMoments(ring: Point[]): { area: number; centre: Point } {
  const [x0, y0] = ring[0]!;
  let area = 0;
  let x = 0;
  let y = 0;
  for (let i = 0; i < ring.length; i++) {
    const [ax, ay] = ring[i]!;
    const [bx, by] = ring[(i + 1) % ring.length]!;
    const cross = (ax - x0) * (by - y0) - (bx - x0) * (ay - y0);
    area += cross;
    x += (ax + bx - 2 * x0) * cross;
    y += (ay + by - 2 * y0) * cross;
  }
  return { area, centre: area ? [x0 + x / (3 * area), y0 + y / (3 * area)] : [x0, y0] };
}

const KM_PER_DEGREE = 111.195;

/** Area in square kilometres and the centre of the largest part; null where there is no shape. */
export function measure(polygons: Polygon[]): { area: number; centre: Point | null } {
  let total = 0;
  let largest = -1;
  let centre: Point | null = null;
  for (const polygon of polygons) {
    for (const [i, ring] of polygon.entries()) {
      if (!ring.length) continue;
      const moments = ringMoments(ring);
      const latitude = (moments.centre[1] * Math.PI) / 180;
      const area = (Math.abs(moments.area) / 2) * KM_PER_DEGREE ** 2 * Math.cos(latitude);
      total += i === 0 ? area : -area;
      if (i === 0 && area > largest) {
        largest = area;
        centre = moments.centre;
      }
    }
  }
  return { area: total, centre };
}

const RADIUS_KM = 6371.007180918475;

/** Square kilometres of a box on the sphere. */
export function areaOfBox([[west, south], [east, north]]: Bounds): number {
  const radians = Math.PI / 180;
  return RADIUS_KM ** 2 * (east - west) * radians * (Math.sin(north * radians) - Math.sin(south * radians));
}

/** Whether a shape is one upright box. */
export function isBox(polygons: Polygon[]): boolean {
  const ring = polygons[0]?.[0];
  const sides = (axis: 0 | 1): number => new Set(ring!.map((point) => point[axis])).size;
  return polygons.length === 1 && !!ring && ring.length <= 5 && sides(0) === 2 && sides(1) === 2;
}

/** Whether a place lies in a polygon and in none of its holes. */
export function inside(polygon: Polygon, [x, y]: Point): boolean {
  let odd = false;
  for (const ring of polygon) {
    for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
      const [ax, ay] = ring[i]!;
      const [bx, by] = ring[j]!;
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
    }
  }
  return odd;
}

/** Bounds of several bounds together; null for none. */
export function joinBounds(several: Iterable<Bounds | null>): Bounds | null {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const bounds of several) {
    if (!bounds) continue;
    west = Math.min(west, bounds[0][0]);
    south = Math.min(south, bounds[0][1]);
    east = Math.max(east, bounds[1][0]);
    north = Math.max(north, bounds[1][1]);
  }
  return west <= east ? [[west, south], [east, north]] : null;
}

/** South-west and north-east corner of everything given; null for nothing. */
export function boundsOf(polygons: Iterable<Polygon>): Bounds | null {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const polygon of polygons) {
    for (const [x, y] of polygon[0] ?? []) {
      west = Math.min(west, x);
      east = Math.max(east, x);
      south = Math.min(south, y);
      north = Math.max(north, y);
    }
  }
  return west <= east ? [[west, south], [east, north]] : null;
}

/** A line without the corners that are closer than `step` degrees to the last one kept; both ends stay. */
export function thin(line: Point[], step: number): Point[] {
  let kept = line[0];
  return line.filter((corner, i) => {
    if (i > 0 && i < line.length - 1 && Math.abs(corner[0] - kept![0]) + Math.abs(corner[1] - kept![1]) < step) return false;
    kept = corner;
    return true;
  });
}

/** Whether a step of a line comes near a box; one that passes a corner of it may not meet it. */
export const meets = (from: Point, to: Point, [low, high]: Bounds): boolean =>
  ([0, 1] as const).every((axis) => Math.min(from[axis], to[axis]) <= high[axis] && Math.max(from[axis], to[axis]) >= low[axis]);

/** A ring cut to a box, side by side (Sutherland and Hodgman, 1974). */
export function clipRing(ring: Point[], box: Bounds): Point[] {
  for (const axis of [0, 1] as const) {
    for (const [bound, sign] of [[box[0][axis], 1], [box[1][axis], -1]] as const) {
      const inside = (corner: Point): boolean => sign * (corner[axis] - bound) >= 0;
      ring = ring.flatMap((to, i) => {
        const from = ring.at(i - 1)!;
        const own = inside(to) ? [to] : [];
        if (inside(from) === inside(to)) return own;
        const share = (bound - from[axis]) / (to[axis] - from[axis]);
        return [[from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])] as Point, ...own];
      });
    }
  }
  return ring;
}
