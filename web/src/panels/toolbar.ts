/** The choices above the map. */

import { choices, h, type Choice } from "../dom";
import { count } from "../format";
import type { Release } from "../model";
import type { State, Store } from "../state";

/** Positions of the slider; the last one stands for all flows. */
const STEPS = [0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

export function toolbar(releases: Release[], store: Store, addBeneath: (file: File) => void): HTMLElement {
  const { state } = store;
  const two = releases.length === 2;
  const weighted = releases.some((release) => release.origin.mass.weight);
  const shapes = releases.some((release) => release.origin.area.some((area) => area > 0));
  const shades: Choice<State["shade"]>[] = [
    { value: "total", label: "total", title: "darker: more trips in the zone" },
    { value: "density", label: "per km²", title: "trips divided by the area of the zone: fair between large and small zones" },
  ];
  if (two) shades.unshift({ value: "difference", label: "differences", title: "zones that only one of the two releases has" });
  return h(
    "div",
    { class: "toolbar" },
    choices("axes", "Show", [
      { value: "origin", label: "origins", title: "where trips start" },
      { value: "destination", label: "destinations", title: "where trips end" },
      { value: "both", label: "both" },
    ], state.axes, (axes) => store.set({ axes })),
    (shapes || two) && choices("shade", "Colour", shades, state.shade, (shade) => store.set({ shade })),
    weighted && choices("measure", "Count", [
      { value: "trips", label: "trips", title: "trips as observed" },
      { value: "weight", label: "weighted", title: "trips times their survey weight: what they stand for in the population" },
    ], state.measure, (measure) => store.set({ measure })),
    flowSlider(store),
    beneath(addBeneath),
  );
}

function flowSlider(store: Store): HTMLElement {
  const output = h("output", { for: "flows" });
  const input = h("input", { id: "flows", type: "range", min: 0, max: STEPS.length - 1, step: 1 });
  const words = (flows: number): string => (flows ? `strongest ${count(flows)}` : "none");
  const show = (flows: number): void => {
    input.value = String(Math.max(0, STEPS.findIndex((step) => step >= flows)));
    output.textContent = words(flows);
    input.setAttribute("aria-valuetext", words(flows));
  };
  show(store.state.flows);
  input.addEventListener("input", () => store.set({ flows: STEPS[Number(input.value)]! }));
  store.listen((state, changed) => changed.has("flows") && show(state.flows));
  return h("div", { class: "choices flows" }, h("label", { for: "flows" }, "Flows"), input, output);
}

function beneath(add: (file: File) => void): HTMLElement {
  const input = h("input", { type: "file", accept: ".geojson,.json,application/geo+json" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) add(file);
  });
  return h("label", { class: "file", title: "streets or districts of your own, drawn beneath the zones; the file stays on your machine" }, "Add a GeoJSON beneath", input);
}
