/** The arrows of the map: which flows, and how they are drawn. */

import type { Layer } from "@deck.gl/core";
import { ScatterplotLayer } from "@deck.gl/layers";
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

const SELECTED_LIMIT = 1000;

/** The flows to draw for one release: those of the selected zone, or the strongest of all; rings where both ends are one. */
export function flowMarks(release: Release, state: State): { lines: Line[]; rings: Ring[] } {
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
  const marks: { lines: Line[]; rings: Ring[] } = { lines: [], rings: [] };
  for (const flow of numbers) {
    if (!state.selected && marks.lines.length + marks.rings.length >= state.flows) break;
    const from = origin.centre[flows.end.origin[flow]!];
    const to = destination.centre[flows.end.destination[flow]!];
    if (!from || !to) continue;
    const ends: Line["ends"] = [origin.id[flows.end.origin[flow]!]!, destination.id[flows.end.destination[flow]!]!];
    if (from[0] === to[0] && from[1] === to[1]) marks.rings.push({ at: from, mass: masses[flow]!, id: ends[0] });
    else marks.lines.push({ from, to, mass: masses[flow]!, ends });
  }
  return marks;
}

/** The largest changes of flows between two releases, as arrows; blue for less, orange for more. */
export function changeMarks(first: Release, second: Release, state: State): { lines: Line[]; rings: Ring[] } {
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

const THICK = 8;
const thickness = (mass: number, most: number): number => 0.05 + 0.45 * (mass / most);

export interface Ring {
  at: Point;
  mass: number;
  id: string;
}

/** A ring for trips that stay inside, its width in proportion to the mass, `most` being the widest ring. */
export function ringLayer(id: string, rings: Ring[], most: number, palette: Palette): Layer {
  return new ScatterplotLayer<Ring>({
    id,
    data: rings,
    pickable: true,
    filled: false,
    stroked: true,
    parameters: FLAT,
    getPosition: (ring) => ring.at,
    getRadius: 9,
    radiusUnits: "pixels",
    lineWidthUnits: "pixels",
    getLineWidth: (ring) => Math.max(1.5, THICK * thickness(ring.mass, most) * 2),
    getLineColor: palette.flow,
    updateTriggers: { getLineColor: palette.dark, getLineWidth: most },
  });
}

/** deck.gl 9.4 no longer adds the picking colours by itself that this layer of flowmap.gl reads. */
class Arrows extends FlowLinesLayer<Line> {
  static override layerName = "Arrows";

  override initializeState(): void {
    this.getAttributeManager()!.addInstanced({
      instancePickingColors: {
        type: "uint8",
        size: 4,
        noAlloc: true,
        update: this.calculateInstancePickingColors,
      },
    });
    super.initializeState();
  }
}

/** The mass that is drawn widest: one for all maps of a page, so that widths compare. */
export const widest = (lines: readonly { mass: number }[]): number => lines.reduce((max, line) => Math.max(max, line.mass), 0) || 1;

/** Arrows; their width is in proportion to the mass, `most` being the widest. */
export function flowLayer(id: string, lines: Line[], most: number, palette: Palette): Layer {
  return new Arrows({
    id,
    data: lines.toReversed(),
    pickable: true,
    drawOutline: true,
    outlineColor: palette.flowEdge,
    outlineThickness: 0.5,
    thicknessUnit: THICK,
    getSourcePosition: (line) => line.from,
    getTargetPosition: (line) => line.to,
    getThickness: (line) => thickness(line.mass, most),
    getColor: ({ sign }) => (sign ? palette.only[sign > 0 ? 1 : 0] : palette.flow),
    getEndpointOffsets: () => [0, 0],
    getPickable: () => 1,
    updateTriggers: { getColor: { dark: palette.dark }, getThickness: { most } },
  }) as unknown as Layer;
}
