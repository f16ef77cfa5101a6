/** What two releases do not share: zones that one of them lacks, and how the numbers of the others changed. */

import type { Axis, Measure, Release } from "./model";
import type { Selection } from "./state";
import { other } from "./format";
import { massesOf } from "./parts";

/** For each of two releases, the ids of its zones on an axis that the other one lacks, in order. */
export function difference(first: Release, second: Release, axis: Axis): [string[], string[]] {
  const only = (a: Release, b: Release): string[] => a[axis].id.filter((id) => !b[axis].number.has(id));
  return [only(first, second), only(second, first)];
}

/** Of releases on the same zones a few may have nothing to publish in one of them. */
const NEARLY_NONE = 0.1;

/** True where two releases have (all but a few of) the same zones at both ends, so that their numbers compare one by one. */
export const sameZones = (first: Release, second: Release): boolean =>
  (["origin", "destination"] as const).every((axis) => {
    const [one, two] = difference(first, second, axis);
    return one.length <= NEARLY_NONE * first[axis].id.length && two.length <= NEARLY_NONE * second[axis].id.length;
  });

/** How a number came to be what it is; "gone" may be none, or too few to be listed. */
export type Kind = "both" | "new" | "gone";

export interface Changed {
  kind: Kind;
  /** Second minus first; a number that is not listed counts as nothing. */
  by: number;
}

const changed = (before: number | undefined, after: number | undefined): Changed => ({
  kind: before === undefined ? "new" : after === undefined ? "gone" : "both",
  by: (after ?? 0) - (before ?? 0),
});

/** What there is of each id in two lists. */
function join<K>(before: Map<K, number>, after: Map<K, number>): Map<K, Changed> {
  const found = new Map<K, Changed>();
  for (const [key, mass] of before) found.set(key, changed(mass, after.get(key)));
  for (const [key, mass] of after) if (!before.has(key)) found.set(key, changed(undefined, mass));
  return found;
}

function zoneMasses(release: Release, axis: Axis, measure: Measure): Map<string, number> {
  const masses = release[axis].mass[measure] ?? release[axis].mass.trips!;
  return new Map(release[axis].id.map((id, zone) => [id, masses[zone]!]));
}

/** The change of every zone of an axis, by id. */
export const zoneChanges = (first: Release, second: Release, axis: Axis, measure: Measure): Map<string, Changed> =>
  join(zoneMasses(first, axis, measure), zoneMasses(second, axis, measure));

const SEPARATOR = "\u0000";

function flowMasses({ origin, destination, flows }: Release, measure: Measure): Map<string, number> {
  const masses = massesOf(flows, measure);
  const found = new Map<string, number>();
  for (let row = 0; row < flows.count; row++) {
    const key = `${origin.id[flows.end.origin[row]!]}${SEPARATOR}${destination.id[flows.end.destination[row]!]}`;
    found.set(key, (found.get(key) ?? 0) + masses[row]!);
  }
  return found;
}

export interface FlowChange extends Changed {
  origin: string;
  destination: string;
}

/** The change of every flow that either release lists, the largest first. */
export function flowChanges(first: Release, second: Release, measure: Measure): FlowChange[] {
  const found = Array.from(join(flowMasses(first, measure), flowMasses(second, measure)), ([key, change]): FlowChange => {
    const [origin, destination] = key.split(SEPARATOR) as [string, string];
    return { origin, destination, ...change };
  });
  return found.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || (a.origin + a.destination < b.origin + b.destination ? -1 : 1));
}

/** The change of the flows between the selected zone and each zone of the other axis, by id. */
export function partnerChanges(first: Release, second: Release, selected: Selection, measure: Measure): Map<string, Changed> {
  const far = other[selected.axis];
  const own = flowChanges(first, second, measure).filter((one) => one[selected.axis] === selected.id);
  return new Map(own.map((one) => [one[far], one]));
}
