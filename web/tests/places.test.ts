import assert from "node:assert/strict";
import { test } from "node:test";
import { flowChanges, sameZones, zoneChanges } from "../src/compare";
import { LIGHT, makeDiverging } from "../src/colour";
import { measure, type Bounds, type Polygon } from "../src/geometry";
import { first } from "../src/first";
import { middleOnLand } from "../src/land";
import { gridOf } from "../src/map/grid";
import { shade } from "../src/map/shading";
import type { Segment } from "../src/map/strokes";
import { hatch, sides } from "../src/map/texture";
import { unpack, type PackedModel, type PackedRelease, type Release } from "../src/model";
import { Names } from "../src/names";
import { chain, nodeAt } from "../src/nest";
import type { PackedKind } from "../src/kinds";
import { partOf, typicalSize } from "../src/parts";
import { placedAt, placedHere } from "../src/placed";
import { details, firstDetail, hasSeveral, ladder, see, type Asked } from "../src/places";
import { placedWords } from "../src/panels/here";
import { mapsOf } from "../src/panels/kinds";
import { sharesOf } from "../src/shares";
import { sentence } from "../src/panels/places";
import { ladderText } from "../src/panels/zones";
import { about, packed, plainly, release } from "./made";

/** A square with its south-west corner and side in degrees. */
const square = (x: number, y: number, side: number): number[][][] => {
  const whole = (degrees: number): number => Math.round(degrees * 1e6);
  const step = whole(side);
  return [[[whole(x), whole(y), step, 0, 0, step, -step, 0, 0, -step]]];
};

// A large square W with the quarters A (south-west) and B (south-east); A holds the small a1 and a2. B is no zone itself:
// it is a cell above b1.
const SHAPES = [square(0, 0, 0.04), square(0, 0, 0.02), square(0, 0, 0.01), square(0.01, 0, 0.01), square(0.02, 0, 0.01), square(0.02, 0, 0.02)];
const zones = {
  h3: true,
  id: ["W", "A", "a1", "a2", "b1"],
  shape: [0, 1, 2, 3, 4],
  level: [1, 2, 3, 3, 3],
  leaves: [null, null, null, null, null],
  nest: { id: ["B"], shape: [5], level: [2], parent: [-1, 0, 1, 1, 5, 0] },
};

function nested(attributes?: Record<string, { values: string[]; of: number[] }>, axes: PackedKind[] = []): Release {
  const one: PackedRelease = {
    name: "nested",
    about: { ...about, method: "cascade", axes },
    method: { title: "Cascade", hint: "" },
    origin: { ...zones, trips: [0, 40, 100, 0, 20] },
    destination: { ...zones, trips: [30, 20, 60, 40, 10] },
    // A->A 20, A->a2 20, a1->W 30, a1->a1 60, a1->b1 10, b1->a2 20
    flows: { per_origin: [0, 2, 3, 0, 1], destination_steps: [1, 2, 0, 2, 2, 3], trips: [20, 20, 30, 60, 10, 20], ...(attributes ? { attributes } : {}) },
  };
  const model: PackedModel = { format: 1, shapes: SHAPES, releases: [one], base: null };
  return unpack(model).releases[0]!;
}

const asked: Asked = { measure: "trips", towards: "destination", detail: 3, place: null, part: null, only: {} };

test("a release at several resolutions is known as one, and a plain one is not", () => {
  assert.equal(hasSeveral(nested()), true);
  assert.equal(hasSeveral(unpack(packed(release("one"))).releases[0]!), false);
  assert.deepEqual(details(nested()), [1, 2, 3]);
});

test("a place is in its finest cell and in all around it", () => {
  const { nest } = nested().origin;
  assert.deepEqual(chain(nest, nodeAt(nest, [0.005, 0.005])).map((node) => nest.id[node]), ["a1", "A", "W"]);
  assert.equal(nest.id[nodeAt(nest, [0.03, 0.015])], "B");
  assert.equal(nodeAt(nest, [1, 1]), -1);
});

