/** What the reader has chosen, and telling everyone when it changes. */

import type { Point } from "./geometry";
import type { Axis, Measure } from "./model";
import type { Part } from "./places";

export interface Selection {
  axis: Axis;
  id: string;
}

export interface State {
  /** One map of places, where rows of every size answer together; or the zones as they are. */
  view: "places" | "zones";
  /** On the map of places: where trips from here go (destination), or where trips to here come from (origin). */
  towards: Axis;
  /** On the map of places: the finest rank that is shown. */
  detail: number;
  place: Point | null;
  part: Part | null;
  only: Readonly<Record<string, string>>;
  axes: Axis | "both";
  measure: Measure;
  shade: "total" | "density" | "size" | "difference" | "change";
  /** How many of the strongest flows to draw. */
  flows: number;
  selected: Selection | null;
  theme: "auto" | "light" | "dark";
}

export class Store {
  private readonly listeners: ((state: State, changed: Set<keyof State>) => void)[] = [];

  constructor(public state: State) {}

  set(change: Partial<State>): void {
    const changed = new Set(
      (Object.keys(change) as (keyof State)[]).filter((key) => change[key] !== this.state[key]),
    );
    if (!changed.size) return;
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener(this.state, changed);
  }

  listen(listener: (state: State, changed: Set<keyof State>) => void): void {
    this.listeners.push(listener);
  }
}
