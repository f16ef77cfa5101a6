import assert from "node:assert/strict";
import { test } from "node:test";
import { LIGHT, mix, nice } from "../src/colour";
import { amount, area, count, exact, percent, quantity, short, wholePercent } from "../src/format";
import { scaleBar } from "../src/map/ruler";
import { bins } from "../src/panels/histogram";
import { caution, statement } from "../src/panels/statement";
import { unpack } from "../src/model";
import { about, packed, plainly, publicAbout, release } from "./made";

test("numbers read as people write them", () => {
  assert.equal(count(26741.6), "26,742");
  assert.equal(count(552.75), "552.8");
  assert.equal(exact(26741.6), "26,741.6");
  assert.equal(count(null), "–");
  assert.equal(quantity(852.31), "852");
  assert.equal(quantity(1.02345), "1.02");
  assert.equal(short(8_290_000), "8.29 million");
  assert.equal(amount(1, "trips"), "1 trip");
  assert.equal(percent(0.0004), "<\u00a00.1\u00a0%");
  assert.equal(percent(0.9999), ">\u00a099.9\u00a0%");
  assert.equal(percent(1), "100\u00a0%");
  assert.equal(wholePercent(0.3449), "34\u00a0%");
  assert.equal(wholePercent(0.001), "<\u00a01\u00a0%");
  assert.equal(area(0.015), "0.015\u00a0km²");
});

test("the statement names every threshold of the rule", () => {
  const all = { ...about, rule: { trips: 10, weight: 26741.6, persons: 5, k: 10 } };
  assert.equal(
    plainly(statement(all)),
    "Every published flow counts at least 10 trips, at least 26,741.6 weighted trips of the population and at least 5 different persons; 5.0 % of the trips could not reach this and are left out.",
  );
});

test("the statement names households, and what is asked besides thresholds", () => {
  const all = { ...about, rule: { households: 5, max_share: 0.5, min_destinations: 2, k: 5 } };
  assert.equal(
    plainly(statement(all)),
    "Every published flow counts at least 5 different households; 5.0 % of the trips could not reach this and are left out. Nobody has more than 50.0 % of one. From every origin flows to at least 2 destinations are listed.",
  );
  assert.equal(caution(all), null);
});

test("an empty release says so", () => {
  assert.match(statement({ ...about, published: { ...about.published, classes: 0 } }), /^Nothing is published/);
});

test("a public release says what can be missing, and its smallest flow comes from the rows", () => {
  const whole = release("r");
  const [read] = unpack(packed({ ...whole, about: publicAbout })).releases;
  assert.equal(statement(read!.about), "Every published flow counts at least 10 trips; at most 10 trips could not reach this and are left out.");
  assert.equal(
    statement({ ...read!.about, unlisted: { at_most_trips: 9 } }),
    "Every published flow counts at least 10 trips. Smaller ones are counted between larger areas; at most 9 trips in all are left out.",
  );
  assert.deepEqual(read!.about.privacy, { trips: { min: 10, threshold: 10, below: 0, share: 0 } });
  assert.deepEqual(read!.about.utility, {});
});

test("a rule on trips does not pretend to be one on people", () => {
  const privacy = { ...about.privacy, persons: { min: 3, threshold: 10, below: 2, share: 0.5 } };
  assert.match(caution({ ...about, privacy })!, /made by 3 persons/);
  assert.equal(caution({ ...about, privacy, rule: { persons: 10 } }), null);
});

test("a legend has round steps, and colours go from the first to the last", () => {
  assert.deepEqual([1, 3.4, 740, 12_000].map(nice), [1, 5, 1000, 10_000]);
  assert.deepEqual(mix(LIGHT.flows, 0), LIGHT.flows[0]);
  assert.deepEqual(mix(LIGHT.flows, 1), LIGHT.flows.at(-1));
});

test("bins hold every class and none straddles the threshold", () => {
  const sizes = [3, 9, 10, 10, 11, 14, 20, 1000, 54321];
  const made = bins(sizes, 10, true);
  assert.equal(made.reduce((sum, bin) => sum + bin.classes, 0), sizes.length);
  assert.ok(made.every((bin) => bin.to <= 10 || bin.from >= 10));
  assert.equal(made.filter((bin) => bin.from < 10).reduce((sum, bin) => sum + bin.classes, 0), 2);
  assert.ok(made.every((bin, i) => i === 0 || made[i - 1]!.to === bin.from));
});

test("bins work for one class, for weights and for nothing", () => {
  assert.equal(bins([26741.6], 26741.6, false)[0]!.classes, 1);
  assert.deepEqual(bins([], 10, true), []);
  assert.equal(bins([1, 1, 1], 1, true).length, 1);
});

test("the scale bar is a round distance and never too long", () => {
  for (let zoom = 0; zoom < 17; zoom += 0.3) {
    const { pixels, text } = scaleBar(zoom, 48.85);
    assert.ok(pixels <= 110 && pixels >= 40, `${zoom}: ${pixels}`);
    assert.match(text, /^[125]0* k?m$/);
  }
});
