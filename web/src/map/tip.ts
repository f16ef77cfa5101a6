/** What is said of the thing under the pointer, and its outline: over the map, so that nothing else is drawn anew. */

import type { WebMercatorViewport } from "@deck.gl/core";
import { h, replace, svg } from "../dom";
import type { Point, Polygon } from "../geometry";

export interface Pointed {
  lines: string[];
  outline: Polygon[];
}

export class Tip {
  readonly outline = svg("svg", { class: "pointer", "aria-hidden": "true" });
  readonly element = h("div", { class: "tip", hidden: true, role: "status" });

  /** Shows it beside a pixel of the map. */
  show({ lines, outline }: Pointed, [x, y]: Point, viewport: WebMercatorViewport): void {
    this.draw(outline, viewport);
    this.element.hidden = false;
    replace(this.element, ...lines.map((line, i) => h(i ? "div" : "strong", {}, line)));
    const { clientWidth, clientHeight } = this.element.parentElement!;
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.max(4, Math.min(x + 14, clientWidth - offsetWidth - 4));
    const below = y + 14 + offsetHeight <= clientHeight;
    Object.assign(this.element.style, { left: `${left}px`, top: `${below ? y + 14 : Math.max(0, y - offsetHeight - 8)}px` });
  }

  /** Draws an outline alone. */
  draw(outline: Polygon[], viewport: WebMercatorViewport): void {
    const corner = (place: Point): string => (viewport.project(place) as Point).map((at) => at.toFixed(1)).join(" ");
    const path = outline.flat().map((ring) => `M${ring.map(corner).join("L")}Z`).join("");
    replace(this.outline, ...(path ? [svg("path", { class: "under", d: path }), svg("path", { d: path })] : []));
  }

  hide(): void {
    this.element.hidden = true;
    if (this.outline.firstChild) replace(this.outline);
  }
}
