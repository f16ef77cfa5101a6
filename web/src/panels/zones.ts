/** The list beside the map: all zones, or the flows of the chosen one. Works without a map. */

import { areNested } from "../changes";
import { h, replace, type Child } from "../dom";
import { zoneChanges, type Changed } from "../compare";
import { partners } from "../flows";
import { amount, area, axisName, count, levelName, other, percent, plural, short } from "../format";
import type { Axis, Measure, Release } from "../model";
import { isCell, type Names } from "../names";
import { nodeAt } from "../nest";
import { ladder, type Rung } from "../places";
import type { Store } from "../state";
import { listing, Memory, type Entry } from "./listing";

/** Larger than any region: how much larger tells nobody anything. Square kilometres. */
const VAST = 100_000;

/** "14 in this cell (0.7 km²) + 426 in the surrounding 5 km² + 288 in 32 km² + 24 in far larger areas". */
export function ladderText(rungs: Rung[], measure: Measure): string {
  const size = ({ area: own }: Rung): string => (own > 0 ? area(own) : "an unknown area");
  const [first, ...others] = rungs.filter((rung, i) => i === 0 || rung.area <= VAST);
  const vast = rungs.slice(1).reduce((sum, rung) => sum + (rung.area > VAST ? rung.mass : 0), 0);
  const parts = others.map((rung, i) => `${count(rung.mass)} in ${i ? "" : "the surrounding "}${size(rung)}`);
  const start = first && `${amount(first.mass, measure)} in this cell (${size(first)})`;
  return [start, ...parts, vast > 0 && `${count(vast)} in far larger areas`].filter(Boolean).join(" + ");
}

/** Facts of one zone in plain words; also the tooltip. */
export function zoneFacts(release: Release, axis: Axis, zone: number): string[] {
  const zones = release[axis];
  const facts: string[] = [];
  const verb = axis === "origin" ? "start" : "end";
  const trips = zones.mass.trips![zone]!;
  const rungs = ladder(zones.nest, zones.mass.trips!, zone);
  // Where zones lie in each other, what is listed here is not all that happens here.
  if (rungs.length > 1) facts.push(`Trips that ${verb} here: ${ladderText(rungs, "trips")}`);
  else facts.push(`${amount(trips, "trips")} ${verb}${trips === 1 ? "s" : ""} here (${percent(trips / (release.about.published.trips || NaN))} of all published)`);
  if (zones.mass.weight) facts.push(`standing for ${amount(zones.mass.weight[zone]!, "weight")} of the population`);
  const size = zones.area[zone]! > 0 ? `about ${area(zones.area[zone]!)}` : "no shape to draw";
  const leaves = zones.leaves[zone];
  const merged = leaves == null ? "" : leaves === 1 ? "one finest cell" : `${count(leaves)} finest cells merged`;
  facts.push([levelName(zones.level[zone]!, zones.h3), size, merged].filter(Boolean).join(" · "));
  return facts;
}

export const zoneTitle = (axis: Axis, id: string): string => `${axis === "origin" ? "Origin" : "Destination"} zone ${id}`;

/** "+12" and the like; what is not listed in the other release may be none, or too few. */
export const changeWords = ({ kind, by }: Changed): string =>
  kind === "gone" ? "not in the other" : kind === "new" ? "only in the other" : by === 0 ? "no change" : `${by > 0 ? "+" : "−"}${short(Math.abs(by))}`;

export class ZonePanel {
  readonly element = h("aside", { class: "zones card", "aria-label": "Zones and flows" });
  private memory = new Memory();

