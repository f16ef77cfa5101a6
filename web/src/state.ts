/** What the reader has chosen, and telling everyone when it changes. */

import type { Axis, Measure } from "./model";

export interface Selection {
  axis: Axis;
  id: string;
}

export interface State {
  axes: Axis | "both";
  measure: Measure;
  shade: "total" | "density" | "difference";
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
