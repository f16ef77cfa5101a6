/** What is on the maps for what the reader chose, and the words that belong to it: of zones, of places, of change. */

import type { Layer } from "@deck.gl/core";
import { bundleChanges, changeOf, joined, type Change } from "./changes";
import type { Palette } from "./colour";
import { difference } from "./compare";
import type { Child } from "./dom";
import { area, other } from "./format";
import { joinBounds, type Bounds } from "./geometry";
import { changeMarks, flowLayer, flowMarks, ringLayer, staying, widestOf, type Marks } from "./map/arrows";
import { changedLines, changeLabels, changeLayers, changeScale } from "./map/changes";
import { groundLayer } from "./map/ground";
import type { Label } from "./map/labels";
import { ownLayer, zoneLayers } from "./map/layers";
import { bundleMarks, densityScale, placeLayers, roughLabels, softHeads } from "./map/places";
import { shade, type Panel } from "./map/shading";
import { AXES, type Model, type Release } from "./model";
import type { Names } from "./names";
import type { Nest } from "./nest";
import { placedHere, type Placed } from "./placed";
import { see, type Seen } from "./places";
import { changeEntries, changeSentence, changeHeader } from "./panels/changes";
import { cellChangeLegend, legend, placeLegend } from "./panels/legend";
import type { Entry } from "./panels/listing";
import { placeEntries, sentence, strongest, type Answer } from "./panels/places";
import type { State } from "./state";

/** What a picture is of. */
export interface Subject {
  model: Model;
  state: State;
  panels: Panel[];
  names: Names;
  palette: Palette;
}

/** The cells that the list beside a map of places or of change has. */
export interface Cells {
  entries: Entry[];
  far: Nest;
  near: Nest;
  /** What the numbers of the entries are, if not trips. */
  counted?: string;
}

export interface Words {
  legend: Child[];
  answer: Answer | null;
  cells: Cells | null;
  /** How finely the trips of the chosen place are published, and what to call it. */
  here: { placed: Placed; where: string | null } | null;
}

export interface Picture {
  layers: Layer[];
  labels: Label[];
  /** What each panel of a map of places shows. */
  seen: Seen[];
  change: Change | null;
  /** Made when it is asked for: the map need not wait for it. */
  words: () => Words;
  /** Where the trips are that answer for a place. */
  answer: () => Bounds | null;
}

/** Arrows and rings on each of several small maps. */
const FEW_FLOWS = 6;

export function pictureOf(subject: Subject): Picture {
  if (subject.state.view === "zones") return zonePicture(subject);
  return subject.model.releases.length > 1 ? changePicture(subject) : placePicture(subject);
}

/** Maps from below: land, what is painted, the reader's own lines, arrows. */
const stacked = ({ model, palette }: Subject, painted: Layer[], marks: Layer[]): Layer[] => [groundLayer(model.base, palette), ...painted, ownLayer(model, palette), ...marks];

const towns = ({ names }: Subject): Label[] => names.towns.map(({ name, at }) => ({ at, text: name, kind: "town" }));

const together = (marks: Marks[]): Marks => ({ lines: marks.flatMap(({ lines }) => lines), rings: marks.flatMap(({ rings }) => rings) });

/** What to call the chosen place: the town it is near, and how large the cell that stands for it is. */
function nameOf({ state: { place }, names }: Subject, { area: areas }: Nest, node: number): string | null {
  if (!place || node < 0) return null;
  const size = areas[node]!;
  return [names.nearest(place) ?? "this place", size > 0 && `(${area(size)})`].filter(Boolean).join(" ");
}

const boundsAt = ({ id, outlines }: Nest, wanted: (node: number) => boolean): Bounds | null => joinBounds(id.map((_, node) => (wanted(node) ? outlines.bounds(node) : null)));

/** Ids of the zones of a panel that stand out because the other release lacks them. */
function differingOf(releases: Release[], { axis, release }: Panel, state: State): Set<string> | null {
  const [one, two] = releases;
  if (releases.length !== 2 || state.shade !== "difference") return null;
  return new Set(difference(one!, two!, axis)[release ? 1 : 0]);
}

