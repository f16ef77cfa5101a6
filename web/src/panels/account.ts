/** What was asked, and where every trip of the input went. */

import { card, h, table, type Row } from "../dom";
import { amount, count, exact, percent, plural, quantity, short } from "../format";
import { COUNTS, type About, type Release } from "../model";

const RULES = {
  trips: ["Trips in every flow", "each published flow counts at least this many observed trips"],
  weight: ["Weighted trips in every flow", "the same protection, seen from the whole population"],
  persons: ["Persons in every flow", "each published flow comes from at least this many different people"],
  households: ["Households in every flow", "each published flow comes from at least this many different households"],
} as const;

const BESIDES = {
  max_share: ["Largest share", "of a flow that one person or household may have", (value: number) => `≤ ${percent(value)}`],
  min_destinations: ["Destinations", "that each origin zone has flows to", (value: number) => `≥ ${count(value)}`],
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
  if (Array.isArray(value)) return value.map((one) => parameter("", one)).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, one]) => `${key} ${parameter("", one)}`).join(", ");
  return String(value);
}

/** The rule, the method and its settings. */
export function asked(releases: Release[]): HTMLElement {
  const rows: Row[] = [];
  for (const name of COUNTS) {
    if (!releases.some(({ about }) => about.rule[name] != null)) continue;
    const [label, hint] = RULES[name];
    const cells = releases.map(({ about: { rule } }) => (rule[name] == null ? "not asked" : `≥ ${exact(rule[name])}`));
    rows.push({ label, hint, cells });
  }
  for (const [name, [label, hint, words]] of Object.entries(BESIDES)) {
    const values = releases.map(({ about: { rule } }) => rule[name as keyof typeof BESIDES]);
    if (values.some((value) => value != null)) rows.push({ label, hint, cells: values.map((value) => (value == null ? "not asked" : words(value))) });
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

/** The most trips of the input that can be missing: exactly where that may be known, else what the rows imply. */
export const missing = ({ suppressed, unlisted }: About): number => suppressed?.trips ?? unlisted?.at_most_trips ?? 0;

/** A bar of published, left out and rejected trips, drawn to scale. */
function bar({ about }: Release): HTMLElement {
  const parts = [
    ["published", about.published.trips ?? 0, "published"],
    ["suppressed", missing(about), about.suppressed ? "left out" : "at most not listed"],
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

const number = (value: number | undefined, share?: number): string | null =>
  value == null ? null : share == null ? short(value) : `${short(value)} (${percent(share)})`;

const counted = (value: number | null | undefined): string | null => (value == null ? null : count(value));

/** One line of the account; it is left out where no release may say the number. */
type Entry = [label: string, hint: string, pick: (about: About) => string | null];

const ENTRIES: Entry[] = [
  ["Rows read", "lines of the input files", ({ input }) => counted(input?.rows)],
  ["Trips in the input", "all that were read, usable or not", ({ input }) => counted(input?.trips)],
  ["Persons in the input", "people who made these trips", ({ input }) => counted(input?.persons)],
  ["Households in the input", "of the people who made these trips", ({ input }) => counted(input?.households)],
  ["Weighted trips in the input", "what these trips stand for in the population", ({ input }) => number(input?.weight)],
  [
    "Usable trips",
    "after rejecting; what was to be protected",
    ({ published, suppressed }) => (suppressed?.trips == null ? null : counted((published.trips ?? 0) + suppressed.trips)),
  ],
  ["Published", "trips inside the published flows", ({ published }) => number(published.trips, published.share)],
  ["Published, weighted", "the same, seen from the population", ({ published }) => number(published.weight)],
  ["Left out (suppressed)", "too rare to be shown without exposing someone", ({ suppressed }) => number(suppressed?.trips, suppressed?.share)],
  ["Left out, weighted", "the same, seen from the population", ({ suppressed }) => number(suppressed?.weight)],
  [
    "Not listed",
    "trips too rare to be shown without exposing someone; the exact number could do so, too",
    ({ suppressed, unlisted }) => (suppressed ? null : unlisted?.at_most_trips == null ? "not published" : `at most ${count(unlisted.at_most_trips)}`),
  ],
];

function rejectedEntries(releases: Release[]): Entry[] {
  const reasons = new Set(releases.flatMap(({ about }) => Object.keys(about.input?.rejected ?? {})));
  if (!reasons.size) return [["Rejected", "unusable rows of the input", ({ input }) => (input?.rejected ? "none" : null)]];
  return [...reasons].map((reason) => [
    `Rejected: ${reason.includes(" ") ? reason : reason.replaceAll("_", " ")}`,
    "not usable, or not asked for",
    ({ input }) => {
      const one = input?.rejected?.[reason];
      return one ? plural(one.rows ?? one.trips ?? 0, "row") : null;
    },
  ]);
}

/** Input, rejected, suppressed, published: as much of it as the page may say. */
export function account(releases: Release[]): HTMLElement {
  const rows = [...ENTRIES, ...rejectedEntries(releases)].flatMap(([label, hint, pick]): Row[] => {
    const found = releases.map(({ about }) => pick(about));
    return found.some((cell) => cell != null) ? [{ label, hint, cells: found.map((cell) => cell ?? "–") }] : [];
  });
  const bars = releases.map((release) => h("div", { class: "barline" }, releases.length > 1 && h("span", {}, release.name), bar(release)));
  const known = releases.some(({ about }) => about.suppressed);
  const kinds = [["published", "published"], ["suppressed", known ? "left out" : "at most not listed"], ["rejected", "rejected"]];
  const key = h("p", { class: "key" }, ...kinds.slice(0, known ? 3 : 2).map(([kind, word]) => h("span", {}, h("i", { class: kind }), word!)));
  return card("Where the trips went", "account", ...bars, key, table(heads(releases), rows, "Where the trips went"));
}
