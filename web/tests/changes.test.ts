import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleChanges, changeIn, changeOf, commonDetails, comparable, firstCommon, isSure, type Change, type Unit } from "../src/changes";
import { LIGHT } from "../src/colour";
import { first } from "../src/first";
import { changeScale } from "../src/map/changes";
import { unpack, type PackedRelease, type Release } from "../src/model";
import { changeFacts, changeSentence, changeText } from "../src/panels/changes";
import type { Asked } from "../src/places";
import { about, packed, plainly, release } from "./made";

/** A square with its south-west corner and side in hundredths of a degree. */
const square = (x: number, y: number, side: number): number[][][] => [[[x * 1e4, y * 1e4, side * 1e4, 0, 0, side * 1e4, -side * 1e4, 0, 0, -side * 1e4]]];
const SHAPES = [square(0, 0, 4), square(0, 0, 2), square(2, 0, 2), square(0, 0, 1), square(1, 0, 1), square(2, 0, 1)];

// W holds A (with a and b) and B (with c). Zones of a release are those that its rows name; the others lie above them.
const CELLS = { W: [0, 1, ""], A: [1, 2, "W"], B: [2, 2, "W"], a: [3, 3, "A"], b: [4, 3, "A"], c: [5, 3, "B"] } as const;
type Id = keyof typeof CELLS;
type Row = [Id, Id, number];

function axisOf(rows: Row[], end: 0 | 1): PackedRelease["origin"] {
  const id = [...new Set(rows.map((row) => row[end]))].sort();
  const above = new Set<Id>();
  for (const own of id) for (let at = CELLS[own][2]; at; at = CELLS[at][2]) if (!id.includes(at)) above.add(at);
  const all = [...id, ...above];
  const nest = { id: [...above], shape: [...above].map((one) => CELLS[one][0]), level: [...above].map((one) => CELLS[one][1]), parent: all.map((one) => all.indexOf(CELLS[one][2] as Id)) };
  const trips = id.map((own) => rows.reduce((sum, row) => sum + (row[end] === own ? row[2] : 0), 0));
  return { h3: true, id, shape: id.map((own) => CELLS[own][0]), level: id.map((own) => CELLS[own][1]), trips, nest };
}

function made(name: string, rows: Row[], missing = 0): PackedRelease {
  const [origin, destination] = [axisOf(rows, 0), axisOf(rows, 1)];
  const sorted = [...rows].sort((x, y) => (x[0] + x[1] < y[0] + y[1] ? -1 : 1));
  let before = ["", 0] as [string, number];
  const steps = sorted.map(([from, to]) => {
    const at = destination.id.indexOf(to);
    const step = from === before[0] ? at - before[1] : at;
    before = [from, at];
    return step;
  });
  const { suppressed: _, ...told } = about;
  return {
    name,
    about: { ...told, unlisted: { at_most_trips: missing } },
    method: { title: "Cascade", hint: "" },
    origin,
    destination,
    flows: { per_origin: origin.id.map((own) => sorted.filter(([from]) => from === own).length), destination_steps: steps, trips: sorted.map((row) => row[2]) },
  };
}

const pair = (one: Row[], two: Row[], missing = 0): [Release, Release] =>
  unpack({ format: 1, shapes: SHAPES, releases: [made("march", one, missing), made("april", two, missing)], base: null }).releases as [Release, Release];

const asked: Asked = { measure: "trips", towards: "destination", detail: 3, place: null, part: null, only: {} };
const told = (change: Change): Record<string, unknown> => Object.fromEntries(change.cells.map((cell) => [change.nest.id[cell.node], [cell.kind, cell.by, isSure(cell, "trips", change)]]));

const MARCH: Row[] = [["a", "a", 50], ["a", "b", 40], ["A", "A", 15], ["a", "c", 20]];
const APRIL: Row[] = [["a", "a", 80], ["b", "a", 12], ["A", "A", 30], ["a", "B", 25]];

test("two nested releases on known cells are compared, others are not subtracted", () => {
  assert.equal(comparable(pair(MARCH, APRIL)), true);
  const plain = unpack(packed(release("one"), release("two"))).releases;
  assert.equal(comparable(plain), false);
  assert.equal(first(plain).view, "zones");
  assert.equal(first(pair(MARCH, APRIL)).shade, "difference");
});

test("only cells of one size are subtracted, and what is known coarser says how sure that is", () => {
  const change = changeOf(pair(MARCH, APRIL), asked);
  // a: 50 and at most 15 more, then 92: surely more. b: 40, then none, but 30 are somewhere in A: surely fewer by 10.
  // c: 20, then none, but 25 are somewhere in B: that could be all of them.
  assert.deepEqual(told(change), { a: ["both", 42, true], b: ["gone", -40, true], c: ["gone", -20, false] });
  assert.deepEqual(told(changeOf(pair(MARCH, APRIL, 30), asked)), { a: ["both", 42, false], b: ["gone", -40, false], c: ["gone", -20, false] });
  assert.deepEqual(told(changeOf(pair(MARCH, APRIL), { ...asked, detail: 2 })), { A: ["both", 17, true], B: ["both", 5, true] });
});

