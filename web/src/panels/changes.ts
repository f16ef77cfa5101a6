/** The words around the map of what changed between two releases at several resolutions. */

import { changeIn, hasChanged, isSure, sharesOf, type Cell, type Change, type Unit } from "../changes";
import { h } from "../dom";
import { amount, count, measureName, percentage, plural, short, verb, wholePercent } from "../format";
import type { Measure, Release } from "../model";
import type { Names } from "../names";
import { ladder, type Asked } from "../places";
import type { Entry } from "./listing";
import type { Answer } from "./places";
import { ladderText } from "./zones";

/** "+75 %", or "−4 %". */
const signedPercent = (share: number): string => (share === 0 ? percentage(0) : `${share > 0 ? "+" : "−"}${wholePercent(Math.abs(share))}`);

/** "+75 %", of what a cell had before; nothing for what is new. */
const relatively = ({ kind, by, before }: Cell): string | null => (kind === "new" ? null : signedPercent(by / before));

/** "47.3 to 45.2 %", of all trips. */
const shareText = (cell: Cell, change: Change): string => percentage(sharesOf(cell, change).map((share) => (100 * share).toFixed(1)).join(" to "));

export const signed = (by: number): string => (by === 0 ? "0" : `${by > 0 ? "+" : "−"}${short(Math.abs(by))}`);

/** What changed: the answer, and how sure it is; only cells of the same size are ever subtracted. */
export function changeSentence(releases: Release[], change: Change, asked: Asked & { unit: Unit }, where: string | null): Answer {
  const from = asked.towards === "destination";
  if (change.near && change.near.node < 0) return { main: `Nothing is published ${from ? "from" : "to"} here in either release: there were no trips, or too few.`, note: "" };
  const { unit } = asked;
  const [one, two] = change.seen.map(({ total }) => total) as [number, number];
  const start = change.near ? `${from ? "From" : "To"} around ${where ?? "this place"}` : "In all";
  const known = change.seen.map(({ total }, side) => {
    const placed = change.cells.reduce((sum, { before, after }) => sum + (side ? after : before), 0);
    return `${wholePercent(placed / (total || 1))} of ${releases[side]!.name}`;
  });
  const sure = change.cells.filter((cell) => isSure(cell, unit, change));
  const unsure = change.cells.filter((cell) => hasChanged(cell, unit, change)).length - sure.length;
  const more = sure.filter((cell) => changeIn(cell, unit, change) > 0).length;
  const by = unit === "trips" || !one ? signed(two - one) : signedPercent(change.growth - 1);
  return {
    main:
      `${start}: ${short(one)} published ${one === 1 && asked.measure === "trips" ? "trip" : measureName[asked.measure]} in ${releases[0]!.name}, ${short(two)} in ${releases[1]!.name} (${by}).`,
    note:
      `${unit === "share" ? "Shares of what is listed, of which none is sure" : `${plural(more, "cell")} surely ${verb(more, "has", "have")} more, ${count(sure.length - more)} fewer`}; ${count(unsure)} hatched ${verb(unsure, "is", "are")} not sure: trips that are only known for a larger area may outweigh it. ` +
      `At this detail ${known.join(" and ")} are on the map, the other trips only known for larger areas.`,
  };
}

/** "+10", "+25 %" or "1.2 to 1.4 %"; what is new has no percentage. */
export const changeText = (cell: Cell, unit: Unit, change: Change): string =>
  unit === "share" ? shareText(cell, change) : ((unit === "percent" && relatively(cell)) || signed(cell.by));

/** What the numbers of a list of changes are. */
export const changeHeader = (unit: Unit): string => (unit === "share" ? "share of all" : "change");

const KINDS = { both: "", new: "newly listed", gone: "no longer listed" };

const SURELY: Record<Unit, [string, string]> = { trips: ["more", "fewer"], percent: ["more", "fewer"], share: ["larger", "smaller"] };

/** Whether it is sure; if not, also how many trips on the other side may outweigh it. */
export function certainty(cell: Cell, unit: Unit, change: Change): string[] {
  if (!hasChanged(cell, unit, change)) return ["no change as listed"];
  const more = changeIn(cell, unit, change) > 0;
  if (isSure(cell, unit, change)) return [`surely ${SURELY[unit][more ? 0 : 1]}`];
  const maybe = more ? cell.most[0] - cell.before : cell.most[1] - cell.after;
  return ["not sure", ...(Number.isFinite(maybe) ? [`up to ${short(maybe)} more ${more ? "before" : "after"}`] : [])];
}

export function changeEntries(change: Change, names: Names, unit: Unit): Entry[] {
  const { nest, cells } = change;
  return cells.map((cell) => ({
    id: nest.id[cell.node]!,
    near: names.where(nest.centre[cell.node] ?? null, nest.area[cell.node]),
    mass: Math.abs(changeIn(cell, unit, change)),
    first: isSure(cell, unit, change),
    share: 0,
    area: nest.area[cell.node]!,
    text: [changeText(cell, unit, change), `${short(cell.before)} to ${short(cell.after)}`],
    note: h("span", {}, ...[...certainty(cell, unit, change), KINDS[cell.kind]].filter(Boolean).map((words) => h("small", {}, words))),
  }));
}

/** What the pointer is told about a cell: both ladders as they are published, and what can be said of the change. */
export function changeFacts(releases: Release[], change: Change, cell: Cell, measure: Measure): string[] {
  const { nest, at } = change;
  const rows = releases.map(({ name }, side) => {
    const rungs = ladder(nest, at[side as 0 | 1], cell.node);
    const here = at[side as 0 | 1][cell.node]! > 0;
    return `${name}: ${rungs.length ? (here ? ladderText(rungs, measure) : `none listed in this cell, ${amount(rungs.reduce((sum, { mass }) => sum + mass, 0), measure)} somewhere around it`) : "none listed here or around"}`;
  });
  const share = relatively(cell);
  return [`${signed(cell.by)}${share ? ` (${share})` : ""} as listed; ${certainty(cell, "trips", change).join(": ")}`, `${shareText(cell, change)} of all; ${certainty(cell, "share", change).join(": ")}`, ...rows];
}
