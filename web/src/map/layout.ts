/** Where the maps of a page stand: side by side where there is room, small where there are many. */

import type { Panel } from "./shading";

export interface Titled extends Panel {
  title: string;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  rectangles: Rectangle[];
  /** Of all of them together. */
  height: number;
}

const GAP = 6;
const NARROW = 620;
/** How much of the window's height a map takes. */
export const TALL = 0.72;

/** One map for each value of an attribute: many, and small. */
const areSmall = (panels: Panel[]): boolean => panels.some(({ value }) => value !== undefined);

function columnsOf(panels: Panel[], width: number): number {
  const many = panels.length;
  if (areSmall(panels)) {
    const most = Math.min(many, width < NARROW ? 2 : width < 900 ? 3 : 4);
    return most > 2 && many % most === 1 ? most - 1 : most;
  }
  if (width < NARROW || many === 1) return 1;
  const releases = new Set(panels.map((panel) => panel.release)).size;
  return releases === 1 ? 2 : Math.min(releases, width > 900 ? 3 : 2);
}

/** Rectangles of the panels, each up to a share of the window high. */
export function layoutOf(panels: Panel[], width: number, windowHeight: number, share: number): Layout {
  const columns = columnsOf(panels, width);
  const rows = Math.ceil(panels.length / columns);
  const each = (width - GAP * (columns - 1)) / columns;
  const tallest = Math.max(300, Math.min(620, windowHeight * (rows > 1 ? 0.55 : share)));
  const height = Math.round(areSmall(panels) ? Math.min(320, Math.max(150, each * 0.8)) : Math.max(Math.min(tallest, each * 1.05), Math.min(tallest, 300)));
  const rectangles = panels.map((_, i) => ({ x: (i % columns) * (each + GAP), y: Math.floor(i / columns) * (height + GAP), width: each, height }));
  return { rectangles, height: height * rows + GAP * (rows - 1) };
}
