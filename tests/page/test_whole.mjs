// test_whole: whole models: what is asked as text or ids, every head of every layer, and the exact
// weights of one, against what the server itself answers.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { asFloat32 as float32 } from "./asking.mjs";
import { ask, audit, everywhere, open, serve, settle, shot, state, tab, test } from "./browser.mjs";
import { cell, cells, exact as weights, sideways, words } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder();
const server = await serve([], { config: { models: {
  words: whole("encoder", { tokenizer }), sort: { transformer: { builtin: "sort" } },
  ids: whole("encoder"), writes: whole("decoder", { tokenizer }), both: whole("seq2seq"),
  image: { transformer: fileURLToPath(new URL("../golden/models/vit-a", import.meta.url)) },
  layer: { random: { seed: 1 }, query_size: 4, heads: 2 } } } });
const openAt = async (model, options = {}) => {
  const page = await open({ server, ...options });
  await page.locator("#model").selectOption(model);
  await settle(page);
  return page;
};
const reply = async (model, what, body) => {
  const { status, json, text } = await server.post(`/v1/models/${model}/${what}`, body);
  assert.equal(status, 200, text);
  return json;
};
const body = async (page) => JSON.parse((await state(page, "body")).text);

// A StaticEmbedding: its table is that of a Transformer.
test("a model without layers is not among those whose attention is shown", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-static-"));
  const from = fileURLToPath(new URL("../golden/models/torch-post/model.safetensors", import.meta.url));
  fs.copyFileSync(from, path.join(folder, "model.safetensors"));
  fs.writeFileSync(path.join(folder, "modules.json"),
    JSON.stringify([{ path: "", type: "sentence_transformers.models.StaticEmbedding" }]));
  const fixed = await serve([], { config: { models: { fixed: { transformer: folder }, ids: whole("encoder") } } });
  assert.deepEqual((await fixed.get("/v1/models/fixed")).json.attentions, []);
  const page = await open({ server: fixed });
  await settle(page);
  assert.deepEqual(await page.locator("#model option").allTextContents(), ["ids"]);
  assert.equal(await page.locator("#problem").isVisible(), false);
  fs.rmSync(folder, { recursive: true });
});

// --- what is asked ---

test("the model of the program: its ids, its heads, and the exact weights of one", async () => {
  const page = await openAt("sort");
  assert.equal(await page.locator("#line").inputValue(), "9 4 17 2 12 25 7 20");
  assert.equal(await page.locator("#line-title").textContent(), "Token IDs");
  assert.ok(!await page.locator("#drawer").evaluate((drawer) => drawer.open));
  assert.deepEqual(await cells(page), [0, 1, 2].flatMap((layer) =>
    [0, 1, 2, 3].map((head) => `encoder.${layer}.self ${head}`)));
  const tokens = [9, 4, 17, 2, 12, 25, 7, 20];
  for (const [name, head] of [["encoder.2.self", 0], ["encoder.0.self", 3], ["encoder.1.self", 2]]) {
    await cell(page, name, head).click();
    await settle(page);
    const { attention } = await reply("sort", "encode", { tokens, return_attention: [name] });
    assert.deepEqual(await weights(page), float32(attention[name]));
    assert.equal(await cell(page, name, head).getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator("#large h3").textContent(), `Layer ${name.split(".")[1]} · head ${head}`);
  }
  assert.deepEqual(await words(page), tokens.map(String));
  assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Attention", "Head view", "Rollout", "Computation", "Model", "Compare"]);
  await shot(page, "whole_sort");
});

test("text becomes tokens, whose strings are the labels, an item for each line", async () => {
  const page = await openAt("words");
  assert.equal(await page.locator("#line-title").textContent(), "Text");
  assert.deepEqual(await words(page), ("[CLS] the animal did not cross the street because it was too "
    + "tired [SEP]").split(" "));
  await page.locator("#line").fill("The cat sat.\nA mat");
  await page.locator("#line").press("Enter");
  await settle(page);
  assert.deepEqual(await body(page), { text: ["The cat sat.", "A mat"] });
  assert.deepEqual(await words(page), ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]);
  await page.getByRole("button", { name: "Next item" }).click();
  await page.waitForFunction(() => State.answer.items[1].weights);
  await settle(page);
  assert.deepEqual(await words(page), ["[CLS]", "a", "mat", "[SEP]"]);
  const { attention } = await reply("words", "encode", { text: "A mat",
    return_attention: ["encoder.2.self"] });
  assert.deepEqual(await weights(page), float32(attention["encoder.2.self"]));
  await page.locator("#frame").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await settle(page);
  assert.match(await page.locator("#readout").textContent(),
    /^Query 1, “a”, gives [\d.]+ % of its weight to key 1, “a”: .* \(Layer 2 · head 0\)$/);
});

