// test_tasks: what the heads of models give for a text: entities, labels, masked tokens, sparse embeddings, against
// the server's own answers.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ask, audit, download, open, serve, settle, tab, test } from "./browser.mjs";
import { posting, sideways } from "./looking.mjs";
import { whole } from "./wholes.mjs";

const tests = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const examples = JSON.parse(fs.readFileSync(path.join(tests, "example/tasks.json"))).models;
const golden = (name) => ({ transformer: path.join(tests, "golden/models", name) });
const server = await serve([], { config: { models: {
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
