/** The deck.gl layers of the maps. A layer whose id starts with "all/" is drawn in every panel. */

import { PathLayer, SolidPolygonLayer } from "@deck.gl/layers";
import type { Layer } from "@deck.gl/core";
import type { Colour, Palette } from "../colour";
import { boundsOf, measure, type Point, type Polygon } from "../geometry";
import type { Model, Release, Zones } from "../model";
import type { State } from "../state";
import type { Panel, Shading } from "./shading";

export interface Piece {
  zone: number;
  polygon: Polygon;
}

interface Drawing {
  pieces: Piece[];
  rings: { zone: number; path: Point[] }[];
  width: Float64Array;
  overlapping: boolean;
}

const drawings = new WeakMap<Zones, Drawing>();
const FINEST = 0.8;
const PER_LEVEL = 0.8;

/** Polygons in drawing order, coarse ones first so that fine ones can be seen and clicked; made once. */
function drawing(zones: Zones): Drawing {
  const known = drawings.get(zones);
  if (known) return known;
  const order = zones.id.map((_, zone) => zone).sort((a, b) => zones.area[b]! - zones.area[a]! || a - b);
  const pieces = order.flatMap((zone) => zones.polygons[zone]!.map((polygon) => ({ zone, polygon })));
  const rings = pieces.flatMap(({ zone, polygon }) => polygon.map((ring) => ({ zone, path: closed(ring) })));
  const made = { pieces, rings, width: outlineWidths(zones), overlapping: overlaps(zones) };
  drawings.set(zones, made);
  return made;
}

function closed(ring: Point[]): Point[] {
  const [first, last] = [ring[0], ring.at(-1)];
  return first && last && (first[0] !== last[0] || first[1] !== last[1]) ? [...ring, first] : ring;
}

/** The coarser the level, the stronger the outline. */
function outlineWidths(zones: Zones): Float64Array {
  const largest = new Map<unknown, number>();
  zones.level.forEach((level, zone) => largest.set(level, Math.max(largest.get(level) ?? 0, zones.area[zone]!)));
  const finestFirst = [...largest].sort((a, b) => a[1] - b[1]).map(([level]) => level);
  return Float64Array.from(zones.level, (level) => FINEST + PER_LEVEL * Math.min(finestFirst.indexOf(level), 4));
}

function overlaps(zones: Zones): boolean {
  const bounds = boundsOf(zones.polygons.flat());
  if (!bounds) return false;
  const [[west, south], [east, north]] = bounds;
  const whole = measure([[[[west, south], [east, south], [east, north], [west, north]]]]).area;
  return zones.area.reduce((sum, area) => sum + area, 0) > 1.2 * whole;
}

export function baseLayers(model: Model, palette: Palette): Layer[] {
  const still = { pickable: false, parameters: { depthCompare: "always" as const } };
  return [
    new SolidPolygonLayer<Point[]>({
      ...still,
      id: "all/land",
      data: model.base.land,
      getPolygon: (ring) => ring,
      getFillColor: palette.land,
      updateTriggers: { getFillColor: palette.dark },
    }),
    new PathLayer<Point[]>({
      ...still,
      id: "all/borders",
      data: [...model.base.land, ...model.base.borders],
      getPath: (line) => line,
      getColor: palette.border,
      getWidth: 1,
      widthUnits: "pixels",
      updateTriggers: { getColor: palette.dark },
    }),
    new PathLayer<Point[]>({
      ...still,
      id: "all/beneath",
      data: [...model.beneath.polygons.flat(), ...model.beneath.lines],
      getPath: (line) => line,
      getColor: palette.beneath,
      getWidth: 1.2,
      widthUnits: "pixels",
      updateTriggers: { getColor: palette.dark },
    }),
  ];
}

/** Fill and outline of the zones of one panel; `differing` zones stand out, all others step back. */
export function zoneLayers(
  panel: Panel,
  release: Release,
  shading: Shading,
  differing: Set<string> | null,
  state: State,
  palette: Palette,
): Layer[] {
  const zones = release[panel.axis];
  const { pieces, rings, width, overlapping } = drawing(zones);
  const thin = overlapping && !shading.partner;
  const fill = (zone: number): Colour => {
    if (differing && !shading.partner) {
      return differing.has(zones.id[zone]!) ? palette.only[panel.release ? 1 : 0] : palette.common;
    }
    const value = shading.values[zone]!;
    if (Number.isNaN(value)) return palette.empty;
    const [r, g, b, a] = shading.scale.shade(value);
    return [r, g, b, thin ? Math.round(a * 0.4) : a];
  };
  const colourKey = [palette.dark, state.measure, state.shade, state.selected?.id, state.selected?.axis];
  const top = { depthCompare: "always" as const };
  const chosen = state.selected?.axis === panel.axis ? zones.number.get(state.selected.id) : undefined;
  const data = shading.partner ? pieces.filter((piece) => !Number.isNaN(shading.values[piece.zone]!)) : pieces;
  return [
    new SolidPolygonLayer<Piece>({
      id: `${panel.id}/fill`,
      data: overlapping ? data : pieces,
      pickable: true,
      parameters: top,
      getPolygon: (piece) => piece.polygon,
      getFillColor: (piece) => fill(piece.zone),
      updateTriggers: { getFillColor: colourKey },
    }),
    new PathLayer<{ zone: number; path: Point[] }>({
      id: `${panel.id}/outline`,
      data: rings,
      parameters: top,
      getPath: (ring) => ring.path,
      getColor: palette.outline,
      getWidth: (ring) => width[ring.zone]!,
      widthUnits: "pixels",
      jointRounded: true,
      updateTriggers: { getColor: palette.dark },
    }),
    new PathLayer<{ zone: number; path: Point[] }>({
      id: `${panel.id}/chosen`,
      data: chosen === undefined ? [] : rings.filter((ring) => ring.zone === chosen),
      parameters: top,
      getPath: (ring) => ring.path,
      getColor: palette.selected,
      getWidth: 4,
      widthUnits: "pixels",
      jointRounded: true,
      updateTriggers: { getColor: palette.dark },
    }),
  ];
}