test("an empty text is not sent: something has to be typed", async () => {
  const page = await openAt("words"), hint = page.locator("#send-hint"), sent = [];
  page.on("request", (request) => request.method() === "POST" && sent.push(request.url()));
  for (const text of ["", " \n "]) {
    await page.locator("#line").fill(text);
    await page.locator("#line").press("Enter");
    await settle(page);
    assert.equal(await hint.textContent(), "Type some text.");
    assert.ok(await page.locator("#send").isDisabled());
  }
  await page.locator("#line").fill("a cat\n");
  assert.ok(await page.locator("#send").isEnabled(), "one item of two has text");
  assert.deepEqual(sent, []);
});

test("ids as they are typed, and what is none", async () => {
  const page = await openAt("ids"), note = page.locator("#line-note");
  await page.locator("#line").fill("5, 6 7\n8");
  await settle(page);
  assert.deepEqual(await body(page), { tokens: [[5, 6, 7], [8]] });
  await page.locator("#line").fill("5 cat");
  assert.match(await note.textContent(), /whole numbers/);
  assert.deepEqual(await body(page), { tokens: [5, "cat"] });
  await page.locator("#line").fill("5");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await note.textContent(), "");
  assert.deepEqual(await weights(page), Array(4).fill([[1]]));
  await page.evaluate(() => State.set({ body: { text: '{"embeddings": [[1]]}' } }));
  await settle(page);
  assert.ok(await page.locator("#line").isDisabled());
  assert.match(await note.textContent(), /another format/);
});

test("a decoder's rows see what came before, and targets are scored", async () => {
  const page = await openAt("writes");
  await page.locator("#line").fill("the cat sat");
  await page.locator("#line").press("Enter");
  await settle(page);
  assert.equal((await state(page, "answer")).path, "encode");
  const seen = await page.evaluate(() => [...Look.seen(0, 0)]);
  const n = Math.sqrt(seen.length);
  assert.deepEqual(seen, seen.map((_, at) => Number(at % n <= Math.floor(at / n))));
  await page.locator("#line-targets").fill("5 6 7");
  await page.locator("#line-targets").press("Enter");
  await settle(page);
  const answer = await state(page, "answer");
  assert.equal(answer.path, "score");
  const scored = await reply("writes", "score", { text: "the cat sat", targets: [5, 6, 7],
    return_attention: ["decoder.2.self"] });
  assert.deepEqual(await weights(page), float32(scored.attention["decoder.2.self"]));
  assert.deepEqual((await words(page)).slice(-2), ["5", "6"], "what is fed behind the text");
  assert.deepEqual(JSON.parse(answer.raw).log_probabilities, scored.log_probabilities);
});

test("encoder and decoder: three kinds of attention, once the decoder is fed", async () => {
  const page = await openAt("both");
  assert.equal(await page.locator("#line-second").textContent(), "Decoder input (token IDs)");
  const { tokens, targets } = await body(page);
  const kinds = page.getByLabel("Attention type");
  assert.deepEqual(await kinds.locator("option").allTextContents(), ["all", "encoder", "decoder", "cross"]);
  await kinds.selectOption("cross");
  assert.equal((await cells(page)).length, 12);
  await cell(page, "decoder.1.cross", 3).click();
  await settle(page);
  const { attention } = await reply("both", "score", { tokens, targets,
    return_attention: ["decoder.1.cross"] });
  assert.deepEqual(await weights(page), float32(attention["decoder.1.cross"]));
  assert.deepEqual(await words(page), ["start", ...targets.slice(0, -1).map(String)]);
  assert.deepEqual((await state(page, "answer")).labels.cols, [tokens.map(String)]);
  await page.locator("#line-targets").fill("");
  await page.locator("#line-targets").press("Enter");
  await settle(page);
  assert.deepEqual([...new Set((await cells(page)).map((one) => one.split(".")[0]))], ["encoder"]);
});

