/** Names and notes on the map, as text of the page: sharp at every size, and read by nobody twice. */

import { WebMercatorViewport } from "@deck.gl/core";
import { h } from "../dom";
import type { Point } from "../geometry";
import type { Label } from "./places";

export interface ViewState {
  longitude: number;
  latitude: number;
  zoom: number;
  minZoom: number;
  maxZoom: number;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** About how wide a letter and how high a line of a label is. */
const [LETTER, LINE] = [6.4, 19];
/** Room for the title of a panel. */
const TITLE = 34;

/** The labels where they belong in each panel; of those that would overlap the first one stays. */
export function placed(labels: Label[], view: ViewState, rectangles: Rectangle[]): HTMLElement[] {
  const taken: { x: number; y: number; half: number }[] = [];
  return rectangles.flatMap((rectangle) => {
    const viewport = new WebMercatorViewport({ ...view, ...rectangle });
    return labels.flatMap(({ at, text, kind }) => {
      const [left, top] = viewport.project(at) as Point;
      const half = (text.length * LETTER) / 2 + 6;
      if (left < half || top < TITLE || left > rectangle.width - half || top > rectangle.height - LINE / 2) return [];
      const [x, y] = [rectangle.x + left, rectangle.y + top];
      if (taken.some((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < LINE)) return [];
      taken.push({ x, y, half });
      const element = h("span", { class: kind }, text);
      Object.assign(element.style, { left: `${x}px`, top: `${y}px` });
      return [element];
    });
  });
}
