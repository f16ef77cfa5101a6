/** What was asked, and where every trip of the input went. */

import { card, h, table, type Row } from "../dom";
import { amount, count, percent, quantity, short } from "../format";
import { COUNTS, type About, type Release } from "../model";

const RULES = {
  trips: ["Trips in every flow", "each published flow counts at least this many observed trips"],
  weight: ["Weighted trips in every flow", "the same protection, seen from the whole population"],
  persons: ["Persons in every flow", "each published flow comes from at least this many different people"],
} as const;

const PARAMETERS: Record<string, [string, string]> = {
  budget: ["May leave out", "the most that may be dropped instead of making zones coarser"],
  budget_of: ["Counted in", "what the share that may be left out is a share of"],
  suppress: ["Leaves out", "before: ahead of merging zones; after: only what is still too small then"],
  steps: ["Merges", "how many groups of neighbours became one zone"],
  resolution: ["Finest cells", "H3 resolution of the smallest possible zones; 10 is about 130 m across"],
  levels: ["Levels looked ahead", "how far a rare trip may be merged before it counts as a problem"],
  target: ["Target size of a zone", "the trips that the method aims at for each origin zone"],
  delta: ["Price of leaving out", "what one trip left out counted against coarser zones; found by the method"],
  duality_gap: ["Distance from the best", "at most this share worse than the best zones of this kind"],
  origins_coarsened: ["Origins made coarser", "so that what is left out stays within what was allowed"],
  origin_level: ["Merges of every origin", "levels above the finest cells"],
  destination_level: ["Merges of every destination", "levels above the finest cells"],
  segment: ["Part of the data", "only these travellers or times are in this release"],
};

