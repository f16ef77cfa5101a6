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
  const targets = boxes("Protect", "", offer.targets.map((name) => [name, measureTitle[name as Count] ?? name]), request.targets, 1, (chosen) => change({ targets: chosen }));
  // One table by attributes is a cascade of everyone.
  const cube = offer.methods.find(({ attributes }) => attributes)?.name;
  const by = boxes("Publish by", "one table by these, with as much detail as the rule allows", offer.attributes.map((text) => [text, text.replace(":", ": ").replaceAll(",", ", ")]), request.by, 0, (chosen) => change(chosen.length ? { by: chosen, method: cube!, versus: null, segment: offer.segments[0]! } : { by: [] }));
  const method = select("Method", "", offer.methods.map(({ name, title, slow }) => [name, `${title}${slow ? " (takes longer)" : ""}`]), request.method, (name) => change(name === cube ? { method: name } : { method: name, by: [] }));
  const versus = select("Compare with", "another method, side by side", [["", "nothing"], ...offer.methods.map(({ name, title }): [string, string] => [name, title])], request.versus ?? "", (name) => change({ versus: name || null, split: false, by: [] }));
  const box = splitBox(request, change);
  const budget = slider("May leave out", "the most that may be dropped", { min: 0, max: offer.budget.max, step: 0.005 }, request.budget, percent, (share) => change({ budget: share }));
  const when = choices("suppress", "Leave out", [
    { value: "after", label: "after merging", title: "only what is still too small then" },
    { value: "before", label: "before merging", title: "as in the paper" },
  ], request.suppress, (suppress) => change({ suppress }));
  const travellers = select("Travellers", "part of the data", offer.segments.map((name) => [name, name]), request.segment, (segment) => change(segment === offer.segments[0] ? { segment } : { segment, by: [] }));
  /** Shows only what means something for the chosen method. */
  const fit = (): void => {
    const chosen = chosenMethod(offer, request);
    method.querySelector("small")!.textContent = chosen.hint;
    budget.hidden = !chosen.budget;
    when.hidden = !chosen.suppress;
    targets.hidden = request.split;
    method.querySelector("select")!.value = request.method;
    travellers.querySelector("select")!.value = request.segment;
    by.querySelectorAll("input").forEach((box) => (box.checked = request.by.includes(box.value)));
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
    offer.attributes.length > 0 && cube && by,
    versus,
    budget,
    when,
    offer.resolutions.length > 1 &&
      select("Finest cells", "H3 resolution; larger is finer", offer.resolutions.map((one) => [String(one), String(one)]), String(request.resolution), (one) => change({ resolution: Number(one) })),
    offer.segments.length > 1 && travellers,
  );
  return { slider: k, others };
}

/** Boxes to tick, at least so many of them: a release without any rule cannot exist, so that the last box stays ticked. */
function boxes(label: string, hint: string, options: [string, string][], chosen: string[], least: number, change: (chosen: string[]) => void): HTMLElement {
  const inputs = options.map(([value]) => h("input", { type: "checkbox", value, checked: chosen.includes(value) }));
  for (const box of inputs) {
    box.addEventListener("change", () => {
      if (inputs.filter(({ checked }) => checked).length < least) box.checked = true;
      change(inputs.filter(({ checked }) => checked).map(({ value }) => value));
    });
  }
  return h("fieldset", { class: "control" }, h("legend", {}, label, hint && h("small", {}, hint)), ...inputs.map((box, i) => h("label", {}, box, options[i]![1])));
}

function splitBox(request: Request, change: (part: Partial<Request>) => void): HTMLElement {
  const box = h("input", { type: "checkbox", checked: request.split });
  box.addEventListener("change", () => change({ split: box.checked, versus: null }));
  return h("label", { class: "control tick" }, box, h("span", {}, "Participants | population", h("small", {}, "both protections side by side")));
}
