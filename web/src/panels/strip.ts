/** The strip at the bottom: chips for each attribute, bars by hour, and what widths mean. */

import { THICK, widthOf } from "../map/arrows";
import { nice } from "../colour";
import { h, refill, svg, type Child } from "../dom";
import type { Numbers, Speech } from "../words";

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
}

export interface StripActions {
  pick: (name: string, value: string | null) => void;
  rough: (on: boolean) => void;
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
    const foot = h("div", { class: content.signed ? "foot signed" : "foot" }, h("span", { class: "detail" }, content.detail), legend(content.most, speech), content.signed && signs(speech), rough);
    refill(this.element, ...others.map((one) => this.chips(one, speech)), ...timed.map((one) => this.bars(one, speech)), foot);
  }

  private roughBox(on: boolean, { words }: Speech): HTMLElement {
    const box = h("input", { type: "checkbox", checked: on, "data-key": "rough" });
    box.addEventListener("change", () => this.actions.rough(box.checked));
    return h("label", { class: "rough" }, box, words.rough);
  }

  private chips({ name, values, chosen }: Attribute, speech: Speech): HTMLElement {
    const chip = (text: string, value: string | null, title: string | null): HTMLElement =>
      h("button", { type: "button", class: "chip", title, "data-key": `${name}:${value ?? ""}`, "aria-pressed": String(chosen === value), onclick: () => this.actions.pick(name, value) }, text);
    const shown = values.filter(({ value, numbers }) => !HIDDEN.has(value) && numbers.trips >= 1).sort((a, b) => b.numbers.trips - a.numbers.trips);
    return h("div", { class: "chips", role: "group", "aria-label": name }, chip(speech.words.allOf(name), null, null), ...shown.map(({ value, numbers }) => chip(valueName(value, speech), value, speech.words.tipTrips(speech.told(numbers)))));
  }

  /** Bars: solid what is certain, hatched what is estimated. */
  private bars({ name, values, chosen }: Attribute, speech: Speech): HTMLElement {
    const shown = values.filter(({ value }) => HOUR.test(value));
    const spans = shown.map(({ value }) => spanOf(value));
    const rate = shown.map(({ numbers }, i) => numbers.trips / spans[i]!);
    const most = Math.max(...rate, 1e-9);
    const bars = shown.map(({ value, numbers }, i) => {
      const [all, sure] = [h("i", { class: "estimated" }), h("i", { class: "certain" })];
      all.style.height = `${(BAR * rate[i]!) / most}px`;
      sure.style.height = `${((BAR * rate[i]!) / most) * Math.min(1, numbers.low / Math.max(numbers.trips, 1e-9))}px`;
      const title = `${value}: ${speech.words.tipTrips(speech.told(numbers))}`;
      const bar = h("button", { type: "button", class: "hour", title, "aria-label": title, "aria-pressed": String(chosen === value), "data-key": `${name}:${value}`, onclick: () => this.actions.pick(name, chosen === value ? null : value) }, h("span", { class: "column" }, all, sure), h("small", {}, shown.length > 12 && i % 3 ? "" : value));
      bar.style.flexGrow = String(spans[i]!);
      return bar;
    });
    return h("div", { class: "hours", role: "group", "aria-label": speech.words.hourBars, title: speech.words.barNote }, ...bars);
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
