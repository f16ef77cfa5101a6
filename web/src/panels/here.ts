/** How coarse is it here? One answer, large, for the chosen place or for everything; and a way to see each part of it. */

import { h, type Child } from "../dom";
import { amount, area, percentage, plural, short, verb, wholePercent } from "../format";
import type { Release } from "../model";
import { DISTRICT, PARTS, SHARP, type Part } from "../parts";
import type { Placed } from "../placed";
import { hasSeveral, type Asked } from "../places";
import type { Store } from "../state";
import { missing } from "./account";
import { tooFewAnywhere } from "./statement";

/** What each part is called, and what that means. */
const WORDS: Record<Part, [string, string]> = {
  precise: [`within ${area(SHARP)}`, "start and end each known that well"],
  coarse: [`within ${SHARP} to ${area(DISTRICT)}`, "start and end each known that well"],
  rough: [`only roughly (over ${area(DISTRICT)})`, "start or end is somewhere in an area that large"],
  place: ["place only", "start and end are told, but not everything else, such as the hour or the mode"],
};

/** The meaning of the parts that are there; what means the same is said once. */
function meanings(parts: Part[]): string {
  const names = new Map<string, string[]>();
  for (const part of parts) names.set(WORDS[part][1], [...(names.get(WORDS[part][1]) ?? []), WORDS[part][0]]);
  return [...names].map(([meaning, own]) => `${own.join(", ")}: ${meaning}`).join(" · ");
}

const shown = (placed: Placed): Part[] => PARTS.filter((part) => placed[part] > 0);

/** "61 % within 1 km², 30 % within 1 to 7 km², 9 % only roughly". */
export const placedWords = (placed: Placed, total = placed.total): string => shown(placed).map((part) => `${wholePercent(placed[part] / total)} ${WORDS[part][0]}`).join(", ");

/** Which trips the shares are shares of. */
function ofWhich({ own, around }: Placed, { place, measure, only }: Asked, out: string | null): string {
  if (place && around > 0) {
    return `Of the ${amount(own, measure)} of this cell, and of those of larger areas around it by its share of their area.`;
  }
  if (place) return `Of the ${amount(own, measure)} of this cell.`;
  if (Object.keys(only).length) return `Of ${amount(own, measure)} that tell it.`;
  return out ? `Of ${amount(own, measure)} published and ${out}.` : `Of ${amount(own, measure)} published.`;
}

/** One word for the trips of a place, and what it means: the shares below it are the reason. */
function verdict({ total, precise, coarse, place }: Placed, which: string): Child[] {
  const [sharp, district] = [precise / total, (precise + coarse) / total];
  if (place / total >= 0.5) return [h("b", {}, "Place only"), `Most trips${which} do not tell everything else.`];
  if (sharp >= 0.5) return [h("b", {}, "Very fine"), `Most trips${which} are known within ${area(SHARP)}.`];
  const known = `${wholePercent(district)} of the trips${which} are known within ${area(DISTRICT)}, the others only roughly.`;
  return [h("b", {}, district >= 0.8 ? "Fine" : district >= 0.6 ? "Mostly fine" : district >= 0.4 ? "Partly fine" : "Coarse"), known];
}

interface LeftOut {
  mass: number;
  /** Only the most that it can be is public. */
  most: boolean;
  /** That nothing was left out is an answer, too, where it is known. */
  told: boolean;
}

function leftOutOf({ about }: Release, { measure }: Asked): LeftOut {
  const mass = measure === "trips" ? missing(about) : (about.suppressed?.weight ?? 0);
  const known = about.suppressed?.[measure] ?? (measure === "trips" ? about.unlisted?.at_most_trips : null);
  return { mass, most: mass > 0 && !about.suppressed, told: mass > 0 || known === 0 };
}

