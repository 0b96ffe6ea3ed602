// test_grid: all heads of a whole model at once: their colors, their places, and what each of them does, in a
// model whose heads are made by hand.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";
import { cell, cells, posting } from "./looking.mjs";
import { bytesOf, safetensors } from "./oracle.mjs";
import { whole } from "./wholes.mjs";

// --- a decoder of two layers and four heads, with a known circuit ---

// A vector has a place for each token, each position, and each token before; the last places stay zero.
const HEADS = 4, PART = 24, WIDTH = 4 * PART, TOKEN = 0, POSITION = PART, BEFORE = 2 * PART;
const SHARP = 4, UNIT = 1 / 7; // after the norm a one is 7
const matrix = (rows, cols, cells = []) => {
  const data = new Array(rows * cols).fill(0);
  for (const [i, j, x] of cells) data[i * cols + j] = x;
  return ["F32", [rows, cols], bytesOf("F32", data)];
};
const vector = (n, x = 0) => ["F32", [n], bytesOf("F32", new Array(n).fill(x))];
// A head is { query, key, value, to }: number c of its query is number query(c) of the input, or zero; what it
// mixes is added to the input from `to` on.
const attention = (heads) => {
  const all = [], out = [];
  for (const [h, { query, key, value }] of heads.entries())
    for (let c = 0; c < PART; c++)
      for (const [at, from, x] of [[0, query, SHARP], [WIDTH, key, 1], [2 * WIDTH, value, UNIT]])
        if (from && from(c) >= 0) all.push([from(c), at + h * PART + c, x]);
  for (const [h, { to }] of heads.entries())
    for (let c = 0; to !== undefined && c < PART; c++) out.push([h * PART + c, to + c, 1]);
  return [matrix(WIDTH, 3 * WIDTH, all), matrix(WIDTH, WIDTH, out)];
};
const token = (c) => TOKEN + c, position = (c) => POSITION + c, before = (c) => BEFORE + c, even = {};
const LAYERS = [[even, even, { query: (c) => (c < PART - 1 ? POSITION + c + 1 : -1), key: position, value: token, to: BEFORE }, even],
  [even, { query: token, key: before }, even, { query: position, key: position }]];
const tensors = { "wte.weight": matrix(PART, WIDTH, Array.from({ length: PART }, (_, i) => [i, TOKEN + i, 1])),
  "wpe.weight": matrix(PART, WIDTH, Array.from({ length: PART }, (_, i) => [i, POSITION + i, 1])),
  "ln_f.weight": vector(WIDTH, 1), "ln_f.bias": vector(WIDTH) };
for (const [l, heads] of LAYERS.entries()) {
  const [all, out] = attention(heads);
  for (const [name, value] of Object.entries({ "ln_1.weight": vector(WIDTH, 1), "ln_1.bias": vector(WIDTH),
    "attn.c_attn.weight": all, "attn.c_attn.bias": vector(3 * WIDTH), "attn.c_proj.weight": out,
    "attn.c_proj.bias": vector(WIDTH), "ln_2.weight": vector(WIDTH, 1), "ln_2.bias": vector(WIDTH),
    "mlp.c_fc.weight": matrix(WIDTH, WIDTH), "mlp.c_fc.bias": vector(WIDTH),
    "mlp.c_proj.weight": matrix(WIDTH, WIDTH), "mlp.c_proj.bias": vector(WIDTH) })) tensors[`h.${l}.${name}`] = value;
}
const circuit = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
process.on("exit", () => fs.rmSync(circuit, { recursive: true }));
fs.writeFileSync(path.join(circuit, "model.safetensors"), safetensors(tensors));
fs.writeFileSync(path.join(circuit, "config.json"), JSON.stringify({ model_type: "gpt2",
  architectures: ["GPT2LMHeadModel"], activation_function: "gelu_new", n_embd: WIDTH, n_head: HEADS, n_inner: WIDTH,
  n_layer: LAYERS.length, n_positions: PART, n_ctx: PART, vocab_size: PART, layer_norm_epsilon: 1e-5 }));

