/** Which value each zone is shaded by, and the scales that turn values into colours. */

import { makeDiverging, makeScale, type Palette, type Scale } from "../colour";
import { partnerChanges, zoneChanges, type Kind } from "../compare";
import { partners } from "../flows";
import { other } from "../format";
import type { Axis, Measure, Release, Zones } from "../model";
import { gridOf, gridValues, type Grid } from "./grid";
import type { Selection, State } from "../state";

export interface Panel {
  id: string;
  release: number;
  axis: Axis;
  /** Of several small maps: the value of the attribute that this one shows. */
  value?: string;
}

export interface Shading {
  axis: Axis;
  /** NaN: nothing published here for what is shown. */
  values: Float64Array;
  scale: Scale;
  /** True where the values are flows of the selected zone instead of the zone's own mass. */
  partner: boolean;
  /** True where origins and destinations have a scale each. */
  apart: boolean;
  /** In a map of change: how each zone came to be what it is. */
  kinds?: (Kind | null)[];
  /** Boxes on top of each other, added up; what they are coloured by is then of cells, not of zones. */
  grid?: { grid: Grid; values: Float64Array } | null;
}

export function ownValues(zones: Zones, measure: Measure, shade: State["shade"]): Float64Array {
  const masses = zones.mass[measure] ?? zones.mass.trips!;
  if (shade === "size") return Float64Array.from(zones.area, (area) => area || NaN);
  return Float64Array.from(masses, (mass, zone) => (shade === "density" ? mass / (zones.area[zone] || NaN) : mass));
}

/** Mass of the flows between the selected zone and each zone of the other axis. */
export function partnerValues(release: Release, selected: Selection, measure: Measure): Float64Array {
  const far = other[selected.axis];
  const values = new Float64Array(release[far].id.length).fill(NaN);
  const zone = release[selected.axis].number.get(selected.id);
  if (zone !== undefined) {
    for (const partner of partners(release.flows, selected.axis, zone, measure)) values[partner.zone] = partner.mass;
  }
  return values;
}

function median(values: Float64Array): number {
  const sorted = values.filter((value) => value > 0).sort();
  return sorted[sorted.length >> 1] ?? 1;
}

/** Axes whose typical values differ more than this would leave one of two maps in a single colour. */
const APART = 3;
const SAMPLE = 200;

/** Equally many values of each map, so that a release with many zones does not set the scale alone. */
function sample(values: Float64Array): number[] {
  const sorted = values.filter((value) => value > 0).sort();
  if (sorted.length <= SAMPLE) return Array.from({ length: sorted.length ? SAMPLE : 0 }, (_, i) => sorted[Math.floor((i * sorted.length) / SAMPLE)]!);
  return Array.from({ length: SAMPLE }, (_, i) => sorted[Math.floor((i * (sorted.length - 1)) / (SAMPLE - 1))]!);
}

/**
 * Shadings of all panels. Panels that show the same kind of value share one scale, so that colours compare, unless
 * origins and destinations are too different for that. Choosing a zone does not change the scales of zones.
 */
export function shade(releases: Release[], panels: Panel[], state: State, palette: Palette): Shading[] {
  if (state.shade === "change") return changes(releases, panels, state, palette);
  const own = panels.map((panel) => ownValues(releases[panel.release]![panel.axis], state.measure, state.shade));
  const grids = panels.map((panel) => {
    const grid = gridOf(releases[panel.release]![panel.axis], state.measure);
    return grid && { grid, values: gridValues(grid, state.shade) };
  });
  const scaled = own.map((values, i) => grids[i]?.values ?? values);
  const medians = scaled.map(median);
  const apart = Math.max(...medians) > APART * Math.min(...medians);
  const join = (parts: Float64Array[]): Scale => makeScale(parts.length > 1 ? parts.flatMap(sample) : (parts[0] ?? []), palette);
  const scales = new Map<string, Scale>();
  for (const key of new Set(panels.map((panel) => (apart ? panel.axis : "")))) {
    scales.set(key, join(scaled.filter((_, i) => !apart || panels[i]!.axis === key)));
  }
  const { selected } = state;
  const flows = panels.map((panel) => (selected && panel.axis === other[selected.axis] ? partnerValues(releases[panel.release]!, selected, state.measure) : null));
  const partnerScale = join(flows.filter((values) => values !== null));
  return panels.map(({ axis }, i) => {
    const values = flows[i];
    return { axis, values: values ?? own[i]!, partner: !!values, apart, grid: grids[i] ?? null, scale: values ? partnerScale : scales.get(apart ? axis : "")! };
  });
}

/** Second release minus first, on one diverging scale for all panels. */
function changes(releases: Release[], panels: Panel[], state: State, palette: Palette): Shading[] {
  const [first, second] = releases as [Release, Release];
  const drafts = panels.map(({ axis, release }) => {
    const partner = state.selected !== null && axis === other[state.selected.axis];
    const found = partner ? partnerChanges(first, second, state.selected!, state.measure) : zoneChanges(first, second, axis, state.measure);
    const { id } = releases[release]![axis];
    const kinds = id.map((one) => found.get(one)?.kind ?? null);
    return { axis, partner, apart: false, kinds, values: Float64Array.from(id, (one) => found.get(one)?.by ?? NaN) };
  });
  const values = drafts.flatMap((draft) => Array.from(draft.values).filter((value, zone) => draft.kinds[zone] === "both" && value));
  const scale = makeDiverging(values, palette);
  return drafts.map((draft) => ({ ...draft, scale }));
}
