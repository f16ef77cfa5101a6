/** The strip at the bottom: chips for each attribute, bars by hour, and what widths mean. */

import { THICK, widthOf } from "../map/arrows";
import { nice } from "../colour";
import { h, refill, replace, svg, type Child } from "../dom";
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
  /** Whether widths are changes. */
  signed: boolean;
  playing: boolean;
}

export interface StripActions {
  pick: (name: string, value: string | null) => void;
  /** Goes through some values one after the other, or stops. */
  play: (name: string, values: string[]) => void;
}

/** Hours and slots of hours stand in the order of the day; other values by size. */
const HOUR = /^\d{2}([-–]\d{2})?$/;
const isTimes = ({ values }: Attribute): boolean => values.filter(({ value }) => HOUR.test(value)).length >= values.length - 2 && values.length > 3;
const HIDDEN = new Set(["(not listed)"]);
const BAR = 30;
/** So many values stand side by side; further attributes, and longer ones, fold into a list. */
const MOST_CHIPS = 8;

export class Strip {
  readonly element = h("section", { class: "card strip", "data-card": "strip" });
  /** What widths and colours on the map mean, and how large its places are. */
  readonly key = h("div", { class: "foot" });

  constructor(private readonly actions: StripActions) {}

  draw(content: StripContent, speech: Speech): void {
    this.element.setAttribute("aria-label", speech.words.strip);
    const timed = content.attributes.filter(isTimes);
    const others = content.attributes.filter((one) => !timed.includes(one));
    const chips = others.find(({ values }) => values.length <= MOST_CHIPS);
    this.element.hidden = !content.attributes.length;
    refill(this.element, chips && this.chips(chips, speech), ...others.filter((one) => one !== chips).map((one) => this.list(one, speech)), ...timed.map((one) => this.bars(one, content.playing, speech)));
    this.key.classList.toggle("signed", content.signed);
    replace(this.key, h("span", { class: "detail" }, content.detail), content.signed && signs(speech), legend(content.most, speech));
  }

  private list({ name, values, chosen }: Attribute, speech: Speech): HTMLElement {
    const option = (value: string, text: string): HTMLElement => h("option", { value, selected: value === (chosen ?? "") }, text);
    const select = h("select", { "aria-label": name, "data-key": `list-${name}` }, option("", speech.words.allOf(name)), ...bySize(values).map(({ value }) => option(value, valueName(value, speech))));
    select.addEventListener("change", () => this.actions.pick(name, select.value || null));
    return select;
  }

  private chips({ name, values, chosen }: Attribute, speech: Speech): HTMLElement {
    const chip = (text: string, value: string | null, title: string | null): HTMLElement =>
      h("button", { type: "button", class: "chip", title, "data-key": `${name}:${value ?? ""}`, "aria-pressed": String(chosen === value), onclick: () => this.actions.pick(name, value) }, text);
    return h("div", { class: "chips", role: "group", "aria-label": name }, chip(speech.words.allOf(name), null, null), ...bySize(values).map(({ value, numbers }) => chip(valueName(value, speech), value, speech.words.tipTrips(speech.told(numbers)))));
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
      const bar = h("button", { type: "button", class: "hour", title, "aria-label": title, "aria-pressed": String(chosen === value), "data-key": `${name}:${value}`, onclick: () => this.actions.pick(name, chosen === value ? null : value) }, h("span", { class: "column" }, all, sure), h("small", {}, shown.length > 12 && i % 3 ? "" : value.slice(0, 2)));
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

const bySize = (values: Value[]): Value[] => values.filter(({ value, numbers }) => !HIDDEN.has(value) && numbers.trips >= 1).sort((a, b) => b.numbers.trips - a.numbers.trips);

/** How many hours a slot has. */
function spanOf(value: string): number {
  const [from, to] = value.split(/[-–]/).map(Number);
  return to === undefined ? 1 : (to - from! + 24) % 24 || 24;
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
