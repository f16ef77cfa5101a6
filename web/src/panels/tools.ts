/** The bar at the top: what is shown, what of it can be taken along, and how it is shown. */

import { h, Menu, refill, type Child } from "../dom";
import type { State } from "../state";
import { LANGUAGES, type Speech } from "../words";

export interface ToolActions {
  set: (change: Partial<State>) => void;
  csv: () => void;
  png: () => void;
  copy: () => Promise<void>;
}

export interface ToolContent {
  views: State["view"][];
  dark: boolean;
  /** Whether there is a choice of what is counted, and something that is only roughly known. */
  hasWeights: boolean;
  hasRough: boolean;
}

export class Tools {
  readonly element: HTMLElement;
  private readonly views = h("span", { class: "views" });
  private readonly save = new Menu("save-as");
  private readonly options = new Menu("options");

  constructor(private readonly actions: ToolActions) {
    this.element = h("nav", { class: "card tools", "data-card": "tools" }, this.views, this.save.element, this.options.element);
  }

  draw(state: State, content: ToolContent, { words, language }: Speech): void {
    this.element.setAttribute("aria-label", words.tools);
    const { actions } = this;
    const button = (text: string, key: string, onclick: (event: Event) => void, pressed?: boolean): HTMLElement => h("button", { type: "button", "data-key": key, "aria-pressed": pressed === undefined ? null : String(pressed), onclick }, text);
    refill(this.views, ...content.views.map((view) => button(words[view], `view-${view}`, () => actions.set({ view }), state.view === view)));
    const copy = button(words.copy, "copy", (event) => {
      const own = event.currentTarget as HTMLElement;
      void actions.copy().then(() => (own.textContent = words.copied));
    });
    this.save.draw(words.save, button(words.csv, "csv", actions.csv), button(words.png, "png", actions.png), copy);
    this.options.draw(words.options, ...this.choices(state, content, words, button), this.languages(language, words));
  }

  private choices(state: State, { dark, hasWeights, hasRough }: ToolContent, words: Speech["words"], button: (text: string, key: string, onclick: () => void, pressed?: boolean) => HTMLElement): Child[] {
    const { set } = this.actions;
    const count = (what: State["count"], text: string): HTMLElement => button(text, `count-${what}`, () => set({ count: what }), state.count === what);
    const box = h("input", { type: "checkbox", checked: state.rough, "data-key": "rough" });
    box.addEventListener("change", () => set({ rough: box.checked }));
    return [
      hasWeights && h("span", { class: "counts", role: "group", "aria-label": words.countChoice }, h("small", {}, words.countChoice), count("weight", words.countWeight), count("trips", words.countTrips)),
      hasRough && h("label", { class: "rough" }, box, words.rough),
      button(dark ? words.light : words.dark, "theme", () => set({ theme: dark ? "light" : "dark" })),
    ];
  }

  private languages(language: string, words: Speech["words"]): HTMLElement {
    const select = h("select", { "aria-label": words.languageChoice, "data-key": "language" }, ...Object.entries(LANGUAGES).map(([code, own]) => h("option", { value: code, lang: code, selected: code === language }, own.language)));
    select.addEventListener("change", () => this.actions.set({ language: select.value }));
    return select;
  }
}
