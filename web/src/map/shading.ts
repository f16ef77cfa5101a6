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
  /** NaN: nothing published here for what is shown. */
  values: Float64Array;
  scale: Scale;
  /** True where the values are flows of the selected zone instead of the zone's own mass. */
  partner: boolean;
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

/** Shadings of all panels; panels that show the same kind of value share one scale, so colours compare. */
export function shade(releases: Release[], panels: Panel[], state: State, palette: Palette): Shading[] {
  const drafts = panels.map((panel) => {
    const release = releases[panel.release]!;
    const partner = state.selected !== null && panel.axis === other[state.selected.axis];
    const values = partner
      ? partnerValues(release, state.selected!, state.measure)
      : ownValues(release[panel.axis], state.measure, state.shade === "density");
    return { values, partner };
  });
  const scales = [false, true].map((partner) => {
    const values = drafts.filter((draft) => draft.partner === partner).flatMap((draft) => Array.from(draft.values));
    return makeScale(values, palette);
  });
  return drafts.map((draft) => ({ ...draft, scale: scales[Number(draft.partner)]! }));
}
