// test_ask: the Ask side of the page: models, examples, random input, sending, the keyboard.
import assert from "node:assert/strict";
import { asFloat32, choose, open, source, toy, type, weights } from "./asking.mjs";
import { ask, audit, open as openPage, serve, settle, state, test } from "./browser.mjs";

const server = await serve();

const allOf = async (model, body) => (await server.post(`/v1/models/${model}/attention`, body)).json;
const near = (list, expected, within, what) => list.forEach((x, i) =>
  assert.ok(Math.abs(x - expected[i]) < within, `${what}: ${list} is not ${expected}`));

test("it opens with a look-up, sent: its weights come from query and key", async () => {
  const page = await open({ server });
  const text = await source(page), json = await allOf("demo", text);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
  assert.equal(await page.locator("#example").inputValue(), "lookup");
  assert.deepEqual(JSON.parse((await state(page, "answer")).raw), json);
  assert.deepEqual(Object.keys(JSON.parse(text)), ["queries", "keys", "return_attention"], "no bias, no mask");
  const { rows: [rows], cols: [cols] } = await state(page, "labels");
  assert.deepEqual(await page.locator("#rows tbody th").allTextContents(), rows);
  // In each head the keys that a query gets, all alike.
  const all = cols.join(" "), reds = "apple cherry", sours = "cherry lemon lime";
  const expected = [["plum", reds, all, reds, all], [all, all, sours, sours, all]];
  json.attention_weights[0].forEach((head, h) => head.forEach((row, i) => {
    const some = expected[h][i].split(" ");
    near(row, cols.map((key) => (some.includes(key) ? 1 / some.length : 0)), 0.012, rows[i]);
  }));
  await page.reload();
  await settle(page);
  assert.equal(await source(page), text, "the same numbers each time");
});

test("an example for each section of chapter 11, and what it is to show", async () => {
  const page = await open({ server });
  const chosen = async (name) => {
    await choose(page, "example", name);
    const text = await source(page);
    return { text, ...await allOf(await state(page, "model"), text), ...await state(page, "labels") };
  };
  const titles = (await page.locator("#example option").allTextContents()).join();
  for (let section = 1; section <= 7; section++) assert.match(titles, new RegExp(`d2l [^)]*11\\.${section}`));
  // 11.2: a Gaussian kernel, of another width in each head; the context is its estimate.
  const kernel = await chosen("kernel"), number = (name) => Number(name.slice(2));
  const [at, known] = [kernel.rows[0].map(number), kernel.cols[0].map(number)];
  for (const [h, width] of [[0, 1], [1, 0.5]])
    for (const [i, x] of at.entries()) {
      const parts = known.map((k) => Math.exp(-((x - k) ** 2) / (2 * width ** 2))), sum = parts.reduce((a, b) => a + b);
      near(kernel.attention_weights[0][h][i], parts.map((part) => part / sum), 0.02, `x=${x}`);
      const { trace } = await allOf("demo", { ...JSON.parse(kernel.text), trace: { item: 0, head: h, query: i } });
      const estimate = known.reduce((total, k, j) => total + trace.weights[j] * (2 * Math.sin(k) + k), 0);
      assert.ok(Math.abs(trace.context[0] - estimate) < 0.02, `${trace.context} is not ${estimate}`);
    }
  // 11.4: each word finds its translation; nothing finds padding.
  const { attention_weights: [[aligned]], rows: [french], cols: [english] } = await chosen("bahdanau");
  const best = aligned.map((row) => english[row.indexOf(Math.max(...row))]);
  assert.deepEqual([french, best], [["le", "chat", "noir", "dort"], ["the", "cat", "black", "sleeps"]]);
  assert.ok(aligned.every((row) => row[4] === 0));
  // 11.6: the score depends on the distance alone.
  const place = await chosen("position");
  for (const [h, pace] of [[0, 1], [1, 0.25]])
    for (const i of [0, 3, 7]) {
      const { trace } = await allOf("demo", { ...JSON.parse(place.text), trace: { item: 0, head: h, query: i } });
      near(trace.scores, trace.scores.map((_, j) => 6 / Math.SQRT2 * Math.cos(pace * (i - j))), 0.02, `position ${i}`);
    }
  // 11.7: no key follows its query.
  const { attention_weights: [causal] } = await chosen("causal");
  for (const head of causal) head.forEach((row, i) => assert.ok(row.slice(i + 1).every((x) => x === 0)));
  // What a bias makes is told to be its own.
  const biased = await chosen("pronoun"), words = biased.rows[0], it = words.indexOf("it");
  assert.match(await page.locator("#example-note").innerText(), /bias adds 5/);
  assert.match(titles, /A bias makes the weights/);
  for (const head of biased.attention_weights[0]) assert.equal(words[head[it].indexOf(Math.max(...head[it]))], "animal");
});

