/** Which value each zone is shaded by, and the scales that turn values into colours. */

import { makeScale, type Palette, type Scale } from "../colour";
import { partners } from "../flows";
import { other } from "../format";
import type { Axis, Measure, Release, Zones } from "../model";
import type { Selection, State } from "../state";

export interface Panel {
  id: string;
  release: number;
  axis: Axis;
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
}

export function ownValues(zones: Zones, measure: Measure, perArea: boolean): Float64Array {
  const masses = zones.mass[measure] ?? zones.mass.trips!;
  return Float64Array.from(masses, (mass, zone) => (perArea ? mass / (zones.area[zone] || NaN) : mass));
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

/**
 * Shadings of all panels. Panels that show the same kind of value share one scale, so that colours compare, unless
 * origins and destinations are too different for that.
 */
export function shade(releases: Release[], panels: Panel[], state: State, palette: Palette): Shading[] {
  const drafts = panels.map((panel) => {
    const release = releases[panel.release]!;
    const partner = state.selected !== null && panel.axis === other[state.selected.axis];
    const values = partner
      ? partnerValues(release, state.selected!, state.measure)
      : ownValues(release[panel.axis], state.measure, state.shade === "density");
    return { axis: panel.axis, values, partner };
  });
  const medians = drafts.filter((draft) => !draft.partner).map((draft) => median(draft.values));
  const apart = Math.max(...medians) > APART * Math.min(...medians);
  const key = (draft: (typeof drafts)[0]): string => `${draft.partner} ${apart && draft.axis}`;
  const scales = new Map<string, Scale>();
  for (const kind of new Set(drafts.map(key))) {
    const values = drafts.filter((draft) => key(draft) === kind).flatMap((draft) => Array.from(draft.values));
    scales.set(kind, makeScale(values, palette));
  }
  return drafts.map((draft) => ({ ...draft, scale: scales.get(key(draft))!, apart }));
}
