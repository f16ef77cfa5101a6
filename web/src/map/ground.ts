/**
 * Land and borders, as far as they can be seen. Without a graphics card every corner costs, also one far outside the
 * view or one of many in a pixel: a country's coast around a city took longer to draw than the city.
 */

import { CompositeLayer, type Layer, type UpdateParameters } from "@deck.gl/core";
import { SolidPolygonLayer } from "@deck.gl/layers";
import type { Colour, Palette } from "../colour";
import { clipRing, closed, meets, thin, type Bounds, type Point } from "../geometry";
import type { Base } from "../model";
import { OPAQUE } from "./flat";
import { segmentsOf, strokes, type Segment } from "./strokes";

/** What is prepared around the view on each side, in parts of the view: moving the map a little needs nothing new. */
const AROUND = 0.5;
/** Pixels within which corners are one. */
const FINE = 0.7;
/** Steps of the zoom for which the same corners do. */
const NEAR = 1;

/** The part of the ground that is ready to be drawn. */
interface Ready {
  box: Bounds;
  zoom: number;
  land: Point[][];
  water: Point[][];
  borders: Segment[];
}

interface View {
  bounds: Bounds;
  zoom: number;
}

const covers = ([low, high]: Bounds, [south, north]: Bounds): boolean => ([0, 1] as const).every((axis) => low[axis] <= south[axis] && high[axis] >= north[axis]);

const stillDoes = (ready: Ready | undefined, { bounds, zoom }: View): ready is Ready => ready !== undefined && covers(ready.box, bounds) && Math.abs(ready.zoom - zoom) < NEAR;

/** Land and borders around a view, in no more corners than its pixels can show. */
export function groundAt({ land, water, borders }: Base, { bounds, zoom }: View): Ready {
  const [[west, south], [east, north]] = bounds;
  const [x, y] = [AROUND * (east - west), AROUND * (north - south)];
  const box: Bounds = [[west - x, south - y], [east + x, north + y]];
  const step = (FINE * 360) / (512 * 2 ** (zoom + NEAR));
  const rings = (own: Point[][]): Point[][] => own.map((ring) => thin(clipRing(ring, box), step)).filter((ring) => ring.length > 2);
  const lines = [...land.map(closed), ...water.map(closed), ...borders].flatMap((line) => segmentsOf(thin(line, step)));
  return {
    box,
    zoom,
    land: rings(land),
    water: rings(water),
    borders: lines.filter(({ from, to }) => meets(from, to, box)),
  };
}

const prepared = new WeakMap<Base, Ready>();

function readyFor(base: Base, view: View): Ready {
  const known = prepared.get(base);
  if (stillDoes(known, view)) return known;
  const made = groundAt(base, view);
  prepared.set(base, made);
  return made;
}

interface Props {
  base: Base;
  palette: Palette;
}

export class GroundLayer extends CompositeLayer<Props> {
  static override layerName = "GroundLayer";

  override shouldUpdateState({ changeFlags }: UpdateParameters<this>): boolean {
    return changeFlags.somethingChanged;
  }

  override renderLayers(): Layer[] {
    const { base, palette } = this.props;
    const { zoom } = this.context.viewport;
    const [west, south, east, north] = this.context.viewport.getBounds();
    const { land, water, borders } = readyFor(base, { bounds: [[west, south], [east, north]], zoom });
    const filled = (id: string, data: Point[][], colour: Colour): Layer =>
      new SolidPolygonLayer<Point[]>({ id, data, parameters: OPAQUE, getPolygon: (ring) => ring, getFillColor: colour, updateTriggers: { getFillColor: palette.dark } });
    return [
      filled("land", land, palette.land),
      ...(water.length ? [filled("water", water, palette.sea)] : []),
      strokes("borders", borders, () => 1, palette.border),
    ];
  }
}

export const groundLayer = (base: Base, palette: Palette): Layer => new GroundLayer({ id: "ground", base, palette });
