/** What the pointer is told about a zone, a place, a ring or an arrow. */

import { amount, quantity } from "../format";
import type { Axis, Release } from "../model";
import type { Names } from "../names";
import { halfText, ladderText, zoneFacts, zoneTitle } from "../panels/zones";
import { ladder, type Seen } from "../places";
import type { State } from "../state";
import type { Line, Ring } from "./arrows";
import type { Piece } from "./layers";
import type { Spot } from "./places";

export function tooltip(release: Release, axis: Axis, layer: string, object: unknown, state: State, seen: Seen | null, names: Names): string[] | null {
  const { measure, towards } = state;
  const near = (end: Axis, node: number): string => {
    const name = names.nearest(release[end].nest.centre[node] ?? null);
    return name ? ` near ${name}` : "";
  };
  if (layer.endsWith("/fill")) {
    const { zone } = object as Piece;
    return [zoneTitle(axis, release[axis].id[zone]!) + near(axis, zone), ...zoneFacts(release, axis, zone)];
  }
  if (layer.endsWith("/spots") && seen) {
    const { node } = object as Spot;
    const { nest } = release[towards];
    const title = `${towards === "destination" ? "Trips to" : "Trips from"} ${nest.id[node]}${near(towards, node)}`;
    const rungs = ladder(nest, seen.at, node);
    return [title, ...[halfText(rungs, measure)].filter((one) => one != null), ladderText(rungs, measure), `about ${quantity(seen.density[node])} per km² here (estimate)`];
  }
  if (layer.endsWith("/rings")) {
    const { mass, id } = object as Ring;
    return [amount(mass, measure), `stay inside ${id}`];
  }
  if (!layer.endsWith("/flows")) return null;
  const { ends, mass, sign } = object as Line;
  const more = sign && (sign > 0 ? " more than before" : " fewer than before");
  return [amount(mass, measure) + (more || ""), `from origin zone ${ends[0]}`, `to destination zone ${ends[1]}`];
}
