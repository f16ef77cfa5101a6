/** The k-anonymity statement in one plain sentence, and the headline figures. */

import { h, type Child } from "../dom";
import { amount, count, percent, plural, quantity } from "../format";
import { COUNTS, type About, type Release } from "../model";

const THINGS = { trips: "trips", weight: "weighted trips of the population", persons: "different persons" };

function list(parts: string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** What every published number is guaranteed to count. */
export function statement(about: About): string {
  const parts = COUNTS.filter((name) => about.rule[name] != null).map(
    (name) => `at least ${count(about.rule[name])} ${THINGS[name]}`,
  );
  if (!about.published.classes) {
    return `Nothing is published: even the coarsest zones would not have given every flow ${list(parts)}.`;
  }
  return `Every published flow counts ${list(parts)}${leftOut(about)}.`;
}

function leftOut({ suppressed, unlisted }: About): string {
  if (suppressed) {
    return suppressed.share > 0
      ? `; ${percent(suppressed.share)} of the trips could not reach this and are left out`
      : "; no trip had to be left out";
  }
  if (unlisted?.at_most_trips == null) return "";
  return unlisted.at_most_trips ? `; at most ${amount(unlisted.at_most_trips, "trips")} are not listed` : "; no trip had to be left out";
}

/** What the rule does not promise, said as plainly as what it does. */
export function caution(about: About): string | null {
  const persons = about.privacy.persons;
  if (!about.published.classes || about.rule.persons != null) return null;
  if (persons?.min != null && persons.below > 0) {
    return `The rule counts trips, not people: the smallest flow is made by ${plural(persons.min, "person")}.`;
  }
  return persons ? null : "The rule counts trips, not people; the input does not say who made which trip.";
}

const tile = (title: string, value: Child, ...notes: Child[]): HTMLElement =>
  h("div", { class: "tile" }, h("h3", {}, title), h("p", { class: "big" }, value), ...notes.map((note) => note && h("p", {}, note)));

/** Four figures that a reader should take away from one release. */
export function headline({ about }: Release): HTMLElement {
  const { published, suppressed, unlisted, utility, limit } = about;
  const g = utility.trips?.g;
  const best = limit?.g;
  return h(
    "div",
    { class: "tiles" },
    tile(
      "Published",
      suppressed ? percent(published.share) : count(published.trips),
      suppressed ? `${count(published.trips)} trips of ${count((published.trips ?? 0) + (suppressed.trips ?? 0))} usable` : "trips in the published flows",
      published.weight != null && `standing for ${amount(published.weight, "weight")}`,
    ),
    tile(
      "Zones",
      h("span", {}, count(published.origins), h("span", { class: "times" }, " × "), count(published.destinations)),
      "origin zones × destination zones",
      `${count(published.classes)} flows between them are published`,
    ),
    suppressed
      ? tile(
          "Left out to protect people",
          percent(suppressed.share),
          `${amount(suppressed.trips, "trips")}, in ${plural(suppressed.pairs, "origin–destination pair")}`,
        )
      : tile(
          "Not listed to protect people",
          unlisted?.at_most_trips == null ? "–" : `≤ ${count(unlisted.at_most_trips)}`,
          unlisted?.at_most_trips == null ? "how many trips is not published" : "trips; the exact number is not published",
        ),
    tile(
      "Coarseness (G)",
      g == null ? "–" : quantity(g),
      g == null
        ? utility.trips ? "not defined for this method" : "published for large inputs only"
        : best == null
          ? "finest cells in the two zones of an average trip; less is better"
          : `at best ${quantity(best)} on this data with nested zones`,
      g != null && best != null && "finest cells in the two zones of an average trip",
    ),
  );
}