  constructor(
    private releases: Release[],
    private readonly store: Store,
    private readonly names: () => Names,
  ) {
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.store.state.selected) this.store.set({ selected: null });
    });
  }

  reset(releases: Release[]): void {
    this.releases = releases;
  }

  /** Draws the list; whoever was in it with the keyboard stays in it. */
  draw(before: string | null = null): void {
    const inside = this.element.contains(document.activeElement);
    const { selected } = this.store.state;
    if (selected) this.drawChosen();
    else this.drawAll();
    if (!inside) return;
    const button = before && !selected ? this.element.querySelector<HTMLElement>(`[data-id="${CSS.escape(before)}"]`) : null;
    (button ?? this.element.querySelector<HTMLElement>("h2"))?.focus();
  }

  private select(axis: Axis, id: string): void {
    this.memory = new Memory();
    this.store.set({ selected: { axis, id } });
  }

  private near(release: Release, axis: Axis, zone: number): string | null {
    return this.names().where(release[axis].centre[zone] ?? null);
  }

  private drawAll(): void {
    const { state } = this.store;
    const axis: Axis = state.axes === "destination" ? "destination" : "origin";
    const first = this.releases[0]!;
    const zones = first[axis];
    const masses = zones.mass[state.measure] ?? zones.mass.trips!;
    const total = zones.id.reduce((sum, _, zone) => sum + masses[zone]!, 0) || 1;
    const changes = this.releases.length === 2 && !areNested(this.releases) ? zoneChanges(first, this.releases[1]!, axis, state.measure) : null;
    const entries = zones.id.map((id, zone): Entry => ({
      id,
      near: this.near(first, axis, zone),
      mass: masses[zone]!,
      share: masses[zone]! / total,
      area: zones.area[zone]!,
      note: changes && h("small", {}, changeWords(changes.get(id)!)),
    }));
    const listed = { what: `${axisName[axis]} zone`, measure: state.measure, entries, pick: (id: string) => this.select(axis, id), find: (text: string) => this.find(text) };
    replace(
      this.element,
      h("h2", { tabindex: -1 }, `All ${plural(zones.id.length, `${axisName[axis]} zone`)}`),
      this.releases.length > 1 && h("p", { class: "note" }, `of ${first.name}`),
      h("p", { class: "note" }, "Choose a zone here or on the map to see its flows."),
      listing(listed, this.memory),
    );
  }

  /** Chooses a zone by its id, or the one at a town. */
  private find(text: string): string | null {
    for (const axis of ["origin", "destination"] as const) {
      if (this.releases.some((release) => release[axis].number.has(text))) return this.select(axis, text), null;
    }
    const town = this.names().find(text);
    if (!town) return "There is no such zone or town here.";
    const axis: Axis = this.store.state.axes === "destination" ? "destination" : "origin";
    const { nest } = this.releases[0]![axis];
    const node = nodeAt(nest, town.at);
    if (node < 0 || node >= nest.zones) return `No zone is published at ${town.name}.`;
    return this.select(axis, nest.id[node]!), null;
  }

  private drawChosen(): void {
    const { axis, id } = this.store.state.selected!;
    const release = this.releases.find((one) => one[axis].number.has(id));
    const near = release ? this.near(release, axis, release[axis].number.get(id)!) : null;
    const parts: Child[] = this.releases.flatMap((one) => this.flowsOf(one, axis, id));
    const close = h("button", { type: "button", class: "close", onclick: () => this.store.set({ selected: null }) }, "Back to all zones");
    replace(this.element, h("h2", { tabindex: -1 }, ...(near && isCell(id) ? [near, h("small", {}, zoneTitle(axis, id))] : [zoneTitle(axis, id), near && h("small", {}, `near ${near}`)])), close, ...parts);
  }

  private flowsOf(release: Release, axis: Axis, id: string): Child[] {
    const { state } = this.store;
    const title = this.releases.length > 1 && h("h3", {}, release.name);
    const zone = release[axis].number.get(id);
    if (zone === undefined) return [title, h("p", { class: "note" }, "This release has no such zone.")];
    const far = release[other[axis]];
    const found = partners(release.flows, axis, zone, state.measure);
    const total = found.reduce((sum, partner) => sum + partner.mass, 0) || 1;
    const entries = found.map((one): Entry => ({
      id: far.id[one.zone]!,
      near: this.near(release, other[axis], one.zone),
      mass: one.mass,
      share: one.mass / total,
      area: far.area[one.zone]!,
      note: far.id[one.zone] === id && h("small", {}, "stay inside"),
    }));
    const listed = {
      what: axis === "origin" ? "to zone" : "from zone",
      measure: state.measure,
      entries,
      pick: (next: string) => this.select(other[axis], next),
      find: (text: string) => this.find(text),
    };
    return [
      title,
      h("ul", { class: "facts" }, ...zoneFacts(release, axis, zone).map((fact) => h("li", {}, fact))),
      h("p", {}, `${axis === "origin" ? "Goes to" : "Comes from"} ${plural(found.length, `${other[axis]} zone`)}:`),
      listing(listed, this.memory),
    ];
  }
}
