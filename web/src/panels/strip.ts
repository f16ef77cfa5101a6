/** The strip at the bottom: chips for each attribute, bars by hour, and what widths mean. */

import { THICK, widthOf } from "../map/arrows";
import { nice } from "../colour";
import { h, refill, svg, type Child } from "../dom";
import type { State } from "../state";
import { certainShare, type Numbers, type Speech } from "../words";

export interface Value {
  value: string;
  numbers: Numbers;
}

export interface Attribute {
  name: string;
  values: Value[];
  chosen: string | null;
}

export interface StripContent {
  attributes: Attribute[];
  detail: string;
  /** The size of the widest arrow. */
  most: number;
  rough: boolean;
  hasRough: boolean;
  /** Whether widths are changes. */
  signed: boolean;
  playing: boolean;
  /** What is counted; null where there is no choice. */
  count: State["count"] | null;
}

export interface StripActions {
  pick: (name: string, value: string | null) => void;
  rough: (on: boolean) => void;
  count: (what: State["count"]) => void;
  /** Goes through some values one after the other, or stops. */
  play: (name: string, values: string[]) => void;
}

/** Hours and slots of hours stand in the order of the day; other values by size. */
const HOUR = /^\d{2}([-–]\d{2})?$/;
const isTimes = ({ values }: Attribute): boolean => values.filter(({ value }) => HOUR.test(value)).length >= values.length - 2 && values.length > 3;
const HIDDEN = new Set(["(not listed)"]);
const BAR = 40;

export class Strip {
  readonly element = h("section", { class: "card strip", "data-card": "strip" });

  constructor(private readonly actions: StripActions) {}

  draw(content: StripContent, speech: Speech): void {
    const { words } = speech;
    this.element.setAttribute("aria-label", words.strip);
    const timed = content.attributes.filter(isTimes);
    const others = content.attributes.filter((one) => !timed.includes(one));
    const rough = content.hasRough && this.roughBox(content.rough, speech);
    const foot = h("div", { class: content.signed ? "foot signed" : "foot" }, h("span", { class: "detail" }, content.detail), content.count && this.counts(content.count, speech), legend(content.most, speech), content.signed && signs(speech), rough);
    refill(this.element, ...others.map((one) => this.chips(one, speech)), ...timed.map((one) => this.bars(one, content.playing, speech)), foot);
  }

  private roughBox(on: boolean, { words }: Speech): HTMLElement {
    const box = h("input", { type: "checkbox", checked: on, "data-key": "rough" });
    box.addEventListener("change", () => this.actions.rough(box.checked));
    return h("label", { class: "rough" }, box, words.rough);
  }

  private counts(count: State["count"], { words }: Speech): HTMLElement {
    const choice = (what: State["count"], text: string): HTMLElement => h("button", { type: "button", class: "chip", "data-key": `count-${what}`, "aria-pressed": String(count === what), onclick: () => this.actions.count(what) }, text);
    return h("span", { class: "counts", role: "group", "aria-label": words.countChoice }, choice("weight", words.countWeight), choice("trips", words.countTrips));
  }

  private chips({ name, values, chosen }: Attribute, speech: Speech): HTMLElement {
    const chip = (text: string, value: string | null, title: string | null): HTMLElement =>
      h("button", { type: "button", class: "chip", title, "data-key": `${name}:${value ?? ""}`, "aria-pressed": String(chosen === value), onclick: () => this.actions.pick(name, value) }, text);
    const shown = values.filter(({ value, numbers }) => !HIDDEN.has(value) && numbers.trips >= 1).sort((a, b) => b.numbers.trips - a.numbers.trips);
    return h("div", { class: "chips", role: "group", "aria-label": name }, chip(speech.words.allOf(name), null, null), ...shown.map(({ value, numbers }) => chip(valueName(value, speech), value, speech.words.tipTrips(speech.told(numbers)))));
  }

  /** Bars: solid what is certain, hatched what is estimated. */
  private bars({ name, values, chosen }: Attribute, playing: boolean, speech: Speech): HTMLElement {
    const shown = values.filter(({ value }) => HOUR.test(value));
    const spans = shown.map(({ value }) => spanOf(value));
    const rate = shown.map(({ numbers }, i) => numbers.trips / spans[i]!);
    const most = Math.max(...rate, 1e-9);
    const bars = shown.map(({ value, numbers }, i) => {
      const [all, sure] = [h("i", { class: "estimated" }), h("i", { class: "certain" })];
      all.style.height = `${(BAR * rate[i]!) / most}px`;
      sure.style.height = `${((BAR * rate[i]!) / most) * certainShare(numbers)}px`;
      const title = `${value}: ${speech.words.tipTrips(speech.told(numbers))}`;
      const bar = h("button", { type: "button", class: "hour", title, "aria-label": title, "aria-pressed": String(chosen === value), "data-key": `${name}:${value}`, onclick: () => this.actions.pick(name, chosen === value ? null : value) }, h("span", { class: "column" }, all, sure), h("small", {}, shown.length > 12 && i % 3 ? "" : value));
      bar.style.flexGrow = String(spans[i]!);
      return bar;
    });
    const { play, stop, hourBars, barNote } = speech.words;
    const busy = shown.filter(({ numbers }) => numbers.trips >= 1).map(({ value }) => value);
    const sign = svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: playing ? "M4 4h8v8H4z" : "M5 3l8 5-8 5z" }));
    const player = h("button", { type: "button", class: "play", "data-key": `play-${name}`, "aria-label": playing ? stop : play, title: playing ? stop : play, onclick: () => this.actions.play(name, busy) }, sign);
    return h("div", { class: "hours", role: "group", "aria-label": hourBars, title: barNote }, player, ...bars);
  }
}

/** How many hours a slot has. */
function spanOf(value: string): number {
  const [from, to] = value.split(/[-–]/).map(Number);
  return to === undefined ? 1 : Math.max(1, to - from!);
}

export const valueName = (value: string, { words }: Speech): string => (value === "missing" || value === "(missing)" ? words.notStated : value);

/** What the two colours of a change are, and what is faint. */
const signs = ({ words }: Speech): Child =>
  h("span", { class: "widths" }, ...([["plus", words.moreNow], ["minus", words.lessNow], ["unsure", words.maybeNone]] as const).map(([kind, text]) => h("span", { class: "sign" }, h("i", { class: kind }), text)));

/** Three widths and what they stand for. */
function legend(most: number, { number, words }: Speech): Child {
  if (!(most > 0)) return null;
  const steps = [...new Set([most, most / 5, most / 25].map(nice).filter((step) => step >= 1))].reverse();
  const line = (step: number): Child => {
    const width = widthOf(step, most);
    return h("span", { class: "step" }, svg("svg", { width: 26, height: THICK + 2, viewBox: `0 0 26 ${THICK + 2}`, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: THICK / 2 + 1, y2: THICK / 2 + 1, "stroke-width": width })), number(step));
  };
  return h("span", { class: "widths", title: words.stayLegend }, ...steps.map(line), words.estimateLegend);
}
