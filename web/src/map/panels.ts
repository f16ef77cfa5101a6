/** Which maps a page shows: origins and destinations, one of places, or a small one for each hour or mode. */

import { amount, axisTitle, plural } from "../format";
import { valueTitle } from "../kinds";
import { AXES, type Release } from "../model";
import { mapsOf } from "../panels/kinds";
import type { State } from "../state";
import type { Titled } from "./layout";

/** The panels for what the reader chose. */
export const panelsOf = (releases: Release[], state: State): Titled[] => (state.view === "places" ? placePanels(releases, state) : zonePanels(releases, state));

function zonePanels(releases: Release[], { axes, shade }: State): Titled[] {
  const shown = AXES.filter((axis) => axes === "both" || axes === axis);
  const change = shade === "change" && releases.length === 2;
  const titled = shown.flatMap((axis) =>
    releases.map((release, number) => ({
      id: `r${number}-${axis}`,
      release: number,
      axis,
      title: `${releases.length > 1 ? `${change ? "Change · " : `${release.name} · `}` : ""}${axisTitle[axis]} (${plural(release[axis].id.length, "zone")})`,
    })),
  );
  return titled.filter((panel) => !change || panel.release === 1);
}

const CHANGING = { share: "Share of all trips", trips: "Trips", percent: "Trips in percent" };

function placePanels([release, another]: Release[], state: State): Titled[] {
  const { towards: axis, each, measure, unit } = state;
  const one = { id: `r0-${axis}`, release: 0, axis };
  if (another) return [{ ...one, title: `${CHANGING[unit]} ${axis === "destination" ? "ending" : "starting"} here: ${another.name} against ${release!.name}` }];
  const kind = release!.kinds.find(({ name }) => name === each);
  const shares = kind ? mapsOf(release!, kind, state) : [];
  if (!shares.length) return [{ ...one, title: axisTitle[axis] }];
  return shares.map(({ value, mass }, number) => ({ id: `m${number}`, release: 0, axis, value, title: `${valueTitle(value)} · ${amount(mass, measure)}` }));
}
