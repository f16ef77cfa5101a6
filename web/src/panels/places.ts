/** The words around the map of places: the sentence, the detail slider, the list. */

import { commonDetails } from "../changes";
import { choices, h, replace, type Child } from "../dom";
import { amount, area, count, measureName, short, wholePercent } from "../format";
import type { Release, Zones } from "../model";
import type { Names } from "../names";
import type { Nest } from "../nest";
import { valueTitle } from "../kinds";
import type { Asked, Seen } from "../places";
import type { State, Store } from "../state";
import { listing, Memory, type Entry } from "./listing";

/** What the map shows: the answer, and what one should know about it. */
export interface Answer {
  main: string;
  note: string;
}

/** From which share of what is told on, trips that may be here as well belong to the answer. */
const ASIDE = 0.25;

/** So many places are named in the answer; the list has all. */
const NAMED = 3;

/** "20 % go to Paris, 3 km NE", "9 % to Créteil": the strongest places besides the chosen one. */
export function strongest(seen: Seen, far: Nest, own: string | null, { towards, place, detail }: Asked, names: Names): string[] {
  const nodes = far.id.map((_, node) => node).filter((node) => seen.at[node]! > 0 && far.rank[node]! >= detail && far.id[node] !== own);
  const found = nodes.sort((a, b) => seen.at[b]! - seen.at[a]!).flatMap((node) => {
    const name = names.where(far.centre[node] ?? null, far.area[node]);
    return name ? [{ name, share: seen.at[node]! / seen.total }] : [];
  });
  const verb = towards === "destination" ? (place ? "go to" : "end near") : place ? "come from" : "start near";
  return found.slice(0, NAMED).map(({ name, share }, i) => `${wholePercent(share)} ${i ? verb.split(" ").at(-1) : verb} ${name}`);
}

/** Answers where trips go; `places` are those to name. */
export function sentence(seen: Seen, asked: Asked, where: string | null, places: string[] = []): Answer {
  const from = asked.towards === "destination";
  const { measure, place } = asked;
  if (place && seen.node < 0) return { main: `Nothing is published ${from ? "from" : "to"} here: there were no trips, or too few.`, note: "" };
  const start = (place ? `${from ? "From" : "To"} around ${where ?? "this place"}` : "Everywhere") + chosenKinds(asked);
  const published = measure === "trips" ? `${count(seen.total)} published ${seen.total === 1 ? "trip" : "trips"}` : `${short(seen.total)} published ${measureName[measure]}`;
  const stays = seen.stays > 0 && `${wholePercent(seen.stays / (seen.total || 1))} of them ${seen.stays === 1 ? "stays" : "stay"} inside their cell`;
  // Rows that do not tell the chosen detail, or lie in larger areas, would change every share.
  const shares = seen.loose > 0 || seen.around > ASIDE * seen.total ? "" : [stays, ...places].filter(Boolean).join("; ");
  const least = seen.loose > 0 ? "at least " : "";
  const aside = seen.around > ASIDE * seen.total && ` Another ${short(seen.around)} ${from ? "start" : "end"} here or in a larger area around.`;
  const around = seen.around > 0 ? `${aside ? "" : `Larger areas around it have ${short(seen.around)} more. `}How many of those ${from ? "start" : "end"} here is not published, so they are not among these.` : "";
  const told = Object.keys(asked.only).map((name) => name.replaceAll("_", " ")).join(" and ");
  const loose = seen.loose > 0 ? `Another ${amount(seen.loose, measure)} may be among them: ${seen.loose === 1 ? "it does" : "they do"} not tell the ${told} as exactly.` : "";
  return { main: `${start}: ${least}${published}${shares && `; ${shares}`}.${aside || ""}`, note: [around, loose].filter(Boolean).join(" ") };
}

/** ", mode car, hour not given". */
const chosenKinds = ({ only }: Asked): string =>
  Object.entries(only).map(([name, value]) => `, ${name.replaceAll("_", " ")} ${valueTitle(value)}`).join("");

