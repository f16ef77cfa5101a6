/** The deck.gl layers of the maps. A layer whose id starts with "all/" is drawn in every panel. */

import { PathLayer, SolidPolygonLayer } from "@deck.gl/layers";
import type { Layer } from "@deck.gl/core";
import type { Colour, Palette } from "../colour";
import { areaOfBox, closed, type Point, type Polygon } from "../geometry";
import type { Model, Release, Zones } from "../model";
import { isNested } from "../nest";
import type { State } from "../state";
import { FLAT } from "./flat";
import { gridLayer } from "./grid";
import type { Panel, Shading } from "./shading";
import { segmentsOf, strokes, type Segment } from "./strokes";

export interface Piece {
  zone: number;
  polygon: Polygon;
}

interface Drawing {
  /** All zones in drawing order. */
  order: number[];
  width: Float64Array;
  /** How many zones lie on top of each other, on average; about 1 or less where they do not overlap. */
  depth: number;
}

const drawings = new WeakMap<Zones, Drawing>();
const FINEST = 0.8;
const PER_LEVEL = 0.55;

/** The order of drawing, coarse zones first so that fine ones can be seen and clicked; made once. */
function drawing(zones: Zones): Drawing {
  const known = drawings.get(zones);
  if (known) return known;
  const order = zones.id.map((_, zone) => zone).sort((a, b) => zones.area[b]! - zones.area[a]! || a - b);
  const made = { order, width: outlineWidths(zones), depth: depthOf(zones) };
  drawings.set(zones, made);
  return made;
}

interface Drawn {
  pieces: Piece[];
  segments: Segment[];
}

const drawn = new WeakMap<number[], Drawn>();

/** Polygons and their sides in a given order; made once for each list of zones. */
function drawnOf({ outlines }: Zones, order: number[]): Drawn {
  let made = drawn.get(order);
  if (!made) {
    const pieces = order.flatMap((zone) => outlines.at(zone).map((polygon) => ({ zone, polygon })));
    const segments = pieces.flatMap(({ zone, polygon }) => polygon.flatMap((ring) => segmentsOf(closed(ring), zone)));
    drawn.set(order, (made = { pieces, segments }));
  }
  return made;
}

/** The coarser the level, the stronger the outline. */
function outlineWidths(zones: Zones): Float64Array {
  const largest = new Map<unknown, number>();
  zones.level.forEach((level, zone) => largest.set(level, Math.max(largest.get(level) ?? 0, zones.area[zone]!)));
  const finestFirst = [...largest].sort((a, b) => a[1] - b[1]).map(([level]) => level);
  return Float64Array.from(zones.level, (level) => FINEST + PER_LEVEL * Math.min(finestFirst.indexOf(level), 4));
}

function depthOf(zones: Zones): number {
  const bounds = zones.outlines.whole();
  return bounds ? zones.area.reduce((sum, area) => sum + area, 0) / areaOfBox(bounds) : 0;
}

const ownLines = new WeakMap<object, Segment[]>();

/** The reader's own streets or districts: lines over the fills, or nobody would see them. */
export function ownLayer({ beneath }: Model, palette: Palette): Layer {
  let own = ownLines.get(beneath);
  if (!own) ownLines.set(beneath, (own = [...beneath.polygons.flat().map(closed), ...beneath.lines].flatMap((line) => segmentsOf(line))));
  return strokes("all/beneath", own, () => 1.2, palette.beneath);
}

const OVERLAP = 1.2;

/** The more zones lie on top of each other, the fainter each one, so that their number can be seen. */
const faint = (alpha: number, depth: number): number => Math.max(8, Math.round((alpha * 0.6) / Math.sqrt(Math.max(1, depth))));

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
  if (shading.grid && !state.selected) return [gridLayer(`${panel.id}/grid`, shading.grid.grid, shading.grid.values, shading.scale)];
  const { order, width, depth } = drawing(zones);
  const overlapping = depth > OVERLAP || isNested(zones.nest);
  const chosen = state.selected?.axis === panel.axis ? zones.number.get(state.selected.id) : undefined;
  const thin = overlapping && !shading.partner && chosen === undefined;
  const fill = (zone: number): Colour => {
    if (differing && !shading.partner) {
      return differing.has(zones.id[zone]!) ? palette.only[panel.release ? 1 : 0] : palette.common;
    }
    const value = shading.values[zone]!;
    if (Number.isNaN(value)) return palette.empty;
    const kind = shading.kinds?.[zone];
    if (kind === "new") return palette.fresh;
    if (kind === "gone") return palette.gone;
    const [r, g, b, a] = shading.scale.shade(value);
    return [r, g, b, thin ? faint(a, depth) : a];
  };
  const colourKey = [palette.dark, state.measure, state.shade, state.selected?.id, state.selected?.axis];
  // Where zones overlap, only those that matter for the chosen one are left; elsewhere the rest stays as context.
  const matters = (zone: number): boolean => (shading.partner ? !Number.isNaN(shading.values[zone]!) : zone === chosen);
  const few = overlapping && (shading.partner || chosen !== undefined);
  const { pieces, segments } = drawnOf(zones, few ? order.filter(matters) : order);
  const [red, green, blue, alpha] = palette.outline;
  const outline: Colour = [red, green, blue, overlapping && !few ? faint(alpha, depth) : alpha];
  return [
    new SolidPolygonLayer<Piece>({
      id: `${panel.id}/fill`,
      data: pieces,
      pickable: true,
      parameters: FLAT,
      getPolygon: (piece) => piece.polygon,
      getFillColor: (piece) => fill(piece.zone),
      updateTriggers: { getFillColor: colourKey },
    }),
    strokes(`${panel.id}/outline`, segments, (segment) => width[segment.zone]!, outline),
    ...(chosen === undefined ? [] : [chosenLayer(panel, zones.outlines.at(chosen), palette)]),
  ];
}

export function chosenLayer(panel: Panel, polygons: Polygon[], palette: Palette): Layer {
  return new PathLayer<Point[]>({
    id: `${panel.id}/chosen`,
    data: polygons.flatMap((polygon) => polygon.map(closed)),
    parameters: FLAT,
    getPath: (ring) => ring,
    getColor: palette.selected,
    getWidth: 4,
    widthUnits: "pixels",
    jointRounded: true,
    updateTriggers: { getColor: palette.dark },
  });
}
