/** The controls of the live explorer; a report has none. They ask, and never compute or show anything themselves. */

import { choices, h } from "../dom";
import { count, measureTitle, percent } from "../format";
import type { Count } from "../model";
import { chosenMethod, type Offer, type Request } from "../source";

function slider(label: string, hint: string, range: { min: number; max: number; step: number }, value: number, words: (value: number) => string, change: (value: number) => void): HTMLElement {
  const output = h("output", {}, words(value));
  const input = h("input", { type: "range", ...range, value, "aria-label": label, "aria-valuetext": words(value) });
  input.addEventListener("input", () => {
    const next = Number(input.value);
    output.textContent = words(next);
    input.setAttribute("aria-valuetext", words(next));
    change(next);
  });
  return h("div", { class: "control" }, h("span", {}, label, h("small", {}, hint)), input, output);
}

function select(label: string, hint: string, options: [string, string][], value: string, change: (value: string) => void): HTMLElement {
  const element = h("select", { "aria-label": label }, ...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  element.addEventListener("change", () => change(element.value));
  return h("label", { class: "control" }, h("span", {}, label, h("small", {}, hint)), element);
}

/** The panel; `ask` is called with every change, at once: the source drops answers that come too late. */
export function liveControls(offer: Offer, current: Request, ask: (request: Request) => void): { slider: HTMLElement; others: HTMLElement } {
  let request = current;
  const change = (part: Partial<Request>): void => {
    request = { ...request, ...part };
    fit();
    ask(request);
  };
  const targets = protectBoxes(offer, request, change);
  const method = select("Method", "", offer.methods.map(({ name, title, slow }) => [name, `${title}${slow ? " (takes longer)" : ""}`]), request.method, (name) => change({ method: name }));
  const versus = select("Compare with", "another method, side by side", [["", "nothing"], ...offer.methods.map(({ name, title }): [string, string] => [name, title])], request.versus ?? "", (name) => change({ versus: name || null, split: false }));
  const box = splitBox(request, change);
  const budget = slider("May leave out", "the most that may be dropped", { min: 0, max: offer.budget.max, step: 0.005 }, request.budget, percent, (share) => change({ budget: share }));
  const when = choices("suppress", "Leave out", [
    { value: "after", label: "after merging", title: "only what is still too small then" },
    { value: "before", label: "before merging", title: "as in the paper" },
  ], request.suppress, (suppress) => change({ suppress }));
  /** Shows only what means something for the chosen method. */
  const fit = (): void => {
    const chosen = chosenMethod(offer, request);
    method.querySelector("small")!.textContent = chosen.hint;
    budget.hidden = !chosen.budget;
    when.hidden = !chosen.suppress;
    targets.hidden = request.split;
    versus.querySelector("select")!.value = request.versus ?? "";
    box.querySelector("input")!.checked = request.split;
  };
  fit();
  const k = slider("k", "how many must stand behind every flow", { ...offer.k, step: 1 }, request.k, count, (value) => change({ k: value }));
  const others = h(
    "div",
    { class: "controls" },
    targets,
    offer.targets.includes("weight") && box,
    method,
    versus,
    budget,
    when,
    offer.resolutions.length > 1 &&
      select("Finest cells", "H3 resolution; larger is finer", offer.resolutions.map((one) => [String(one), String(one)]), String(request.resolution), (one) => change({ resolution: Number(one) })),
    offer.segments.length > 1 &&
      select("Travellers", "part of the data", offer.segments.map((name) => [name, name]), request.segment, (segment) => change({ segment })),
  );
  return { slider: k, others };
}

function protectBoxes(offer: Offer, request: Request, change: (part: Partial<Request>) => void): HTMLElement {
  const targets = new Set(request.targets);
  const boxes = offer.targets.map((name) => {
    const box = h("input", { type: "checkbox", value: name, checked: targets.has(name) });
    box.addEventListener("change", () => {
      if (box.checked) targets.add(name);
      else targets.delete(name);
      // A release without any rule cannot exist: the last box stays ticked.
      if (!targets.size) {
        targets.add(name);
        box.checked = true;
      }
      change({ targets: offer.targets.filter((one) => targets.has(one)) });
    });
    return h("label", {}, box, measureTitle[name as Count] ?? name);
  });
  return h("fieldset", { class: "control" }, h("legend", {}, "Protect"), ...boxes);
}

function splitBox(request: Request, change: (part: Partial<Request>) => void): HTMLElement {
  const box = h("input", { type: "checkbox", checked: request.split });
  box.addEventListener("change", () => change({ split: box.checked, versus: null }));
  return h("label", { class: "control tick" }, box, h("span", {}, "Participants | population", h("small", {}, "both protections side by side")));
}
