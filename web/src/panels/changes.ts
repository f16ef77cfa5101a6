/** The words around the map of what changed between two releases at several resolutions. */

import { changeIn, hasChanged, isSure, type Cell, type Change, type Unit } from "../changes";
import { h } from "../dom";
import { amount, count, measureName, percentage, plural, short, wholePercent } from "../format";
import type { Measure, Release } from "../model";
import type { Names } from "../names";
import { ladder, type Asked } from "../places";
import type { Entry } from "./listing";
import type { Answer } from "./places";
import { ladderText } from "./zones";

/** "+75 %", of what a cell had before; nothing for what is new. */
const relatively = (cell: Cell): string | null =>
  cell.kind === "new" ? null : cell.by === 0 ? percentage(0) : `${cell.by > 0 ? "+" : "−"}${wholePercent(Math.abs(cell.by) / cell.before)}`;

export const signed = (by: number): string => (by === 0 ? "0" : `${by > 0 ? "+" : "−"}${short(Math.abs(by))}`);

/** The places that surely gained more or less than everything together, by trips, and how much each did. */
function shifts({ nest, cells, growth }: Change, names: Names): string {
  const found = cells.filter((cell) => isSure(cell, "pattern", growth)).map((cell) => ({ name: names.where(nest.centre[cell.node] ?? null, nest.area[cell.node]), cell, by: changeIn(cell, "pattern", growth) }));
  const named = (sign: number): string =>
    found.filter(({ name, by }) => name && by * sign > 0).sort((a, b) => sign * (b.by - a.by)).slice(0, 2).map(({ name, cell }) => `${name} (${relatively(cell) ?? "new"})`).join(" and ");
  const [above, below] = [named(1), named(-1)];
  const told = [above && `above that: ${above}`, below && `below that: ${below}`].filter(Boolean).join("; ");
  return told ? ` Surely ${told}.` : " No place is surely above or below that.";
}

/** What changed: the answer, and how sure it is; only cells of the same size are ever subtracted. */
export function changeSentence(releases: Release[], change: Change, asked: Asked & { unit: Unit }, where: string | null, names: Names): Answer {
  const from = asked.towards === "destination";
  if (change.near && change.near.node < 0) return { main: `Nothing is published ${from ? "from" : "to"} here in either release: there were no trips, or too few.`, note: "" };
  const { unit } = asked;
  const { growth } = change;
  const [one, two] = change.seen.map(({ total }) => total) as [number, number];
  const start = change.near ? `${from ? "From" : "To"} around ${where ?? "this place"}` : "Everywhere";
  const known = change.seen.map(({ total }, side) => {
    const placed = change.cells.reduce((sum, { before, after }) => sum + (side ? after : before), 0);
    return wholePercent(placed / (total || 1));
  });
  const changed = change.cells.filter((cell) => hasChanged(cell, unit, growth));
  const sure = changed.filter((cell) => isSure(cell, unit, growth));
  const unsure = changed.length - sure.length;
  const more = sure.filter((cell) => changeIn(cell, unit, growth) > 0).length;
  const by = unit === "trips" || !one ? signed(two - one) : `${two < one ? "−" : "+"}${wholePercent(Math.abs(two - one) / one)}`;
  return {
    main:
      `${start}: ${short(one)} published ${one === 1 && asked.measure === "trips" ? "trip" : measureName[asked.measure]} in ${releases[0]!.name}, ${short(two)} in ${releases[1]!.name} (${by}).` +
      (unit === "pattern" ? shifts(change, names) : ""),
    note:
      `${unit === "pattern" ? `${plural(more, "orange cell")} surely above that, ${count(sure.length - more)} blue below` : `${plural(more, "cell")} surely ${more === 1 ? "has" : "have"} more, ${count(sure.length - more)} fewer`}; ${count(unsure)} hatched ${unsure === 1 ? "is" : "are"} not sure, since trips that are only known in larger areas could make up for the difference. ` +
      `At this detail ${known.join(" and ")} of the trips are on the map, the others only known in larger areas.`,
  };
}

/** "+10" or "+25 %"; what is new has no percentage. */
export const changeText = (cell: Cell, unit: Unit): string => (unit !== "trips" && relatively(cell)) || (unit === "pattern" ? "new" : signed(cell.by));

const KINDS = { both: "", new: "newly listed", gone: "no longer listed" };

const surely = (more: boolean, unit: Unit): string => (unit === "pattern" ? `surely ${more ? "more" : "less"} than the rest` : `surely ${more ? "more" : "fewer"}`);

export const certainty = (cell: Cell, unit: Unit, growth: number): string =>
  !hasChanged(cell, unit, growth) ? "no change as listed" : isSure(cell, unit, growth) ? surely(changeIn(cell, unit, growth) > 0, unit) : "not sure";

export function changeEntries({ nest, cells, growth }: Change, names: Names, unit: Unit): Entry[] {
  return cells.map((cell) => ({
    id: nest.id[cell.node]!,
    near: names.where(nest.centre[cell.node] ?? null, nest.area[cell.node]),
    mass: Math.abs(changeIn(cell, unit, growth)),
    share: 0,
    area: nest.area[cell.node]!,
    text: [changeText(cell, unit), `${short(cell.before)} to ${short(cell.after)}`],
    note: h("span", {}, ...[certainty(cell, unit, growth), KINDS[cell.kind]].filter(Boolean).map((words) => h("small", {}, words))),
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
  return [`${signed(cell.by)}${share ? ` (${share})` : ""} as listed; ${certainty(cell, "trips", 1)}`, ...rows];
}
