/** A field that a place is typed into, with suggestions: a combobox with a list box. */

import { h, replace } from "../dom";
import type { Words } from "../words";

export interface Suggestion {
  id: string;
  name: string;
}

export class PlaceField {
  readonly element: HTMLElement;
  private readonly label = h("label", {});
  private readonly input: HTMLInputElement;
  private readonly clear = h("button", { type: "button", class: "clear" }, "×");
  private readonly options: HTMLElement;
  private words: Words | null = null;
  private value: string | null = null;
  private found: Suggestion[] = [];
  private active = -1;

  constructor(name: string, private readonly suggest: (text: string) => Suggestion[], private readonly choose: (place: string | null) => void) {
    this.label.setAttribute("for", `place-${name}`);
    this.options = h("ul", { id: `options-${name}`, role: "listbox", hidden: true });
    this.input = h("input", { id: `place-${name}`, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": `options-${name}` });
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.input.select());
    this.input.addEventListener("blur", () => setTimeout(() => document.activeElement !== this.input && this.close(), 150));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.clear.addEventListener("click", () => this.choose(null));
    this.element = h("div", { class: "field" }, this.label, h("div", { class: "entry" }, this.input, this.clear, this.options));
  }

  focus(): void {
    this.input.focus();
  }

  draw(label: string, value: string | null, words: Words): void {
    this.words = words;
    this.value = value;
    this.label.textContent = label;
    this.input.placeholder = label === words.from ? words.hint : words.anywhere;
    this.options.setAttribute("aria-label", label);
    this.clear.setAttribute("aria-label", words.clear(label));
    this.clear.hidden = value === null;
    if (document.activeElement !== this.input || value !== null) this.input.value = value ?? "";
    if (value === null && !this.input.value) this.close();
  }

  private look(): void {
    this.found = this.input.value.trim() ? this.suggest(this.input.value) : [];
    this.active = this.found.length ? 0 : -1;
    const empty = this.input.value.trim() && !this.found.length;
    this.options.hidden = !this.input.value.trim();
    this.input.setAttribute("aria-expanded", String(!this.options.hidden));
    replace(
      this.options,
      ...this.found.map((one, i) => h("li", { id: `${this.options.id}-${i}`, role: "option", "aria-selected": String(i === this.active), onmousedown: (event: Event) => (event.preventDefault(), this.take(one)) }, one.name)),
      empty && h("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "none" }, this.words!.noPlace),
    );
    this.point();
  }

  private point(): void {
    [...this.options.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === this.active)));
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", `${this.options.id}-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.options.children[this.active]?.scrollIntoView({ block: "nearest" });
  }

  private take(one: Suggestion): void {
    this.close();
    this.input.blur();
    this.choose(one.id);
  }

  private close(): void {
    this.options.hidden = true;
    this.found = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    if (document.activeElement !== this.input) this.input.value = this.value ?? "";
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.found.length) {
      this.active = (this.active + steps[event.key]! + this.found.length) % this.found.length;
      this.point();
    } else if (event.key === "Enter" && this.found[this.active]) this.take(this.found[this.active]!);
    else if (event.key === "Enter" && !this.input.value.trim() && this.value !== null) this.choose(null);
    else if (event.key === "Escape" && !this.options.hidden) {
      this.input.value = "";
      this.close();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