function leftOutWords(release: Release, { mass, most }: LeftOut): string {
  const { about } = release;
  if (!mass) return "Nothing was left out: every trip is in some row, as finely as k share it.";
  const end = `${most ? "Exactly how many and where is not published: it would tell of a few people." : "Where they were cannot be said."}${hasSeveral(release) ? " Other small flows are not lost: they are counted between larger areas." : ""}`;
  if (most) return `At most ${amount(mass, "trips")} in all ${verb(mass, "is", "are")} left out${tooFewAnywhere(about) ? ": too few for a flow even between the largest areas" : ""}. ${end}`;
  const pairs = !about.suppressed?.pairs ? "" : `, in ${plural(about.suppressed.pairs, "origin–destination pair")}`;
  return `${amount(mass, "trips")} ${verb(mass, "is", "are")} left out${pairs}. ${end}`;
}

/** A bound is rounded up. */
const outShare = ({ mass, most }: LeftOut, total: number): string => (most ? `≤\u00a0${percentage(Math.ceil((100 * mass) / total))}` : wholePercent(mass / total));

/** Of fewer trips than these in a thousand, the number says more than the share. */
const FEW_OUT = 0.005;

/** Whether what is left out is told as a share of everything. */
const asShare = ({ mass }: LeftOut, total: number, asked: Asked): boolean => isEverything(asked) && (mass === 0 || mass / total >= FEW_OUT);

function outParts(out: LeftOut, total: number, asked: Asked): Child[] {
  if (asShare(out, total, asked)) return [h("b", {}, out.mass ? outShare(out, total) : percentage(0)), h("span", {}, "left out")];
  const many = out.mass ? `${out.most ? "at most " : ""}${amount(out.mass, asked.measure)}` : "nothing";
  return [h("span", { class: "wide" }, `Left out${isEverything(asked) ? "" : " anywhere"}: ${many}`)];
}

const bar = (part: string, share: number): HTMLElement => {
  const element = h("i", { class: `share ${part}` });
  element.style.flexGrow = String(share);
  return element;
};

/** Nobody may know where the trips were that are left out, nor their hour: they are no share of a place. */
const isEverything = ({ place, only }: Asked): boolean => !place && !Object.keys(only).length;

/** What the shares are shares of. */
export const totalOf = (release: Release, placed: Placed, asked: Asked): number => placed.total + (isEverything(asked) ? leftOutOf(release, asked).mass : 0) || 1;

/** Everything in the card; `where` is what to call the place. */
export function hereCard(release: Release, placed: Placed, store: Store, where: string | null): Child[] {
  const { state } = store;
  const { place, towards, part: chosen } = state;
  const out = leftOutOf(release, state);
  const everything = isEverything(state);
  const total = totalOf(release, placed, state);
  const said = h("p", { class: "said", role: "status" });
  const parts = shown(placed).map((part) => {
    const pick = (): void => store.set({ part: chosen === part ? null : part });
    return h("button", { type: "button", class: `part ${part}`, "data-key": part, title: `show only these: ${WORDS[part][1]}`, "aria-pressed": String(chosen === part), onclick: pick }, h("b", {}, wholePercent(placed[part] / total)), h("span", {}, WORDS[part][0]));
  });
  const listed = out.mass && asShare(out, total, state) ? `${out.most ? "at most " : ""}${short(out.mass)} left out` : null;
  return [
    h("h2", {}, where ?? (place ? "Here" : "Everywhere")),
    h("p", { class: "asks" }, place ? "How coarse is it here?" : "How coarse is it?"),
    placed.total > 0 && h("p", { class: "verdict" }, ...verdict(placed, place ? (towards === "destination" ? " from here" : " to here") : "")),
    placed.total > 0 ? h("div", { class: "shares", "aria-hidden": "true" }, ...shown(placed).map((part) => bar(part, placed[part] / total)), everything && out.mass > 0 && bar("out", out.mass / total)) : h("p", {}, "Nothing is published here."),
    h("div", { class: "parts", role: "group", "aria-label": "How finely trips are published" }, ...parts, out.told && h("button", { type: "button", class: "part out", "data-key": "out", title: "in no row", onclick: () => (said.textContent = leftOutWords(release, out)) }, ...outParts(out, total, state))),
    said,
    placed.total > 0 && h("p", { class: "note" }, ofWhich(placed, state, listed)),
    placed.total > 0 && h("p", { class: "note meaning" }, meanings(shown(placed))),
  ];
}
