// test_graph: a whole model in pieces, as the server tells them, and how the computing time is shared.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, shot, state, test } from "./browser.mjs";
import { sideways, tab } from "./looking.mjs";
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
        assert.ok(Math.abs(Number(told[1]) - ms * part) <= 0.01 * ms, `${text}, not ${ms * part}`);
      }
      assert.equal(opens, one.kind === "attention" && !isIdle(one), name);
      assert.equal(text.includes("another's numbers"), Boolean(one.tied), text);
    }
    const { parameters } = (await server.get(`/v1/models/${model}`)).json;
    const said = /([\d.]+) ?k? parameters/.exec(await page.locator("#graph p").first().textContent());
    assert.equal(said[0], `${await page.evaluate((n) => Format.count(n), parameters)} parameters`);
  });

test("an attention leads to its weights; another model is another graph; layers have none", async () => {
  const page = await opened("both", { tokens: [4, 5, 6], targets: [7, 8] });
  await page.locator("#graph [data-piece='decoder.0.cross']").click();
  await page.waitForFunction(() => State.get("answer").part === "decoder.0.cross");
  await settle(page);
  assert.equal(await page.locator("#large h3").textContent(), "decoder.0.cross, head 0");
  assert.equal(await page.getByRole("tab", { name: "Weights" }).getAttribute("aria-selected"), "true");
  await tab(page, "Model");
  await ask(page, { tokens: [4] }, "words");
  assert.ok((await boxes(page)).every(({ name }) => name.startsWith("encoder")));
  await ask(page, { queries: [[1, 2, 3, 4]], return_attention: true }, "layer");
  assert.equal(await page.getByRole("tab", { name: "Model" }).count(), 0);
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