test("a sure change holds wherever the coarser trips were", () => {
  const dice = (seed: number) => () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const random = dice(7);
  const some = (): Row[] => {
    const found = new Map<string, Row>();
    for (let i = 0; i < 6; i++) {
      const [from, to] = [0, 1].map(() => (["W", "A", "B", "a", "b", "c"] as const)[Math.floor(random() * 6)]!) as [Id, Id];
      found.set(from + to, [from, to, 1 + Math.floor(random() * 30)]);
    }
    return [...found.values()];
  };
  const inside = (cell: Id, area: Id): boolean => cell === area || (CELLS[cell][2] !== "" && inside(CELLS[cell][2] as Id, area));
  const range = (rows: Row[], from: Id | null, to: Id): [number, number] => {
    const sum = (fits: (row: Row) => boolean): number => rows.filter(fits).reduce((all, row) => all + row[2], 0);
    const sure = (own: Id, area: Id | null): boolean => !area || inside(own, area);
    const possible = (own: Id, area: Id | null): boolean => !area || inside(own, area) || inside(area, own);
    return [sum((row) => sure(row[0], from) && sure(row[1], to)), sum((row) => possible(row[0], from) && possible(row[1], to))];
  };
  const sures = { trips: 0, share: 0 };
  for (let world = 0; world < 300; world++) {
    const [one, two] = [some(), some()];
    for (const detail of commonDetails(pair(one, two))) {
      for (const place of [null, [0.005, 0.005]] as ([number, number] | null)[]) {
        const change = changeOf(pair(one, two), { ...asked, detail, place });
        const from = place && change.near!.node >= 0 ? (change.near!.nest.id[change.near!.node] as Id) : null;
        if (place && !from) continue;
        for (const cell of change.cells) {
          const to = change.nest.id[cell.node] as Id;
          const [low, high] = [range(one, from, to), range(two, from, to)];
          assert.deepEqual([cell.before, cell.after], [low[0], high[0]]);
          for (const [unit, factor] of [["trips", 1], ["share", change.growth]] as const) {
            if (!isSure(cell, unit, change)) continue;
            assert.ok(changeIn(cell, unit, change) > 0 ? high[0] > factor * low[1] : factor * low[0] > high[1]);
            sures[unit]++;
          }
        }
      }
    }
  }
  assert.ok(sures.trips > 100 && sures.share === 0);
});

test("a place is the same cell in both releases, also where one has nothing as fine", () => {
  const [one, two] = pair(MARCH, [["A", "A", 99], ["A", "a", 11]]);
  const change = changeOf([one, two], { ...asked, place: [0.005, 0.005] });
  assert.equal(change.near!.nest.id[change.near!.node], "a");
  assert.deepEqual(change.seen.map(({ total, around }) => [total, around]), [[110, 15], [0, 110]]);
});

test("details are those of both, and flows are compared between cells of one size", () => {
  const releases = pair(MARCH, APRIL);
  assert.deepEqual(commonDetails(releases), [1, 2, 3]);
  assert.equal(firstCommon(releases), 2);
  const flows = [["a", "b", 40], ["a", "c", 20]] as Row[];
  const both = pair(flows, [["a", "b", 10], ["a", "B", 50]]);
  assert.deepEqual(bundleChanges(both, changeOf(both, asked), 3), [{ origin: "a", destination: "b", by: -30 }]);
});

test("a change is told in trips, in percent of what was, or in points of all; what is new has no percentage", () => {
  const releases = pair([["a", "b", 40], ["a", "c", 20]], [["a", "b", 50], ["a", "a", 30]]);
  const change = changeOf(releases, asked);
  const told = (unit: Unit): Record<string, unknown> =>
    Object.fromEntries(change.cells.map((cell) => [change.nest.id[cell.node], [Math.round(changeIn(cell, unit, change)), plainly(changeText(cell, unit, change))]]));
  assert.deepEqual(told("trips"), { a: [30, "+30"], b: [10, "+10"], c: [-20, "−20"] });
  assert.deepEqual(told("percent"), { a: [0, "+30"], b: [25, "+25 %"], c: [-100, "−100 %"] });
  assert.deepEqual(told("share"), { a: [38, "0.0 to 37.5 %"], b: [-4, "66.7 to 62.5 %"], c: [-33, "33.3 to 0.0 %"] });
  assert.deepEqual(changeScale(change, LIGHT, "percent").shade(25), changeScale(change, LIGHT, "trips").shade(10));
});

test("where there is more everywhere, the map opens with shares of all", () => {
  const rows: Row[] = [["a", "a", 100], ["a", "b", 100], ["B", "A", 10]];
  assert.equal(first(pair(rows, rows)).unit, "trips");
  const twice = pair(rows, rows.map(([from, to, many]): Row => [from, to, to === "a" ? 260 : 2 * many]));
  assert.equal(first(twice).unit, "share");
  const change = changeOf(twice, asked);
  // Totals of published rows say nothing sure of shares, least of all between two releases of the same trips.
  const told = Object.values(changeSentence(twice, change, { ...asked, unit: "share" }, null)).join(" ");
  assert.match(plainly(told), /^In all: 210 published trips in march, 480 in april \(\+129 %\)\. Shares of what is listed, of which none is sure/);
  assert.doesNotMatch(told, /surely/i);
});

test("the words say what is sure and what is not", () => {
  const releases = pair(MARCH, APRIL);
  const change = changeOf(releases, asked);
  assert.equal(
    plainly(Object.values(changeSentence(releases, change, { ...asked, unit: "trips" }, null)).join(" ")),
    "In all: 125 published trips in march, 147 in april (+22). 1 cell surely has more, 1 fewer; 1 hatched is not sure: trips that are only known for a larger area may outweigh it. At this detail 88 % of march and 63 % of april are on the map, the other trips only known for larger areas.",
  );
  const c = change.cells.find(({ node }) => change.nest.id[node] === "c")!;
  const [by, share, before, after] = changeFacts(releases, change, c, "trips").map(plainly);
  assert.equal(by, "−20 (−100 %) as listed; not sure: up to 25 more after");
  assert.equal(share, "16.0 to 0.0 % of all; not sure: up to 25 more after");
  assert.match(before!, /^march: 20 trips in this cell/);
  assert.equal(after, "april: none listed in this cell, 25 trips somewhere around it");
});
