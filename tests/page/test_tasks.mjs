// test_tasks: what the heads of models give for a text: entities, labels, masked tokens, answers to questions, sparse
// and multi-vector embeddings, against the server's own answers.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ask, audit, download, open, serve, settle, tab, test } from "./browser.mjs";
import { posting, sideways } from "./looking.mjs";
import { whole } from "./wholes.mjs";

const tests = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const examples = JSON.parse(fs.readFileSync(path.join(tests, "example/tasks.json"))).models;
const golden = (name) => ({ transformer: path.join(tests, "golden/models", name) });
// A folder whose model has vectors of 5 numbers for each token: bge-m3's second head.
const several = () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
  process.on("exit", () => fs.rmSync(folder, { recursive: true }));
  fs.cpSync(golden("bert-a").transformer, folder, { recursive: true });
  const numbers = Float32Array.from({ length: 5 * 32 }, (_, i) => Math.sin(i));
  const header = Buffer.from(JSON.stringify({ weight: { dtype: "F32", shape: [5, 32], data_offsets: [0, numbers.byteLength] } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  fs.writeFileSync(path.join(folder, "colbert_linear.safetensors"), Buffer.concat([length, header, Buffer.from(numbers.buffer)]));
  return { transformer: folder };
};
const server = await serve([], { config: { models: {
  reader: { ...examples.reader, tokenizer: path.join(tests, "example/words") }, qa: golden("bert-qa"), several: several(),
  tagger: { ...examples.tagger, tokenizer: path.join(tests, "example/words") },
  tags: golden("bert-tags"), plain: whole("encoder"),
  masked: { ...golden("bert-mlm"), tokenizer: path.join(tests, "example/masked") } } } });
const post = posting(server);
const TEXT = "The dog ran to the sea.", MASKS = "the [MASK] sat on the [MASK] .";
const opened = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await tab(page, "Tasks");
  await page.locator("#tasks .wide").last().waitFor();
  await settle(page);
  return page;
};
const part = (page, name) => page.getByRole("region", { name, exact: true });
const csv = async (page, i) => {
  const file = await download(page, () => page.locator("#tasks").getByRole("button", { name: "CSV" }).nth(i).click());
  return file.bytes.toString().trimEnd().split("\r\n");
};
const marks = (page) => page.locator("#tasks mark").evaluateAll((list) => list.map((one) =>
  [one.firstChild.data, one.querySelector("small").textContent.trim(), one.style.borderColor]));

test("entities are marked in the text, and the map has the probability of each label", async () => {
  const page = await opened("tagger", { text: TEXT });
  const { entities } = await post("tagger", "classify_tokens", { text: TEXT, group: "simple" });
  const { outputs, labels, strings } = await post("tagger", "classify_tokens", { text: TEXT, return_tokens: true });
  assert.ok(entities.length > 1);
  const shown = await page.locator("#tasks mark").evaluateAll((list) => list.map((one) =>
    [[...one.childNodes].slice(0, -1).map(({ data }) => data).join(""), one.lastChild.textContent.trim()]));
  assert.deepEqual(shown, entities.map(({ text, label }) => [text, label]));
  const text = await part(page, "Entities").evaluate((node) => [...node.childNodes].map((one) =>
    (one.nodeType === 3 ? one.data : [...one.childNodes].slice(0, -1).map(({ data }) => data).join(""))).join(""));
  assert.equal(text, TEXT);
  const numbers = await part(page, "Labels of tokens").locator("tbody tr").evaluateAll((rows) => rows.map((row) =>
    [row.cells[0].textContent, ...[...row.querySelectorAll("[title]")].map(({ title }) => Number(title))]));
  numbers.forEach(([word, ...row], i) => {
    assert.equal(word, strings[i]);
    row.forEach((x, j) => assert.ok(Math.abs(x - outputs[i][j]) < 1e-6, `${x}, not ${outputs[i][j]}`));
  });
  assert.equal(numbers.length, outputs.length);
  assert.equal((await csv(page, 0)).length, 1 + entities.length);
  assert.equal((await csv(page, 1))[0], ["token", ...labels].map((one) => `"${one}"`).join());
});

test("characters beyond 16 bits; each item of a batch", async () => {
  const texts = ["\u{1f40e}\u{1f40e} the dog", "the sea"], page = await opened("tagger", { text: texts });
  const { entities } = await post("tagger", "classify_tokens", { text: texts, group: "simple" });
  for (const item of [0, 1]) {
    await page.evaluate((i) => State.show({ item: i }), item);
    await settle(page);
    const shown = await page.locator("#tasks mark").evaluateAll((list) => list.map((one) =>
      [...one.childNodes].slice(0, -1).map(({ data }) => data).join("")));
    assert.deepEqual(shown, entities[item].map(({ text }) => text));
  }
});

test("token IDs have labels, and no entities", async () => {
  const tokens = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13], page = await opened("tags", { tokens });
  const { labels } = await post("tags", "classify_tokens", { tokens });
  const titles = await part(page, "Labels of tokens").locator("thead th").allTextContents();
  assert.deepEqual(titles, ["token", ...labels]);
  assert.equal(await part(page, "Entities").count(), 0);
});

