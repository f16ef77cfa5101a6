/** The map of what changed: cells of one detail on a diverging scale, without colour and hatched where it is not sure. */

import type { Layer } from "@deck.gl/core";
import { SolidPolygonLayer } from "@deck.gl/layers";
import { changeIn, hasChanged, isSure, type BundleChange, type Cell, type Change, type Unit } from "../changes";
import { makeDiverging, type Colour, type Palette, type Scale } from "../colour";
import { short } from "../format";
import type { Polygon } from "../geometry";
import type { Nest } from "../nest";
import type { State } from "../state";
import type { Line } from "./arrows";
import { OPAQUE } from "./flat";
import { chosenLayer } from "./layers";
import type { Label } from "./labels";
import { LABELS, opaque, spacingOf } from "./places";
import type { Panel } from "./shading";
import { strokes } from "./strokes";
import { hatch, sides } from "./texture";

export interface ChangedSpot {
  cell: Cell;
  polygon: Polygon;
}

/** Whether a cell is coloured by how much it changed; what is new or gone stands out, unless only shares matter. */
const scaled = ({ kind }: Cell, unit: Unit): boolean => kind === "both" || unit === "share";

/** Made for the cells that are coloured: those that surely changed. */
export const changeScale = (change: Change, palette: Palette, unit: Unit): Scale =>
  makeDiverging(change.cells.filter((cell) => scaled(cell, unit) && isSure(cell, unit, change)).map((cell) => changeIn(cell, unit, change)), palette);

/** Cells with rows of either release that are coarser than the detail. */
function roughNodes({ nest, at }: Change, detail: number): number[] {
  return nest.id.map((_, node) => node).filter((node) => nest.rank[node]! < detail && at[0][node]! + at[1][node]! > 0);
}

export function changeLayers(panel: Panel, change: Change, { detail, unit }: State, scale: Scale, palette: Palette): Layer[] {
  const { nest, cells, near } = change;
  const spots = cells.flatMap((cell) => nest.outlines.at(cell.node).map((polygon): ChangedSpot => ({ cell, polygon })));
  const colour = (cell: Cell): Colour => (scaled(cell, unit) ? scale.shade(hasChanged(cell, unit, change) ? changeIn(cell, unit, change) : 0) : cell.kind === "new" ? palette.fresh : palette.gone);
  const isUnsure = (cell: Cell): boolean => !isSure(cell, unit, change) && hasChanged(cell, unit, change);
  const unsure = spots.filter(({ cell }) => isUnsure(cell)).map(({ polygon }) => polygon);
  const rough = roughNodes(change, detail).flatMap((node) => nest.outlines.at(node));
  const [r, g, b] = palette.outline;
  const chosen = near && near.node >= 0 ? near.nest.outlines.at(near.node) : [];
  return [
    new SolidPolygonLayer<ChangedSpot>({
      id: `${panel.id}/changes`,
      data: spots,
      pickable: true,
      parameters: OPAQUE,
      getPolygon: (spot) => spot.polygon,
      getFillColor: ({ cell }) => opaque(isUnsure(cell) ? scale.shade(0) : colour(cell)),
      updateTriggers: { getFillColor: [palette.dark, unit, scale.breaks.join()] },
    }),
    strokes(`${panel.id}/hatch`, cells[0] ? hatch(unsure, spacingOf(nest, cells[0].node)) : [], () => 1, [r, g, b, 130]),
    strokes(`${panel.id}/edges`, sides(spots.map(({ polygon }) => polygon)), () => 0.7, [r, g, b, 110]),
    strokes(`${panel.id}/dashes`, sides(rough), () => (unit === "share" ? 1 : 1.6), [r, g, b, unit === "share" ? 120 : 235], true),
    ...(chosen.length ? [chosenLayer(panel, chosen, palette)] : []),
  ];
}

/** "somewhere in here: 112, then 98" for the largest rows that are coarser than the chosen detail. */
export function changeLabels(change: Change, detail: number): Label[] {
  const { nest, at: [before, after] } = change;
  const nodes = roughNodes(change, detail).filter((node) => nest.centre[node]);
  nodes.sort((a, b) => Math.max(before[b]!, after[b]!) - Math.max(before[a]!, after[a]!));
  return nodes.slice(0, LABELS).map((node) => ({ at: nest.centre[node]!, text: `somewhere in here: ${short(before[node])}, then ${short(after[node])}`, kind: "rough" }));
}

/** The largest changes of flows as arrows. */
export function changedLines(changes: BundleChange[], [starts, ends]: [Nest, Nest], limit: number): Line[] {
  const at = (nest: Nest, id: string) => nest.centre[nest.id.indexOf(id)];
  return changes.slice(0, limit).flatMap(({ origin, destination, by }): Line[] => {
    const [from, to] = [at(starts, origin), at(ends, destination)];
    return from && to ? [{ from, to, mass: Math.abs(by), sign: Math.sign(by), ends: [origin, destination] }] : [];
  });
}
