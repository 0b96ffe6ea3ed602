// test_compare: an answer that is pinned beside the next one: their weights, their difference, and
// the heads that have moved, against the server's answers.
import assert from "node:assert/strict";
import { ask, audit, expect, open, serve, settle, shot, state, tab, test } from "./browser.mjs";
import { posting } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder();
const server = await serve([], { config: { models: { words: whole("encoder", { tokenizer }),
  writes: whole("decoder"), two: { random: { seed: 5 }, heads: 2, query_size: 4, hidden: 6 }, layer: { random: { seed: 3 }, heads: 3, query_size: 4, hidden: 6 } } } });
const rows = (n, seed) => Array.from({ length: n }, (_, i) =>
  Array.from({ length: 4 }, (__, j) => Math.round(100 * Math.sin(seed + 3 * i + 7 * j)) / 100));
const X = { queries: rows(4, 1), return_attention: true }, Y = { ...X, queries: rows(4, 2) };

const opened = async (model, first, second, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, first, model);
  await tab(page, "Compare");
  await page.getByRole("button", { name: "Pin this response" }).click();
  await page.getByText("This response is pinned").waitFor();
  if (second) await ask(page, second, model);
  await settle(page);
  return page;
};
const post = posting(server);
const titles = (page) => page.locator("#compare figure:visible h3").allTextContents();
const said = (page) => page.locator("#compare-says").textContent();
const heads = (page) => page.locator("#compare [aria-pressed]").allTextContents();
const near = (a, b) => assert.ok(Math.abs(a - b) < 2e-3, `${a}, not ${b}`);
const moved = (a, b) => a.flat().reduce((sum, x, i) => sum + Math.abs(x - b.flat()[i]), 0) / 2 / a.length;

