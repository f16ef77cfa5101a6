/** The matrix of the largest places, for those who think in tables. */

import { h, refill } from "../dom";
import type { Level, Table } from "../levels";
import type { Speech } from "../words";

const SHOWN = 40;

export class Matrix {
  readonly element = h("section", { class: "card matrix", "data-card": "matrix", hidden: true, tabindex: 0 });
  private byName = false;

  constructor(private readonly open: (from: number, to: number) => void) {}

  /** The places in the order that is shown. */
  places(level: Level, table: Table, speech: Speech): number[] {
    const size = (place: number): number => table.starts(place).trips + table.ends(place).trips;
    const all = level.id.map((_, place) => place).filter((place) => size(place) >= 1);
    const largest = all.sort((a, b) => size(b) - size(a) || a - b).slice(0, SHOWN);
    return this.byName ? largest.sort((a, b) => level.title(a, speech).localeCompare(level.title(b, speech), speech.language)) : largest;
  }

  draw(level: Level, table: Table, speech: Speech): void {
    const { words } = speech;
    const places = this.places(level, table, speech);
    const titles = places.map((place) => level.title(place, speech));
    const found = places.map((from) => places.map((to) => table.pair(from, to)));
    const most = Math.max(1, ...found.flat().map((one) => one?.trips ?? 0));
    const sort = (byName: boolean, text: string): HTMLElement =>
      h("button", { type: "button", "aria-pressed": String(this.byName === byName), "data-key": `sort-${byName}`, onclick: () => ((this.byName = byName), this.draw(level, table, speech)) }, text);
    const cell = (i: number, j: number): HTMLElement => {
      const one = found[i]![j];
      const told = one && speech.told(one);
      const title = `${words.titlePair(titles[i]!, titles[j]!)}: ${told ? words.tipTrips(told) : `< ${speech.number(Math.max(1, table.least))}`}`;
      const button = told && h("button", { type: "button", title, "aria-label": title, onclick: () => this.open(places[i]!, places[j]!) }, told.about);
      const element = h("td", { title }, button || "·");
      element.style.setProperty("--heat", `${Math.round(55 * Math.sqrt((one?.trips ?? 0) / most))}%`);
      return element;
    };
    const head = h("tr", {}, h("td", {}), ...titles.map((title) => h("th", { scope: "col" }, h("span", {}, title))));
    const rows = places.map((_, i) => h("tr", {}, h("th", { scope: "row" }, titles[i]!), ...places.map((_, j) => cell(i, j))));
    this.element.setAttribute("aria-label", words.matrix);
    refill(
      this.element,
      h("p", { class: "sorts" }, words.sortBy, " ", sort(false, words.sortSize), sort(true, words.sortName), h("small", {}, ` ${words.matrixNote(speech.number(places.length), speech.number(level.id.length))}`)),
      h("div", { class: "heat" }, h("table", {}, h("caption", { class: "hidden" }, words.matrixCaption), h("thead", {}, head), h("tbody", {}, ...rows))),
    );
  }
}