test("rolling up never loses a trip and never counts one twice", () => {
  for (const place of [null, [0.005, 0.005], [0.025, 0.005]] as const) {
    const totals = details(nested()).map((detail) => {
      const seen = see(nested(), { ...asked, place: place && [...place], detail });
      assert.equal(seen.at.reduce((sum, mass) => sum + mass, 0), seen.total);
      assert.equal(seen.bundles.reduce((sum, one) => sum + one.mass, 0), seen.total);
      const parts = Object.values(seen.partsAt).map((masses) => masses.reduce((sum, mass) => sum + mass, 0));
      assert.equal(parts.reduce((sum, mass) => sum + mass, 0), seen.total);
      return seen.total + seen.around;
    });
    if (!place) assert.deepEqual(totals, [160, 160, 160]);
  }
});

test("rows coarser than the detail stay where they are, finer ones move up", () => {
  const { at } = see(nested(), { ...asked, detail: 2 });
  const { nest } = nested().destination;
  const told = Object.fromEntries(nest.id.map((id, node) => [id, at[node]]));
  assert.deepEqual(told, { W: 30, A: 120, a1: 0, a2: 0, b1: 0, B: 10 });
});

test("a place is answered by all rows that cover it, larger ones apart", () => {
  const seen = see(nested(), { ...asked, place: [0.005, 0.005] });
  assert.deepEqual([seen.total, seen.around], [100, 40]);
  const coarse = see(nested(), { ...asked, place: [0.005, 0.005], detail: 2 });
  assert.deepEqual([coarse.total, coarse.around], [140, 0]);
  const back = see(nested(), { ...asked, place: [0.015, 0.005], towards: "origin" });
  assert.deepEqual([back.total, back.around], [40, 50]);
});

test("the estimate spreads each row evenly over its cell: it adds up to the total again", () => {
  const here = nested();
  const { nest } = here.destination;
  const { density, at } = see(here, asked);
  const area = (id: string): number => nest.area[nest.id.indexOf(id)]!;
  const value = (id: string): number => density[nest.id.indexOf(id)]!;
  const [w, a, a1, a2, b1] = ["W", "A", "a1", "a2", "b1"].map(area) as [number, number, number, number, number];
  const painted = value("a1") * a1 + value("a2") * a2 + value("A") * (a - a1 - a2) + value("b1") * b1 + value("W") * (w - a - b1);
  const total = at.reduce((sum, mass) => sum + mass, 0);
  assert.ok(Math.abs(painted / total - 1) < 1e-9, `${painted} ${total}`);
});

test("trips that stay inside are told, also where one end is larger", () => {
  assert.equal(see(nested(), asked).stays, 20 + 20 + 30 + 60);
  assert.equal(see(nested(), { ...asked, detail: 1 }).stays, 160);
});

test("the ladder tells what is listed here and what in the cells around", () => {
  const { destination } = nested();
  const { at } = see(nested(), asked);
  const rungs = ladder(destination.nest, at, destination.nest.id.indexOf("a1"));
  assert.deepEqual(rungs.map(({ mass }) => mass), [60, 20, 30]);
  assert.match(plainly(ladderText(rungs, "trips")), /^60 trips in this cell \(1\.2 km²\) \+ 20 in the surrounding 4\.9 km² \+ 30 in 20 km²$/);
});

test("how finely trips are published here: rows around it count with its share of their area", () => {
  const here = { ...asked, place: [0.005, 0.005] as [number, number] };
  const placed = placedHere(nested(), here);
  // a1 has 70 trips within 7 km² and 30 that end somewhere in W; of the 40 from A, which is four times as large, it has ten.
  assert.deepEqual([placed.own, placed.around], [100, 40]);
  assert.deepEqual([placed.coarse, placed.rough, placed.total].map(Math.round), [80, 30, 110]);
  assert.equal(plainly(placedWords(placed)), "73 % within 1 to 7 km², 27 % only roughly (over 7 km²)");
  // Looking at one part does not change the answer.
  assert.deepEqual(placedHere(nested(), { ...here, part: "rough" }), placed);
});

