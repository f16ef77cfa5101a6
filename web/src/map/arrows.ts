/** The arrows of the map: which flows, and how they are drawn. */

import type { Layer } from "@deck.gl/core";
import FlowLinesLayer from "@flowmap.gl/layers/dist/FlowLinesLayer/index.js";
import type { Palette } from "../colour";
import { partners, ranked } from "../flows";
import type { Point } from "../geometry";
import type { Release } from "../model";
import type { State } from "../state";

export interface Line {
  flow: number;
  from: Point;
  to: Point;
  mass: number;
}

const SELECTED_LIMIT = 1000;

/** The flows to draw for one release: those of the selected zone, or the strongest of all. */
export function flowLines(release: Release, state: State): Line[] {
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
  const lines: Line[] = [];
  for (const flow of numbers) {
    const from = origin.centre[flows.end.origin[flow]!];
    const to = destination.centre[flows.end.destination[flow]!];
    if (!from || !to || (from[0] === to[0] && from[1] === to[1])) continue;
    lines.push({ flow, from, to, mass: masses[flow]! });
    if (!state.selected && lines.length >= state.flows) break;
  }
  return lines;
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

/** Arrows; their width is in proportion to the mass. */
export function flowLayer(id: string, lines: Line[], palette: Palette): Layer {
  const most = lines.reduce((max, line) => Math.max(max, line.mass), 0) || 1;
  return new Arrows({
    id,
    data: lines.toReversed(),
    pickable: true,
    drawOutline: true,
    outlineColor: palette.flowEdge,
    outlineThickness: 0.5,
    thicknessUnit: 8,
    getSourcePosition: (line) => line.from,
    getTargetPosition: (line) => line.to,
    getThickness: (line) => 0.05 + 0.45 * (line.mass / most),
    getColor: () => palette.flow,
    getEndpointOffsets: () => [0, 0],
    getPickable: () => 1,
    updateTriggers: { getColor: { dark: palette.dark } },
  }) as unknown as Layer;
}
