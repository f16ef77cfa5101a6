/** The k-anonymity statement in one plain sentence, and the headline figures. */

import { h, type Child } from "../dom";
import { amount, count, exact, listed, percent, plural } from "../format";
import { COUNTS, noiseOf, type About, type Release } from "../model";

const THINGS = { trips: "trips", weight: "weighted trips of the population", persons: "different persons", households: "different households" };

const ONE = { trips: "trip", weight: "weighted trip of the population", persons: "person", households: "household" };

/** What every published number is guaranteed to count. */
export function statement(about: About): string {
  const noise = noiseOf(about.parameters);
  if (noise) return `Every number is an estimate with noise: differential privacy of a ${noise.unit}, with epsilon = ${exact(noise.epsilon)}. None is a count.`;
  const parts = COUNTS.filter((name) => about.rule[name] != null).map(
    (name) => `at least ${exact(about.rule[name])} ${about.rule[name] === 1 ? ONE[name] : THINGS[name]}`,
  );
  if (!about.published.classes) {
    return `Nothing is published: even the coarsest zones would not have given every flow ${listed(parts)}.`;
  }
  return [`Every published flow counts ${listed(parts)}${leftOut(about)}`, ...besides(about.rule)].join(" ");
}

/** What the rule asks for besides thresholds. */
function besides({ max_share: most, min_destinations: least }: About["rule"]): string[] {
  return [
    ...(most == null ? [] : [`Nobody has more than ${percent(most)} of one.`]),
    ...(least == null ? [] : [`From every origin flows to at least ${plural(least, "destination")} are listed.`]),
  ];
}

/** What is missing, as exactly as the page may say it. */
function leftOut(about: About): string {
  const { suppressed, unlisted } = about;
  if (suppressed?.share != null) {
    return suppressed.share > 0 ? `; ${percent(suppressed.share)} of the trips could not reach this and are left out.` : "; no trip had to be left out.";
  }
  const most = unlisted?.at_most_trips;
  if (most == null) return "; trips that could not reach this are left out.";
  if (most === 0) return "; no trip had to be left out.";
  return tooFewAnywhere(about) ? `. Smaller ones are counted between larger areas; ${atMost(most)} in all ${most === 1 ? "is" : "are"} left out.` : `; ${atMost(most)} could not reach this and ${most === 1 ? "is" : "are"} left out.`;
}

export const atMost = (trips: number): string => `at most ${amount(trips, "trips")}`;

/** Whether all that is missing would not have made a single flow: small ones fall to larger areas, and these are left over. */
export const tooFewAnywhere = ({ rule, unlisted }: About): boolean => (unlisted?.at_most_trips ?? Infinity) < (rule.trips ?? 0);

/** What the rule does not promise, said as plainly as what it does. */
export function caution(about: About): string | null {
  if (noiseOf(about.parameters)) return "Every other release of the same people adds to what is known of them.";
  const persons = about.privacy.persons;
  if (!about.published.classes || about.rule.persons != null || about.rule.households != null) return null;
  if (persons?.min != null && persons.below > 0) {
    return `The rule counts trips, not people: the smallest flow is made by ${plural(persons.min, "person")}.`;
  }
  if (persons) return null;
  const unknown = about.input && about.input.persons == null;
  return unknown ? "The rule counts trips, not people; the input does not say who made which trip." : "The rule counts trips, not people: one person can have made several of them.";
}

const tile = (title: string, value: Child, ...notes: Child[]): HTMLElement =>
  h("div", { class: "tile" }, h("h2", {}, title), h("p", { class: "big" }, value), ...notes.map((note) => note && h("p", {}, note)));

function publishedTile({ about: { published, suppressed, input } }: Release): HTMLElement {
  const weighted = published.weight != null && `standing for ${amount(published.weight, "weight")}`;
  if (published.share == null || suppressed?.trips == null) return tile("Published", count(published.trips), "trips in the published flows", weighted);
  const rejected = Object.entries(input?.rejected ?? {}).map(([why, one]) => `${count(one.rows ?? one.trips)} ${why.replaceAll("_", " ")}`);
  return tile(
    "Published",
    percent(published.share),
    `${amount(published.trips, "trips")} of ${count((published.trips ?? 0) + suppressed.trips)} usable`,
    rejected.length > 0 && `besides rows that cannot be used: ${rejected.join(", ")}`,
    weighted,
  );
}

const LEFT_OUT = "Left out to protect people";

function leftOutTile({ about }: Release): HTMLElement {
  const { suppressed, unlisted } = about;
  if (suppressed?.share == null) {
    const most = unlisted?.at_most_trips;
    if (most === 0) return tile(LEFT_OUT, "0", "every trip is in some flow");
    if (most == null) return tile(LEFT_OUT, "–", "how many trips is not published");
    return tile(LEFT_OUT, atMost(most), tooFewAnywhere(about) ? "too few for a flow even between the largest areas" : "the exact number is not published");
  }
  return tile(
    LEFT_OUT,
    percent(suppressed.share),
    `${amount(suppressed.trips, "trips")}${!suppressed.pairs ? "" : `, in ${plural(suppressed.pairs, "origin–destination pair")}`}`,
  );
}

/** The figures that a reader should take away from one release. */
export function headline(release: Release): HTMLElement {
  const { published } = release.about;
  return h(
    "div",
    { class: "tiles" },
    publishedTile(release),
    tile(
      "Zones",
      h("span", {}, count(published.origins), h("span", { class: "times" }, " × "), count(published.destinations)),
      "origin zones × destination zones",
      `${plural(published.classes, "flow")} between them ${published.classes === 1 ? "is" : "are"} published`,
    ),
    leftOutTile(release),
  );
}
