// test_steps: how a query comes to its weights: the numbers are those of the server's trace, and what
// the page works out of them is what the server does.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";
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
  await page.evaluate((what) => State.show(what), view);
  await tab(page, "Computation");
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
const weight = (x) => (x === 0 ? "0" : x < 0.0005 ? "<0.001" : x.toFixed(3));
// A column has as many decimals as its largest number with three digits.
const even = (list) => {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.max(...list.map(Math.abs)))));
  return list.map((x) => (x === null ? "–" : x.toFixed(digits)));
};
const said = (page) => page.locator("#steps-text").textContent();
const step = (page, name) => page.getByRole("button", { name }).click().then(() => settle(page));

test("all numbers are the trace's", async () => {
  for (const [model, head] of [["demo", 1], ["even", 0], ["additive", 0]]) {
    const page = await opened(BODY, model, { item: 1, head, row: 1, col: 0 });
    const t = await traced(BODY, model, { item: 1, head, query: 1 });
    const shown = await rows(page);
    assert.deepEqual(shown.map(({ product }) => product),
      even(t.products));
    assert.deepEqual(shown.map(({ score }) => (score === "" ? null : Number(score))), t.scores);
    assert.deepEqual(shown.map(({ seen }) => seen), [true, true, false]);
    shown.forEach(({ weight }, j) => assert.equal(Math.fround(weight), Math.fround(t.weights[j])));
    for (const [name, numbers] of [["1 Query", [short(t.query[0])]], ["2 Products", [short(t.products[0])]],
      ["3 Scores", [short(t.scores[0])]], ["4 Weights", [weight(t.weights[0])]],
      ["5 Values", [short(t.values[0][0]), weight(t.weights[0])]], ["6 Context", t.context.map(short)]]) {
      await step(page, name);
      for (const x of numbers) assert.ok((await said(page)).includes(x), `${name}: ${x}`);
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
  assert.deepEqual((await page.locator("#steps tbody tr td:last-child").allTextContents()), t.weights.map(weight));
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
  await page.waitForFunction(() => State.answer.part === "decoder.1.self");
  await page.evaluate(() => State.show({ row: 2, col: 3 }));
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
  await page.evaluate(() => State.show({ row: 1 }));
  await page.locator("#steps [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#steps tbody tr").first().waitFor();
  await ask(page, { queries: [[[1, 0, 0, 1]]] }, "demo");
  assert.match(await page.locator("#steps").textContent(), /no weights/);
});

const BIASED = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]], return_attention: true,
  bias: [[[0, 0, 0], [0, 5, 0], [0, 0, -2]]] };
test("a score is written out: product, scale and bias as the server has them", async () => {
  const page = await opened(BIASED, "demo", { head: 0, row: 1, col: 1 });
  const t = await traced(BIASED, "demo", { item: 0, head: 0, query: 1 });
  await page.locator("#steps tbody tr").first().waitFor();
  await step(page, "3 Scores");
  assert.ok(Math.abs(t.products[1] / Math.sqrt(2) + 5 - t.scores[1]) < 1e-5, "the bias is in the score");
  assert.equal(await said(page), "q·k / √d + bias, with d = 2, the size of a head: "
    + `${short(t.products[1])} / √2 + 5 = ${short(t.scores[1])}`);
  await page.evaluate(() => State.show({ col: 0 }));
  await settle(page);
  assert.equal(await said(page), "q·k / √d, with d = 2, the size of a head: "
    + `${short(t.products[0])} / √2 = ${short(t.scores[0])}`);
  await page.evaluate(() => State.show({ row: 2, col: 2 }));
  await settle(page);
  assert.match(await said(page), / \/ √2 − 2 = /);
});

test("steps show one column more each; vectors are strips of their numbers", async () => {
  const page = await opened(BODY, "demo", { head: 0, row: 1 });
  const columns = () => page.locator("#steps thead th").allTextContents();
  await page.locator("#steps tbody tr").first().waitFor();
  const all = ["Key", "q·k", "Score", "Weight", "Weight × value"];
  for (const [n, name] of ["1 Query", "2 Products", "3 Scores", "4 Weights", "5 Values", "6 Context"].entries()) {
    await step(page, name);
    assert.deepEqual(await columns(), all.slice(0, n + 1));
  }
  await step(page, "2 Products");
  const t = await traced(BODY, "demo", { item: 0, head: 0, query: 1 });
  const heavy = Math.max(...t.query.map(Math.abs));
  assert.deepEqual(await page.locator("#steps-text .q.strip i").evaluateAll((list) =>
    list.map((one) => [one.className, Math.round(100 * one.style.opacity)])),
  t.query.map((x) => [x < 0 ? "minus" : "", Math.round(100 * Math.abs(x) / heavy)]));
  assert.equal(await page.locator("#steps tbody .k.strip").count(), 2, "the masked key has none");
});

test("without a chosen query it opens on the one with the most concentrated weights", async () => {
  const page = await opened(BIASED, "demo", { head: 0, row: -1, col: -1 });
  const [[rows]] = (await server.post("/v1/models/demo/attention", BIASED)).json.attention_weights;
  const tops = rows.map((row) => Math.max(...row)), best = tops.indexOf(Math.max(...tops));
  assert.equal(best, 1);
  await page.getByText("Query 1 in head 0").waitFor();
  await ask(page, { ...BODY, queries: [BODY.queries[0]] }, "demo");
  assert.doesNotMatch(await page.locator("#steps").textContent(), /Query 0 in/, "query 0 has no choice: its mask leaves one key");
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
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.locator("#steps [type=number]").first().focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Tab");
    await settle(page);
    assert.ok(await page.getByRole("button", { name: "Back to the server's" }).isVisible());
    await audit(page, "steps");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
