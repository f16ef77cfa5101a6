/** How useful the release is, and how well it protects, each seen from trips, population and persons. */

import { card, h, table, type Child, type Row } from "../dom";
import { count, exact, measureTitle, percent, quantity, short } from "../format";
import { COUNTS, MEASURES, type Measure, type Quality, type Release } from "../model";

const METRICS: [Exclude<keyof Quality, "cpc">, string, string, (value: number | null | undefined) => string][] = [
  ["g", "Coarseness, G", "finest cells in the two zones of an average trip; less is finer", quantity],
  ["e", "Misplaced share, E", "if trips are spread evenly over the finest cells of their zones; only to compare releases of one input", quantity],
  ["c_avg", "Size of an average flow, C_AVG", "times what the rule asks for; 1 would be ideal", quantity],
  ["c_dm", "Discernibility, C_DM", "squares of all sizes plus, where that is known, a penalty for what is left out; only to compare releases of one input", short],
];

function metricCell(release: Release, measure: Measure, metric: Exclude<keyof Quality, "cpc">, format: (v: number | null | undefined) => string): Child {
  const quality = release.about.utility[measure];
  const value = quality?.[metric];
  const best = metric === "g" && measure === "trips" ? release.about.limit?.g : null;
  if (value == null) return h("span", { class: "none" }, metric === "g" || metric === "e" ? "not defined" : "–");
  return h("span", { "data-metric": metric, "data-measure": measure }, format(value), best != null && h("small", {}, `at best ${quantity(best)}`));
}

/** How much of the flows between squares of each size is right. */
function squareRows(columns: { release: Release; measure: Measure }[]): Row[] {
  const squares = [...new Set(columns.flatMap(({ release, measure }) => Object.keys(release.about.utility[measure]?.cpc ?? {})))];
  return squares.map((size) => ({
    label: `Right between squares of ${size}`,
    hint: "share of the trips that land between the right squares, if rows are spread evenly over their zones (CPC)",
    cells: columns.map(({ release, measure }) => percent(release.about.utility[measure]?.cpc?.[size])),
  }));
}

/** What planners read off; C_DM, C_AVG, G and E for trips and for weight, with the limit beside G. */
export function utility(releases: Release[]): HTMLElement {
  const columns = releases.flatMap((release) =>
    MEASURES.filter((measure) => release.about.utility[measure]).map((measure) => ({ release, measure })),
  );
  if (!columns.length) {
    return card("How useful it is", "utility", h("p", { class: "note" }, "Published for large inputs only: of a small one, such numbers could tell of single groups."));
  }
  const head = columns.map(({ release, measure }) =>
    h("span", {}, releases.length > 1 && h("b", {}, release.name), measureTitle[measure]),
  );
  const metrics: Row[] = METRICS.map(([metric, label, hint, format]) => ({
    label,
    hint,
    cells: columns.map(({ release, measure }) => metricCell(release, measure, metric, format)),
  }));
  const limited = releases.some(({ about }) => about.limit?.g != null);
  return card(
    "How useful it is",
    "utility",
    table(["", ...head], [...squareRows(columns), ...metrics], "How useful it is"),
    limited && h("p", { class: "note" }, "“At best” is a proven limit: no method can publish finer zones of this kind from the same data under the same rule."),
  );
}

/** Smallest number and numbers below the threshold, from each perspective. */
export function privacy(releases: Release[]): HTMLElement {
  const head = ["", "Smallest", "Asked for", "Too small"];
  const tables = releases.map(({ name, about }) => {
    const rows: Row[] = COUNTS.filter((measure) => about.privacy[measure]).map((measure) => {
      const one = about.privacy[measure]!;
      const guarded = about.rule[measure] != null;
      return {
        label: measureTitle[measure],
        hint: guarded ? "protected by the rule" : "not asked for; shown to compare",
        cells: [
          short(one.min),
          guarded ? exact(one.threshold) : h("span", { class: "none" }, `(${exact(one.threshold)})`),
          one.below === 0
            ? h("span", { class: "good" }, "✓ none")
            : h("span", { class: "warn" }, count(one.below), h("small", {}, `${percent(one.share)} of all flows`)),
        ],
      };
    });
    return h("div", {}, releases.length > 1 && h("h3", {}, name), table(head, rows, `How well it protects: ${name}`));
  });
  return card(
    "How well it protects",
    "privacy",
    ...tables,
    h("p", { class: "note" }, "“Smallest” is the least that any published flow counts; “too small” says how many published flows count less than the threshold."),
  );
}
