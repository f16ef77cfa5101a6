/** Choosing by hour, mode and the like: chips with small bars, a slider along time, and one small map for each value. */

import { h, refill, replace, type Child } from "../dom";
import { amount, short } from "../format";
import { isNotGiven, valueTitle, type Kind } from "../kinds";
import type { Release } from "../model";
import type { Asked } from "../places";
import { sharesOf, type Share } from "../shares";
import type { Store } from "../state";

/** More small maps than these would be too small to read. */
const MOST_MAPS = 12;

/** The values that get a small map each: the largest parts in their order, and what is not given. */
export function mapsOf(release: Release, kind: Kind, asked: Asked): Share[] {
  const { [kind.name]: _, ...only } = asked.only;
  const shares = sharesOf(release, kind, { ...asked, only }).parts.filter(({ mass }) => mass > 0);
  const kept = new Set([...shares].sort((a, b) => Number(isNotGiven(b.value)) - Number(isNotGiven(a.value)) || b.mass - a.mass).slice(0, MOST_MAPS));
  return shares.filter((share) => kept.has(share));
}

/** For each attribute of the rows a group of its own; "not given" is always one of its bars. */
export class KindPanels {
  readonly element = h("div", { class: "kinds" });
  private release: Release | null = null;
  private parts: KindPanel[] = [];

  constructor(private readonly store: Store) {}

  draw(release: Release): void {
    if (release !== this.release) {
      this.parts = release.kinds.map((kind) => new KindPanel(kind, this.store));
      replace(this.element, ...this.parts.map((part) => part.element));
      this.release = release;
    }
    for (const part of this.parts) part.draw(release);
  }
}

/** One attribute. The slider stays the same element: it may be in somebody's hand. */
class KindPanel {
  readonly element: HTMLElement;
  private readonly title: string;
  private readonly row: HTMLElement;
  private readonly bars = h("div", { class: "bars", "aria-hidden": "true" });
  private readonly slider: HTMLInputElement;
  private readonly output: HTMLOutputElement;

  constructor(
    private readonly kind: Kind,
    private readonly store: Store,
  ) {
    const { name, finest, ordered } = kind;
    this.title = name.replaceAll("_", " ");
    this.row = h("div", { class: "chips", role: "group", "aria-label": this.title });
    this.slider = h("input", { id: `kind-${name}`, type: "range", min: 0, max: finest.length, step: 1, "aria-label": this.title });
    this.slider.addEventListener("input", () => this.choose(finest[Number(this.slider.value) - 1] ?? null));
    this.output = h("output", { for: `kind-${name}` });
    const track = h("div", { class: "track" }, this.bars, this.slider);
    this.element = h("div", { class: "kind", "data-kind": name }, this.row, ordered && h("div", { class: "timeline" }, h("span", { class: "note" }, "all"), track, this.output));
  }

  draw(release: Release): void {
    const { kind, store } = this;
    const { finest, parts } = sharesOf(release, kind, store.state);
    // Where the slider has the same values, chips would only say them again.
    const again = kind.ordered && kind.finest.every((value) => kind.parts.includes(value));
    refill(this.row, h("b", {}, this.title), ...this.chips(parts.filter(({ value }) => !again || isNotGiven(value)), parts), this.eachButton());
    if (kind.ordered) this.drawTime(finest);
  }

  private choose(value: string | null): void {
    const { [this.kind.name]: _, ...only } = this.store.state.only;
    this.store.set({ only: value === null ? only : { ...only, [this.kind.name]: value } });
  }

  private chips(shown: Share[], all: Share[]): Child[] {
    const most = Math.max(...all.map(({ mass }) => mass)) || 1;
    return shown.map(({ value, mass }) => {
      const bar = h("i", { class: isNotGiven(value) && "missing" });
      bar.style.width = `${(100 * mass) / most}%`;
      const pressed = this.store.state.only[this.kind.name] === value;
      const pick = (): void => this.choose(pressed ? null : value);
      return h("button", { type: "button", class: "chip", "data-key": value, "aria-pressed": String(pressed), onclick: pick }, h("span", {}, valueTitle(value)), h("small", {}, isNotGiven(value) ? short(mass) : `≥\u00a0${short(mass)}`), bar);
    });
  }

  private eachButton(): HTMLElement {
    const pressed = this.store.state.each === this.kind.name;
    const turn = (): void => this.store.set({ each: pressed ? null : this.kind.name });
    const words = { title: "one small map for each value, on one scale", "aria-label": `One map for each ${this.title}` };
    return h("button", { type: "button", class: "each", "data-key": "/each", ...words, "aria-pressed": String(pressed), onclick: turn }, "One map for each");
  }

  /** One position for all values, then one for each, under bars that tell how many trips each has. */
  private drawTime(shares: Share[]): void {
    const { only, measure } = this.store.state;
    const at = shares.findIndex(({ value }) => value === only[this.kind.name]) + 1;
    const most = Math.max(...shares.map(({ mass }) => mass)) || 1;
    const words = at ? `${shares[at - 1]!.value}: at least ${amount(shares[at - 1]!.mass, measure)}` : "all";
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", words);
    this.output.textContent = words;
    const bars = shares.map(({ value, mass }, number) => {
      const bar = h("i", { title: `${value}: at least ${amount(mass, measure)}`, class: number + 1 === at && "now", onclick: () => this.choose(value) });
      const [left, width] = [`calc(8px + (100% - 16px) * ${(number + 1) / shares.length})`, `min(26px, (100% - 16px) / ${shares.length} * 0.72)`];
      Object.assign(bar.style, { left, width, height: `${Math.max(3, (100 * mass) / most)}%` });
      return bar;
    });
    replace(this.bars, ...bars);
  }
}
