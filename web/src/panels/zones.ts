/** The list beside the map: the largest zones, or the flows of the chosen one. Works without a map. */

import { h, replace, type Child } from "../dom";
import { partners } from "../flows";
import { amount, area, axisName, count, levelName, other, percent, plural, short } from "../format";
import type { Axis, Release } from "../model";
import type { State, Store } from "../state";

const FEW = 14;

/** Facts of one zone in plain words; also the tooltip. */
export function zoneFacts(release: Release, axis: Axis, zone: number): string[] {
  const zones = release[axis];
  const facts: string[] = [];
  const verb = axis === "origin" ? "start" : "end";
  const trips = zones.mass.trips![zone]!;
  facts.push(`${amount(trips, "trips")} ${verb}${trips === 1 ? "s" : ""} here (${percent(trips / (release.about.published.trips || NaN))} of all published)`);
  if (zones.mass.weight) facts.push(`standing for ${amount(zones.mass.weight[zone]!, "weight")} of the population`);
  const size = zones.area[zone]! > 0 ? `about ${area(zones.area[zone]!)}` : "no shape to draw";
  const leaves = zones.leaves[zone];
  const merged = leaves == null ? "" : leaves === 1 ? "one finest cell" : `${count(leaves)} finest cells merged`;
  facts.push([levelName(zones.level[zone]!, zones.h3), size, merged].filter(Boolean).join(" · "));
  return facts;
}

export const zoneTitle = (axis: Axis, id: string): string => `${axis === "origin" ? "Origin" : "Destination"} zone ${id}`;

function rows(
  head: [string, string, string],
  entries: { id: string; mass: number; share: number }[],
  pick: (id: string) => void,
  state: State,
): HTMLElement {
  return h(
    "table",
    { class: "zonelist" },
    h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
    h(
      "tbody",
      {},
      ...entries.map(({ id, mass, share }) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => pick(id) }, id)),
          h("td", {}, state.measure === "weight" ? short(mass) : count(mass)),
          h("td", {}, percent(share)),
        ),
      ),
    ),
  );
}

export class ZonePanel {
  readonly element = h("aside", { class: "zones card", "aria-live": "polite" });
  private all = false;

  constructor(
    private releases: Release[],
    private readonly store: Store,
  ) {
    this.draw();
  }

  reset(releases: Release[]): void {
    this.releases = releases;
    this.draw();
  }

  draw(): void {
    const { selected } = this.store.state;
    if (selected) this.drawChosen();
    else this.drawLargest();
  }

  private select(axis: Axis, id: string): void {
    this.all = false;
    this.store.set({ selected: { axis, id } });
  }

  private drawLargest(): void {
    const { state } = this.store;
    const axis: Axis = state.axes === "destination" ? "destination" : "origin";
    const first = this.releases[0]!;
    const zones = first[axis];
    const masses = zones.mass[state.measure] ?? zones.mass.trips!;
    const total = masses.reduce((sum, mass) => sum + mass, 0) || 1;
    const order = zones.id.map((_, zone) => zone).sort((a, b) => masses[b]! - masses[a]! || a - b);
    const entries = order.slice(0, FEW).map((zone) => ({ id: zones.id[zone]!, mass: masses[zone]!, share: masses[zone]! / total }));
    replace(
      this.element,
      h("h2", {}, `Largest ${axisName[axis]} zones`),
      this.releases.length > 1 && h("p", { class: "note" }, `of ${first.name}`),
      h("p", { class: "note" }, "Choose a zone here or on the map to see its flows."),
      this.search(),
      rows(["zone", state.measure === "weight" ? "weighted trips" : "trips", "share"], entries, (id) => this.select(axis, id), state),
    );
  }

  private search(): HTMLElement {
    const hint = h("span", { class: "note", role: "status" });
    const find = (text: string): void => {
      const id = text.trim();
      for (const axis of ["origin", "destination"] as const) {
        if (this.releases.some((release) => release[axis].number.has(id))) return this.select(axis, id);
      }
      hint.textContent = id ? "There is no such zone." : "";
    };
    const input = h("input", { type: "search", "aria-label": "Find a zone by its id", placeholder: "Find a zone by its id", spellcheck: "false" });
    input.addEventListener("change", () => find(input.value));
    return h("div", { class: "search" }, input, hint);
  }

  private drawChosen(): void {
    const { axis, id } = this.store.state.selected!;
    const parts: Child[] = this.releases.flatMap((release) => this.flowsOf(release, axis, id));
    const close = h("button", { type: "button", class: "close", onclick: () => this.store.set({ selected: null }) }, "Back to all zones");
    replace(this.element, h("h2", {}, zoneTitle(axis, id)), close, ...parts);
  }

  private flowsOf(release: Release, axis: Axis, id: string): Child[] {
    const { state } = this.store;
    const title = this.releases.length > 1 && h("h3", {}, release.name);
    const zone = release[axis].number.get(id);
    if (zone === undefined) return [title, h("p", { class: "note" }, "This release has no such zone.")];
    const far = release[other[axis]];
    const found = partners(release.flows, axis, zone, state.measure);
    const total = found.reduce((sum, partner) => sum + partner.mass, 0) || 1;
    const shown = this.all ? found : found.slice(0, FEW);
    const entries = shown.map((one) => ({ id: far.id[one.zone]!, mass: one.mass, share: one.mass / total }));
    const where = axis === "origin" ? "destination" : "origin";
    const more = found.length > shown.length &&
      h("button", { type: "button", onclick: () => { this.all = true; this.draw(); } }, `Show all ${count(found.length)}`);
    return [
      title,
      h("ul", { class: "facts" }, ...zoneFacts(release, axis, zone).map((fact) => h("li", {}, fact))),
      h("p", {}, `${axis === "origin" ? "Goes to" : "Comes from"} ${plural(found.length, `${where} zone`)}:`),
      rows([axis === "origin" ? "to zone" : "from zone", state.measure === "weight" ? "weighted trips" : "trips", "share"], entries, (next) => this.select(other[axis], next), state),
      more,
    ];
  }
}