function zonePicture(subject: Subject): Picture {
  const { model: { releases }, state, panels, palette } = subject;
  const shadings = shade(releases, panels, state, palette);
  const differing = panels.map((panel) => differingOf(releases, panel, state));
  const change = state.shade === "change" && releases.length === 2;
  const marks = releases.map((release, number): Marks => {
    if (!change) return flowMarks(release, state);
    return number ? changeMarks(releases[0]!, releases[1]!, state) : { lines: [], rings: [] };
  });
  const all = together(marks);
  const most = widestOf(all, panels.length);
  const layers = stacked(
    subject,
    panels.flatMap((panel, i) => zoneLayers(panel, releases[panel.release]!, shadings[i]!, differing[i]!, state, palette)),
    marks.flatMap(({ lines, rings }, number) => [ringLayer(`r${number}/rings`, rings, most, palette), flowLayer(`r${number}/flows`, lines, most, palette)]),
  );
  const words = (): Words => {
    const stay = releases.length === 1 ? staying(releases[0]!, state) : null;
    return { legend: legend(releases, panels, shadings, differing, all, stay, state, palette), answer: null, cells: null, here: null };
  };
  return { layers, labels: towns(subject), seen: [], change: null, words, answer: () => null };
}

function placePicture(subject: Subject): Picture {
  const { model, state, panels, palette, names } = subject;
  const release = model.releases[0]!;
  const [near, far] = [release[other[state.towards]], release[state.towards]];
  const whole = see(release, state);
  const many = panels.length > 1;
  const seen = panels.map(({ value }) => (value === undefined ? whole : see(release, { ...state, only: { ...state.only, [state.each!]: value } })));
  const scale = densityScale(seen, palette);
  const marks = seen.map((one) => bundleMarks(release, one, many ? Math.min(FEW_FLOWS, state.flows) : state.flows));
  const all = together(marks);
  const most = widestOf(all, panels.length);
  const rough = many ? [] : roughLabels(far.nest, whole, state.detail);
  const layers = stacked(
    subject,
    panels.flatMap((panel, i) => placeLayers(panel, release, other[state.towards], seen[i]!, state.detail, scale, palette)),
    panels.flatMap(({ id }, i) => {
      const { lines, rings } = marks[i]!;
      return [softHeads(`${id}/soft`, release, lines, state.detail, palette), ringLayer(`${id}/rings`, rings, most, palette), flowLayer(`${id}/flows`, lines, most, palette)];
    }),
  );
  const words = (): Words => {
    const town = state.place && names.nearest(state.place);
    const own = near.nest.id[whole.node] ?? null;
    return {
      legend: placeLegend(scale, many || rough.length > 0, all, { mass: whole.stays, total: whole.total }, state, palette),
      answer: sentence(whole, state, nameOf(subject, near.nest, whole.node), strongest(whole, far.nest, own, state, names)),
      cells: { entries: placeEntries(far, whole, names, state.detail, own), far: far.nest, near: near.nest },
      here: { placed: placedHere(release, state), where: town ? `Around ${town}` : null },
    };
  };
  const answer = (): Bounds | null => boundsAt(far.nest, (node) => whole.at[node]! > 0 && far.nest.rank[node]! >= state.detail);
  return { layers, labels: [...rough, ...towns(subject)], seen, change: null, words, answer };
}

/** What changed between two releases at several resolutions. */
function changePicture(subject: Subject): Picture {
  const { model, state, panels, palette, names } = subject;
  const releases = model.releases as [Release, Release];
  const change = changeOf(releases, state);
  const nests = AXES.map((axis) => joined(releases[0][axis].nest, releases[1][axis].nest).nest) as [Nest, Nest];
  const lines = changedLines(bundleChanges(releases, change, state.detail), nests, state.flows);
  const scale = changeScale(change, palette, state.unit);
  const rough = changeLabels(change, state.detail);
  const layers = stacked(
    subject,
    panels.flatMap((panel) => changeLayers(panel, change, state, scale, palette)),
    [flowLayer(`${panels[0]!.id}/flows`, lines, widestOf({ lines, rings: [] }, 1), palette)],
  );
  const words = (): Words => {
    const near = nests[AXES.indexOf(other[state.towards])]!;
    return {
      legend: cellChangeLegend(releases, change, scale, rough.length > 0, { lines, rings: [] }, state, palette),
      answer: changeSentence(releases, change, state, nameOf(subject, near, change.near?.node ?? -1)),
      cells: { entries: changeEntries(change, names, state.unit), far: change.nest, near, counted: changeHeader(state.unit) },
      here: null,
    };
  };
  const cells = new Set(change.cells.map(({ node }) => node));
  // Numbers of larger areas say nothing of shares, and would hide cells that do.
  const labels = [...(state.unit === "share" ? [] : rough), ...towns(subject)];
  return { layers, labels, seen: [], change, words, answer: () => boundsAt(change.nest, (node) => cells.has(node)) };
}