test("the request of a layer is unfolded beside its picture, and folds as the user likes", async () => {
  const isOpen = (page) => page.locator("#drawer").evaluate(({ open: is }) => is);
  for (const [path, width, isUnfolded] of [["demo", 1280, true], ["sort", 1280, false], ["demo", 390, false]]) {
    const page = await openPage({ server, path: `/#explore?model=${path}`, viewport: [width, 800] });
    assert.equal(await isOpen(page), isUnfolded, `${path}, ${width}`);
    if (!isUnfolded) continue;
    await page.locator("#source-title").click();
    await choose(page, "example", "toy");
    assert.ok(!await isOpen(page));
    await choose(page, "model", "sort");
    await choose(page, "model", "demo");
    assert.ok(await isOpen(page));
  }
});

test("each model begins with an example of its own", async () => {
  for (const [model, name] of [["base", "toy"], ["additive", "additive"], ["sort", "sort"], ["demo", "lookup"]]) {
    const page = await open({ server, path: `/#explore?model=${model}` });
    assert.deepEqual([await page.locator("#example").inputValue(), await state(page, "model"), await state(page, "problem")],
      [name, model, null]);
  }
});

const USED = { additive: "additive", bahdanau: "additive", lookup: "demo", kernel: "demo", position: "demo" };
test("each example on each model", async () => {
  const page = await open({ server, expect: [400] });
  const names = await page.evaluate(() => Samples.layers.map((example) => example.name));
  for (const model of ["demo", "base", "additive"])
    for (const name of names) {
      await choose(page, "model", model);
      await choose(page, "example", name);
      const used = USED[name] || model;
      assert.equal(await page.locator("#model").inputValue(), used);
      assert.equal(await page.locator("#example").inputValue(), name);
      const reply = await server.post(`/v1/models/${used}/attention`, await source(page));
      assert.equal(reply.status, name === "invalid" ? 400 : 200, `${name} of ${used}`);
      const problem = await state(page, "problem");
      if (name === "invalid") {
        assert.equal(problem.pointer, "/queries/1/2");
        continue;
      }
      assert.equal(problem, null, `${name} of ${used}`);
      assert.equal((await state(page, "asked")).model, used);
      assert.deepEqual(await weights(page), asFloat32(reply.json.attention_weights));
    }
});

test("an example brings its model and its words, and the next one brings back what was", async () => {
  const page = await open({ server });
  await choose(page, "model", "base");
  await choose(page, "example", "additive");
  assert.equal(await page.locator("#model").inputValue(), "additive");
  await choose(page, "example", "previous");
  assert.equal(await page.locator("#model").inputValue(), "base");
  assert.deepEqual((await state(page, "labels")).rows, [["Once", "upon", "a", "time", "there", "was", "a", "king"]]);
  const [[head]] = (await server.post("/v1/models/base/attention", await source(page))).json.attention_weights;
  assert.deepEqual(head.map((row) => row.indexOf(1)), [-1, 0, 1, 2, 3, 4, 5, 6], "the token before");
  await choose(page, "example", "ragged");
  assert.deepEqual(await state(page, "labels"), { rows: [], cols: [] });
  await choose(page, "model", "additive");
  await choose(page, "example", "hard");
  assert.equal(await page.locator("#model").inputValue(), "additive", "it was chosen by the user");
});

test("it says when the answer belongs to an earlier request", async () => {
  const page = await open({ server }), hint = page.locator("#send-hint");
  const text = await source(page), keys = await hint.textContent();
  await page.locator("#source").fill("{}");
  assert.match(await hint.textContent(), /earlier/);
  await page.locator("#source").fill(text);
  await page.locator("#send").click();
  await settle(page);
  assert.equal(await hint.textContent(), keys);
});

test("on a phone, sending brings the answer into sight", async () => {
  const page = await open({ server, viewport: [390, 800] });
  const top = () => page.locator("#answer-side").evaluate((side) => side.getBoundingClientRect().top);
  assert.ok(await top() > 700);
  await page.locator("#send").click();
  await settle(page);
  assert.ok(await top() < 100);
});

