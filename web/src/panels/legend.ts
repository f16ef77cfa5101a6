/** What the colours, outlines and arrows of the map mean. */

import { hasChanged, isSure, type Change, type Unit } from "../changes";
import { css, type Colour, type Palette, type Scale } from "../colour";
import { h, type Child } from "../dom";
import { amount, axisName, count, measureName, percent, percentage, plural, shadeUnit, short } from "../format";
import type { Release } from "../model";
import { widest, type Marks } from "../map/arrows";
import type { Panel, Shading } from "../map/shading";
import type { State } from "../state";

function swatch(colour: string, text: string): HTMLElement {
  const box = h("i", {});
  box.style.background = colour;
  return h("span", { class: "swatch" }, box, text);
}

function scaleKey(title: string, scale: Scale): HTMLElement {
  const { breaks, shades } = scale;
  const text = (i: number): string => {
    if (!breaks.length) return "all alike";
    if (i === 0) return `under ${legendNumber(breaks[0]!)}`;
    if (i === breaks.length) return `${legendNumber(breaks[i - 1]!)} and more`;
    return `${legendNumber(breaks[i - 1]!)} to ${legendNumber(breaks[i]!)}`;
  };
  return h("div", { class: "scale" }, h("b", {}, title), ...shades.map((shade, i) => swatch(css(shade), text(i))));
}

const legendNumber = (value: number): string => (value >= 1e6 ? short(value) : value.toLocaleString("en", { maximumSignificantDigits: 2 }));

function changeTitle(first: string, second: string, unit: Unit): string {
  if (unit === "share") return `Share of all trips: ${second} minus ${first}, in percentage points`;
  return `Change: ${second} minus ${first}${unit === "percent" ? `, in % of ${first}` : ""}`;
}

/** Swatches of a map of change: less, more, newly listed, no longer listed. */
function changeKey([first, second]: Release[], { breaks, shades }: Scale, kinds: ReadonlySet<string | null>, palette: Palette, gone: string, unit: Unit = "trips"): Child[] {
  const middle = shades.length >> 1;
  const text = (i: number): string => {
    if (i === middle) return "no change";
    const steps = Math.abs(i - middle);
    const sign = i < middle ? "−" : "+";
    const say = (value: number): string => sign + (unit === "percent" ? percentage(legendNumber(value)) : legendNumber(value));
    const [low, high] = [breaks[steps - 2], breaks[steps - 1]];
    if (high === undefined) return low === undefined ? (sign === "+" ? "more" : "less") : `${say(low)} and beyond`;
    return low === undefined ? `up to ${say(high)}` : `${say(low)} to ${say(high)}`;
  };
  const told = (kind: string, colour: Colour, words: string): Child => unit !== "share" && kinds.has(kind) && swatch(css(colour), words);
  return [
    h("div", { class: "scale" }, h("b", {}, changeTitle(first!.name, second!.name, unit)), ...shades.map((shade, i) => swatch(css(shade), text(i)))),
    told("new", palette.fresh, `only listed in ${second!.name}`),
    told("gone", palette.gone, `only listed in ${first!.name}: ${gone}`),
  ];
}

/** "all 6", "the 20 strongest"; nothing where several maps have some each. */
function howMany(lines: number, { flows, each }: State): string {
  if (each !== null || lines > flows) return "";
  return lines < flows ? `all ${count(lines)} of this map, ` : `the ${count(lines)} strongest, `;
}

/** What the widths of arrows mean, and how many trips stay inside. */
function marksKey({ lines, rings }: Marks, stay: Stay | null, state: State, palette: Palette): Child[] {
  const most = widest(lines);
  return [
    lines.length > 0 && h("span", { class: "swatch" }, arrow(palette), `Arrows: ${howMany(lines.length, state)}${amount(most, state.measure)} at the widest`),
    stay && stay.mass > 0 && rings.length > 0 && h("span", { class: "swatch" }, ring(palette), `Rings: trips that stay inside (${amount(stay.mass, state.measure)}, ${percent(stay.mass / (stay.total || 1))})`),
  ];
}

export interface Stay {
  mass: number;
  total: number;
}

