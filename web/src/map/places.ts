/** The map of places: an estimate of trips per square kilometre that never paints one place twice. */

import type { Layer } from "@deck.gl/core";
import { ScatterplotLayer, SolidPolygonLayer } from "@deck.gl/layers";
import { makeScale, type Colour, type Palette, type Scale } from "../colour";
import { short } from "../format";
import type { Point, Polygon } from "../geometry";
import type { Axis, Release } from "../model";
import type { Nest } from "../nest";
import type { Seen } from "../places";
import { addRing, type Line, type Marks } from "./arrows";
import { FLAT, OPAQUE } from "./flat";
import type { Label } from "./labels";
import { chosenLayer } from "./layers";
import type { Panel } from "./shading";
import { strokes } from "./strokes";
import { hatch, sides } from "./texture";

export interface Spot {
  node: number;
  polygon: Polygon;
}

const KM_PER_DEGREE = 111.195;
/** Hatched lines across a cell. */
const LINES = 9;
export const LABELS = 5;

/** One scale for all maps that are in sight together. */
export function densityScale(seen: Seen[], palette: Palette): Scale {
  const values = seen.flatMap(({ density }) => Array.from(density.filter((value) => value > 0)));
  return makeScale(values, palette);
}

/** Nodes with trips and a shape, coarse ones first: what is finer is painted over them, opaque. */
function painted(nest: Nest, { at }: Seen): number[] {
  const nodes = nest.id.map((_, node) => node).filter((node) => at[node]! > 0 && nest.outlines.has(node));
  return nodes.sort((a, b) => nest.rank[a]! - nest.rank[b]! || nest.area[b]! - nest.area[a]! || a - b);
}

export const opaque = ([r, g, b]: Colour): Colour => [r, g, b, 255];

function fillLayer(id: string, nest: Nest, nodes: number[], seen: Seen, scale: Scale, key: unknown): Layer {
  return new SolidPolygonLayer<Spot>({
    id,
    data: nodes.flatMap((node) => nest.outlines.at(node).map((polygon) => ({ node, polygon }))),
    pickable: true,
    parameters: OPAQUE,
    getPolygon: (spot) => spot.polygon,
    getFillColor: (spot) => opaque(scale.shade(seen.density[spot.node]!)),
    updateTriggers: { getFillColor: key },
  });
}

/** How far apart hatched lines are in a cell, in degrees of latitude. */
export const spacingOf = (nest: Nest, node: number): number => Math.sqrt(nest.area[node]!) / KM_PER_DEGREE / LINES;

/** One rank that is coarser than the chosen detail: hatched, with a dashed edge. */
function roughLayers(id: string, nest: Nest, nodes: number[], palette: Palette): Layer[] {
  const polygons = nodes.flatMap((node) => nest.outlines.at(node));
  const [r, g, b] = palette.outline;
  return [
    strokes(`${id}/hatch`, hatch(polygons, spacingOf(nest, nodes[0]!)), () => 1, [r, g, b, 110]),
    strokes(`${id}/dashes`, sides(polygons), () => 1.6, [r, g, b, 235], true),
  ];
}

/** All layers below the arrows; `near` is the cell that stands for the chosen place. */
export function placeLayers(panel: Panel, release: Release, near: Axis, seen: Seen, detail: number, scale: Scale, palette: Palette): Layer[] {
  const nest = release[panel.axis].nest;
  const nodes = painted(nest, seen);
  const rough = [...new Set(nodes.map((node) => nest.rank[node]!))].filter((rank) => rank < detail);
  const fine = nodes.filter((node) => nest.rank[node]! >= detail);
  const key = [palette.dark, scale.breaks.join()];
  const edges = sides(fine.flatMap((node) => nest.outlines.at(node)));
  const [r, g, b] = palette.outline;
  const chosen = seen.node >= 0 ? release[near].nest.outlines.at(seen.node) : [];
  return [
    ...rough.flatMap((rank) => {
      const own = nodes.filter((node) => nest.rank[node] === rank);
      const id = `${panel.id}/rank${rank}`;
      return [fillLayer(`${id}/spots`, nest, own, seen, scale, key), ...roughLayers(id, nest, own, palette)];
    }),
    fillLayer(`${panel.id}/spots`, nest, fine, seen, scale, key),
    strokes(`${panel.id}/edges`, edges, () => 0.7, [r, g, b, 110]),
    ...(chosen.length ? [chosenLayer(panel, chosen, palette)] : []),
  ];
}

/** "somewhere in here: 112" for the largest rows that are coarser than the chosen detail. */
export function roughLabels(nest: Nest, { at }: Seen, detail: number): Label[] {
  const nodes = nest.id.map((_, node) => node).filter((node) => at[node]! > 0 && nest.rank[node]! < detail && nest.centre[node]);
  nodes.sort((a, b) => at[b]! - at[a]!);
  return nodes.slice(0, LABELS).map((node) => ({ at: nest.centre[node]!, text: `somewhere in here: ${short(at[node])}`, kind: "rough" }));
}

/** The strongest arrows at the chosen detail, and the rings that are as strong. */
export function bundleMarks({ origin, destination }: Release, { bundles }: Seen, limit: number): Marks {
  const marks: Marks = { lines: [], rings: [] };
  for (const one of bundles) {
    if (marks.lines.length >= limit) break;
    const [from, to] = [origin.nest.centre[one.origin], destination.nest.centre[one.destination]];
    if (!from || !to) continue;
    const ends: Line["ends"] = [origin.nest.id[one.origin]!, destination.nest.id[one.destination]!];
    if (one.stays) addRing(marks, { at: origin.nest.area[one.origin]! < destination.nest.area[one.destination]! ? from : to, mass: one.mass, id: ends[0] }, limit);
    else marks.lines.push({ from, to, mass: one.mass, ends });
  }
  return marks;
}

/** A disc that fades from its middle to its edge. */
class SoftLayer<T> extends ScatterplotLayer<T> {
  static override layerName = "SoftLayer";

  override getShaders(): unknown {
    return { ...super.getShaders(), inject: { "fs:DECKGL_FILTER_COLOR": "color.a *= 1.0 - length(geometry.uv);" } };
  }
}

/** Soft discs where an arrow ends in a cell coarser than the detail: its head does not know where exactly. */
export function softHeads(id: string, { origin, destination }: Release, lines: Line[], detail: number, palette: Palette): Layer {
  const discs: { at: Point; radius: number }[] = [];
  const numbers = [origin, destination].map(({ nest }) => new Map(nest.id.map((one, node) => [one, node])));
  for (const line of lines) {
    [origin, destination].forEach(({ nest }, end) => {
      const node = numbers[end]!.get(line.ends[end]!)!;
      if (nest.rank[node]! < detail) discs.push({ at: end ? line.to : line.from, radius: Math.sqrt(nest.area[node]! / Math.PI) * 500 });
    });
  }
  const [r, g, b] = palette.flow;
  return new SoftLayer<{ at: Point; radius: number }>({
    id,
    data: discs,
    parameters: FLAT,
    getPosition: (disc) => disc.at,
    getRadius: (disc) => disc.radius,
    getFillColor: [r, g, b, 90],
    updateTriggers: { getFillColor: palette.dark },
  });
}