const server = await serve([], { config: { models: { circuit: { transformer: circuit }, words: { transformer: { builtin: "words" } },
  sort: { transformer: { builtin: "sort" } }, both: whole("seq2seq"),
  many: whole("encoder", { layers: 12, heads: 12, width: 48 }) } } });
const post = posting(server);
const shown = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  return page;
};
// Six tokens, and again. The first query has no token before: its head gives it its own.
const TWICE = [3, 5, 9, 2, 14, 20, 7, 5, 9, 2, 14, 20, 7];

// --- what heads do ---

test("a known circuit is found by name: the head that is chosen, its score, and how many queries have it", async () => {
  const page = await shown("circuit", { tokens: TWICE });
  for (const [behavior, name, queries] of [["previous", "decoder.0.self 2", 12], ["induction", "decoder.1.self 1", 6],
    ["current", "decoder.1.self 3", 12]]) {
    await page.locator("#grid-order").selectOption(behavior);
    await page.getByText(`the mean of ${queries} queries that can have it`).waitFor();
    await settle(page);
    assert.equal((await cells(page))[0], name);
    const { part, head } = await state(page, "view");
    assert.equal(`${part} ${head}`, name, "it opens by itself");
    const [best, next] = (await page.locator("#grid [data-part] .small").allTextContents()).map(Number);
    assert.ok(best > 0.98 && best <= 1 && next < 0.6, `${behavior}: ${best}, ${next}`);
  }
  assert.match(await page.locator("#grid [role=status]").textContent(),
    /^Weight on the token itself, .* Highest: Layer 1 · head 3, 1\.000\.$/);
});

test("a score below that of evenly spread weights says so", async () => {
  const page = await shown("words", { text: "the animal did not cross the street because it was tired ." });
  await page.locator("#grid-order").selectOption("induction");
  await page.getByText(/Highest: .*, 0\.00\d; an even spread has 0\.083\.$/).waitFor();
});

test("a table and the tips name what each head does", async () => {
  const page = await shown("circuit", { tokens: TWICE });
  await page.getByText("What each head does").click();
  await page.locator("#grid tbody tr").first().waitFor();
  const rows = await page.locator("#grid tbody tr").evaluateAll((list) =>
    list.map((row) => [...row.cells].map((one) => one.textContent)));
  assert.deepEqual(rows, [["Layer 0 · head 2", "previous token", "1.000", "12"],
    ["Layer 1 · head 1", "induction", "1.000", "6"], ["Layer 1 · head 3", "current token", "1.000", "12"]]);
  assert.equal(await cell(page, "decoder.1.self", 1).getAttribute("title"),
    "Layer 1 · head 1 (decoder.1.self): induction 1.000");
  assert.equal(await cell(page, "decoder.0.self", 0).getAttribute("title"), "Layer 0 · head 0 (decoder.0.self)");
  await page.getByRole("button", { name: "Layer 0 · head 2", exact: true }).click();
  await settle(page);
  assert.equal((await state(page, "view")).part, "decoder.0.self");
  await audit(page, "what each head does");
});

test("a behavior that no query can have is said", async () => {
  const page = await shown("circuit", { tokens: [5, 9, 2] });
  for (const [behavior, said] of [["induction", "No query has the token after an earlier copy of this token among its keys."],
    ["next", "No query has the token after among its keys."]]) {
    await page.locator("#grid-order").selectOption(behavior);
    await page.getByText(said).waitFor();
  }
});

test("texts that are longer than a picture are measured by their exact weights", async () => {
  const tokens = Array.from({ length: 80 }, (_, i) => (i * 7) % 22), page = await shown("many", { tokens });
  assert.equal(await page.locator("#grid tbody tr").count(), 0);
  await page.locator("#grid-order").selectOption("next");
  await page.getByText("the mean of 79 queries").waitFor();
  await settle(page);
  const [best] = await cells(page), [name, head] = best.split(" ");
  const { attention } = await post("many", "encode", { tokens, return_attention: true });
  const mean = (rows) => rows.slice(0, -1).reduce((sum, row, i) => sum + row[i + 1], 0) / 79;
  const all = Object.values(attention).flatMap((heads) => heads.map(mean));
  assert.ok(Math.abs(mean(attention[name][head]) - Math.max(...all)) < 1e-6);
});

