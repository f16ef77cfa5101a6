/** What the page asks of its tables, and what it says of the answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, certainty, changes, placeChanges } from "../src/ask";
import { flowsAsCsv } from "../src/download";
import { Level, keyOf, type PackedNumbers } from "../src/levels";
import { unpack } from "../src/model";
import { fromHash, toHash, type State } from "../src/state";
import { certainShare, knownAs, LANGUAGES, Speech, type Numbers } from "../src/words";
import { level as packedLevel, packed, plainly, release, table } from "./made";

const level = unpack(packed(release("one"))).levels[0]!;
const own = level.table(0)!;
const numbers = (trips: number, by: number, most = 2 * by): Numbers => ({ trips, low: Math.max(0, trips - most), high: trips + most, interval_low: Math.max(0, trips - by), interval_high: trips + by });

test("a table answers from, to, both and neither", () => {
  const list = (from: number, to: number) => answer({ level, from, to }, own).list.map(({ place, trips }) => [place, trips]);
  assert.deepEqual(list(0, -1), [[0, 20], [1, 20], [2, 20]]);
  assert.deepEqual(list(-1, 1), [[0, 20], [2, 15]]);
  assert.deepEqual(list(-1, -1), [[0, 40], [1, 35], [2, 20]]);
  assert.equal(answer({ level, from: 0, to: -1 }, own).total!.trips, 60);
  assert.equal(answer({ level, from: 0, to: -1 }, own).stay!.trips, 20);
  assert.equal(answer({ level, from: 2, to: 1 }, own).total!.trips, 15);
  assert.equal(answer({ level, from: 2, to: 0 }, own).total, null);
  assert.deepEqual(own.largest(2).map(({ origin, destination }) => [origin, destination]), [[0, 0], [0, 1]]);
});

test("a place without a shape is on no map and has a name all the same", () => {
  assert.equal(level.centre[2], null);
  assert.equal(level.at([0.5, 0.5]), 0);
  assert.equal(level.at([5, 5]), -1);
  assert.equal(level.title(2, new Speech("en")), "place at –");
});

test("a change is certain by bounds, likely by intervals, else nothing", () => {
  assert.equal(certainty(numbers(100, 5), numbers(200, 5)), "surely");
  assert.equal(certainty(numbers(100, 5, 80), numbers(200, 5, 80)), "likely");
  assert.equal(certainty(numbers(100, 60), numbers(150, 60)), "unsure");
});

test("changes are those of both tables, and what one does not list is at most what it leaves out", () => {
  const two = new Level({ ...packedLevel, tables: [{ "": table() }, { "": { ...table(), origin: [0, 0, 1, 2, 2], destination: [1, 2, 0, 0, 1], pairs: { ...table().pairs, trips: [50, 20, 20, 20, 15] } } }] }, []);
  const found = changes({ level: two, from: -1, to: -1 }, two.table(0)!, two.table(1)!, 10);
  assert.deepEqual([found[0]!.origin, found[0]!.destination, found[0]!.by], [0, 1, 30]);
  const gone = found.find(({ origin, destination }) => origin === 0 && destination === 0)!;
  assert.equal(gone.after.interval_high, 3);
  assert.notEqual(gone.certainty, "surely");
  assert.equal(placeChanges({ level: two, from: 0, to: -1 }, two.table(0)!, two.table(1)!)[0]!.by, 30);
});

test("a number has as many digits as its interval allows", () => {
  const { told } = new Speech("en");
  const speech = new Speech("en");
  assert.deepEqual(speech.told({ trips: 4517, low: 3600, high: 5900, interval_low: 4103, interval_high: 4898 }), { about: "4,500", between: "4,100 to 4,900", exact: false });
  assert.deepEqual(speech.told({ trips: 635, low: 635, high: 635, interval_low: 635, interval_high: 635 }), { about: "635", between: "", exact: true });
  assert.equal(speech.told({ trips: 604, low: 604, high: 1961, interval_low: 604, interval_high: 604 }).exact, false);
  assert.equal(typeof told, "function");
});

test("no share is told whose interval is wider than half of it", () => {
  const speech = new Speech("en");
  assert.equal(plainly(speech.share(numbers(22, 5), numbers(100, 0))!), "22 %");
  assert.equal(speech.share(numbers(22, 6), numbers(100, 0)), null);
  assert.deepEqual([numbers(100, 5), numbers(100, 30), numbers(100, 60)].map(knownAs), ["sharp", "medium", "blurred"]);
});

test("every language has every word", () => {
  const shape = (value: unknown): unknown => (Array.isArray(value) ? value.length : typeof value === "object" ? Object.fromEntries(Object.entries(value!).map(([key, one]) => [key, shape(one)])) : typeof value);
  for (const words of Object.values(LANGUAGES)) assert.deepEqual(shape(words), shape(LANGUAGES["en"]));
});

test("the address has all choices, and nonsense in it is ignored", () => {
  const first: State = { from: null, to: null, level: null, only: {}, view: "flows", count: "weight", release: 0, rough: false, language: "en", theme: "auto" };
  const state: State = { from: "a b", to: "ü", level: "districts", only: { mode: "car:1", hour: "07-09" }, view: "matrix", count: "trips", release: 1, rough: true, language: "fr", theme: "dark" };
  const read = fromHash(`#${toHash(state, { longitude: -70.6, latitude: -33.4, zoom: 10.25 }, first)}`);
  assert.deepEqual({ ...first, ...read.state }, state);
  assert.deepEqual(read.view, { longitude: -70.6, latitude: -33.4, zoom: 10.25 });
  assert.equal(toHash(first, null, first), "");
  assert.deepEqual(fromHash("#view=none&at=1,2&theme=pink&release=-1"), { state: {}, view: null });
  assert.equal(keyOf({ mode: "car", hour: "07" }), "hour=07&mode=car");
});

test("a file has ids, names and bounds, and no name becomes a formula", () => {
  const text = flowsAsCsv([{ from: ["1", "=A"], to: ["2", 'B, "C"'], numbers: numbers(10, 1) }], { mode: "car" });
  assert.equal(text, 'from,from_name,to,to_name,trips,interval_low,interval_high,low,high,mode\r\n1,\'=A,2,"B, ""C""",10,9,11,8,12,car\r\n');
});

test("a weight has an interval and no bounds; what is certain is said of the trips in the data", () => {
  const times = (one: PackedNumbers, by: number): number[] => Array.from(one.trips, (trips) => by * trips);
  const weight = (one: PackedNumbers): PackedNumbers => ({ ...one, weight: times(one, 10), weight_low: times(one, 8), weight_high: times(one, 12) });
  const plain = table(2);
  const tables = [{ "": { ...plain, total: { ...plain.total, weight: 950, weight_low: 950, weight_high: 950 }, starts: weight(plain.starts), ends: weight(plain.ends), pairs: weight(plain.pairs) } }];
  const place = new Level({ ...packedLevel, tables }, []);
  const own = place.table(0, {}, true)!;
  const pair = own.pair(0, 1)!;
  assert.deepEqual([pair.trips, pair.interval_low, pair.interval_high, pair.low, pair.high], [200, 160, 240, 0, Infinity]);
  assert.deepEqual([pair.asked!.trips, pair.asked!.low, pair.asked!.high], [20, 16, 24]);
  assert.equal(certainShare(pair), 0.8);
  assert.equal(new Speech("en").told(own.total).about, "950");
  assert.equal(own.total.asked!.trips, 95);
  assert.equal(own.least, 30);
  assert.equal(place.table(0)!.pair(0, 1)!.trips, 20);
  // Without weights there is nothing to choose.
  assert.equal(level.table(0, {}, true), level.table(0));
  const [head, line] = flowsAsCsv([{ from: ["a", "A"], to: ["b", "B"], numbers: pair }], {}).split("\r\n");
  assert.equal(head, "from,from_name,to,to_name,trips,interval_low,interval_high,low,high,weight,weight_low,weight_high");
  assert.equal(line, "a,A,b,B,20,18,22,16,24,200,160,240");
});
