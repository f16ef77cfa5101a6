/** The arrows of the map: which flows, and how they are drawn. */

import type { Layer } from "@deck.gl/core";
import { ScatterplotLayer } from "@deck.gl/layers";
import CurvedFlowLinesLayer from "@flowmap.gl/layers/dist/CurvedFlowLinesLayer/index.js";
import FlowLinesLayer from "@flowmap.gl/layers/dist/FlowLinesLayer/index.js";
import type { Palette } from "../colour";
import { flowChanges } from "../compare";
import { partners, ranked } from "../flows";
import type { Point } from "../geometry";
import type { Axis, Release } from "../model";
import type { State } from "../state";
import { FLAT } from "./flat";

export interface Line {
  from: Point;
  to: Point;
  mass: number;
  /** Ids of the zones at both ends. */
  ends: [string, string];
  /** In a map of change: more than before, or less. */
  sign?: number;
}

export interface Marks {
  lines: Line[];
  rings: Ring[];
}

const SELECTED_LIMIT = 1000;

/** No more rings than these for each arrow that was asked for. */
const MOST_RINGS = 3;

/** Adds a ring unless there are too many to see anything else. */
export function addRing({ rings }: Marks, ring: Ring, arrows: number): void {
  if (rings.length < MOST_RINGS * Math.max(1, arrows)) rings.push(ring);
}

/**
 * The flows to draw for one release: those of the selected zone, or the strongest of all. Where both ends are one there is
 * a ring, of those that are as strong as the weakest arrow.
 */
export function flowMarks(release: Release, state: State): Marks {
  const { flows, origin, destination } = release;
  const masses = flows.mass[state.measure] ?? flows.mass.trips!;
  let numbers: number[] = [];
  if (state.selected) {
    const zone = release[state.selected.axis].number.get(state.selected.id);
    if (zone !== undefined) {
      numbers = partners(flows, state.selected.axis, zone, state.measure).map((partner) => partner.flow);
      numbers.length = Math.min(numbers.length, SELECTED_LIMIT);
    }
  } else {
    numbers = state.flows > 0 ? ranked(flows, state.measure) : [];
  }
  const marks: Marks = { lines: [], rings: [] };
  for (const flow of numbers) {
    if (!state.selected && marks.lines.length >= state.flows) break;
    const from = origin.centre[flows.end.origin[flow]!];
    const to = destination.centre[flows.end.destination[flow]!];
    if (!from || !to) continue;
    const ends: Line["ends"] = [origin.id[flows.end.origin[flow]!]!, destination.id[flows.end.destination[flow]!]!];
    if (from[0] === to[0] && from[1] === to[1]) addRing(marks, { at: from, mass: masses[flow]!, id: ends[0] }, state.flows);
    else marks.lines.push({ from, to, mass: masses[flow]!, ends });
  }
  return marks;
}

/** The largest changes of flows between two releases, as arrows; blue for less, orange for more. */
export function changeMarks(first: Release, second: Release, state: State): Marks {
  const lines: Line[] = [];
  const { selected } = state;
  for (const { origin, destination, by } of flowChanges(first, second, state.measure)) {
    if (lines.length >= (selected ? SELECTED_LIMIT : state.flows)) break;
    if (!by || (selected && { origin, destination }[selected.axis] !== selected.id)) continue;
    const [from, to] = [centreOf([first, second], "origin", origin), centreOf([first, second], "destination", destination)];
    if (from && to && (from[0] !== to[0] || from[1] !== to[1])) lines.push({ from, to, mass: Math.abs(by), sign: Math.sign(by), ends: [origin, destination] });
  }
  return { lines, rings: [] };
}

function centreOf(releases: Release[], axis: Axis, id: string): Point | null {
  const owner = releases.find((release) => release[axis].number.has(id));
  return owner ? (owner[axis].centre[owner[axis].number.get(id)!] ?? null) : null;
}

/** Trips whose two zones are one, which no arrow can show. */
export function staying({ origin, destination, flows }: Release, state: State): { mass: number; total: number } {
  const masses = flows.mass[state.measure] ?? flows.mass.trips!;
  const found = { mass: 0, total: 0 };
  for (let flow = 0; flow < flows.count; flow++) {
    found.total += masses[flow]!;
    if (origin.id[flows.end.origin[flow]!] === destination.id[flows.end.destination[flow]!]) found.mass += masses[flow]!;
  }
  return found;
}

