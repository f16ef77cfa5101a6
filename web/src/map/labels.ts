/** Names and notes on the map, as text of the page: sharp at every size, and read by nobody twice. */

import { WebMercatorViewport } from "@deck.gl/core";
import { h } from "../dom";
import type { Point } from "../geometry";
import type { ViewState } from "./camera";
import type { Rectangle } from "./layout";

export interface Label {
  at: Point;
  text: string;
  kind: string;
}

interface Written {
  x: number;
  y: number;
  text: string;
  kind: string;
}

/** About how wide a letter and how high a line of a label is. */
const [LETTER, LINE] = [6.4, 19];
/** Room for the title of a panel, and for the scale bar in its lower left. */
const TITLE = 34;
const RULER = [130, 36] as const;

/** The labels where they belong in each panel; of those that would overlap the first one stays. */
function placed(labels: Label[], view: ViewState, rectangles: Rectangle[]): Written[] {
  const taken: { x: number; y: number; half: number }[] = [];
  return rectangles.flatMap((rectangle) => {
    const viewport = new WebMercatorViewport({ ...view, ...rectangle });
    return labels.flatMap(({ at, text, kind }) => {
      const [left, top] = viewport.project(at) as Point;
      const half = (text.length * LETTER) / 2 + 6;
      if (left < half || top < TITLE || left > rectangle.width - half || top > rectangle.height - LINE / 2) return [];
      if (left - half < RULER[0] && top > rectangle.height - RULER[1]) return [];
      const [x, y] = [rectangle.x + left, rectangle.y + top];
      if (taken.some((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < LINE)) return [];
      taken.push({ x, y, half });
      return [{ x, y, text, kind }];
    });
  });
}

export class Labels {
  private readonly towns = h("div", { class: "towns" });
  private readonly notes = h("div", {});
  readonly element = h("div", { class: "names", "aria-hidden": "true" }, this.towns, this.notes);
  private labels: Label[] = [];
  private written = new Map<string, HTMLElement>();

  set(labels: Label[]): void {
    this.labels = labels;
  }

  /** Writes them where they belong now; those that are there already stay as they are. */
  write(view: ViewState, rectangles: Rectangle[]): void {
    const before = this.written;
    this.written = new Map();
    for (const one of placed(this.labels, view, rectangles)) {
      const key = JSON.stringify(one);
      this.written.set(key, before.get(key) ?? this.add(one));
      before.delete(key);
    }
    for (const gone of before.values()) gone.remove();
  }

  private add({ x, y, text, kind }: Written): HTMLElement {
    const element = h("span", { class: kind }, text);
    Object.assign(element.style, { left: `${x}px`, top: `${y}px` });
    (kind === "town" ? this.towns : this.notes).append(element);
    return element;
  }
}
