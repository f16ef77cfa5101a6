/** The choices above the map. */

import { areNested, comparable } from "../changes";
import { choices, h, type Choice } from "../dom";
import { count } from "../format";
import type { Release } from "../model";
import type { State, Store } from "../state";
import { placeTools } from "./places";

/** Positions of the slider; the last one stands for all flows. */
const STEPS = [0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

function shades(releases: Release[]): Choice<State["shade"]>[] {
  const found: Choice<State["shade"]>[] = [
    { value: "total", label: "total", title: "darker: more trips in the zone" },
    { value: "density", label: "per km²", title: "trips divided by the area of the zone: fair between large and small zones" },
    { value: "size", label: "zone size", title: "how coarse it is where: square kilometres of each zone" },
  ];
  if (releases.length !== 2) return found;
  return [
    // What a nested row lists depends on the finer ones: two of them are never subtracted.
    ...(areNested(releases) ? [] : [{ value: "change" as const, label: "change", title: "the second release minus the first" }]),
    { value: "difference", label: "differences", title: "zones that only one of the two releases has" },
    ...found,
  ];
}

export function toolbar(releases: Release[], store: Store, addBeneath: (file: File) => void): HTMLElement {
  const { state } = store;
  const weighted = releases.some((release) => release.origin.mass.weight);
  const shapes = releases.some((release) => release.origin.area.some((area) => area > 0));
  const places = state.view === "places";
  const zones = [
    choices("axes", "Show", [
      { value: "origin", label: "origins", title: "where trips start" },
      { value: "destination", label: "destinations", title: "where trips end" },
      { value: "both", label: "both" },
    ], state.axes, (axes) => store.set({ axes })),
    (shapes || releases.length === 2) && choices("shade", "Colour", shades(releases), state.shade, (shade) => store.set({ shade })),
  ];
  return h(
    "div",
    { class: "toolbar" },
    (releases.length === 1 || comparable(releases)) && shapes && choices("view", "Map of", [
      { value: "places", label: releases.length > 1 ? "change" : "places", title: "one map: choose a place, and all rows that cover it answer" },
      { value: "zones", label: "zones", title: "the zones as they are published, origins and destinations apart" },
    ], state.view, (view) => store.set({ view })),
    ...(places ? placeTools(releases, store) : zones),
    weighted && choices("measure", "Count", [
      { value: "trips", label: "trips", title: "trips as observed" },
      { value: "weight", label: "weighted", title: "trips times their survey weight: what they stand for in the population" },
    ], state.measure, (measure) => store.set({ measure })),
    flowSlider(Math.max(...releases.map((release) => release.flows.count)), places, store),
    beneath(addBeneath),
  );
}

/** On a map of places an arrow is all that goes between two cells, so how many there are depends on place and detail. */
function flowSlider(most: number, places: boolean, store: Store): HTMLElement {
  const steps = [...STEPS.filter((step) => step < most), Math.min(most, STEPS.at(-1)!)];
  const output = h("output", { for: "flows" });
  const input = h("input", { id: "flows", type: "range", min: 0, max: steps.length - 1, step: 1 });
  const several = (flows: number): string => (places ? `up to ${count(flows)}, the strongest` : `strongest ${count(flows)} of ${count(most)}`);
  const words = (flows: number): string => (!flows ? "none" : flows < most ? several(flows) : places ? "all" : `all ${count(most)}`);
  const show = (flows: number): void => {
    const at = steps.findIndex((step) => step >= flows);
    input.value = String(at < 0 ? steps.length - 1 : at);
    output.textContent = words(flows);
    input.setAttribute("aria-valuetext", words(flows));
  };
  show(store.state.flows);
  input.addEventListener("input", () => store.set({ flows: steps[Number(input.value)]! }));
  store.listen((state, changed) => changed.has("flows") && show(state.flows), "flows");
  return h("div", { class: "choices flows" }, h("label", { for: "flows" }, places ? "Arrows" : "Flows"), input, output);
}

function beneath(add: (file: File) => void): HTMLElement {
  const input = h("input", { type: "file", accept: ".geojson,.json,application/geo+json" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) add(file);
  });
  return h("label", { class: "file", title: "streets or districts of your own, drawn over the zones; the file stays on your machine" }, "Add a GeoJSON", input);
}
