/** Coarseness G against k, with the point where the slider stands. */

import { h, svg } from "../dom";
import { quantity } from "../format";
import type { Count, Release } from "../model";
import type { Request } from "../source";

export interface CurvePoint {
  k: number;
  g: number | null;
  /** What the rule of this line protects. */
  protects: Count;
}

const [W, H, LEFT, RIGHT, TOP, BOTTOM] = [300, 150, 46, 12, 12, 34];

/** `whose` names the method of the line where it is another than the point's. */
export function curve(points: CurvePoint[], whose: string | null, request: Request, releases: Release[]): HTMLElement {
  const lines = [...new Set(points.map((point) => point.protects))].map((protects) => points.filter((point) => point.protects === protects && point.g != null));
  const now = releases.map((release) => release.about.utility.trips?.g ?? null);
  const values = [...lines.flat().map((point) => point.g!), ...now.filter((g) => g != null)];
  const title = h("figcaption", {}, "Coarseness G against k", h("small", {}, `${whose ? `line: ${whose}; ` : ""}the point is where you are`));
  if (!values.length) return h("figure", {}, title, h("p", { class: "note" }, "G is not defined for this method."));
  const most = Math.max(...values);
  const ks = points.map((point) => point.k);
  const [low, high] = [Math.log(Math.min(2, request.k)), Math.log(Math.max(100, request.k, ...ks))];
  const x = (k: number): number => LEFT + ((Math.log(k) - low) / (high - low)) * (W - LEFT - RIGHT);
  const y = (g: number): number => H - BOTTOM - (g / most) * (H - BOTTOM - TOP);
  const kind = (number: number): string => (releases.length > 1 ? `line${number}` : "line");
  const label = `Coarseness G against k${now[0] == null ? "" : `; at k = ${request.k} it is ${now.map((g) => quantity(g)).join(" and ")}`}`;
  return h(
    "figure",
    {},
    title,
    svg(
      "svg",
      { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
      svg("line", { x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM, class: "axis" }),
      svg("text", { x: LEFT - 6, y: y(most) + 4, "text-anchor": "end" }, quantity(most)),
      svg("text", { x: LEFT - 6, y: H - BOTTOM + 4, "text-anchor": "end" }, "0"),
      ...[2, 5, 10, 20, 50, 100].map((k) => svg("text", { x: x(k), y: H - BOTTOM + 14, "text-anchor": "middle" }, k)),
      svg("text", { x: (LEFT + W - RIGHT) / 2, y: H - 3, "text-anchor": "middle", class: "label" }, "k"),
      ...lines.map((line, number) => svg("polyline", { class: kind(number), points: line.map((point) => `${x(point.k)},${y(point.g!)}`).join(" ") })),
      ...now.map((g, number) => g != null && svg("circle", { class: kind(number), cx: x(request.k), cy: y(g), r: 5 }, svg("title", {}, `k = ${request.k}: G = ${quantity(g)}`))),
    ),
    releases.length > 1 && h("p", { class: "key" }, ...releases.map((release, number) => h("span", {}, h("i", { class: `only${number}` }), release.name))),
  );
}