test("no response is shown under the name of another model", async () => {
  const page = await openAt("words"), panels = page.getByRole("tabpanel");
  await page.getByRole("tab", { name: "Rollout" }).click();
  await page.locator("#line").fill("a cat");
  let go;
  const held = new Promise((resolve) => { go = resolve; });
  await page.route(/\/(encode|attention)$/, (route) => held.then(() => route.continue()));
  for (const model of ["writes", "layer", "words"]) {
    await page.locator("#model").selectOption(model);
    await page.locator("#other").waitFor({ state: model === "words" ? "hidden" : "visible" });
    assert.equal(await page.getByRole("tab", { name: "Rollout" }).isVisible(), model !== "layer");
    assert.equal(await panels.count(), model === "words" ? 1 : 0, model);
  }
  go();
  await settle(page);
});

test("an image model has a picture, whose patches are the labels", async () => {
  const page = await openAt("image");
  const { embeddings } = await body(page), patches = (await words(page)).slice(1);
  assert.deepEqual([patches.length, patches[0], patches[35]], [36, "row 0, column 0", "row 5, column 5"]);
  const { attention } = await reply("image", "encode", { embeddings, return_attention: ["encoder.1.self"] });
  assert.deepEqual(await weights(page), float32(attention["encoder.1.self"]));
  assert.ok(await page.getByRole("img", { name: "The picture" }).isVisible());
  assert.ok(!await page.locator("#line-part").isVisible());
  await page.locator("#model").selectOption("ids");
  await settle(page);
  assert.equal((await words(page)).length, 10);
});

test("a model with a tokenizer takes text, whatever was there before", async () => {
  const page = await openAt("ids"), title = page.locator("#line-title");
  const turn = async (name) => {
    await page.locator("#model").selectOption(name);
    await settle(page);
  };
  assert.equal(await title.textContent(), "Token IDs");
  await turn("words");
  assert.deepEqual([await title.textContent(), await page.locator("#example").inputValue()], ["Text", "sentence"]);
  await turn("ids");
  await page.locator("#line").fill("the cat");
  await turn("writes");
  assert.deepEqual(await body(page), { text: "the cat" }, "the words that were typed stay");
  assert.deepEqual(await words(page), ["[CLS]", "the", "cat", "[SEP]"]);
  await turn("words");
  assert.deepEqual(await body(page), { text: "the cat" });
  assert.equal((await state(page, "asked")).model, "words");
  await turn("ids");
  await page.locator("#line").fill("5 6");
  await turn("words");
  assert.ok("text" in await body(page), "the IDs of another vocabulary mean nothing here");
  await page.locator("#example").selectOption("ids");
  await settle(page);
  assert.equal(await title.textContent(), "Token IDs");
  await page.locator("#line").fill("5 6 7");
  assert.equal(await title.textContent(), "Token IDs");
  await page.locator("#line").fill("a cat sat");
  assert.deepEqual(await body(page), { text: "a cat sat" });
  assert.equal(await title.textContent(), "Text");
});

test("targets are text, too: they are the tokens after the prompt", async () => {
  const page = await openAt("writes"), second = page.locator("#line-targets");
  await page.locator("#line").fill("the cat");
  await second.fill("sat on the");
  await second.press("Enter");
  await page.waitForFunction(() => (State.answer || {}).path === "score");
  await settle(page);
  const { tokens } = await reply("writes", "tokenize", { text: "sat on the", special_tokens: false });
  assert.deepEqual(await body(page), { text: "the cat", targets: tokens });
  await second.blur();
  assert.equal(await second.inputValue(), "sat on the", "what was typed stays");
  assert.equal(await page.locator("#line-second").textContent(), "Targets: the continuation to score (text or token IDs)");
  await second.fill("5 6");
  await second.press("Enter");
  await settle(page);
  assert.deepEqual((await body(page)).targets, [5, 6]);
});

