/** Building elements without a framework. Text always becomes text nodes, never markup. */

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child != null && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  fill(parent, {}, children);
}

/** The same, for what is built anew while somebody may be in it: who was on a `data-key` stays on it. */
export function refill(parent: Element, ...children: Child[]): void {
  const key = parent.contains(document.activeElement) ? document.activeElement!.getAttribute("data-key") : null;
  replace(parent, ...children);
  if (key !== null) parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** A button that opens a panel; Escape and a click elsewhere close it. What is in the panel can be drawn anew while it is open. */
export class Menu {
  readonly element: HTMLDetailsElement;
  private readonly button = h("summary", {});
  private readonly panel = h("div", { class: "panel" });

  constructor(name: string) {
    this.element = h("details", { class: `menu ${name}` }, this.button, this.panel);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.element.open) return;
      event.preventDefault();
      this.element.open = false;
      this.button.focus();
    });
    document.addEventListener("pointerdown", (event) => this.element.contains(event.target as Node) || (this.element.open = false));
  }

  draw(label: Child, ...children: Child[]): void {
    replace(this.button, label);
    refill(this.panel, ...children);
  }
}

/** A titled part of the page. */
export const card = (title: string, className: string, ...children: Child[]): HTMLElement =>
  h("section", { class: `card ${className}` }, h("h2", {}, title), ...children);

export interface Row {
  label: string;
  hint?: string;
  cells: Child[];
}

/** A table of labelled rows; every label carries its plain explanation. */
export function table(head: Child[], rows: Row[], caption: string): HTMLElement {
  const columns = Math.max(1, ...rows.map((row) => row.cells.length));
  const element = h(
    "div",
    { class: columns > 1 ? "scroll many" : "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      head.length > 0 &&
        h("thead", {}, h("tr", {}, ...head.map((cell) => (cell === "" ? h("th", { scope: "col", class: "corner" }, h("span", { class: "hidden" }, caption)) : h("th", { scope: "col" }, cell))))),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, row.label, row.hint && h("small", {}, row.hint)),
            ...row.cells.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
  element.style.setProperty("--columns", String(columns));
  return element;
}

export interface Choice<T extends string> {
  value: T;
  label: string;
  title?: string;
}

/** A row of radio buttons that looks like one switch. */
export function choices<T extends string>(
  name: string,
  legend: string,
  options: Choice<T>[],
  current: T,
  onpick: (value: T) => void,
): HTMLElement {
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, legend),
    ...options.map(({ value, label, title }) =>
      h(
        "label",
        { title },
        h("input", {
          type: "radio",
          name,
          value,
          checked: value === current,
          onchange: () => onpick(value),
        }),
        h("span", {}, label),
      ),
    ),
  );
}
