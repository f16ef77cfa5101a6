/** Thousands of boxes that overlap, added up on a fine grid: what lies on top of each other is summed, not painted. */

import { BitmapLayer } from "@deck.gl/layers";
import { COORDINATE_SYSTEM, type Layer } from "@deck.gl/core";
import type { Scale } from "../colour";
import { h } from "../dom";
import { areaOfBox, type Bounds } from "../geometry";
import type { Measure, Zones } from "../model";
import type { State } from "../state";
import { FLAT } from "./flat";

export interface Grid {
  columns: number;
  rows: number;
  bounds: Bounds;
  /** For each cell, from the north-west: trips of all boxes over it, and these trips per square kilometre. */
  mass: Float64Array;
  density: Float64Array;
}

const ACROSS = 360;
/** Fewer boxes, or boxes that hardly overlap, are drawn one by one. */
const MANY = 2000;
const DEEP = 3;

const boxed = new WeakMap<Zones, Bounds | null>();
const grids = new WeakMap<Zones, Map<Measure, Grid>>();

/** The bounds of zones that are many boxes on top of each other; null for all others. */
export function stacked(zones: Zones): Bounds | null {
  let found = boxed.get(zones);
  if (found === undefined) boxed.set(zones, (found = look(zones)));
  return found;
}

function look({ outlines, area }: Zones): Bounds | null {
  if (outlines.length < MANY || !outlines.areBoxes()) return null;
  const bounds = outlines.whole()!;
  return area.reduce((sum, one) => sum + one, 0) > DEEP * areaOfBox(bounds) ? bounds : null;
}

/** Spreads each box evenly over the cells whose middle it covers, at least one; the sum over all cells stays the same. */
export function gridOf(zones: Zones, count: Measure): Grid | null {
  const bounds = stacked(zones);
  if (!bounds) return null;
  let known = grids.get(zones);
  if (!known) grids.set(zones, (known = new Map()));
  let grid = known.get(count);
  if (!grid) known.set(count, (grid = makeGrid(zones, zones.mass[count] ?? zones.mass.trips!, bounds)));
  return grid;
}

function makeGrid({ outlines }: Zones, masses: ArrayLike<number>, bounds: Bounds): Grid {
  const [[west, south], [east, north]] = bounds;
  const columns = ACROSS;
  const narrow = Math.cos((((south + north) / 2) * Math.PI) / 180);
  const rows = Math.max(8, Math.min(2 * ACROSS, Math.round((ACROSS * (north - south)) / ((east - west) * narrow))));
  const cell = areaOfBox(bounds) / (columns * rows);
  // Differences first, sums at the end: each box costs four additions, whatever its size.
  const wide = columns + 1;
  const [mass, density] = [new Float64Array(wide * (rows + 1)), new Float64Array(wide * (rows + 1))];
  const cells = (from: number, to: number, many: number): [number, number] => {
    const [first, last] = [Math.ceil(from * many - 0.5), Math.ceil(to * many - 0.5)];
    const start = Math.min(many - 1, Math.max(0, last > first ? first : Math.floor(((from + to) / 2) * many)));
    return [start, Math.min(many, Math.max(start + 1, last))];
  };
  for (let zone = 0; zone < outlines.length; zone++) {
    const box = outlines.bounds(zone)!;
    const [left, right] = cells((box[0][0] - west) / (east - west), (box[1][0] - west) / (east - west), columns);
    const [top, bottom] = cells((north - box[1][1]) / (north - south), (north - box[0][1]) / (north - south), rows);
    const own = masses[zone]!;
    const spread = own / ((right - left) * (bottom - top) * cell);
    for (const [sums, value] of [[mass, own], [density, spread]] as const) {
      sums[top * wide + left]! += value;
      sums[top * wide + right]! -= value;
      sums[bottom * wide + left]! -= value;
      sums[bottom * wide + right]! += value;
    }
  }
  return { columns, rows, bounds, mass: summed(mass, columns, rows), density: summed(density, columns, rows) };
}

function summed(differences: Float64Array, columns: number, rows: number): Float64Array {
  const found = new Float64Array(columns * rows);
  const above = new Float64Array(columns);
  for (let row = 0; row < rows; row++) {
    let sum = 0;
    for (let column = 0; column < columns; column++) {
      sum += differences[row * (columns + 1) + column]!;
      above[column]! += sum;
      // Adding and taking off again leaves a last digit behind.
      found[row * columns + column] = above[column]! < 1e-9 ? 0 : above[column]!;
    }
  }
  return found;
}

/** What each cell is coloured by: trips of the boxes over it, per square kilometre, or how large these boxes are. */
export function gridValues({ mass, density }: Grid, shade: State["shade"]): Float64Array {
  if (shade === "total") return mass;
  if (shade === "size") return mass.map((own, cell) => (density[cell] ? own / density[cell]! : 0));
  return density;
}

export function gridLayer(id: string, grid: Grid, values: Float64Array, scale: Scale): Layer {
  const { columns, rows, bounds } = grid;
  const image = new ImageData(columns, rows);
  values.forEach((value, cell) => value > 0 && image.data.set(scale.shade(value), 4 * cell));
  const canvas = h("canvas", { width: columns, height: rows });
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  const [[west, south], [east, north]] = bounds;
  return new BitmapLayer({
    id,
    image: canvas,
    bounds: [west, south, east, north],
    _imageCoordinateSystem: COORDINATE_SYSTEM.LNGLAT,
    textureParameters: { minFilter: "nearest", magFilter: "nearest" },
    parameters: FLAT,
  });
}