test("a text runs while it is typed where answers are quick, and waits elsewhere", async () => {
  const page = await openAt("words"), line = page.locator("#line"), sent = [];
  page.on("request", (request) => request.method() === "POST" && sent.push(request.url()));
  const took = (ms) => page.evaluate((time) => { State.answer.took = time; }, ms);
  await took(1);
  await line.fill("a cat");
  await page.waitForFunction(() => JSON.parse(State.asked.body.text).text === "a cat");
  await settle(page);
  assert.deepEqual(await words(page), ["[CLS]", "a", "cat", "[SEP]"]);
  await page.clock.install();
  await took(60);
  sent.length = 0;
  await line.fill("a cat sat");
  await page.clock.fastForward(2000);
  await settle(page);
  await took(1);
  await page.evaluate(() => { Models.current().parameters = 1e9; });
  await line.fill("a cat sat on");
  await page.clock.fastForward(2000);
  await settle(page);
  assert.deepEqual(sent, []);
});

// --- heads, sorted and found ---

test("heads are sorted by what they do, as their weights say", async () => {
  const page = await openAt("words");
  const { attention } = await reply("words", "encode", { text: (await body(page)).text,
    return_attention: true });
  const tokens = await words(page), n = tokens.length;
  // The mean over the queries that have such a key, and another one.
  const part = (pick) => (rows) => {
    const shares = rows.flatMap((row, i) => {
      const keys = [...row.keys()].filter((j) => pick(i, j));
      return keys.length && keys.length < n ? [keys.reduce((all, j) => all + row[j], 0)] : [];
    });
    return shares.length ? shares.reduce((a, b) => a + b) / shares.length : 0;
  };
  const entropy = (rows) => rows.reduce((sum, row) =>
    sum - row.reduce((all, x) => all + x * Math.log(x), 0) / n / Math.log(n), 0);
  const measures = { entropy, least: (rows) => -entropy(rows),
    distance: (rows) => rows.reduce((sum, row, i) =>
      sum + row.reduce((all, x, j) => all + x * Math.abs(i - j), 0) / n, 0),
    previous: part((i, j) => j === i - 1), next: part((i, j) => j === i + 1), first: part((i, j) => j === 0),
    current: part((i, j) => i === j), duplicate: part((i, j) => j < i && tokens[i] === tokens[j]),
    induction: part((i, j) => j > 0 && j < i && tokens[i] === tokens[j - 1]),
    separator: part((i, j) => tokens[j] === "[SEP]" || tokens[j] === ".") };
  for (const [name, measure] of Object.entries(measures)) {
    await page.locator("#grid-order").selectOption(name);
    await settle(page);
    const shown = (await cells(page)).map((one) => {
      const [of, head] = one.split(" ");
      return measure(attention[of][Number(head)]);
    });
    assert.equal(shown.length, 12);
    // The pictures have 255 steps.
    for (let i = 1; i < shown.length; i++)
      assert.ok(shown[i - 1] >= shown[i] - 0.02 * Math.abs(shown[i]) - 0.005, `${name}: ${shown}`);
  }
});

test("a chosen query lights up in every head, and a chosen weight ranks them", async () => {
  const page = await openAt("words");
  const { attention } = await reply("words", "encode", { text: (await body(page)).text,
    return_attention: true });
  await page.evaluate(() => State.show({ row: 9, col: 2 }));
  await settle(page);
  const sizes = await page.locator("#grid canvas").evaluateAll((list) => list.map((one) => one.height));
  assert.deepEqual(sizes, Array(12).fill(1), "the row of the query alone");
  await page.locator("#grid-order").selectOption("weight");
  await settle(page);
  const shown = (await cells(page)).map((one) => {
    const [of, head] = one.split(" ");
    return attention[of][Number(head)][9][2];
  });
  for (let i = 1; i < shown.length; i++) assert.ok(shown[i - 1] >= shown[i] - 1 / 255, `${shown}`);
  await page.evaluate(() => State.show({ row: -1, col: -1 }));
  await settle(page);
  assert.deepEqual(await page.locator("#grid canvas").evaluateAll((list) => list.map((one) => one.height)),
    Array(12).fill(14));
});

test("more tokens than a picture has points", async () => {
  const page = await openAt("ids");
  const tokens = Array.from({ length: 200 }, (_, i) => i % 22);
  await ask(page, { tokens }, "ids");
  const { attention } = await reply("ids", "encode", { tokens, return_attention: ["encoder.2.self"] });
  assert.deepEqual(await weights(page), float32(attention["encoder.2.self"]));
  assert.equal(await page.locator("#grid canvas").first().evaluate((one) => one.height), 64);
  await page.evaluate(() => State.show({ row: 199, col: 199 }));
  await settle(page);
  assert.equal((await state(page, "problem")), null);
});

