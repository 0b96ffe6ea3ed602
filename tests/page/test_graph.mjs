// test_graph: a whole model in pieces, as the server tells them, and how the computing time is shared.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ask, audit, open, serve, settle, shot, state, tab, test } from "./browser.mjs";
import { sideways } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder();
const server = await serve([], { config: { models: { words: whole("encoder", { tokenizer }),
  writes: whole("decoder"), both: whole("seq2seq", { layers: 2 }), deep: whole("encoder", { layers: 24 }),
  layer: { random: { seed: 3 }, heads: 3, query_size: 4, hidden: 6 } } } });

const opened = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await tab(page, "Model");
  return page;
};
const pieces = async (model) => (await server.get(`/v1/models/${model}`)).json.pieces;
const boxes = (page) => page.locator("#graph .card").evaluateAll((list) => list.map((one) => ({
  name: one.dataset.piece, text: one.innerText, parameters: Number(one.children[2].title),
  shape: one.querySelector(".mono").textContent, opens: one.tagName === "BUTTON",
  part: one.querySelector(".fill") ? parseFloat(one.querySelector(".fill").style.width) / 100 : null })));
const causal = (n) => n * (n + 1) / 2;

// Multiplications by hand: rows of the encoder, of the decoder, and targets of each item.
const work = ({ name, kind, side, multiply_adds: { token, pair = 0, key = 0 } }, items) =>
  items.reduce((all, { n = 0, m = 0, t = 0 }) => {
    const rows = side === "encoder" ? n : m;
    if (kind === "output") return all + token * t;
    const pairs = name.endsWith("cross") ? m * n : side === "encoder" ? n * n : causal(m);
    return all + token * rows + pair * pairs + key * n;
  }, 0);

for (const [model, body, items, idle] of [
  ["words", { tokens: [[4, 5, 6, 7], [8, 9]] }, [{ n: 4 }, { n: 2 }], []],
  ["writes", { tokens: [4, 5, 6] }, [{ m: 3 }], ["decoder.output"]],
  ["writes", { tokens: [4, 5, 6], targets: [7, 8] }, [{ m: 4, t: 2 }], []],
  ["both", { tokens: [4, 5, 6], targets: [7, 8, 9, 10] }, [{ n: 3, m: 4, t: 4 }], []],
  ["both", { tokens: [4, 5, 6] }, [{ n: 3 }], "decoder"]])
  test(`pieces, shapes, parameters and the time's parts: ${model} ${JSON.stringify(body)}`, async () => {
    const page = await opened(model, body), shown = await boxes(page), all = await pieces(model);
    assert.deepEqual(shown.map(({ name, shape, parameters }) => ({ name, shape, parameters })),
      all.map(({ name, kind, shape: [first, ...rest], parameters }) => ({ name, parameters,
        shape: kind === "attention" ? `${first} → ${rest[0]} × ${rest[1]} → ${rest[2]}`
          : [first, ...rest].join(" → ") })));
    const isIdle = ({ name }) => (idle === "decoder" ? name.startsWith(idle) : idle.includes(name));
    const total = all.reduce((sum, one) => sum + (isIdle(one) ? 0 : work(one, items)), 0);
    const { ms } = (await state(page, "answer")).timing.find(({ name }) => name === "compute");
    for (const [i, one] of all.entries()) {
      const { part, text, opens, name } = shown[i];
      if (isIdle(one)) assert.match(text, /did not run/);
      else {
        assert.ok(Math.abs(part - work(one, items) / total) < 1e-4, `${name}: ${part}`);
        const told = /([\d.e-]+) ms/.exec(text);
        // Two digits are shown: the last one is half a unit off at most, which is 5 % of 0.010.
        assert.ok(Math.abs(Number(told[1]) - ms * part) <= 0.01 * ms + 0.05 * ms * part, `${text}, not ${ms * part}`);
      }
      assert.equal(opens, one.kind === "attention" && !isIdle(one), name);
      assert.equal(text.includes("shared parameters"), Boolean(one.tied), text);
    }
    const { parameters } = (await server.get(`/v1/models/${model}`)).json;
    const said = /([\d.]+) ?k? parameters/.exec(await page.locator("#graph p").first().textContent());
    assert.equal(said[0], `${await page.evaluate((n) => Format.count(n), parameters)} parameters`);
  });

test("arrows lead from layer to layer; none from the last part", async () => {
  const page = await opened("words", { tokens: [4, 5, 6] });
  const arrows = await page.locator("#graph .stage").evaluateAll((list) =>
    list.map((one) => getComputedStyle(one.lastElementChild, "::after").content));
  assert.equal(arrows.pop(), "none");
  assert.ok(arrows.length > 2 && arrows.every((one) => /[↓↵]/.test(one)), arrows.join());
});

test("a residual connection goes round each block of a layer, and round no other", async () => {
  for (const viewport of [[1280, 800], [390, 844]]) {
    const page = await opened("both", { tokens: [4, 5, 6], targets: [7, 8] }, { viewport });
    const round = await page.locator("#graph .card").evaluateAll((list) => list.map((card) => {
      const line = card.querySelector(".residual")?.getBoundingClientRect(), own = card.getBoundingClientRect();
      return Boolean(line) && line.left < own.left && line.right > own.right && line.top < own.top && line.bottom < own.bottom;
    }));
    assert.deepEqual(round, (await pieces("both")).map(({ layer }) => layer !== undefined));
    assert.equal(await sideways(page), "");
  }
});