// --- colors and places ---

const colors = (page, name, head) => cell(page, name, head).locator("canvas").evaluate((canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const { bytes } = Scale.ramp(), at = new Map();
  for (let i = 0; i < 256; i++) at.set([...bytes.slice(3 * i, 3 * i + 3)].join(), i);
  return Array.from({ length: data.length / 4 }, (_, i) => at.get([...data.slice(4 * i, 4 * i + 3)].join()));
});
const most = (list) => list.flat(Infinity).reduce((a, b) => Math.max(a, b));
test("one color scale for all heads is one for all layers, as the legend says; else each head has its own", async () => {
  const tokens = [9, 4, 17, 2, 12, 25, 7, 20], page = await shown("sort", { tokens });
  const { attention } = await post("sort", "encode", { tokens, return_attention: true });
  const check = async (range) => { // the steps of a thumbnail are 1 / 255
    for (const [name, head] of [["encoder.0.self", 3], ["encoder.1.self", 0], ["encoder.2.self", 1]]) {
      const found = await colors(page, name, head), rows = attention[name][head];
      rows.flat().forEach((weight, at) => assert.ok(Math.abs(found[at] - 255 * weight / range(rows)) < 1 + 1 / range(rows),
        `${name} ${head} at ${at}: ${found[at]}, ${weight}`));
    }
  };
  const all = most(Object.values(attention));
  await check(() => all);
  const legend = async () => Number((await page.locator("#legend > span").nth(1).textContent()));
  assert.equal(await legend(), 1);
  await page.getByLabel("One color scale for all heads").uncheck();
  await settle(page);
  await check(most);
  await cell(page, "encoder.0.self", 3).click();
  await settle(page);
  assert.ok(Math.abs(await legend() - most(attention["encoder.0.self"][3])) < 0.001, "the legend is the head's");
  await page.getByLabel("One color scale for all heads").check();
  await settle(page);
  assert.equal(await legend(), 1);
});

for (const viewport of [[1280, 800], [1920, 1000], [2200, 1200], [390, 844]])
  test(`a row for each layer, a column for each head: ${viewport.join(" x ")}`, async () => {
    const page = await shown("many", { tokens: [3, 1, 4, 1, 5, 9] }, { viewport });
    await page.waitForFunction(() => [...document.querySelectorAll("#grid [data-part]")]
      .filter((one) => one.getBoundingClientRect().width >= 20).length === 144);
    const boxes = await page.locator("#grid [data-part]").evaluateAll((list) => list.map((one) => {
      const { left, top, width } = one.getBoundingClientRect();
      return { left, top, width, head: one.dataset.head, part: one.dataset.part };
    }));
    assert.equal(boxes.length, 144);
    assert.equal(new Set(boxes.map(({ part, top }) => `${part} ${Math.round(top)}`)).size, 12);
    assert.equal(new Set(boxes.map(({ head, left }) => `${head} ${Math.round(left)}`)).size, 12);
    if (viewport[0] === 1280) assert.ok(boxes.every(({ top, width }) => top + width <= 800), "all are in sight");
  });

test("heads have standard names; those of three kinds of attention differ", async () => {
  const page = await shown("both", { tokens: [4, 5, 6], targets: [7, 8] });
  for (const [name, said] of [["encoder.2.self", "Encoder layer 2"], ["decoder.0.self", "Decoder layer 0"],
    ["decoder.1.cross", "Cross-attention layer 1"]]) {
    assert.equal(await cell(page, name, 3).getAttribute("aria-label"), `${said} · head 3 (${name})`);
    await cell(page, name, 3).click();
    await settle(page);
    assert.equal(await page.locator("#large h3").textContent(), `${said} · head 3`);
  }
  await tab(page, "Head view");
  assert.ok(await page.locator("#lines-text").isVisible());
});
