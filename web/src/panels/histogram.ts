/** How large the published flows are, on a logarithmic scale, with the threshold. */

import { card, h, svg } from "../dom";
import { count, measureName, measureTitle, plural, short } from "../format";
import { COUNTS, type Count, type Release } from "../model";

export interface Bin {
  from: number;
  to: number;
  classes: number;
}

const MOST_BINS = 24;

/**
 * Bins of equal width on a logarithmic scale. One boundary is the threshold, so no bar stands on both sides of it;
 * for whole numbers boundaries are whole, so that bins of small numbers are honest.
 */
export function bins(sizes: ArrayLike<number>, threshold: number, wholeNumbers: boolean): Bin[] {
  if (!sizes.length) return [];
  let least = Infinity;
  let most = 0;
  for (let i = 0; i < sizes.length; i++) {
    least = Math.min(least, sizes[i]!);
    most = Math.max(most, sizes[i]!);
  }
  const origin = threshold > 0 ? threshold : Math.max(least, 1e-9);
  let factor = Math.SQRT2;
  while (Math.log(most / least) / Math.log(factor) > MOST_BINS) factor *= Math.SQRT2;
  const bound = (i: number): number => {
    const value = origin * factor ** i;
    return wholeNumbers ? Math.round(value) : value;
  };
  const edges: number[] = [];
  let i = Math.floor(Math.log(least / origin) / Math.log(factor) + 1e-9);
  while (bound(i) > least) i--;
  for (; ; i++) {
    const edge = bound(i);
    if (edge !== edges.at(-1)) edges.push(edge);
    if (edge > most) break;
  }
  const made = edges.slice(0, -1).map((from, at) => ({ from, to: edges[at + 1]!, classes: 0 }));
  for (let j = 0; j < sizes.length; j++) {
    let [low, high] = [0, made.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (made[middle]!.from <= sizes[j]!) low = middle;
      else high = middle - 1;
    }
    made[low]!.classes++;
  }
  while (made.length && !made[0]!.classes) made.shift();
  return made;
}

const [W, H, LEFT, BOTTOM, TOP] = [340, 170, 38, 36, 26];

function chart(release: Release, measure: Count): HTMLElement | null {
  const sizes = release.flows.mass[measure];
  const threshold = release.about.privacy[measure]?.threshold ?? release.about.rule[measure] ?? 0;
  if (!sizes?.length) return null;
  const made = bins(sizes, threshold, measure !== "weight");
  const tallest = Math.max(...made.map((bin) => bin.classes));
  const low = Math.log(made[0]!.from || 0.5);
  const high = Math.log(made.at(-1)!.to);
  const x = (value: number) => LEFT + ((Math.log(value || 0.5) - low) / (high - low)) * (W - LEFT - 8);
  const y = (classes: number) => H - BOTTOM - (classes / tallest) * (H - BOTTOM - TOP);
  const bars = made.map((bin) =>
    svg(
      "rect",
      {
        x: x(bin.from) + 0.5,
        y: y(bin.classes),
        width: Math.max(1, x(bin.to) - x(bin.from) - 1),
        height: Math.max(0, H - BOTTOM - y(bin.classes)),
        class: bin.from < threshold ? "below" : "above",
      },
      svg("title", {}, `${plural(bin.classes, "flow")} from ${count(bin.from)} to under ${count(bin.to)}`),
    ),
  );
  const ticks: SVGElement[] = [];
  for (let power = Math.floor(low / Math.LN10); power <= high / Math.LN10; power++) {
    const value = 10 ** power;
    if (Math.log(value) >= low && Math.log(value) <= high) {
      ticks.push(svg("text", { x: x(value), y: H - BOTTOM + 14, "text-anchor": "middle" }, short(value)));
    }
  }
  const line = threshold > 0 && Math.log(threshold) >= low - 1e-9 && Math.log(threshold) <= high;
  const at = line ? x(threshold) : 0;
  const right = at > W * 0.6;
  const label = `${measureTitle[measure]}: ${plural(sizes.length, "published flow")}${threshold ? `, threshold ${count(threshold)}` : ""}`;
  return h(
    "figure",
    { class: "histogram" },
    h("figcaption", {}, measureTitle[measure]),
    svg(
      "svg",
      { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
      svg("line", { x1: LEFT, x2: W - 8, y1: H - BOTTOM, y2: H - BOTTOM, class: "axis" }),
      svg("text", { x: LEFT - 6, y: y(tallest) + 4, "text-anchor": "end" }, count(tallest)),
      svg("text", { x: LEFT - 6, y: H - BOTTOM + 4, "text-anchor": "end" }, "0"),
      ...bars,
      ...ticks,
      svg("text", { x: (LEFT + W) / 2, y: H - 4, "text-anchor": "middle", class: "label" }, `${measureName[measure]} in one published flow`),
      line && svg("line", { x1: at, x2: at, y1: 6, y2: H - BOTTOM, class: "threshold" }),
      line &&
        svg("text", { x: at + (right ? -5 : 5), y: 15, "text-anchor": right ? "end" : "start", class: "label" }, `threshold ${count(threshold)}`),
    ),
  );
}

export function histograms(releases: Release[]): HTMLElement {
  const figures = releases.map((release) =>
    h(
      "div",
      { class: "histograms" },
      releases.length > 1 && h("h3", {}, release.name),
      ...COUNTS.map((measure) => chart(release, measure)),
    ),
  );
  return card(
    "How large the published flows are",
    "sizes",
    ...figures,
    h("p", { class: "note" }, "Each bar: how many flows (pairs of zones) are of this size. Sizes grow by equal factors to the right. Bars before the line are below the threshold."),
  );
}
