import assert from "node:assert/strict";
import { test } from "node:test";
import type { PackedModel } from "../src/model";
import { EmbeddedSource, LiveSource, type Offer, type Request } from "../src/source";
import { packed, release } from "./made";

const first: Request = { k: 10, targets: ["trips"], method: "odkanon", budget: 0.1, suppress: "after", resolution: 10, segment: "all", split: false, versus: null, by: [] };
const offer: Offer = {
  token: "secret",
  k: { min: 2, max: 100 },
  budget: { max: 0.3 },
  targets: ["trips", "weight"],
  methods: [{ name: "odkanon", title: "ODkAnon", hint: "merges cells", slow: false, budget: true, suppress: true, attributes: false }],
  resolutions: [10],
  segments: ["all"],
  attributes: [],
  first,
};
const answer = (k: number): Response => Response.json(packed(release(`k${k}`)));
const asked = (init: RequestInit): Request => JSON.parse(init.body as string) as Request;

test("a report is its own source and offers no controls", async () => {
  const model = packed(release("one"));
  const source = new EmbeddedSource(model);
  assert.equal(source.offer, null);
  assert.deepEqual(await source.load(), model);
});

test("the live source sends its parameters and its token", async () => {
  let seen: [string, RequestInit] | null = null;
  const source = new LiveSource(offer, (url, init) => {
    seen = [url, init];
    return Promise.resolve(answer(10));
  });
  await source.load();
  const [url, init] = seen! as [string, RequestInit];
  assert.equal(url, "anonymize");
  assert.equal((init.headers as Record<string, string>)["x-odkanon-token"], "secret");
  const { page, number, base, ...rest } = asked(init) as Request & { page: string; number: number; base: boolean };
  assert.deepEqual(rest, first);
  assert.match(page, /^\w+$/);
  assert.deepEqual([number, base], [1, true]);
});

test("of fifty quick questions only the last is answered, whatever order the answers come in", async () => {
  const pending: { k: number; give: (response: Response) => void }[] = [];
  const source = new LiveSource(offer, (_, init) => new Promise((give) => pending.push({ k: asked(init).k, give })));
  const results = Array.from({ length: 50 }, (_, i) => source.ask({ ...first, k: i + 1 }));
  for (const { k, give } of pending.toReversed()) give(answer(k));
  const models = (await Promise.all(results)).filter((model): model is PackedModel => model !== null);
  assert.deepEqual(models.map((model) => model.releases[0]!.name), ["k50"]);
});

test("a superseded question that fails is silent, the current one is not", async () => {
  const source = new LiveSource(offer, (_, init) =>
    asked(init).k === 1 ? Promise.reject(new Error("aborted")) : Promise.resolve(Response.json({ error: "k is too large" }, { status: 422 })),
  );
  const [old, current] = await Promise.allSettled([source.ask({ ...first, k: 1 }), source.ask({ ...first, k: 2 })]);
  assert.deepEqual(old, { status: "fulfilled", value: null });
  assert.match(String((current as PromiseRejectedResult).reason), /k is too large/);
});