test("places inside an area add up to the area, and the areas to everything", () => {
  const release = nested();
  const { nest } = release.origin;
  const whole = placedHere(release, { ...asked, detail: 1, place: [0.005, 0.005] });
  assert.deepEqual(whole, placedHere(release, { ...asked }));
  // The four quarters of W: A holds a1 and a2, B holds b1; nothing is published for the other two.
  const [a, b] = ([[0.005, 0.005], [0.025, 0.005]] as const).map((place) => placedHere(release, { ...asked, detail: 2, place: [...place] }));
  assert.equal(Math.round(a!.total + b!.total), whole.total);
  const parts = ([[0.005, 0.005], [0.015, 0.005]] as const).map((place) => placedHere(release, { ...asked, detail: 3, place: [...place] }));
  const rest = 1 - (nest.area[nest.id.indexOf("a1")]! + nest.area[nest.id.indexOf("a2")]!) / nest.area[nest.id.indexOf("A")]!;
  assert.ok(Math.abs(parts[0]!.total + parts[1]!.total + 40 * rest - a!.total) < 0.01);
});

test("the pointer counts a cell as choosing it would", () => {
  const release = nested();
  const seen = see(release, asked);
  const node = release.destination.nest.id.indexOf("a1");
  const chosen = placedHere(release, { ...asked, towards: "origin", place: [0.005, 0.005] });
  const pointed = placedAt(release.destination.nest, seen, node);
  for (const [name, mass] of Object.entries(chosen)) assert.ok(Math.abs(pointed[name as keyof typeof chosen] - mass) < 1e-9, name);
});

test("the sentence says how many the map shows, and what else there is", () => {
  const here = nested();
  const seen = see(here, { ...asked, place: [0.005, 0.005] });
  assert.equal(
    plainly(Object.values(sentence(seen, { ...asked, place: [0.005, 0.005] }, "Maipú", ["7 % go to Paine", "3 % to Buin"])).join(" ")),
    "From around Maipú: 100 published trips. Another 40 start here or in a larger area around. How many of those start here is not published, so they are not among these.",
  );
  const nowhere = { ...asked, place: [9, 9] as [number, number] };
  assert.match(sentence(see(here, nowhere), nowhere, null).main, /^Nothing is published from here/);
});

test("the map starts at the finest detail at which most trips are known", () => {
  assert.equal(firstDetail(nested()), 2);
  assert.ok(Math.abs(typicalSize(nested())! - 1.24) < 0.01);
});

test("values of an attribute are chips, and what is not given is one of them", () => {
  const here = nested({ mode: { values: ["", "bus", "car"], of: [1, 1, 0, 2, 2, 2] } });
  const { parts } = sharesOf(here, here.kinds[0]!, asked);
  assert.deepEqual(parts, [{ value: "bus", mass: 40 }, { value: "car", mass: 90 }, { value: "", mass: 30 }]);
  const cars = { ...asked, only: { mode: "car" } };
  assert.deepEqual([see(here, cars).total, see(here, cars).loose], [90, 30]);
  const { main, note } = sentence(see(here, cars), cars, null);
  assert.match(main, /^Everywhere, mode car: at least 90 published trips\.$/);
  assert.match(note, /^Another 30 trips may be among them: they do not tell the mode as exactly\.$/);
  assert.equal(partOf(here, 2), "place");
  const { precise, coarse, rough, place } = placedHere(here, asked);
  assert.deepEqual({ precise, coarse, rough, place }, { precise: 0, coarse: 130, rough: 0, place: 30 });
  assert.equal(see(here, { ...asked, part: "place" }).total, 30);
});

test("hours lie in parts of the day, and every trip is in one part or not given", () => {
  const hour = { values: ["07", "07-09", "08", "17", "any"], of: [0, 1, 2, 3, 4, 0] };
  const levels = [["07", "08", "17"], ["07-09", "07-09", "17-20"], ["any", "any", "any"]];
  const here = nested({ hour }, [{ name: "hour", levels }]);
  const [kind] = here.kinds;
  assert.equal(kind!.ordered, true);
  const { finest, parts } = sharesOf(here, kind!, asked);
  assert.deepEqual(finest.map(({ mass }) => mass), [40, 30, 60]);
  assert.deepEqual(parts, [{ value: "07-09", mass: 90 }, { value: "17-20", mass: 60 }, { value: "any", mass: 10 }]);
  assert.deepEqual(mapsOf(here, kind!, asked), parts);
  const seven = see(here, { ...asked, only: { hour: "07" } });
  assert.deepEqual([seven.total, seven.loose], [40, 30]);
  const early = see(here, { ...asked, only: { hour: "07-09" } });
  assert.deepEqual([early.total, early.loose], [90, 10]);
  // From a1: 30 at eight, 60 at 17, 10 at no given hour.
  assert.deepEqual(sharesOf(here, kind!, { ...asked, place: [0.005, 0.005] }).parts.map(({ mass }) => mass), [30, 60, 10]);
});

