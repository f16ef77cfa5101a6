/** Where zones are. Thousands of boxes stay four numbers each until one of them is asked for. */

import { areaOfBox, boundsOf, boxOf, inside, isBox, joinBounds, measure, type Bounds, type Point, type Polygon } from "./geometry";

export interface PackedBoxes {
  /** The lines on which sides lie, in millionths of a degree. */
  lon: ArrayLike<number>;
  lat: ArrayLike<number>;
  /** For each box the numbers of its lines. */
  west: ArrayLike<number>;
  east: ArrayLike<number>;
  south: ArrayLike<number>;
  north: ArrayLike<number>;
}

const PER_DEGREE = 1_000_000;

export class Outlines {
  readonly length: number;
  private readonly known: (Bounds | null | undefined)[] = [];

  private constructor(
    private readonly shapes: Polygon[][],
    /** West, south, east and north of each box, where all are boxes. */
    private readonly sides: Float64Array | null,
  ) {
    this.length = sides ? sides.length / 4 : shapes.length;
  }

  static of(shapes: Polygon[][]): Outlines {
    return new Outlines(shapes, null);
  }

  static ofBoxes({ lon, lat, west, south, east, north }: PackedBoxes): Outlines {
    const sides = new Float64Array(4 * west.length);
    for (let box = 0; box < west.length; box++) {
      sides[4 * box] = lon[west[box]!]! / PER_DEGREE;
      sides[4 * box + 1] = lat[south[box]!]! / PER_DEGREE;
      sides[4 * box + 2] = lon[east[box]!]! / PER_DEGREE;
      sides[4 * box + 3] = lat[north[box]!]! / PER_DEGREE;
    }
    return new Outlines([], sides);
  }

  /** These, then others. */
  and(others: Outlines): Outlines {
    return others.length ? Outlines.of([...this.all(), ...others.all()]) : this;
  }

  /** The polygons of a zone; none where it has no shape. */
  at(zone: number): Polygon[] {
    return this.sides ? [[boxOf(this.bounds(zone)!)]] : this.shapes[zone]!;
  }

  all(): Polygon[][] {
    return Array.from({ length: this.length }, (_, zone) => this.at(zone));
  }

  has(zone: number): boolean {
    return this.sides !== null || this.shapes[zone]!.length > 0;
  }

  bounds(zone: number): Bounds | null {
    if (this.sides) return [[this.sides[4 * zone]!, this.sides[4 * zone + 1]!], [this.sides[4 * zone + 2]!, this.sides[4 * zone + 3]!]];
    return (this.known[zone] ??= boundsOf(this.shapes[zone]!));
  }

  /** South-west and north-east corner of everything; null for nothing. */
  whole(): Bounds | null {
    return joinBounds(Array.from({ length: this.length }, (_, zone) => this.bounds(zone)));
  }

  holds(zone: number, place: Point): boolean {
    const bounds = this.bounds(zone);
    if (!bounds || place[0] < bounds[0][0] || place[0] > bounds[1][0] || place[1] < bounds[0][1] || place[1] > bounds[1][1]) return false;
    return this.sides !== null || this.shapes[zone]!.some((polygon) => inside(polygon, place));
  }

  areBoxes(): boolean {
    return this.length > 0 && (this.sides !== null || this.shapes.every(isBox));
  }

  /** Area in square kilometres and the centre of the largest part. */
  measure(zone: number): { area: number; centre: Point | null } {
    if (!this.sides) return measure(this.shapes[zone]!);
    const [[west, south], [east, north]] = this.bounds(zone)!;
    return { area: areaOfBox([[west, south], [east, north]]), centre: [(west + east) / 2, (south + north) / 2] };
  }
}