// --- the rest of the page ---

test("by the keyboard alone", async () => {
  const page = await openAt("sort");
  await page.locator("#line").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("3 1 2");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.deepEqual(await words(page), ["3", "1", "2"]);
  await page.locator("#grid button[tabindex='0']").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await settle(page);
  const { part, head } = await state(page, "view");
  assert.deepEqual([part, head], ["encoder.1.self", 1]);
  assert.equal((await state(page, "answer")).part, "encoder.1.self");
});

test("a mistake is told at its place, which is in the request that opens then", async () => {
  const page = await openAt("ids", { expect: [400] });
  await page.locator("#example").selectOption("outside");
  await settle(page);
  assert.equal((await state(page, "problem")).pointer, "/tokens/2");
  await page.getByRole("button", { name: "Go there" }).click();
  assert.ok(await page.locator("#source").isVisible());
  assert.equal(await page.locator("#source").evaluate((area) =>
    area.value.slice(area.selectionStart, area.selectionEnd)), "22");
  for (const wrong of ["[", '{"tokens": []}', '{"tokens": [[]]}', '{"text": 1}', '{"tokens": [[1], []]}', "{}"]) {
    await ask(page, wrong, "ids");
    await everywhere(page, () => settle(page));
  }
});

test("examples, fields and code are those of the kind of the model", async () => {
  const page = await openAt("words");
  const options = () => page.locator("#example option:enabled").allTextContents();
  assert.deepEqual(await options(), ["A sentence (d2l 11.6)", "Two texts", "Random token IDs", "An invalid one"]);
  await tab(page, "Response");
  await page.locator("#fields-part summary").click();
  await settle(page);
  const { pools } = (await server.get("/v1/models/words")).json;
  assert.deepEqual(await page.locator("#field-pool option").evaluateAll((list) => list.map(({ label }) => label).slice(1)), pools);
  await page.locator("#field-pool").selectOption("cls");
  await settle(page);
  assert.equal((await body(page)).pool, "cls");
  await page.locator("#send").click();
  await settle(page);
  assert.deepEqual((await state(page, "answer")).items[0].outputs.rows, 1);
  await page.locator("#code-part summary").click();
  await settle(page);
  assert.match(await page.locator("#code").textContent(), /models\/words\/encode/);
  await page.locator("#model").selectOption("layer");
  await settle(page);
  await tab(page, "Attention");
  assert.ok(await page.locator("#drawer").isVisible(), "a layer has no other input");
  assert.ok(!await page.locator("#grid").isVisible(), "the answer is that of another model");
  assert.equal((await state(page, "asked")).model, "layer", "a request for the other kind gives way");
  await page.locator("#example").selectOption("causal");
  await settle(page);
  assert.ok(!await page.locator("#grid").isVisible());
  assert.ok(await page.locator("#field-valid_lens").count());
  assert.deepEqual((await page.getByRole("tab").allTextContents()), ["Attention", "Head view", "Computation", "Compare"]);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark", [1280, 720], true],
  ["narrow", [360, 740], false]])
  test(`nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await openAt("words", { viewport, dark });
    await everywhere(page, async (tab) => {
      await audit(page, tab);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), tab);
    });
    await tab(page, "Attention");
    await page.locator("#grid-order").selectOption("distance");
    await audit(page, "sorted");
    await shot(page, `whole_${name}`);
  });

test("where there is room the heads stand beside the one that is large, also of a layer", async () => {
  const page = await openAt("words", { viewport: [2560, 1300] });
  const beside = async (left) => {
    const [a, b] = await Promise.all([left, "#large"].map((one) => page.locator(one).boundingBox()));
    assert.ok(a.x + a.width <= b.x && a.y < b.y + b.height && b.y < a.y + a.height, `${left} is not beside`);
    assert.equal(await sideways(page), "");
  };
  await beside("#grid");
  await shot(page, "whole_wide");
  await page.locator("#model").selectOption("layer");
  await page.locator("#example").selectOption("causal");
  await settle(page);
  await beside("#multiples");
});

test("padding is no row; a binary request shows the item that is chosen", async () => {
  const page = await openAt("ids"), body = { tokens: [[4, 5, 6, 7], [8, 9, 10, 11]], valid_lens: [4, 2] };
  await ask(page, body, "ids");
  await page.evaluate(() => State.show({ item: 1 }));
  await page.waitForFunction(() => State.answer.items[1].weights);
  await settle(page);
  assert.deepEqual(await words(page), ["8", "9"]);
  const { json } = await server.post("/v1/models/ids/encode", { tokens: [8, 9], return_attention: ["encoder.2.self"] });
  assert.deepEqual(await weights(page), float32(json.attention["encoder.2.self"]));
  await page.evaluate(() => {
    const bytes = new Uint8Array(Int32Array.of(4, 5, 6, 7, 8, 9).buffer);
    State.set({ body: { name: "two.safetensors", fields: {},
      tensors: { tokens: { dtype: "I32", shape: [2, 3], bytes } } } });
    return Ask.send();
  });
  await page.evaluate(() => State.show({ item: 1 }));
  await page.waitForFunction(() => State.answer.items[1].weights);
  const other = await server.post("/v1/models/ids/encode", { tokens: [7, 8, 9], return_attention: ["encoder.2.self"] });
  assert.deepEqual(await weights(page), float32(other.json.attention["encoder.2.self"]));
});

test("a head and an item chosen at once; weights that cannot be read leave the view as it was", async () => {
  const page = await openAt("ids", { expect: [504] });
  await ask(page, { tokens: [[4, 5, 6], [7, 8, 9]] }, "ids");
  await page.evaluate(() => {
    Whole.show("encoder.0.self", 2);
    State.show({ item: 1 });
  });
  await page.waitForFunction(() => State.answer.part === "encoder.0.self");
  await settle(page);
  const { json } = await server.post("/v1/models/ids/encode", { tokens: [7, 8, 9], return_attention: ["encoder.0.self"] });
  assert.deepEqual(await weights(page), float32(json.attention["encoder.0.self"]));
  await page.route(/\/encode$/, (route) => route.fulfill({ status: 504,
    contentType: "application/problem+json", body: '{"title":"Too slow","detail":"x"}' }), { times: 1 });
  await cell(page, "encoder.1.self", 0).click();
  await page.locator("#problem").getByText("Too slow").waitFor();
  assert.equal((await state(page, "view")).part, "encoder.0.self");
  await cell(page, "encoder.1.self", 0).click();
  await page.waitForFunction(() => State.answer.part === "encoder.1.self");
  assert.equal(await state(page, "problem"), null);
});

test("a model that is gone is told, and its answer stays what it was", async () => {
  const page = await openAt("ids");
  await page.evaluate(() => State.set({ models: State.models.filter(({ name }) => name !== "ids") }));
  await cell(page, "encoder.0.self", 0).click();
  await page.locator("#problem").getByText("The model is no longer served").waitFor();
  assert.ok(await page.getByRole("tab", { name: "Rollout" }).isVisible());
});

test("sorted heads say which they are; a weight is chosen first", async () => {
  const page = await openAt("both");
  await page.locator("#grid-order").selectOption("weight");
  await page.getByText("Choose a query and a key first.").waitFor();
  await page.evaluate(() => State.show({ row: 1, col: 1 }));
  await page.getByText("Choose a query and a key first.").waitFor({ state: "hidden" });
  const { part } = await state(page, "view"), shown = await cells(page);
  assert.ok(shown.every((one) => one.split(".")[2].split(" ")[0] === part.split(".")[2]), shown.join());
  assert.match(await page.locator("#grid [data-part]").first().innerText(), /[EDC]\dH\d/);
});

test("what is no id stays in the line, and is refused at its place", async () => {
  const page = await openAt("ids", { expect: [400] });
  await page.locator("#line").fill("4 5 x 0x10");
  await page.locator("#line").press("Enter");
  await page.waitForFunction(() => State.problem);
  assert.equal((await state(page, "problem")).pointer, "/tokens/2");
  await page.locator("#line").blur();
  assert.equal(await page.locator("#line").inputValue(), "4 5 x 0x10");
  assert.match(await page.locator("#line-note").textContent(), /whole numbers/);
});