/** Pixels of the widest arrow, on one map and on several smaller ones. */
const THICK = { one: 8, several: 5.5 };

/** What is drawn widest, and how wide that is. */
export interface Widest {
  arrow: number;
  ring: number;
  thick: number;
}

/** One for all maps of a page, so that widths compare. */
export const widestOf = ({ lines, rings }: Marks, maps: number): Widest => ({ arrow: widest(lines), ring: widest(rings), thick: maps > 1 ? THICK.several : THICK.one });

/** Thinner ones would be lost between the pixels. */
const THIN = 1.5;

const pixels = (mass: number, most: number, thick: number): number => THIN + (thick - THIN) * (mass / most);

export interface Ring {
  at: Point;
  mass: number;
  id: string;
}

/** A ring for trips that stay inside, its width in proportion to the mass. */
export function ringLayer(id: string, rings: Ring[], { ring: most, thick }: Widest, palette: Palette): Layer {
  return new ScatterplotLayer<Ring>({
    id,
    data: rings,
    pickable: true,
    filled: false,
    stroked: true,
    parameters: FLAT,
    getPosition: (ring) => ring.at,
    getRadius: thick + 1,
    radiusUnits: "pixels",
    lineWidthUnits: "pixels",
    getLineWidth: (ring) => pixels(ring.mass, most, thick),
    getLineColor: palette.flow,
    updateTriggers: { getLineColor: palette.dark, getLineWidth: [most, thick] },
  });
}

/** deck.gl 9.4 no longer adds the picking colours by itself that these layers of flowmap.gl read. */
function addPickingColours(layer: Layer): void {
  const { calculateInstancePickingColors: update } = layer as unknown as { calculateInstancePickingColors: (attribute: unknown) => void };
  layer.getAttributeManager()!.addInstanced({ instancePickingColors: { type: "uint8", size: 4, noAlloc: true, update: update as never } });
}

class Arrows extends FlowLinesLayer<Line> {
  static override layerName = "Arrows";

  override initializeState(): void {
    addPickingColours(this as unknown as Layer);
    super.initializeState();
  }
}

/** Arrows that swing out to the right, the further the longer they are: those in one direction part, and so do there and back. */
class CurvedArrows extends CurvedFlowLinesLayer<Line> {
  static override layerName = "CurvedArrows";

  override initializeState(): void {
    addPickingColours(this as unknown as Layer);
    super.initializeState();
  }

  override getShaders(): Record<string, unknown> {
    const shaders = super.getShaders() as { vs: string };
    return { ...shaders, vs: shaders.vs.replace("project_pixel_size(abs(instanceCurveOffset))", "chordLengthCommon * instanceCurveOffset") };
  }
}

/** The mass that is drawn widest. */
export const widest = (lines: readonly { mass: number }[]): number => lines.reduce((max, line) => Math.max(max, line.mass), 0) || 1;

/** How far the middle of an arrow swings out, in parts of half its length. */
const SWING = 0.3;
/** More arrows than these are straight: each bend costs a renderer without a graphics card. */
const MOST_CURVED = 60;
/** Pixels that arrows keep from the middle of their zones, so that a ring there can be seen and many do not become one. */
const AWAY: [number, number] = [11, 6];

/** Arrows; their width is in proportion to the mass. */
export function flowLayer(id: string, lines: Line[], { arrow: most, thick }: Widest, palette: Palette): Layer {
  const few = lines.length <= MOST_CURVED;
  const Kind = few ? CurvedArrows : Arrows;
  return new Kind({
    id: few ? id : id.replace("/", "/many/"),
    data: lines.toReversed(),
    pickable: true,
    drawOutline: true,
    outlineColor: palette.flowEdge,
    outlineThickness: 0.5,
    thicknessUnit: thick,
    getSourcePosition: (line: Line) => line.from,
    getTargetPosition: (line: Line) => line.to,
    getThickness: (line: Line) => pixels(line.mass, most, thick) / (2 * thick),
    getColor: ({ sign }: Line) => (sign ? palette.only[sign > 0 ? 1 : 0] : palette.flow),
    getEndpointOffsets: () => (few ? AWAY : [0, 0]),
    getCurveOffset: () => SWING,
    getPickable: () => 1,
    updateTriggers: { getColor: { dark: palette.dark }, getThickness: { most, thick } },
  }) as unknown as Layer;
}