test("masked tokens and a sparse embedding: bars", async () => {
  const page = await opened("masked", { text: MASKS, return_hidden: true });
  const { masks } = await post("masked", "fill", { text: MASKS });
  const rows = (name) => part(page, name).locator(".bar-row").evaluateAll((list) => list.map((one) =>
    [one.children[0].textContent, parseFloat(one.querySelector(".amount").style.width), one.children[2].textContent]));
  const top = masks.flatMap((one) => one.top), shown = await rows("Masked tokens");
  assert.equal(masks.length, 2);
  assert.deepEqual(shown.map(([word]) => word), top.map(({ token, string }) => string ?? `#${token}`));
  shown.forEach(([, width], i) => assert.ok(Math.abs(width - 100 * top[i].probability) < 0.01));
  assert.match(await part(page, "Masked tokens").textContent(), /Token 2, “\[MASK\]”.*Token 6, “\[MASK\]”/);
  const { sparse } = await post("masked", "encode", { text: MASKS, pool: "sparse", return_tokens: true });
  const order = [...sparse.values.keys()].sort((i, j) => sparse.values[j] - sparse.values[i]).slice(0, 30);
  const weights = await rows("Sparse embedding");
  assert.deepEqual(weights.map(([word]) => word), order.map((i) => sparse.strings[i] ?? `#${sparse.indices[i]}`));
  assert.ok(Math.abs(weights[0][1] - 100) < 0.01 && weights[1][1] <= 100);
  const lines = await csv(page, 1);
  assert.equal(lines.length, 31);
  assert.equal(Number(lines[1].split(",").at(-1)), sparse.values[order[0]]);
});

const typed = async (page, name, text) => {
  await page.getByLabel(name, { exact: true }).fill(text);
  await page.getByLabel(name, { exact: true }).press("Tab");
  await settle(page);
};
test("answers to a question: marked in the context, and bars", async () => {
  const context = "The sea is cold. \u{1f40e} The dog ran to the sea.", question = "Is it warm?";
  const page = await open({ server });
  await ask(page, { text: context }, "reader");
  await tab(page, "Tasks");
  assert.equal(await page.getByLabel("Context").inputValue(), context);
  assert.equal(await part(page, "Answers to a question").count(), 0);
  await typed(page, "Question", question);
  const { answers } = await post("reader", "question", { question, context, return_top: 5 });
  const bars = async () => part(page, "Answers to a question").locator(".bar-row").evaluateAll((list) => list.map((one) =>
    [one.children[0].textContent, parseFloat(one.querySelector(".amount").style.width)]));
  const shown = await bars();
  assert.deepEqual(shown.map(([text]) => text), answers.map(({ text }) => text));
  shown.forEach(([, width], i) => assert.ok(Math.abs(width - 100 * answers[i].score) < 0.01));
  const best = [];
  for (const one of answers)
    if (!best.some(({ start, end }) => one.start < end && start < one.end)) best.push(one);
  const first = await page.locator("#tasks mark").evaluateAll((list) => list.map((one) =>
    [...one.childNodes].slice(0, -1).map(({ data }) => data).join("")));
  assert.ok(first.includes(answers[0].text));
  assert.equal(new Set(first).size, first.length);
  assert.equal(await part(page, "Answers to a question").locator("p").first().evaluate((node) => [...node.childNodes]
    .map((one) => (one.nodeType === 3 ? one.data : [...one.childNodes].slice(0, -1).map(({ data }) => data).join(""))).join("")), context);
  assert.equal((await csv(page, 0)).length, 1 + answers.length);
  await audit(page, "answers to a question");
  await typed(page, "Context", "");
  assert.equal(await part(page, "Answers to a question").count(), 0);
});