/** The legend of the map of places. */
export function placeLegend(scale: Scale, rough: boolean, marks: Marks, stay: Stay, state: State, palette: Palette): Child[] {
  return [
    scaleKey(`${state.towards === "destination" ? "Destinations" : "Origins"}: ${measureName[state.measure]} per km², an estimate`, scale),
    h("span", {}, "Each row is spread evenly over its cell."),
    rough && h("span", { class: "swatch" }, h("i", { class: "hatched" }), "hatched, dashed: only known to lie somewhere in here"),
    ...marksKey(marks, stay, state, palette),
  ];
}

/** The legend of what changed between two releases at several resolutions. */
export function cellChangeLegend(releases: Release[], change: Change, scale: Scale, rough: boolean, marks: Marks, state: State, palette: Palette): Child[] {
  const kinds = new Set(change.cells.map(({ kind }) => kind));
  const { unit } = state;
  const unsure = change.cells.some((cell) => !isSure(cell, unit, change) && hasChanged(cell, unit, change));
  return [
    ...changeKey(releases, scale, kinds, palette, "none in the other, too few, or only known coarser", unit),
    unsure && h("span", { class: "swatch" }, h("i", { class: "hatched" }), "hatched: not sure; trips only known for a larger area may outweigh it"),
    rough && h("span", { class: "swatch" }, h("i", { class: "dashed" }), "dashed: only known to lie somewhere in here; not subtracted"),
    ...marksKey(marks, null, state, palette),
  ];
}

export function legend(
  releases: Release[],
  panels: Panel[],
  shadings: Shading[],
  differing: (Set<string> | null)[],
  marks: Marks,
  stay: Stay | null,
  state: State,
  palette: Palette,
): Child[] {
  const kinds = new Set(shadings.flatMap((shading) => shading.kinds ?? []));
  if (state.shade === "change") return [...changeKey(releases, shadings[0]!.scale, kinds, palette, "none in the other, or too few"), ...marksKey(marks, stay, state, palette)];
  const parts: Child[] = [];
  const own = shadings.filter((shading, i) => !shading.partner && shadings.findIndex((one) => one.scale === shading.scale) === i);
  const partner = shadings.find((shading) => shading.partner);
  if (own.length && differing.some(Boolean)) parts.push(...differenceKey(releases, panels, differing, palette));
  else {
    const stack = own.some(({ grid }) => grid) && !state.selected;
    const unit = stack ? stackUnit(state) : state.shade === "size" ? "size in km²" : shadeUnit(state.measure, state.shade === "density");
    parts.push(...own.map(({ apart, axis, scale }) => scaleKey(`${apart ? `${axisName[axis]} zones` : "Zones"}: ${unit}`, scale)));
  }
  if (own.some(({ grid }) => grid) && !state.selected) parts.push(h("span", {}, "Boxes lie on top of each other: colours add them up, each spread evenly. Click to choose the smallest box at a place."));
  if (partner && state.selected) {
    const where = state.selected.axis === "origin" ? "from" : "to";
    parts.push(scaleKey(`${measureName[state.measure]} ${where} the chosen zone`, partner.scale));
    parts.push(h("span", {}, "Pale zones: no flow is published for this pair, because there were no trips or too few."));
  }
  const leveled = panels.some((panel) => new Set(releases[panel.release]![panel.axis].level).size > 1);
  if (leveled) parts.push(h("span", {}, "Thicker outline: coarser zone."));
  parts.push(...marksKey(marks, stay, state, palette));
  return parts;
}

/** What the colours of boxes on top of each other count. */
function stackUnit({ shade, measure }: State): string {
  if (shade === "size") return "size in km² of the boxes over a place";
  return shade === "total" ? `${measureName[measure]} in all boxes over a place` : `${measureName[measure]} per km², an estimate`;
}

function differenceKey(releases: Release[], panels: Panel[], differing: (Set<string> | null)[], palette: Palette): Child[] {
  const parts = panels.map((panel, i) => {
    const ids = differing[i]!;
    return swatch(
      css(palette.only[panel.release ? 1 : 0]),
      `${plural(ids.size, `${axisName[panel.axis]} zone`)} only in ${releases[panel.release]!.name}`,
    );
  });
  return [h("div", { class: "scale" }, h("b", {}, "Differences"), ...parts, swatch(css(palette.common), "in both"))];
}

function arrow(palette: Palette): HTMLElement {
  const line = h("i", { class: "arrow" });
  line.style.background = css(palette.flow);
  return line;
}

function ring(palette: Palette): HTMLElement {
  const circle = h("i", { class: "ring" });
  circle.style.borderColor = css(palette.flow);
  return circle;
}
