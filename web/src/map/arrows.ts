/** Flows as arrows that swing out to the right, so that there and back part. */

import type { Layer } from "@deck.gl/core";
import CurvedFlowLinesLayer from "@flowmap.gl/layers/dist/CurvedFlowLinesLayer/index.js";
import FlowLinesLayer from "@flowmap.gl/layers/dist/FlowLinesLayer/index.js";
import type { Colour, Palette } from "../colour";
import type { Point } from "../geometry";

export interface Line {
  from: Point;
  to: Point;
  size: number;
  colour: Colour;
  /** The places at both ends. */
  ends: [number, number];
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

/** The further they go, the further they swing out: those in one direction part, and so do there and back. */
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

/** How far the middle of an arrow swings out, in parts of half its length. */
const SWING = 0.3;
/** Pixels of the widest arrow, and of the thinnest that can be seen. */
export const THICK = 12;
const THIN = 0.7;
/** Pixels that arrows keep from the middle of their places. */
const AWAY: [number, number] = [7, 5];
/** Weaker flows than this share of the strongest are straight: each bend costs a renderer without a graphics card. */
const MOST_CURVED = 260;

/** Pixels of a flow, by the square root. */
export const widthOf = (size: number, most: number): number => Math.max(THIN, THICK * Math.sqrt(Math.min(1, size / most)));

/** Arrows, the strongest on top. */
export function flowLayers(lines: Line[], most: number, palette: Palette, changed: unknown): Layer[] {
  const [strong, weak] = [lines.slice(0, MOST_CURVED), lines.slice(MOST_CURVED)];
  const make = (Kind: typeof CurvedArrows | typeof Arrows, id: string, data: Line[], outlined: boolean): Layer =>
    new Kind({
      id,
      data: data.toReversed(),
      pickable: true,
      drawOutline: outlined,
      outlineColor: palette.flowEdge,
      outlineThickness: 0.5,
      thicknessUnit: THICK,
      getSourcePosition: (line: Line) => line.from,
      getTargetPosition: (line: Line) => line.to,
      getThickness: (line: Line) => widthOf(line.size, most) / (2 * THICK),
      getColor: (line: Line) => line.colour,
      getEndpointOffsets: () => AWAY,
      getCurveOffset: () => SWING,
      getPickable: () => 1,
      updateTriggers: { getColor: { changed }, getThickness: { most } },
    }) as unknown as Layer;
  return [...(weak.length ? [make(Arrows, "weak", weak, false)] : []), make(CurvedArrows, "flows", strong, true)];
}
