/** The bar at the top: what is shown, what of it can be taken along, and the language. */

import { h, refill } from "../dom";
import type { State } from "../state";
import { LANGUAGES, type Speech } from "../words";

export interface ToolActions {
  view: (view: State["view"]) => void;
  csv: () => void;
  png: () => void;
  copy: () => Promise<void>;
  language: (language: string) => void;
  theme: () => void;
}

export class Tools {
  readonly element = h("nav", { class: "card tools", "data-card": "tools" });

  constructor(private readonly actions: ToolActions) {}

  draw(state: State, views: State["view"][], dark: boolean, { words, language }: Speech): void {
    this.element.setAttribute("aria-label", words.tools);
    const { actions } = this;
    const view = (name: State["view"]): HTMLElement => h("button", { type: "button", "aria-pressed": String(state.view === name), "data-key": `view-${name}`, onclick: () => actions.view(name) }, words[name]);
    const button = (text: string, key: string, onclick: (event: Event) => void): HTMLElement => h("button", { type: "button", "data-key": key, onclick }, text);
    const copy = button(words.copy, "copy", (event) => {
      const own = event.currentTarget as HTMLElement;
      void actions.copy().then(() => (own.textContent = words.copied));
    });
    const select = h("select", { "aria-label": words.languageChoice, "data-key": "language" }, ...Object.entries(LANGUAGES).map(([code, own]) => h("option", { value: code, lang: code, selected: code === language }, own.language)));
    select.addEventListener("change", () => actions.language(select.value));
    refill(this.element, h("span", { class: "views" }, ...views.map(view)), button(words.csv, "csv", actions.csv), button(words.png, "png", actions.png), copy, button(dark ? words.light : words.dark, "theme", actions.theme), select);
  }
}