/** The controls of the map of places. */
export function placeTools(releases: Release[], store: Store): Child[] {
  const ranks = commonDetails(releases);
  const last = ranks.length - 1;
  const input = h("input", { id: "detail", type: "range", min: 0, max: last, step: 1 });
  const output = h("output", { for: "detail" });
  const show = (state: State): void => {
    const at = Math.max(0, ranks.indexOf(state.detail));
    const words = detailWords(releases, ranks[at]!);
    input.value = String(at);
    output.textContent = words;
    input.setAttribute("aria-valuetext", words);
  };
  input.addEventListener("input", () => store.set({ detail: ranks[Number(input.value)]! }));
  show(store.state);
  store.listen((state, changed) => changed.has("detail") && show(state), "detail");
  return [
    choices("towards", "Show", [
      { value: "destination", label: "destinations", title: "where trips end: all of them, or those from the chosen place" },
      { value: "origin", label: "origins", title: "where trips start: all of them, or those to the chosen place" },
    ], store.state.towards, (towards) => store.set({ towards })),
    releases.length === 2 && choices("unit", "Change", [
      { value: "share", label: "share of all", title: "what share of all trips each place has, before and after" },
      { value: "trips", label: "trips", title: "how many more or fewer" },
      { value: "percent", label: "%", title: "how much more or less, in percent of the first release" },
    ], store.state.unit, (unit) => store.set({ unit })),
    last > 0 && h("div", { class: "choices detail" }, h("label", { for: "detail" }, "Detail: region"), input, h("small", { class: "note" }, "street"), output),
  ];
}

/** About how large a cell of a detail is. */
function detailWords(releases: Release[], rank: number): string {
  const areas = releases.flatMap(({ origin, destination }) => [origin, destination]).flatMap(({ nest }) => nest.area.filter((size, node) => nest.rank[node] === rank && size > 0)).sort((a, b) => a - b);
  return areas.length ? `drawn in cells of ${area(areas[areas.length >> 1]!)}` : "";
}

/** What the list says of each cell with trips. */
export function placeEntries({ nest }: Zones, seen: Seen, names: Names, detail: number, own: string | null): Entry[] {
  const nodes = nest.id.map((_, node) => node).filter((node) => seen.at[node]! > 0);
  return nodes.map((node) => ({
    id: nest.id[node]!,
    near: nest.id[node] === own ? names.nearest(nest.centre[node] ?? null) : names.where(nest.centre[node] ?? null, nest.area[node]),
    mass: seen.at[node]!,
    share: seen.at[node]! / (seen.total || 1),
    area: nest.area[node]!,
    note: nest.id[node] === own ? h("small", {}, "the chosen cell") : nest.rank[node]! < detail && h("small", {}, nest.area[node]! > 0 ? `somewhere in ${area(nest.area[node]!)}` : "somewhere"),
  }));
}

/** The list beside the map of places. */
export class PlacePanel {
  private memory = new Memory();

  constructor(
    private readonly element: HTMLElement,
    private readonly store: Store,
    private readonly names: () => Names,
    /** Called after a place was found by its name. */
    private readonly found: () => void,
  ) {}

  /** Lists cells of `far`; places are looked for in `near`, too. `counted`: what the numbers are, if not trips. */
  draw(entries: Entry[], far: Nest, near: Nest, counted?: string): void {
    const { towards, place, measure } = this.store.state;
    const inside = this.element.contains(document.activeElement);
    const go = (id: string): void => {
      const centre = far.centre[far.id.indexOf(id)];
      if (centre) this.store.set({ place: centre });
    };
    const from = towards === "destination";
    const title = place ? (from ? "Where they go" : "Where they come from") : from ? "Where all trips end" : "Where all trips start";
    const back = place && h("button", { type: "button", class: "close", onclick: () => this.store.set({ place: null }) }, "Back to everywhere");
    // All cells have the size that the slider says, or say that they are larger.
    const listed = { what: from ? "to" : "from", counted, sized: false, measure, entries, pick: go, find: (text: string) => this.find(near, text) };
    replace(
      this.element,
      h("h2", { tabindex: -1 }, counted ? `Change: ${title.toLowerCase()}` : title),
      back,
      !place && h("p", { class: "note" }, "Click a place on the map, or find it by its name."),
      listing(listed, this.memory),
    );
    if (inside && !this.element.contains(document.activeElement)) this.element.querySelector<HTMLElement>("h2")?.focus();
  }

  private find(near: Nest, text: string): string | null {
    const town = this.names().find(text);
    const place = town?.at ?? near.centre[near.id.indexOf(text)];
    if (!place) return "There is no such place here.";
    this.memory = new Memory();
    this.store.set({ place });
    this.found();
    return null;
  }
}