test("the middle of a zone that is half sea lies on its land", () => {
  const coast: [number, number][] = [[0.6, -1], [3, -1], [3, 3], [0.6, 3]];
  const zone: Polygon[] = [[[[0, 0], [1, 0], [1, 1], [0, 1]]]];
  const [x, y] = middleOnLand(zone, [coast])!;
  assert.ok(x > 0.6 && x < 1 && Math.abs(y - 0.5) < 0.1, `${x} ${y}`);
  assert.equal(middleOnLand(zone, [[[-1, -1], [3, -1], [3, 3], [-1, 3]]]), null);
  assert.equal(middleOnLand(zone, [[[5, 5], [6, 5], [6, 6]]]), null);
});

test("a release with many zones does not flatten the scale of one with few", () => {
  const [few, many] = [20, 2000].map((length, number) => {
    const zones = { h3: false, id: Array.from({ length }, (_, i) => `z${i}`), shape: Array<number>(length).fill(0), level: Array<number>(length).fill(1), trips: Array.from({ length }, (_, i) => (number ? 10 + (i % 5) : 100 * (i + 1))) };
    return { ...release(`r${number}`), origin: zones, flows: { per_origin: Array<number>(length).fill(0), destination_steps: [], trips: [] } };
  });
  const { releases } = unpack(packed(few!, many!));
  const state = { ...first(releases), shade: "total" as const };
  const panels = releases.map((_, number) => ({ id: `r${number}`, release: number, axis: "origin" as const }));
  const [one] = shade(releases, panels, state, LIGHT);
  assert.ok(new Set(Array.from(one!.values, (value) => String(one!.scale.shade(value)))).size >= 3);
});

test("boxes on top of each other are added up without losing a trip", () => {
  const many = 2100;
  const shapes = Array.from({ length: many }, (_, i) => [[[2_000_000 + 97 * i, 48_000_000 + 31 * (i % 500), i % 7 ? 90_000 : 9, 60_000 + 11 * i]]]);
  const own = { h3: false, id: shapes.map((_, i) => `b${i}`), shape: shapes.map((_, i) => i), level: shapes.map(() => null), trips: shapes.map((_, i) => 10 + (i % 9)) };
  const one: PackedRelease = { ...release("boxes"), origin: own };
  const { origin } = unpack({ format: 1, shapes, releases: [one], base: null }).releases[0]!;
  const grid = gridOf(origin, "trips")!;
  const cell = measure([rectangle(grid.bounds)]).area / (grid.columns * grid.rows);
  const total = own.trips.reduce((sum, trips) => sum + trips, 0);
  const summed = grid.density.reduce((sum, density) => sum + density * cell, 0);
  assert.ok(Math.abs(summed / total - 1) < 1e-6, `${summed} of ${total}`);
  assert.ok(Math.max(...grid.mass) <= total + 1e-6);
  assert.equal(gridOf(nested().origin, "trips"), null);
});

const rectangle = ([[west, south], [east, north]]: Bounds): Polygon => [[[west, south], [east, south], [east, north], [west, north]]];

test("zones that are no H3 cells nest by their outlines", () => {
  const { nest: _, ...plain } = zones;
  const one: PackedRelease = { ...release("own"), origin: { ...plain, h3: false, trips: [1, 1, 1, 1, 1] } };
  const model: PackedModel = { format: 1, shapes: SHAPES, releases: [one], base: null };
  const { nest } = unpack(model).releases[0]!.origin;
  assert.deepEqual([...nest.parent], [-1, 0, 1, 1, 0]);
});

