// test_steps: how a query comes to its weights: the numbers are those of the server's trace, and what
// the page works out of them is what the server does.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, test } from "./browser.mjs";
import { steps as rows } from "./looking.mjs";
import { whole } from "./wholes.mjs";

const server = await serve([], { config: { models: { demo: { random: { seed: 3 }, query_size: 4, heads: 2 },
  even: { random: { seed: 7 }, query_size: 4, heads: 1, weighting: "sigmoid" },
  additive: { random: { seed: 1 }, query_size: 4, score: "additive", score_size: 8, projection: "none", heads: 1 },
  writes: whole("decoder") } } });
const BODY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], [[2, 1, 0, 1], [0, 1, 3, 0], [1, 1, 0, 2]]],
  causal: true, return_attention: true };
const opened = async (body, model, view, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await page.evaluate((what) => State.view(what), view);
  await page.getByRole("tab", { name: "Computation" }).click();
  await settle(page);
  return page;
};
const traced = async (body, model, trace, what = "attention") => {
  const { return_attention, ...rest } = body;
  const { status, json, text } = await server.post(`/v1/models/${model}/${what}`, { ...rest, trace });
  assert.equal(status, 200, text);
  return json.trace;
};
const short = (x) => String(Number(x.toPrecision(3)));
const said = (page) => page.locator("#steps-text").textContent();
const step = (page, name) => page.getByRole("button", { name }).click().then(() => settle(page));

test("all numbers are the trace's", async () => {
  for (const [model, head] of [["demo", 1], ["even", 0], ["additive", 0]]) {
    const page = await opened(BODY, model, { item: 1, head, row: 1, col: 0 });
    const t = await traced(BODY, model, { item: 1, head, query: 1 });
    const shown = await rows(page);
    assert.deepEqual(shown.map(({ product }) => product),
      t.products.map((x) => (x === null ? "–" : short(x))));
    assert.deepEqual(shown.map(({ score }) => (score === "" ? null : Number(score))), t.scores);
    assert.deepEqual(shown.map(({ seen }) => seen), [true, true, false]);
    shown.forEach(({ weight }, j) => assert.equal(Math.fround(weight), Math.fround(t.weights[j])));
    assert.ok((await said(page)).includes(short(t.query[0])));
    for (const [name, numbers] of [["2 Products", [t.products[0]]], ["3 Scores", [t.scores[0]]],
      ["4 Weights", [t.weights[0]]], ["5 Values", [t.values[0][0], t.weights[0]]], ["6 Context", t.context]]) {
      await step(page, name);
      for (const x of numbers) assert.ok((await said(page)).includes(short(x)), `${name}: ${x}`);
    }
    // The page's own way from scores to weights is the server's.
    const own = await page.evaluate(([s, isEven]) => Steps.weigh(s, isEven), [t.scores, model === "even"]);
    own.forEach((x, j) => assert.ok(Math.abs(x - t.weights[j]) < 1e-6, `${x}, ${t.weights[j]}`));
  }
});

test("what if: a score is changed, a key is hidden, and all goes back", async () => {
  const page = await opened(BODY, "demo", { item: 0, head: 0, row: 2, col: 1 });
  const t = await traced(BODY, "demo", { item: 0, head: 0, query: 2 });
  const expected = (scores) => {
    const parts = scores.map((x) => (x === null ? 0 : Math.exp(x)));
    return parts.map((x) => x / parts.reduce((a, b) => a + b));
  };
  const compare = async (scores) => (await rows(page)).forEach(({ weight }, j) =>
    assert.ok(Math.abs(weight - expected(scores)[j]) < 1e-5, `${weight}, ${expected(scores)[j]}`));
  await compare(t.scores);
  const back = page.getByRole("button", { name: "Back to the server's numbers" });
  assert.ok(await back.isHidden());
  const input = page.locator("#steps [type=number]").nth(1);
  await input.fill("2.5");
  await input.press("Enter");
  await settle(page);
  await compare([t.scores[0], 2.5, t.scores[2]]);
  assert.deepEqual((await page.locator("#steps tbody tr td:last-child").allTextContents()), t.weights.map(short));
  await page.locator("#steps [type=checkbox]").first().uncheck();
  await settle(page);
  await compare([null, 2.5, t.scores[2]]);
  await step(page, "6 Context");
  const weights = expected([null, 2.5, t.scores[2]]);
  const context = t.values[0].map((_, c) => weights.reduce((sum, x, j) => sum + x * t.values[j][c], 0));
  for (const x of context) assert.ok((await said(page)).includes(String(Number(x.toPrecision(2))).slice(0, 4)), `${x}`);
  assert.match(await said(page), /With the server's scores/);
  await back.click();
  await settle(page);
  await compare(t.scores);
});

test("of a whole model, of the attention that is shown; a hidden key has no score", async () => {
  const body = { tokens: [4, 5, 6, 7] }, page = await opened(body, "writes", {});
  await page.evaluate(() => Whole.show("decoder.1.self", 2));
  await page.waitForFunction(() => State.get("answer").part === "decoder.1.self");
  await page.evaluate(() => State.view({ row: 2, col: 3 }));
  await settle(page);
  const t = await traced(body, "writes", { attention: "decoder.1.self", item: 0, head: 2, query: 2 }, "encode");
  assert.deepEqual((await rows(page)).map(({ score }) => (score === "" ? null : Number(score))), t.scores);
  await step(page, "3 Scores");
  assert.match(await said(page), /key 3, “7” is masked/);
});

test("what is refused is told; where there is nothing, it says so", async () => {
  const page = await opened(BODY, "demo", { row: 0 }, { expect: [504] });
  await page.route(/\/attention$/, (route) => route.fulfill({ status: 504, contentType: "application/problem+json",
    body: '{"title":"Too slow","detail":"deadline_ms has passed"}' }), { times: 1 });
  await page.evaluate(() => State.view({ row: 1 }));
  await page.locator("#steps [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#steps tbody tr").first().waitFor();
  await ask(page, { queries: [[[1, 0, 0, 1]]] }, "demo");
  assert.match(await page.locator("#steps").textContent(), /no weights/);
});

test("many keys: the heaviest, and all", async () => {
  const body = { queries: [Array.from({ length: 40 }, (_, i) => [Math.sin(i), Math.cos(i), 1, i / 40])],
    return_attention: true };
  const page = await opened(body, "demo", { row: 5, col: 39 });
  assert.ok((await rows(page)).length <= 13);
  await page.getByRole("button", { name: "Show all 40 keys" }).click();
  assert.equal((await rows(page)).length, 40);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [360, 740], true]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened(BODY, "demo", { row: 2 }, { viewport, dark });
    await page.locator("#steps [aria-pressed=true]").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    assert.match(await said(page), /How well q and k match/);
    await page.locator("#steps [type=number]").first().focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Tab");
    await settle(page);
    assert.ok(await page.getByRole("button", { name: "Back to the server's" }).isVisible());
    await audit(page, "steps");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
