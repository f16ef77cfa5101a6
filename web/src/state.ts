/** What the reader has chosen, and telling everyone when it changes. */

import type { Unit } from "./changes";
import type { Point } from "./geometry";
import type { Axis, Measure } from "./model";
import type { Part } from "./parts";

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
  /** The attribute whose values have one small map each. */
  each: string | null;
  axes: Axis | "both";
  measure: Measure;
  shade: "total" | "density" | "size" | "difference" | "change";
  /** How it is told what changed. */
  unit: Unit;
  /** How many of the strongest flows to draw. */
  flows: number;
  selected: Selection | null;
  theme: "auto" | "light" | "dark";
}

type Listener = (state: State, changed: Set<keyof State>) => void;

export class Store {
  private readonly listeners = new Map<string | symbol, Listener>();

  constructor(public state: State) {}

  set(change: Partial<State>): void {
    const changed = new Set(
      (Object.keys(change) as (keyof State)[]).filter((key) => change[key] !== this.state[key]),
    );
    if (!changed.size) return;
    this.state = { ...this.state, ...change };
    for (const listener of [...this.listeners.values()]) listener(this.state, changed);
  }

  /** Calls back on every change; a part of the page that is built anew takes the place of the one before by its name. */
  listen(listener: Listener, name: string | symbol = Symbol("once")): void {
    this.listeners.set(name, listener);
  }
}