test("examples respect what a model forbids, and one that is changed is nobody's", async () => {
  const sizes = { random: { seed: 1 }, query_size: 6, key_size: 4, value_size: 3, heads: 2 };
  const other = await serve([], { config: { models: {
    sigmoid: { ...sizes, weighting: "sigmoid" }, narrow: { ...sizes, hidden: 6 } } } });
  const page = await open({ server: other, expect: [400] });
  const shut = () => page.locator("#example option:disabled").allTextContents();
  const demo = ["Color and taste (d2l 11.1, 11.5) (needs the layer demo)", "Kernel regression (d2l 11.2) (needs the layer demo)"];
  const NEEDS = [...demo, "Additive pooling (d2l 11.3) (needs the score additive)",
    "Bahdanau attention (d2l 11.4) (needs the layer additive)", "Positional encoding (d2l 11.6) (needs the layer demo)"];
  assert.deepEqual(await shut(), [...NEEDS, "Two levels (not with sigmoid weights)", "none of these"]);
  for (const model of ["sigmoid", "narrow"]) {
    await choose(page, "model", model);
    for (const option of await page.locator("#example option:enabled").all()) {
      const name = await option.getAttribute("value");
      await choose(page, "example", name);
      const problem = await state(page, "problem");
      assert.equal(problem && problem.pointer, name === "invalid" ? "/queries/1/2" : null, name);
    }
  }
  assert.deepEqual(await shut(), [...NEEDS, "none of these"]);
  await choose(page, "example", "levels");
  await choose(page, "model", "sigmoid");
  assert.equal(await page.locator("#example").inputValue(), "toy", "what does not fit gives way");
  await type(page, "{}");
  assert.equal(await page.locator("#example").inputValue(), "own0");
  await choose(page, "model", "narrow");
  assert.equal(await source(page), "{}", "a request of one's own stays");
});

test("what is written before the models are there stays", async () => {
  const page = await open({ server });
  await page.route("**/v1/models", async (route) => {
    await page.evaluate(() => { document.getElementById("drawer").open = true; });
    await page.locator("#source").fill("{}");
    await route.continue();
  });
  await page.reload();
  await page.waitForFunction(() => State.models);
  await settle(page);
  assert.deepEqual([await source(page), await page.locator("#example").inputValue()], ["{}", "own0"]);
});

test("models that cannot be read are read again, and those that have changed", async () => {
  const page = await open({ server, expect: [404, 500] });
  await page.route("**/v1/models", (route) => route.fulfill({ status: 500, body: "" }),
    { times: 1 });
  await page.reload();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForFunction(() => State.answer);
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  assert.equal(await page.locator("#example").inputValue(), "lookup");
  await page.evaluate(() => {
    const models = State.models;
    State.set({ models: [{ ...models[0], name: "gone" }, ...models] });
  });
  await ask(page, toy, "gone");
  assert.equal((await state(page, "problem")).title, "Model not found");
  assert.deepEqual((await state(page, "models")).map(({ name }) => name),
    ["demo", "base", "additive", "sort"]);
  assert.equal(await state(page, "model"), "demo");
  assert.equal(await source(page), JSON.stringify(toy));
});

test("models that are read again leave the choice, and send nothing", async () => {
  const page = await open({ server });
  await choose(page, "model", "base");
  const sent = [], before = await source(page);
  page.on("request", (request) => sent.push(`${request.method()} ${request.url()}`));
  await page.evaluate(() => Models.load());
  await settle(page);
  assert.deepEqual([await state(page, "model"), await source(page)], ["base", before]);
  assert.deepEqual(sent.filter((line) => line.startsWith("POST")), []);
});

test("the model is described", async () => {
  const page = await open({ server });
  await choose(page, "model", "base");
  assert.equal(await page.locator("#model-summary").textContent(),
    "8 heads · 512 → 512 · scaled_dot · 1.1 M parameters · random");
  await page.locator("#model-summary").click();
  const facts = Object.fromEntries(await page.locator("#model-facts div").evaluateAll((all) =>
    all.map((one) => [one.firstChild.textContent, one.lastChild.textContent])));
  const { json: { models } } = await server.get("/v1/models"), json = models.find((one) => one.name === "base");
  const known = Object.keys(json).filter((name) => typeof json[name] !== "object");
  assert.deepEqual(Object.keys(facts).sort(), known.sort());
  for (const [name, said] of Object.entries({ score: "scaled_dot", hidden: "512", bias: "yes", causal: "no",
    compute: "float32", parameters: "1050624", sha256: json.sha256.slice(0, 8), source: "random" }))
    assert.equal(facts[name], said);
});

const random = async (page, shape) => {
  for (const [name, value] of Object.entries(shape))
    await page.locator(`#random [name=${name}]`).fill(String(value));
  await page.getByRole("button", { name: "Fill in and run" }).click();
  await settle(page);
};

