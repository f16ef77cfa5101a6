/** The words around the map of what changed between two releases at several resolutions. */

import { changeIn, type Cell, type Change } from "../changes";
import { h } from "../dom";
import { amount, count, measureName, percentage, plural, short, wholePercent } from "../format";
import type { Measure, Release } from "../model";
import type { Names } from "../names";
import { ladder, type Asked } from "../places";
import type { Entry } from "./listing";
import { ladderText } from "./zones";

/** "+75 %", of what a cell had before; nothing for what is new. */
const relatively = (cell: Cell): string | null =>
  cell.kind === "new" ? null : cell.by === 0 ? percentage(0) : `${cell.by > 0 ? "+" : "−"}${wholePercent(Math.abs(changeIn(cell, true)) / 100)}`;

export const signed = (by: number): string => (by === 0 ? "0" : `${by > 0 ? "+" : "−"}${short(Math.abs(by))}`);

/** What changed, in a few sentences; only cells of the same size are ever subtracted. */
export function changeSentence(releases: Release[], change: Change, asked: Asked, where: string | null): string {
  const from = asked.towards === "destination";
  if (change.near && change.near.node < 0) return `Nothing is published ${from ? "from" : "to"} here in either release: there were no trips, or too few.`;
  const [one, two] = change.seen.map(({ total }) => total) as [number, number];
  const start = change.near ? `${from ? "From" : "To"} around ${where ?? "this place"}` : "Everywhere";
  const known = change.seen.map(({ total }, side) => {
    const placed = change.cells.reduce((sum, { before, after }) => sum + (side ? after : before), 0);
    return wholePercent(placed / (total || 1));
  });
  const sure = change.cells.filter((cell) => cell.sure);
  const unsure = change.cells.filter((cell) => !cell.sure && cell.by).length;
  const more = sure.filter(({ by }) => by > 0).length;
  return (
    `${start}: ${short(one)} published ${one === 1 && asked.measure === "trips" ? "trip" : measureName[asked.measure]} in ${releases[0]!.name}, ${short(two)} in ${releases[1]!.name} (${signed(two - one)}). ` +
    `${plural(more, "cell")} surely ${more === 1 ? "has" : "have"} more, ${count(sure.length - more)} fewer; ${count(unsure)} ${unsure === 1 ? "is" : "are"} not sure, since trips that are only known in larger areas could make up for the difference. ` +
    `At this detail ${known.join(" and ")} of the trips are on the map, the others only known in larger areas.`
  );
}

/** "+10" or "+25 %"; what is new has no percentage. */
export const changeText = (cell: Cell, relative: boolean): string => (relative && relatively(cell)) || signed(cell.by);

const KINDS = { both: "", new: "newly listed", gone: "no longer listed" };

export const certainty = ({ by, sure }: Cell): string => (by === 0 ? "no change as listed" : sure ? `surely ${by > 0 ? "more" : "fewer"}` : "not sure");

export function changeEntries({ nest, cells }: Change, names: Names, relative: boolean): Entry[] {
  return cells.map((cell) => ({
    id: nest.id[cell.node]!,
    near: names.where(nest.centre[cell.node] ?? null),
    mass: Math.abs(changeIn(cell, relative)),
    share: 0,
    area: nest.area[cell.node]!,
    text: [changeText(cell, relative), `${short(cell.before)} to ${short(cell.after)}`],
    note: h("span", {}, ...[certainty(cell), KINDS[cell.kind]].filter(Boolean).map((words) => h("small", {}, words))),
  }));
}

/** What the pointer is told about a cell: both ladders as they are published, and what can be said of the change. */
export function changeFacts(releases: Release[], { nest, at }: Change, cell: Cell, measure: Measure): string[] {
  const rows = releases.map(({ name }, side) => {
    const rungs = ladder(nest, at[side as 0 | 1], cell.node);
    const here = at[side as 0 | 1][cell.node]! > 0;
    return `${name}: ${rungs.length ? (here ? ladderText(rungs, measure) : `none listed in this cell, ${amount(rungs.reduce((sum, { mass }) => sum + mass, 0), measure)} somewhere around it`) : "none listed here or around"}`;
  });
  const share = relatively(cell);
  return [`${signed(cell.by)}${share ? ` (${share})` : ""} as listed; ${certainty(cell)}`, ...rows];
}