test("three maps of a layer's head, a cell in numbers, and the heads by what has moved", async () => {
  const page = await opened("layer", X, Y);
  const [a, b] = [await post("layer", "attention", X), await post("layer", "attention", Y)]
    .map((one) => one.attention_weights);
  assert.deepEqual((await titles(page)).map((text) => text.replace(/:.*/, "")),
    ["Pinned", "Now", "Now − pinned"]);
  const order = a.map((one, head) => ({ head, by: moved(one, b[head]) })).sort((p, q) => q.by - p.by);
  assert.deepEqual((await heads(page)).map((text) => Number(/head (\d+)/.exec(text)[1])),
    order.map(({ head }) => head));
  assert.equal((await heads(page))[0].split(": ")[1], `${Math.round(100 * order[0].by)} %`);
  // A head is chosen; a cell by the pointer and by keys.
  await page.locator("#compare [aria-pressed]").nth(1).click();
  await settle(page);
  const { head } = order[1];
  assert.equal((await state(page, "view")).head, head);
  await page.locator("#compare [role=application]").nth(2).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await settle(page);
  const { row, col } = await state(page, "view");
  assert.deepEqual([row, col], [1, 1]);
  const [, now, then, by, way] = /: ([\d.e-]+) \(.*pinned ([\d.e-]+), ([\d.e-]+) (more|less) now/.exec(await said(page));
  for (const [got, wanted] of [[now, b[head][1][1]], [then, a[head][1][1]]])
    assert.ok(Math.abs(Number(got) - wanted) < 1e-6, `${got}, not ${wanted}`);
  const less = b[head][1][1] - a[head][1][1];
  assert.equal(`${by} ${way}`, `${Number(Math.abs(less).toPrecision(3))} ${less > 0 ? "more" : "less"}`);
  const box = await page.locator("#compare canvas").nth(0).boundingBox();
  await page.mouse.move(box.x + box.width - 8, box.y + box.height - 8);
  await settle(page);
  assert.deepEqual(await state(page, "over"), { row: 3, col: 3 });
  assert.match(await said(page), /^Query 3 gives/);
  await page.mouse.click(box.x + box.width - 8, box.y + box.height - 8);
  assert.equal((await state(page, "view")).row, 3);
  await page.locator("#compare [role=application]").first().focus();
  await page.keyboard.press("Escape");
  assert.equal((await state(page, "view")).row, -1);
});

test("the difference is drawn in two colours, and nothing where no difference", async () => {
  const page = await opened("layer", X, Y);
  const bytes = await page.evaluate(() => [...Scale.apart().bytes]);
  const [a, b] = [X, Y].map((body) => post("layer", "attention", body));
  const [was, now] = [await a, await b].map((one) => one.attention_weights[0]);
  const less = now.map((line, i) => line.map((x, j) => x - was[i][j]));
  const high = Math.max(...less.flat().map(Math.abs));
  const drawn = await page.evaluate(([rows]) => {
    const canvas = document.querySelectorAll("#compare canvas")[2], pen = new OffscreenCanvas(canvas.width,
      canvas.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const { left, top } = Heatmap.box(Look.sheet(), 48, 1), cell = (canvas.width - 3 - left) / rows;
    return Array.from({ length: rows * rows }, (_, at) => [...pen.getImageData(
      left + (at % rows + 0.1) * cell, top + (Math.floor(at / rows) + 0.1) * cell, 1, 1).data].slice(0, 3));
  }, [4]);
  less.flat().forEach((x, at) => {
    const i = 3 * Math.round(255 * (1 + x / high) / 2);
    drawn[at].forEach((c, n) => assert.ok(Math.abs(c - bytes[i + n]) <= 4,
      `cell ${at}: ${drawn[at]}, not ${bytes.slice(i, i + 3)}`));
  });
});

test("a whole model: outputs, heads of all layers, the pinned weights of another part", async () => {
  const one = { text: "the animal was tired" }, two = { text: "the street was tired" };
  const page = await opened("words", one, two);
  const [a, b] = [await post("words", "encode", { ...one, return_attention: true }),
    await post("words", "encode", { ...two, return_attention: true })];
  const list = Object.keys(a.attention).flatMap((name) => a.attention[name].map((weights, head) =>
    ({ name, head, by: moved(weights, b.attention[name][head]) }))).sort((p, q) => q.by - p.by);
  const shown = await heads(page);
  assert.equal(shown.length, 12);
  for (const [i, text] of shown.entries())
    assert.ok(Math.abs(Number(/: ([\d.]+) %/.exec(text)[1]) / 100 - list[i].by) < 0.02, text);
  const far = Math.hypot(...b.outputs.flat().map((x, i) => x - a.outputs.flat()[i]))
    / Math.hypot(...a.outputs.flat());
  const told = /changed by ([\d.]+) %/.exec(await page.locator("#compare").textContent());
  assert.ok(Math.abs(Number(told[1]) / 100 - far) < 0.006, `${told[1]}, not ${far}`);
  // An attention whose pinned weights are not there yet.
  const other = shown.findIndex((text) => !text.startsWith("Layer 2"));
  const [, layer, head] = /^Layer (\d) · head (\d)/.exec(shown[other]), name = `encoder.${layer}.self`;
  await page.locator("#compare [aria-pressed]").nth(other).click();
  await page.waitForFunction((part) => State.answer.part === part, name);
  await settle(page);
  await page.evaluate(() => State.show({ row: 2, col: 3 }));
  await settle(page);
  const [, now, then] = /: ([\d.e-]+) \(.*pinned ([\d.e-]+)/.exec(await said(page));
  near(Number(now), b.attention[name][head][2][3]);
  near(Number(then), a.attention[name][head][2][3]);
  assert.match(await said(page), /“animal”|“street”/);
});

test("targets: their log probability before and after", async () => {
  const one = { tokens: [4, 5, 6], targets: [7, 8] }, two = { tokens: [4, 9, 6], targets: [7, 8] };
  const page = await opened("writes", one, two);
  const [a, b] = [await post("writes", "score", one), await post("writes", "score", two)]
    .map(({ log_probabilities }) => log_probabilities.reduce((sum, x) => sum + x, 0));
  const [, then, now] = /was (\S+) and is (\S+)\. /.exec(await page.locator("#compare").textContent());
  assert.ok(Math.abs(then - a) < 0.01 * Math.abs(a) && Math.abs(now - b) < 0.01 * Math.abs(b));
});

test("other shapes stand side by side; another model; what is pinned can be let go", async () => {
  const page = await opened("layer", X, { ...X, queries: rows(6, 2) });
  assert.deepEqual(await titles(page), ["Pinned", "Now"]);
  assert.match(await page.locator("#compare").textContent(), /No head has the same numbers/);
  await ask(page, { tokens: [4, 5] }, "words");
  assert.match(await page.locator("#compare").textContent(), /nothing to compare/);
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.getByText("Pin a response").waitFor();
  assert.ok(await page.getByRole("button", { name: "Unpin" }).isHidden());
});

test("the same once more: nothing has moved, and nothing is drawn apart", async () => {
  const page = await opened("words", { text: "the animal" }, { text: "the animal", causal: undefined });
  assert.match(await page.locator("#compare").textContent(), /No weights changed\./);
  assert.equal((await titles(page))[2], "Now − pinned: no difference");
  assert.deepEqual(await heads(page), []);
});

test("a head that only one of them has is compared with no other", async () => {
  const page = await opened("layer", X, { ...Y });
  await page.evaluate(() => State.show({ head: 2 }));
  await settle(page);
  assert.equal((await titles(page)).length, 3);
  await ask(page, X, "two");
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.getByRole("button", { name: "Pin this response" }).click();
  await ask(page, Y, "layer");
  await page.evaluate(() => State.show({ head: 2 }));
  await settle(page);
  assert.match(await page.locator("#compare").textContent(), /does not have this head/);
  await page.evaluate(() => State.show({ head: 1 }));
  await settle(page);
  assert.equal((await titles(page))[0], "Pinned: two");
});

test("of many tokens the thumbnails tell: shares, and that they do", async () => {
  const many = (step) => Array.from({ length: 150 }, (_, i) => 4 + (step * i) % 17);
  const page = await opened("words", { tokens: many(1) }, { tokens: many(3) });
  assert.match(await page.locator("#compare").textContent(), /estimated from thumbnails/);
  const shown = (await heads(page)).map((text) => Number(/: ([\d.]+) %/.exec(text)[1]));
  assert.ok(shown.length && shown.every((x) => x > 0 && x <= 100), shown.join());
  await ask(page, { tokens: many(3).slice(0, 100) }, "words");
  assert.match(await page.locator("#compare").textContent(), /No head has the same numbers/);
});

test("rows without words, small maps at an odd zoom, and cells that Now does not have", async () => {
  const rows = (n, seed) => Array.from({ length: n }, (_, i) =>
    Array.from({ length: 32 }, (__, j) => Math.sin(seed + i * j)));
  const page = await opened("words", { embeddings: rows(3, 1) }, { embeddings: rows(3, 2) }, { scale: 1.1 });
  assert.equal((await titles(page)).length, 3);
  const painted = await page.locator("#compare canvas").first().evaluate((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d",
      { willReadFrequently: true }), seen = new Set();
    copy.drawImage(canvas, 0, 0);
    const { left, top } = Heatmap.box(Look.sheet(), 52, devicePixelRatio);
    for (let i = 0; i < 3; i++)
      for (let j = 0; j < 3; j++)
        seen.add(copy.getImageData(left + 52 * j + 4, top + 52 * i + 4, 1, 1).data.join());
    return seen.size;
  });
  assert.ok(painted > 3, `${painted} colours of nine cells`);
  await ask(page, { embeddings: rows(2, 2) }, "words");
  assert.equal((await titles(page)).length, 2);
  const box = await page.locator("#compare canvas").first().boundingBox();
  await page.mouse.move(box.x + box.width - 8, box.y + box.height - 8);
  await settle(page);
  assert.match(await said(page), /^Pinned: Query 2 gives/);
  await page.mouse.click(box.x + box.width - 8, box.y + box.height - 8);
  assert.equal((await state(page, "view")).row, -1);
});

test("maps fit their frames, whatever stood there before", async () => {
  for (const width of [1500, 1600, 1700]) {
    const page = await opened("layer", { ...X, queries: rows(9, 1) }, { ...X, queries: rows(10, 2) },
      { viewport: [width, 900] });
    await ask(page, { ...X, queries: rows(9, 3) }, "layer");
    for (const frame of await page.locator("#compare figure:visible > div").all())
      assert.ok(await frame.evaluate((one) => one.scrollWidth <= one.clientWidth), `${width}`);
  }
});

test("a pinned model that was replaced is told", async () => {
  const page = await opened("words", { tokens: [4, 5, 6] }, { tokens: [4, 7, 6] });
  await page.evaluate(() => State.set({ models: State.models.map((one) =>
    (one.name === "words" ? { ...one, digest: "another" } : one)) }));
  await page.evaluate(() => Whole.show("encoder.0.self", 1));
  await page.locator("#compare [role=alert]").waitFor();
  assert.match(await page.locator("#compare [role=alert]").textContent(), /The pinned model is no longer served/);
});

test("weights that cannot be read are told, and asked for again", async () => {
  const page = await opened("words", { tokens: [4, 5, 6] }, { tokens: [4, 7, 6] });
  expect(page, 504);
  let asked = 0;
  await page.route(/\/encode$/, (route) => (JSON.parse(route.request().postData()).tokens[1] === 5
    && asked++ === 0 ? route.fulfill({ status: 504, contentType: "application/problem+json",
      body: '{"title":"Too slow","detail":"x"}' }) : route.continue()));
  await page.evaluate(() => Whole.show("encoder.0.self", 1));
  await page.locator("#compare [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#compare figure:visible").nth(2).waitFor();
  assert.equal(asked, 2);
});

test("without weights there is nothing to compare", async () => {
  const page = await opened("layer", { ...X, return_attention: false }, { ...Y, return_attention: false });
  assert.match(await page.locator("#compare").textContent(), /no weights to compare/);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark", [1920, 1000], true],
  ["narrow", [360, 740], false]])
  test(`nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const tokens = Array.from({ length: 90 }, (_, i) => 4 + i % 17);
    const page = await opened("words", { tokens }, { tokens: tokens.toReversed() }, { viewport, dark });
    assert.equal((await titles(page)).length, 3);
    await shot(page, `compare-${name}`);
    await audit(page, "compare");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
