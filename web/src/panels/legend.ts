/** What the colours, outlines and arrows of the map mean. */

import { css, type Palette, type Scale } from "../colour";
import { h, type Child } from "../dom";
import { amount, axisName, measureName, plural, shadeUnit, short } from "../format";
import type { Release } from "../model";
import type { Line } from "../map/arrows";
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

export function legend(
  releases: Release[],
  panels: Panel[],
  shadings: Shading[],
  differing: (Set<string> | null)[],
  lines: Line[],
  state: State,
  palette: Palette,
): Child[] {
  const parts: Child[] = [];
  const own = shadings.filter((shading, i) => !shading.partner && shadings.findIndex((one) => one.scale === shading.scale) === i);
  const partner = shadings.find((shading) => shading.partner);
  if (own.length && differing.some(Boolean)) parts.push(...differenceKey(releases, panels, differing, palette));
  else {
    const unit = shadeUnit(state.measure, state.shade === "density");
    parts.push(...own.map(({ apart, axis, scale }) => scaleKey(`${apart ? `${axisName[axis]} zones` : "Zones"}: ${unit}`, scale)));
  }
  if (partner && state.selected) {
    const where = state.selected.axis === "origin" ? "from" : "to";
    parts.push(scaleKey(`${measureName[state.measure]} ${where} the chosen zone`, partner.scale));
    parts.push(h("span", {}, "Pale zones: no flow is published for this pair, because there were no trips or too few."));
  }
  const leveled = panels.some((panel) => new Set(releases[panel.release]![panel.axis].level).size > 1);
  if (leveled) parts.push(h("span", {}, "Thicker outline: coarser zone."));
  const most = lines.reduce((max, line) => Math.max(max, line.mass), 0);
  if (most) parts.push(h("span", { class: "swatch" }, arrow(palette), `Arrows: ${amount(most, state.measure)} at the widest`));
  return parts;
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
