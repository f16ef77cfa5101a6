/** What a page shows before the reader chose anything, and what stays of the choices when the releases change. */

import { areNested, commonDetails, comparable, firstCommon, firstUnit } from "./changes";
import { sameZones } from "./compare";
import type { Release } from "./model";
import { hasSeveral } from "./places";
import type { State } from "./state";

const weighted = (releases: Release[]): boolean => releases.some((release) => release.origin.mass.weight);

const areBoxes = (releases: Release[]): boolean => releases.every(({ origin }) => origin.outlines.areBoxes());

function firstShade(releases: Release[]): State["shade"] {
  const [one, two] = releases;
  if (releases.length === 2) return !areNested(releases) && sameZones(one!, two!) ? "change" : "difference";
  // Boxes all hold about the same mass; only their size tells them apart.
  return areBoxes(releases) ? "density" : "total";
}

/** Rows at several resolutions are read on the map of places: one release, or what changed between two. */
const opensPlaces = (releases: Release[]): boolean => comparable(releases) || (releases.length === 1 && hasSeveral(releases[0]!));

export function first(releases: Release[]): State {
  const boxes = areBoxes(releases);
  const places = !boxes && opensPlaces(releases);
  return {
    view: places ? "places" : "zones",
    towards: "destination",
    detail: firstCommon(releases),
    place: null,
    part: null,
    only: {},
    each: null,
    axes: releases.length > 1 ? "origin" : "both",
    measure: "trips",
    shade: firstShade(releases),
    flows: releases.length > 1 ? 0 : 20,
    unit: firstUnit(releases),
    selected: null,
    theme: "auto",
  };
}

/** The choices that still mean something for other releases than those before. */
export function kept(state: State, before: Release[], releases: Release[]): State {
  const { selected, theme, ...chosen } = state;
  const fresh = before.length === releases.length && weighted(before) === weighted(releases) ? chosen : first(releases);
  const there = selected && releases.some((release) => release[selected.axis].number.has(selected.id));
  const detail = commonDetails(releases).includes(fresh.detail) ? fresh.detail : firstCommon(releases);
  // Rows at several resolutions are read on the map of places; what one had before is another kind of map.
  const view = opensPlaces(before) === opensPlaces(releases) ? fresh.view : first(releases).view;
  const names = new Set(releases[0]!.kinds.map(({ name }) => name));
  const only = Object.fromEntries(Object.entries(fresh.only).filter(([name]) => names.has(name)));
  const each = fresh.each !== null && names.has(fresh.each) ? fresh.each : null;
  return { ...fresh, view, detail, only, each, theme, selected: there ? selected : null };
}