test("random input, small as text and large as a file", async () => {
  const page = await open({ server });
  await page.locator("#example-part summary").click();
  await random(page, { b: 2, q: 3, k: "", seed: 5 });
  const first = await source(page), fields = JSON.parse(first);
  assert.deepEqual([fields.queries.length, fields.queries[1].length, fields.queries[1][2].length],
    [2, 3, 4]);
  assert.deepEqual(Object.keys(fields), ["queries", "return_attention"]);
  assert.equal(await state(page, "problem"), null);
  await random(page, { seed: 6 });
  assert.notEqual(await source(page), first);
  await random(page, { seed: 5 });
  assert.equal(await source(page), first);
  await page.locator("#random [name=lengths]").check();
  for (const shape of [{ b: 3, q: 2, k: 7 }, { b: 0 }, { b: 2, q: 0 }, { q: 2, k: 0 }, { k: 1 }]) {
    await random(page, shape);
    const { keys, valid_lens: lens } = JSON.parse(await source(page));
    assert.ok(lens.every((n, i) => n <= keys[i].length));
    assert.equal(await state(page, "problem"), null, JSON.stringify(shape));
  }
  await choose(page, "model", "base");
  assert.equal((await state(page, "asked")).model, "base", "random input of another width gives way to an example");
  await random(page, { b: 2, q: 64, k: 96 });
  assert.deepEqual((await page.locator("#source-whole td").allTextContents()).slice(0, 6),
    ["queries", "F32 [2, 64, 512]", "keys", "F32 [2, 96, 512]", "valid_lens", "I32 [2]"]);
  assert.equal(await state(page, "problem"), null);
  assert.deepEqual(await page.evaluate(() => State.answer.items.map(({ weights }) =>
    [weights.length, weights[7].rows, weights[7].cols])), [[8, 64, 96], [8, 64, 96]]);
  const before = await page.locator("#source-whole").textContent();
  await random(page, { b: 65536, q: 1000 });
  const said = await page.locator("#random-note").textContent();
  assert.match(said, /^That is 3\d G numbers; .* 64 M\.$/);
  assert.equal(await page.locator("#source-whole").textContent(), before);
});

test("the keys that run a request run random input where it is typed", async () => {
  const page = await open({ server });
  await page.locator("#example-part summary").click();
  await page.locator("#random [name=q]").fill("5");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => State.answer.items.length === 2);
  await settle(page);
  assert.equal(JSON.parse((await state(page, "asked")).body.text).queries[0].length, 5);
});

test("an answer too large to draw is kept, not read", async () => {
  const page = await open({ server });
  await page.evaluate(() => State.set({ model: "base" }));
  await page.locator("#example-part summary").click();
  await random(page, { b: 1, q: 2048, k: "" });
  const [limit, size, ...rest] = await page.evaluate(() => {
    const { tooLarge, items, bytes, buffer, type } = State.answer;
    return [Ask.limit, bytes, buffer.byteLength === bytes, tooLarge, items.length, type];
  });
  assert.ok(size > limit && size > 8 * 2048 * 2048 * 4);
  assert.deepEqual(rest, [true, true, 0, "application/x-safetensors"]);
  assert.equal(await state(page, "problem"), null);
  await choose(page, "example", "toy");
  assert.equal(await page.evaluate(() => State.answer.items.length), 2);
});

test("what takes long is stopped, and gives way to what is sent next", async () => {
  const page = await open({ server });
  await page.route("**/attention", () => {}, { times: 2 });
  await page.locator("#send").click();
  await page.locator("#stop").click();
  await settle(page);
  assert.deepEqual([await state(page, "asking"), await state(page, "problem")], [false, null]);
  assert.equal(await page.locator("#stop").isVisible(), false);
  const before = (await state(page, "answer")).raw;
  await page.locator("#send").click();
  assert.equal(await page.locator("#send").isDisabled(), true);
  await choose(page, "example", "causal");
  assert.notEqual((await state(page, "answer")).raw, before);
  assert.equal(await state(page, "problem"), null);
});

test("by the keyboard alone", async () => {
  const page = await open({ server });
  const focused = () => page.evaluate(() => document.activeElement.id);
  const path = ["model", "model-summary", "example", "", "source-title", "source-open", "source",
    "send"];
  await page.locator("#model").focus();
  for (const name of path.slice(1)) {
    await page.keyboard.press("Tab");
    assert.equal(await focused(), name);
  }
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await focused(), "send", "the focus stays");
  await page.locator("#source").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type(JSON.stringify(toy));
  await page.keyboard.press("Control+Enter");
  await settle(page);
  assert.equal((await state(page, "asked")).body.text, JSON.stringify(toy));
  await page.locator("#fields-part > summary").focus();
  await page.keyboard.press("Enter");
  await settle(page);
  await page.locator("#field-head_mask").focus();
  await page.keyboard.type("[0, 1]");
  await page.keyboard.press("Control+Enter");
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text).head_mask, [0, 1]);
});

for (const [width, dark] of [[1280, false], [360, true]])
  test(`its parts open, ${width} px: no sideways scrolling, nothing for axe-core`, async () => {
    const page = await open({ server, viewport: [width, 800], dark });
    await page.evaluate(() => {
      for (const part of document.querySelectorAll("#ask-side details")) part.open = true;
      Dom.id("answer-side").hidden = true;
    });
    await settle(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await audit(page, "all open");
  });
