/** The outline of what is pointed at, over the map: a drawing of its own, so that nothing else is drawn anew. */

import type { WebMercatorViewport } from "@deck.gl/core";
import { replace, svg } from "../dom";
import type { Point, Polygon } from "../geometry";
import type { Rectangle } from "./labels";

export class Pointer {
  readonly element = svg("svg", { class: "pointer", "aria-hidden": "true" });

  show(polygons: Polygon[], viewport: WebMercatorViewport, { x, y, width, height }: Rectangle): void {
    const corner = (place: Point): string => (viewport.project(place) as Point).map((at) => at.toFixed(1)).join(" ");
    const path = polygons.flat().map((ring) => `M${ring.map(corner).join("L")}Z`).join("");
    Object.assign(this.element.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    replace(this.element, ...(path ? [svg("path", { class: "under", d: path }), svg("path", { d: path })] : []));
  }

  hide(): void {
    replace(this.element);
  }
}
