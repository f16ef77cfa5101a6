/** Names on the map, as text of the page: sharp at every size, never over each other, and read by nobody twice. */

import { WebMercatorViewport } from "@deck.gl/core";
import { h } from "../dom";
import type { Point } from "../geometry";
import type { Room, ViewState } from "./camera";

export interface Label {
  at: Point;
  text: string;
  /** "chosen" stands out; an "area" is named by its distance from a place. */
  kind: "place" | "chosen" | "area";
}

export interface Written {
  x: number;
  y: number;
  text: string;
  kind: Label["kind"];
}

/** About how wide a letter and how high a line of a label is. */
const [LETTER, LINE] = [6.8, 17];
const MOST = 60;
/** Below the middle, which has the circle. */
const DOWN = 14;

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const meet = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** The labels where they belong; of those that would overlap the first one stays. */
export function placed(labels: Label[], view: ViewState, { width, height }: Pick<Room, "width" | "height">, taken: Box[] = []): Written[] {
  const viewport = new WebMercatorViewport({ ...view, width, height });
  const boxes = [...taken];
  const found: Written[] = [];
  for (const { at, text, kind } of labels) {
    if (found.length >= MOST) break;
    const [x, middle] = viewport.project(at) as Point;
    const y = middle + DOWN;
    const half = (text.length * LETTER * (kind === "chosen" ? 1.25 : 1)) / 2 + 3;
    const box = { left: x - half, right: x + half, top: y - LINE / 2, bottom: y + LINE / 2 };
    if (box.left < 0 || box.top < 0 || box.right > width || box.bottom > height || boxes.some((one) => meet(one, box))) continue;
    boxes.push(box);
    found.push({ x, y, text, kind });
  }
  return found;
}

export class Labels {
  readonly element = h("div", { class: "names", "aria-hidden": "true" });
  private labels: Label[] = [];
  private shown = new Map<string, HTMLElement>();
  /** What is written now, for a picture of it. */
  written: Written[] = [];

  set(labels: Label[]): void {
    this.labels = labels;
  }

  /** Writes them where they belong now, beside the cards; those that are there already stay as they are. */
  write(view: ViewState, room: Room, map: HTMLElement): void {
    const frame = map.getBoundingClientRect();
    const cards = [...document.querySelectorAll<HTMLElement>("[data-card]")].map((card) => card.getBoundingClientRect());
    const taken = cards.map(({ left, right, top, bottom }) => ({ left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top }));
    const before = this.shown;
    this.shown = new Map();
    this.written = placed(this.labels, view, room, taken);
    for (const one of this.written) {
      const key = JSON.stringify(one);
      this.shown.set(key, before.get(key) ?? this.add(one));
      before.delete(key);
    }
    for (const gone of before.values()) gone.remove();
  }

  private add({ x, y, text, kind }: Written): HTMLElement {
    const element = h("span", { class: kind }, text);
    Object.assign(element.style, { left: `${x}px`, top: `${y}px` });
    this.element.append(element);
    return element;
  }
}
