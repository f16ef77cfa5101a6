/** How the answer went from release to release: a line of estimates in the band of their intervals. */

import { h, svg } from "../dom";
import type { Numbers, Speech } from "../words";

const [WIDTH, HEIGHT, EDGE] = [300, 44, 4];

export function sparkline(names: string[], values: (Numbers | null)[], shown: number, speech: Speech): HTMLElement {
  const known = values.map((one) => one ?? { trips: 0, low: 0, high: 0, interval_low: 0, interval_high: 0 });
  const most = Math.max(1, ...known.map(({ trips, interval_high: high }) => Math.max(trips, high)));
  const x = (i: number): number => EDGE + (i * (WIDTH - 2 * EDGE)) / Math.max(1, known.length - 1);
  const y = (trips: number): number => HEIGHT - EDGE - (trips / most) * (HEIGHT - 2 * EDGE);
  const path = (pick: (one: Numbers) => number): string[] => known.map((one, i) => `${x(i).toFixed(1)},${y(pick(one)).toFixed(1)}`);
  const band = [...path(({ interval_high: high }) => high), ...path(({ interval_low: low }) => low).reverse()].join(" ");
  const text = names.map((name, i) => `${name}: ${speech.short(known[i]!)}`).join("; ");
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text },
    svg("polygon", { points: band }),
    svg("polyline", { points: path(({ trips }) => trips).join(" ") }),
    svg("circle", { cx: x(shown), cy: y(known[shown]!.trips), r: 3.5 }),
  );
  const end = (i: number): string => `${names[i]}: ${speech.short(known[i]!)}`;
  return h("figure", { class: "spark", title: text }, drawing, h("figcaption", {}, h("span", {}, end(0)), h("span", {}, end(names.length - 1))));
}
