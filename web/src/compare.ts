/** Which zones two releases do not share. */

import type { Axis, Release } from "./model";

/** For each of two releases, the ids of its zones on an axis that the other one lacks, in order. */
export function difference(first: Release, second: Release, axis: Axis): [string[], string[]] {
  const only = (a: Release, b: Release): string[] => a[axis].id.filter((id) => !b[axis].number.has(id));
  return [only(first, second), only(second, first)];
}