test("a pair of texts is a question and its context; a model without a tokenizer has the server's reason", async () => {
  const page = await open({ server, expect: [400] });
  await ask(page, { text: [["Is it warm?", "The sea is cold."]] }, "reader");
  await tab(page, "Tasks");
  await part(page, "Answers to a question").locator("mark").first().waitFor();
  assert.equal(await page.getByLabel("Question", { exact: true }).inputValue(), "Is it warm?");
  await ask(page, { tokens: [4, 5, 6, 7] }, "qa");
  await typed(page, "Context", "the sea");
  await typed(page, "Question", "the dog");
  await page.locator("#tasks [role=alert]").waitFor();
});

test("a multi-vector embedding: the number of its vectors, and the vectors as CSV", async () => {
  const tokens = [4, 5, 6, 7], page = await opened("several", { tokens });
  const { outputs } = await post("several", "encode", { tokens, pool: "multi_vector" });
  assert.equal(await part(page, "Multi-vector embedding").textContent(), "3 vectors of 5 numbers");
  assert.deepEqual((await csv(page, 0)).map((line) => line.split(",").map(Number)), outputs);
});

test("an example has the model's mask, and a button inserts it", async () => {
  const page = await open({ server, path: "/#explore/tasks?model=masked", viewport: [390, 844], dark: true });
  assert.match(await page.getByLabel("Text", { exact: true }).inputValue(), /^The \[MASK\] did not/);
  await page.getByLabel("Text", { exact: true }).fill("the  sat");
  await page.getByLabel("Text", { exact: true }).evaluate((one) => one.setSelectionRange(4, 4));
  await page.getByRole("button", { name: "Insert [MASK]" }).click();
  assert.equal(await page.getByLabel("Text", { exact: true }).inputValue(), "the [MASK] sat");
  assert.equal(await page.evaluate(() => Request.fields(State.body).text), "the [MASK] sat");
  await page.getByLabel("Text", { exact: true }).press("Enter");
  await settle(page);
  await audit(page, "the mask");
  await page.evaluate(() => State.set({ model: "tagger" }));
  await settle(page);
  assert.equal(await page.getByRole("button", { name: /^Insert/ }).isVisible(), false);
});

test("a text without a mask has the server's reason, and the other tasks; models without tasks have no tab", async () => {
  const page = await opened("masked", { text: "the cat sat" }, { expect: [400] });
  assert.match(await page.locator("#tasks [role=alert]").textContent(), /no mask token \(\[MASK\], token 4\)/);
  assert.equal(await part(page, "Sparse embedding").locator(".bar-row").count(), 30);
  await ask(page, { text: MASKS }, "masked");
  await part(page, "Masked tokens").waitFor();
  assert.equal(await page.locator("#tasks [role=alert]").count(), 0);
  await ask(page, { tokens: [4, 5] }, "plain");
  assert.equal(await page.getByRole("tab", { name: "Tasks" }).isVisible(), false);
});

test("by the keyboard, and by a link", async () => {
  const page = await open({ server, path: "/#explore/tasks?model=tagger&text=the+dog" });
  await page.locator("#tasks mark").first().waitFor();
  await page.getByRole("tab", { name: "Tasks" }).press("ArrowRight");
  await page.getByRole("tab", { selected: true }).press("ArrowLeft");
  assert.equal(await page.getByRole("tab", { selected: true }).textContent(), "Tasks");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Entities");
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [320, 740], true]])
  test(`nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened("tagger", { text: `${TEXT} `.repeat(6) }, { viewport, dark });
    await audit(page, "tasks");
    assert.equal(await sideways(page), "");
    await ask(page, { text: MASKS }, "masked");
    await part(page, "Sparse embedding").waitFor();
    await audit(page, "tasks of a masked language model");
    assert.equal(await sideways(page), "");
  });
