/** What is on the map, bottom up: land, districts, cells, rough areas, flows, circles. */

import type { Layer } from "@deck.gl/core";
import { ScatterplotLayer, SolidPolygonLayer } from "@deck.gl/layers";
import { mix, type Colour, type Palette } from "../colour";
import { closed, type Point, type Polygon } from "../geometry";
import type { Level } from "../levels";
import type { Base, Model } from "../model";
import { flowLayers, type Line } from "./arrows";
import { FLAT } from "./flat";
import { groundLayer } from "./ground";
import { segmentsOf, strokes, type Segment } from "./strokes";

export interface Circle {
  place: number;
  at: Point;
  /** Pixels. */
  radius: number;
  inner: number;
  colour: Colour;
}

/** Everything that is drawn for one state of the page. */
export interface City {
  level: Level;
  /** The shade of each place, 0 for nothing. */
  shade: Float64Array;
  /** In a map of change, which way each place changed. */
  sign: Int8Array | null;
  lines: Line[];
  /** What is drawn widest. */
  most: number;
  circles: Circle[];
  chosen: { from: number; to: number };
  rough: Polygon[];
}

const MOST_ALPHA = 150;
const DASHES = 14;

const segments = new WeakMap<Polygon[][], Segment[]>();

function outlines(polygons: Polygon[][]): Segment[] {
  let made = segments.get(polygons);
  if (!made) segments.set(polygons, (made = polygons.flat(2).map(closed).flatMap((ring) => segmentsOf(ring))));
  return made;
}

const ownLines = new WeakMap<object, Segment[]>();

/** The reader's own streets or districts. */
function ownLayer({ beneath }: Model, palette: Palette): Layer {
  let own = ownLines.get(beneath);
  if (!own) ownLines.set(beneath, (own = [...beneath.polygons.flat().map(closed), ...beneath.lines].flatMap((line) => segmentsOf(line))));
  return strokes("beneath", own, () => 1.1, palette.beneath);
}

/** The sides of areas, each in as many dashes. */
const dashed = (polygons: Polygon[]): Segment[] =>
  polygons.flat().flatMap((ring) => segmentsOf(closed(ring)).map((segment) => ({ ...segment, along: [0, DASHES] as [number, number] })));

interface Piece {
  place: number;
  polygon: Polygon;
}

const pieces = new WeakMap<Level, Piece[]>();

function piecesOf(level: Level): Piece[] {
  let made = pieces.get(level);
  if (!made) pieces.set(level, (made = level.polygons.flatMap((polygons, place) => polygons.map((polygon) => ({ place, polygon })))));
  return made;
}

export function cityLayers(model: Model, base: Base, city: City, districts: Level | null, palette: Palette, changed: unknown): Layer[] {
  const { level, shade, sign, chosen } = city;
  const fill = ({ place }: Piece): Colour => {
    const [r, g, b] = sign ? palette.only[sign[place]! > 0 ? 1 : 0] : palette.cell;
    return [r, g, b, shade[place]! > 0 ? Math.round(10 + MOST_ALPHA * Math.sqrt(Math.min(1, shade[place]!))) : 0];
  };
  const marked = [...new Set([chosen.from, chosen.to])].filter((place) => place >= 0).flatMap((place) => level.polygons[place]!);
  return [
    groundLayer(base, palette),
    ...(districts && districts !== level ? [strokes("districts", outlines(districts.polygons), () => 1, palette.border)] : []),
    new SolidPolygonLayer<Piece>({
      id: `cells-${level.name}`,
      data: piecesOf(level),
      parameters: FLAT,
      getPolygon: ({ polygon }) => polygon,
      getFillColor: fill,
      updateTriggers: { getFillColor: changed },
    }),
    strokes(`edges-${level.name}`, outlines(level.polygons), () => (level.name === "districts" ? 1 : 0.6), level.name === "districts" ? palette.border : palette.edge),
    ownLayer(model, palette),
    ...(city.rough.length ? [strokes("rough", dashed(city.rough), () => 1.2, palette.outline, true)] : []),
    ...(marked.length ? [strokes("chosen", marked.flat().map(closed).flatMap((ring) => segmentsOf(ring)), () => 3, palette.selected)] : []),
    ...flowLayers(city.lines, city.most, palette, changed),
    ...circleLayers(city.circles, palette, changed),
  ];
}

function circleLayers(circles: Circle[], palette: Palette, changed: unknown): Layer[] {
  const make = (id: string, data: Circle[], radius: (circle: Circle) => number, colour: (circle: Circle) => Colour, edge: boolean): Layer =>
    new ScatterplotLayer<Circle>({
      id,
      data,
      parameters: FLAT,
      getPosition: ({ at }) => at,
      getRadius: radius,
      radiusUnits: "pixels",
      stroked: edge,
      lineWidthUnits: "pixels",
      getLineWidth: 1,
      getLineColor: palette.flowEdge,
      getFillColor: colour,
      updateTriggers: { getFillColor: changed, getRadius: changed, getLineColor: changed },
    });
  return [
    make("circles", circles, ({ radius }) => radius, ({ colour }) => colour, true),
    make("stays", circles.filter(({ inner }) => inner > 1), ({ inner }) => inner, () => palette.stay, false),
  ];
}

/** From faint and pale to strong and dark, by the square root. */
export const flowColour = (size: number, most: number, palette: Palette): Colour => {
  return mix(palette.flows, Math.min(1, size / most) ** 0.75);
};