test("changes are signed, and what only one release lists is told apart", () => {
  const [one, two] = unpack(packed(release("one"), { ...release("two", ["a", "c"]), flows: { per_origin: [2, 1], destination_steps: [0, 1, 1], trips: [40, 35, 20] } })).releases as [Release, Release];
  assert.equal(sameZones(one, one), true);
  assert.equal(sameZones(one, two), false);
  // Of twenty zones one had nothing to publish in the second: still the same zones.
  const twenty = (many: number): PackedRelease => {
    const id = Array.from({ length: many }, (_, i) => `z${i}`);
    return { ...release("many"), origin: { h3: false, id, shape: id.map(() => 0), level: id.map(() => 1), trips: id.map(() => 10) }, flows: { per_origin: id.map(() => 0), destination_steps: [], trips: [] } };
  };
  const [all, fewer] = unpack(packed(twenty(20), twenty(19))).releases as [Release, Release];
  assert.equal(sameZones(all, fewer), true);
  const kinds = Object.fromEntries(flowChanges(one, two, "trips").map(({ origin, destination, kind, by }) => [`${origin}${destination}`, [kind, by]]));
  assert.deepEqual(kinds, { ax: ["both", -10], ay: ["both", 15], az: ["gone", -10], by: ["gone", -15], cy: ["new", 20] });
  assert.deepEqual(zoneChanges(one, two, "origin", "trips").get("c")?.kind, "new");
});

test("as much more and as much less are as far from the middle", () => {
  const { shade, shades } = makeDiverging([-100, -10, -1, 0, 1, 10, 100], LIGHT);
  for (const size of [1, 10, 100]) {
    const [less, more] = [shades.indexOf(shade(-size)), shades.indexOf(shade(size))];
    assert.equal(less + more, shades.length - 1);
    assert.ok(less < more);
  }
  assert.equal(shade(0), shades[shades.length >> 1]);
});

test("hatching stays inside its polygons and goes on where they touch; a side of two neighbours is there once", () => {
  const square = (west: number): Polygon => [[[west, 0], [west + 4, 0], [west + 4, 4], [west, 4]]];
  const [alone, both] = [hatch([square(0)], 0.5), hatch([square(0), square(4)], 0.5)];
  assert.ok(alone.length > 10);
  for (const { from, to } of alone) for (const [x, y] of [from, to]) assert.ok(x >= 0 && x <= 4 && y >= 0 && y <= 4);
  assert.ok(both.length < 2 * alone.length);
  assert.ok(both.some(({ from, to }) => from[0] < 4 && to[0] > 4));
  const lengths = (lines: Segment[]): number => lines.reduce((sum, { from, to }) => sum + to[0] - from[0], 0);
  const [first, second] = [square(0), square(4)].map((one) => lengths(hatch([one], 0.5))) as [number, number];
  assert.ok(Math.abs(lengths(both) - first - second) < 1e-9);
  assert.equal(sides([square(0), square(4)]).length, 7);
  const dashes = sides([square(0)]).map(({ along }) => along![1] - along![0]);
  assert.equal(Math.round(dashes.reduce((sum, one) => sum + one, 0)), 72);
});

test("towns are found by their name without its accents, and the nearest one is named", () => {
  const names = new Names({ unit: 1000, name: ["Maipú", "Maipú Viejo", "Faraway"], place: [0, 0, 100, 0, 9000, 0], people: [500_000, 900, 10] });
  assert.equal(names.find("maipu")?.name, "Maipú");
  assert.equal(names.find("far"), null);
  assert.equal(names.nearest([0.09, 0]), "Maipú Viejo");
  assert.equal(names.nearest([4, 0]), null);
  assert.equal(plainly(names.where([0.001, 0])!), "Maipú");
  assert.equal(plainly(names.where([0.12, 0.02])!), "Maipú Viejo, 3 km NE");
  assert.equal(plainly(names.where([-0.001, -0.05])!), "Maipú, 6 km S");
  // 6 km from Maipú and 5 km from the village, but a town of half a million people is larger than that.
  assert.equal(names.nearest([0.052, 0]), "Maipú");
  // A cell of 300 km² around the village has the town in it.
  assert.equal(plainly(names.where([0.08, 0], 300)!), "Maipú, 9 km E");
});