test("an attention leads to its weights; another model is another graph; layers have none", async () => {
  const page = await opened("both", { tokens: [4, 5, 6], targets: [7, 8] });
  await page.locator("#graph [data-piece='decoder.0.cross']").click();
  await page.waitForFunction(() => State.answer.part === "decoder.0.cross");
  await settle(page);
  assert.equal(await page.locator("#large h3").textContent(), "Cross-attention layer 0 · head 0");
  assert.equal(await page.getByRole("tab", { name: "Attention" }).getAttribute("aria-selected"), "true");
  await tab(page, "Model");
  await ask(page, { tokens: [4] }, "words");
  assert.ok((await boxes(page)).every(({ name }) => name.startsWith("encoder")));
  await ask(page, { queries: [[1, 2, 3, 4]], return_attention: true }, "layer");
  assert.equal(await page.getByRole("tab", { name: "Model" }).count(), 0);
});

test("padding does not count, rows of their own do; an empty batch has no pieces to open", async () => {
  const all = await pieces("words"), part = (page) => boxes(page).then((list) => list.map((one) => one.part));
  const share = (items) => {
    const total = all.reduce((sum, one) => sum + work(one, items), 0);
    return all.map((one) => work(one, items) / total);
  };
  const near = (a, b) => a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-4, `${a}, not ${b}`));
  const page = await opened("words", { tokens: [[4, 5, 6, 7, 8, 9], [8, 9, 4, 5, 6, 7]], valid_lens: [2, 6] });
  near(await part(page), share([{ n: 2 }, { n: 6 }]));
  await ask(page, { embeddings: Array.from({ length: 4 }, (_, i) => Array(32).fill(i)) }, "words");
  near(await part(page), share([{ n: 4 }]));
  await ask(page, { text: [] }, "words");
  assert.match(await page.locator("#graph").textContent(), /The batch is empty/);
});

test("a window bounds what is counted, and hides what lies behind it", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
  try {
    const from = new URL("../golden/models/qwen2-a/", import.meta.url);
    fs.cpSync(from, folder, { recursive: true });
    const file = path.join(folder, "config.json"), config = JSON.parse(fs.readFileSync(file, "utf8"));
    fs.writeFileSync(file, JSON.stringify({ ...config, use_sliding_window: true, sliding_window: 2,
      max_window_layers: 0 }));
    const own = await serve([], { config: { models: { near: { transformer: folder } } } });
    const page = await open({ server: own });
    await ask(page, { tokens: [1, 2, 3, 4, 5] }, "near");
    const { window, pieces: all } = (await own.get("/v1/models/near")).json;
    assert.equal(window, 2);
    assert.deepEqual([...await page.evaluate(() => Look.sheet().seen)], Array.from({ length: 25 }, (_, at) =>
      Number(at % 5 <= Math.floor(at / 5) && Math.floor(at / 5) - at % 5 < 2)));
    await tab(page, "Model");
    const cost = ({ kind, multiply_adds: { token, pair = 0 } }) => (kind === "output" ? 0 : 5 * token + 9 * pair);
    const total = all.reduce((sum, one) => sum + cost(one), 0);
    for (const [i, { part, name }] of (await boxes(page)).entries())
      if (part !== null) assert.ok(Math.abs(part - cost(all[i]) / total) < 1e-4, `${name}: ${part}`);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

test("an answer that comes late is not shown over another", async () => {
  const page = await opened("words", { tokens: [4, 5] });
  await tab(page, "Attention");
  let go;
  const held = new Promise((resolve) => { go = resolve; });
  await page.route(/models\/deep$/, (route) => held.then(() => route.continue()));
  await page.evaluate((text) => {
    State.set({ model: "deep", body: { text } });
    return Ask.send();
  }, '{"tokens": [4, 5, 6]}');
  await page.getByRole("tab", { name: "Model" }).click(); // its request is held
  await page.evaluate((text) => {
    State.set({ model: "both", body: { text } });
    return Ask.send();
  }, '{"tokens": [4, 5]}');
  await page.locator("#graph [data-piece='decoder.0.cross']").waitFor();
  go();
  await settle(page);
  assert.equal(await page.locator("#graph [data-piece='encoder.20.self']").count(), 0);
});

test("what cannot be read is told, and asked for again; it is asked for once", async () => {
  const page = await open({ server, expect: [500] });
  let asked = 0;
  await page.route(/models\/words$/, (route) => (asked++ ? route.continue() : route.fulfill({ status: 500,
    contentType: "application/problem+json", body: '{"title":"Broken","detail":"x"}' })));
  await ask(page, { tokens: [4, 5] }, "words");
  await tab(page, "Model");
  await page.locator("#graph [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#graph .card").first().waitFor();
  await ask(page, { tokens: [4, 5, 6] }, "words");
  assert.equal(asked, 2);
  await page.route(/models\/both$/, (route) => route.fulfill({ contentType: "application/json", body: "{}" }));
  await ask(page, { tokens: [4, 5, 6] }, "both");
  assert.match(await page.locator("#graph [role=alert]").textContent(), /does not list the parts/);
});

for (const [name, viewport, dark, model] of [["light", [1440, 900], false, "both"],
  ["dark, narrow", [360, 740], true, "both"], ["deep", [1920, 1000], false, "deep"]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened(model, { tokens: [4, 5, 6], ...(model === "both" && { targets: [7, 8] }) },
      { viewport, dark });
    await shot(page, `graph-${name.slice(0, 4)}`);
    await audit(page, "graph");
    assert.equal(await sideways(page), "");
    await page.locator("#graph button").nth(1).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.getElementById("look").hidden);
    await settle(page);
    assert.equal((await state(page, "problem")), null);
  });
