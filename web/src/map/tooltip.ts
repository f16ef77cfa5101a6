/** What the pointer is told about a zone, a place, a change, a ring or an arrow; and the outline of what it points at. */

import type { Change } from "../changes";
import { amount, quantity, short, verb } from "../format";
import type { Polygon } from "../geometry";
import type { Axis, Release } from "../model";
import type { Names } from "../names";
import { changeFacts } from "../panels/changes";
import { placedWords } from "../panels/here";
import { ladderText, zoneFacts, zoneTitle } from "../panels/zones";
import { placedAt } from "../placed";
import { ladder, type Seen } from "../places";
import type { State } from "../state";
import type { Line, Ring } from "./arrows";
import type { ChangedSpot } from "./changes";
import type { Piece } from "./layers";
import type { Spot } from "./places";
import type { Panel } from "./shading";

/** What is on the map now. */
export interface OnMap {
  releases: Release[];
  state: State;
  /** What the panel shows, on a map of places. */
  seen: Seen | null;
  change: Change | null;
  names: Names;
}

export interface Pointed {
  lines: string[];
  outline: Polygon[];
}

const towardsWords = (towards: Axis): string => (towards === "destination" ? "Trips to" : "Trips from");

function nearText(names: Names, release: Release, axis: Axis, node: number): string {
  const name = names.nearest(release[axis].nest.centre[node] ?? null);
  return name ? ` near ${name}` : "";
}

function pointedZone({ releases, names }: OnMap, { release: number, axis }: Panel, { zone }: Piece): Pointed {
  const release = releases[number]!;
  const lines = [zoneTitle(axis, release[axis].id[zone]!) + nearText(names, release, axis, zone), ...zoneFacts(release, axis, zone)];
  return { lines, outline: release[axis].outlines.at(zone) };
}

/** How many trips, how finely they are published, and then from which rows that follows. */
function pointedPlace({ releases, state, names }: OnMap, seen: Seen, { node }: Spot): Pointed {
  const { measure, towards, place } = state;
  const { nest } = releases[0]![towards];
  const name = names.where(nest.centre[node] ?? null, nest.area[node]);
  const placed = placedAt(nest, seen, node);
  const [verb, start] = towards === "destination" ? ["end", "from"] : ["start", "to"];
  const chosen = place && names.nearest(place);
  const lines = [
    `${placed.around > 0 ? "About " : ""}${amount(Math.round(placed.total), measure)} ${verb}${Math.round(placed.total) === 1 ? "s" : ""} here`,
    [name ? `around ${name}` : nest.id[node], place && `, of ${short(seen.total)} ${start} ${chosen ? `around ${chosen}` : "the chosen place"}`].filter(Boolean).join(""),
    `of these ${placedWords(placed)}`,
    ladderText(ladder(nest, seen.at, node), measure),
    `about ${quantity(seen.density[node])} per km² here (estimate)`,
    name && `cell ${nest.id[node]}`,
  ];
  return { lines: lines.filter((line) => line !== null), outline: nest.outlines.at(node) };
}

function pointedChange({ releases, state, names }: OnMap, change: Change, { cell }: ChangedSpot): Pointed {
  const name = names.nearest(change.nest.centre[cell.node] ?? null);
  const title = `${towardsWords(state.towards)} ${change.nest.id[cell.node]}${name ? ` near ${name}` : ""}`;
  return { lines: [title, ...changeFacts(releases, change, cell, state.measure)], outline: change.nest.outlines.at(cell.node) };
}

/** What lies under the pointer, in words; null where that is nothing to speak of. */
export function pointedAt(map: OnMap, panel: Panel, layer: string, object: unknown): Pointed | null {
  const { measure } = map.state;
  if (layer.endsWith("/fill")) return pointedZone(map, panel, object as Piece);
  if (layer.endsWith("/spots") && map.seen) return pointedPlace(map, map.seen, object as Spot);
  if (layer.endsWith("/changes") && map.change) return pointedChange(map, map.change, object as ChangedSpot);
  if (layer.endsWith("/rings")) {
    const { mass, id } = object as Ring;
    return { lines: [amount(mass, measure), `${verb(mass, "stays", "stay")} inside ${id}`], outline: [] };
  }
  if (!layer.endsWith("/flows")) return null;
  const { ends, mass, sign } = object as Line;
  const more = sign && (sign > 0 ? " more than before" : " fewer than before");
  return { lines: [amount(mass, measure) + (more || ""), `from origin zone ${ends[0]}`, `to destination zone ${ends[1]}`], outline: [] };
}