function parameter(name: string, value: unknown): string {
  if (value == null) return "–";
  if (typeof value === "number") return name === "budget" || name === "duality_gap" ? percent(value) : quantity(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The rule, the method and its settings. */
export function asked(releases: Release[]): HTMLElement {
  const rows: Row[] = [];
  for (const name of COUNTS) {
    if (!releases.some(({ about }) => about.rule[name] != null)) continue;
    const [label, hint] = RULES[name];
    const cells = releases.map(({ about: { rule } }) => (rule[name] == null ? "not asked" : `≥ ${count(rule[name])}`));
    rows.push({ label, hint, cells });
  }
  const hints = new Set(releases.map(({ method }) => method.hint));
  rows.push({
    label: "Method",
    hint: hints.size === 1 ? [...hints][0]! : "how zones were found",
    cells: releases.map(({ method }) => method.title),
  });
  const names = new Set(releases.flatMap(({ about }) => Object.keys(about.parameters ?? {})));
  for (const name of names) {
    const [label, hint] = PARAMETERS[name] ?? [name.replaceAll("_", " "), "a setting of the method"];
    rows.push({ label, hint, cells: releases.map(({ about }) => parameter(name, about.parameters?.[name])) });
  }
  return card("What was asked", "asked", table(heads(releases), rows, "What was asked"));
}

export const heads = (releases: Release[]): string[] =>
  releases.length > 1 ? ["", ...releases.map((release) => release.name)] : [];

function rejectedTrips(about: About): number {
  return Object.values(about.input?.rejected ?? {}).reduce((sum, one) => sum + (one.trips ?? one.rows ?? 0), 0);
}

/** A bar of published, left out and rejected trips, drawn to scale. */
function bar({ about }: Release): HTMLElement {
  const parts = [
    ["published", about.published.trips ?? 0, "published"],
    ["suppressed", about.suppressed?.trips ?? 0, "left out"],
    ["rejected", rejectedTrips(about), "rejected"],
  ] as const;
  const total = parts.reduce((sum, [, trips]) => sum + trips, 0) || 1;
  const element = h("div", { class: "bar", role: "img" });
  const words: string[] = [];
  for (const [kind, trips, word] of parts) {
    if (!trips) continue;
    const piece = h("span", { class: kind, title: `${amount(trips, "trips")} ${word}` });
    piece.style.flexGrow = String(trips / total);
    element.append(piece);
    words.push(`${percent(trips / total)} ${word}`);
  }
  element.setAttribute("aria-label", words.join(", "));
  return element;
}

const number = (value: number | undefined, share?: number): string =>
  value == null ? "–" : share == null ? short(value) : `${short(value)} (${percent(share)})`;

/** What the rows of a release tell, where the rest is not published. */
function publicAccount(releases: Release[]): HTMLElement {
  const cells = (pick: (about: About) => string) => releases.map(({ about }) => pick(about));
  const rows: Row[] = [{ label: "Published", hint: "trips inside the published flows", cells: cells(({ published }) => count(published.trips)) }];
  if (releases.some(({ about }) => about.published.weight != null)) {
    rows.push({ label: "Published, weighted", hint: "the same, seen from the population", cells: cells(({ published }) => short(published.weight)) });
  }
  const most = ({ unlisted }: About): string => (unlisted?.at_most_trips == null ? "not published" : `at most ${count(unlisted.at_most_trips)}`);
  rows.push({ label: "Not listed", hint: "trips too rare to be shown without exposing someone; the exact number could do so, too", cells: cells(most) });
  return card("Where the trips went", "account", table(heads(releases), rows, "Where the trips went"));
}

/** Input, rejected, suppressed, published. */
export function account(releases: Release[]): HTMLElement {
  if (!releases.every(({ about }) => about.input && about.suppressed)) return publicAccount(releases);
  const weighted = releases.some(({ about }) => about.input?.weight != null);
  const cells = (pick: (about: About) => string) => releases.map(({ about }) => pick(about));
  const rows: Row[] = [
    { label: "Rows read", hint: "lines of the input files", cells: cells(({ input }) => count(input?.rows)) },
    { label: "Trips in the input", hint: "all that were read, usable or not", cells: cells(({ input }) => count(input?.trips)) },
  ];
  if (releases.some(({ about }) => about.input?.persons != null)) {
    rows.push({ label: "Persons in the input", hint: "people who made these trips", cells: cells(({ input }) => count(input?.persons)) });
  }
  if (weighted) {
    rows.push({ label: "Weighted trips in the input", hint: "what these trips stand for in the population", cells: cells(({ input }) => short(input?.weight)) });
  }
  rows.push({ label: "Usable trips", hint: "after rejecting; what was to be protected", cells: cells(({ published, suppressed }) => count((published.trips ?? 0) + (suppressed?.trips ?? 0))) });
  rows.push({ label: "Published", hint: "trips inside the published flows", cells: cells(({ published }) => number(published.trips, published.share)) });
  if (weighted) rows.push({ label: "Published, weighted", hint: "the same, seen from the population", cells: cells(({ published }) => short(published.weight)) });
  rows.push({ label: "Left out (suppressed)", hint: "too rare to be shown without exposing someone", cells: cells(({ suppressed }) => number(suppressed?.trips, suppressed?.share)) });
  if (weighted) rows.push({ label: "Left out, weighted", hint: "the same, seen from the population", cells: cells(({ suppressed }) => short(suppressed?.weight)) });
  const reasons = new Set(releases.flatMap(({ about }) => Object.keys(about.input?.rejected ?? {})));
  for (const reason of reasons) {
    const pick = ({ input }: About): string => {
      const one = input?.rejected?.[reason];
      return one ? `${count(one.rows ?? one.trips)} rows` : "–";
    };
    rows.push({ label: `Rejected: ${reason.includes(" ") ? reason : reason.replaceAll("_", " ")}`, hint: "not usable, or not asked for", cells: cells(pick) });
  }
  if (!reasons.size) rows.push({ label: "Rejected", hint: "unusable rows of the input", cells: cells(() => "none") });
  const bars = releases.map((release) => h("div", { class: "barline" }, releases.length > 1 && h("span", {}, release.name), bar(release)));
  const key = h(
    "p",
    { class: "key" },
    ...[["published", "published"], ["suppressed", "left out"], ["rejected", "rejected"]].map(([kind, word]) =>
      h("span", {}, h("i", { class: kind }), word!),
    ),
  );
  return card("Where the trips went", "account", ...bars, key, table(heads(releases), rows, "Where the trips went"));
}
