// test_heads: the Heads tab says what the server says of each head, and what is lost without some
// of them is what two answers of the server differ by; the bar of times is Server-Timing.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";

const ITEM = [[1, 0, 0, 1], [0, 1, 1, 0], [0.5, -1, 0.25, 2]];
const OTHER = [...ITEM.slice(1).map((row) => row.map((x) => 1 - x)), [1, 1, 1, 1]];
const TOY = { queries: [ITEM, OTHER],
  valid_lens: [2, 3], return_attention: true };
const RAGGED = { queries: [ITEM, [[1, 2, 3, 4]], []], return_attention: "average", causal: true };
const MEASURES = ["confidence", "entropy", "distance", "norm", "share", "delta"];

const server = await serve();
// Most tests share a page, as it was when it was new.
const shared = await open({ server });
const fresh = async () => {
  await shared.evaluate(() => {
    document.getElementById("tab-look").click();
    for (const select of document.querySelectorAll("#heads select")) select.selectedIndex = 0;
  });
  return shared;
};

let seed = 1;
const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 31 - 1;
const wide = (n) => ({ queries: [Array.from({ length: n }, () =>
  Array.from({ length: 512 }, () => Math.fround(next())))] });

// --- what the page shows ---

const look = async (page) => {
  await tab(page, "Head importance");
  await settle(page);
};
const table = (page) => page.locator("#measures table").evaluate((node) => {
  const [first, ...rest] = [...node.rows].map((row) => [...row.cells]);
  const value = (cell) => cell.querySelector("[title]")?.title ?? cell.textContent;
  return { names: first.slice(1).map((cell) => cell.firstChild.textContent),
    meanings: first.slice(1).map((cell) => cell.lastChild.textContent),
    heads: rest.map(([head, ...cells]) => [head.textContent, ...cells.map(value)]),
    texts: rest.map(([, ...cells]) => cells.map((cell) => cell.textContent)),
    bars: rest.map(([, ...cells]) =>
      cells.map((cell) => cell.querySelector(".fill")?.getBoundingClientRect().width ?? null)) };
});
const report = (page) => page.locator("#loss dl").evaluate((list) =>
  Object.fromEntries([...list.querySelectorAll("dt")].map((name) => {
    const value = name.nextElementSibling;
    return [name.textContent, value.querySelector("[title]")?.title ?? value.textContent];
  })));
const timed = (page) => page.locator("#loss dl").getByText("medians of").waitFor();
const grid = (page) => page.locator("[role=grid]").evaluate((node) =>
  [...node.rows].slice(1).map((row) => [...row.cells].slice(1).map((cell) =>
    ({ text: cell.textContent, back: cell.style.background, colour: cell.style.color }))));

// --- what it must be ---

const heads = async (body, model, gradients, from = server) => {
  const { return_attention, gradients: own, ...rest } = body;
  const reply = await from.post(`/v1/models/${model}/heads`,
    gradients ? { ...rest, gradients } : rest);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
};
const outputs = async (body, model, head_mask) => {
  const { return_attention, gradients, ...rest } = body;
  const reply = await server.post(`/v1/models/${model}/attention`,
    head_mask ? { ...rest, head_mask } : rest);
  assert.equal(reply.status, 200, reply.text);
  return reply.json.outputs;
};
const lost = (before, after) => {
  const a = before.flat(Infinity).map(Math.fround), b = after.flat(Infinity).map(Math.fround);
  const by = a.map((y, i) => y - b[i]);
  return { lost: Math.hypot(...by) / Math.hypot(...a), most: Math.max(...by.map(Math.abs)) };
};
const without = (h, ...off) => Array.from({ length: h }, (_, i) => (off.includes(i) ? 0 : 1));
const near = (text, x, what, by = 1e-5) =>
  assert.ok(Math.abs(text - x) <= by * Math.max(1e-3, Math.abs(x)), `${what}: ${text}, ${x}`);

const equals = (shown, found, order = found.ranking) => {
  assert.deepEqual(shown.heads.map(([head]) => head), order.map((i) => `head ${i}`));
  for (const [at, i] of order.entries())
    for (const [m, name] of shown.names.entries())
      assert.equal(Number(shown.heads[at][m + 1]), found.heads[i][name], `${name} of head ${i}`);
};
const divergenceEquals = async (page, found) => {
  const cells = await grid(page);
  const most = Math.max(...found.divergence.flat());
  for (const [i, line] of found.divergence.entries())
    for (const [j, x] of line.entries()) {
      if (i === j) assert.deepEqual([cells[i][j].text, cells[i][j].back], ["", ""]);
      else assert.ok(Math.abs(cells[i][j].text - x) <= 0.005 * most, `divergence of ${i} and ${j}`);
      if (i > 1) continue;
      await page.locator("[role=grid] tr").nth(i + 1).locator("td").nth(j).hover();
      await page.getByText(`head ${i} and head ${j}: ${x} nats`).waitFor();
    }
};

// --- measures ---

for (const [name, body, model] of [["two heads", TOY, "demo"], ["a ragged batch", RAGGED, "demo"],
  ["one item without the batch", { queries: ITEM }, "demo"], ["eight heads", wide(5), "base"],
  ["an empty batch", { queries: [] }, "demo"], ["a query that sees nothing",
    { queries: [ITEM], valid_lens: [[0, 1, 3]], head_mask: [0.5, 2] }, "demo"]])
  test(`every measure is the server's: ${name}`, async () => {
    const page = await fresh();
    await ask(page, body, model);
    await look(page);
    const found = await heads(body, model), shown = await table(page);
    assert.deepEqual(shown.names, MEASURES);
    equals(shown, found);
    await page.getByText(`Queries with an unmasked key: ${found.rows}`).waitFor();
    await divergenceEquals(page, found);
    await page.getByLabel("Order").selectOption("by index");
    equals(await table(page), found, found.heads.map((_, i) => i));
  });

test("a bar is as long as its number", async () => {
  const page = await fresh();
  await ask(page, wide(5), "base");
  await look(page);
  const { heads: rows, bars, names } = await table(page);
  const at = names.indexOf("distance"), values = rows.map((row) => Number(row[at + 1]));
  const longest = Math.max(...bars.map((line) => line[at]));
  for (const [i, x] of values.entries())
    assert.ok(Math.abs(bars[i][at] / longest - x / Math.max(...values)) < 0.02, `bar of ${x}`);
});

test("it asks only when it is looked at, and once for each answer", async () => {
  const page = await open(), asked = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/heads")) asked.push(request.postDataJSON());
  });
  await look(page);
  await tab(page, "Attention");
  await ask(page, TOY, "demo");
  const before = asked.length;
  await look(page);
  await tab(page, "Response");
  await look(page);
  assert.equal(asked.length, before + 1);
  assert.equal(asked.at(-1).return_attention, undefined);
  await ask(page, RAGGED, "demo");
  assert.equal(asked.length, before + 2);
});

test("a trace belongs to the answer, and is not measured", async () => {
  const page = await fresh();
  await ask(page, { ...TOY, trace: { item: 0, head: 1, query: 1 } }, "demo");
  await look(page);
  assert.equal((await table(page)).heads.length, 2);
});

test("gradients of a choice, and of the request", async () => {
  const page = await fresh(), asked = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/heads")) asked.push(request.postDataJSON());
  });
  for (const body of [TOY, RAGGED, { queries: ITEM }]) {
    await ask(page, body, "demo");
    await look(page);
    const choice = page.getByLabel("Gradients");
    await choice.selectOption("of half the squared output");
    await settle(page);
    equals(await table(page), await heads(body, "demo", await outputs(body, "demo")));
    assert.equal((await table(page)).names.at(-1), "michel");
    await choice.selectOption("random signs");
    await settle(page);
    const { gradients } = asked.at(-1);
    assert.deepEqual(new Set(gradients.flat(Infinity)), new Set([-1, 1]));
    assert.equal(gradients.flat(Infinity).length,
      (await outputs(body, "demo")).flat(Infinity).length);
    equals(await table(page), await heads(body, "demo", gradients));
    await choice.selectOption("none");
    await settle(page);
    equals(await table(page), await heads(body, "demo"));
  }
  const own = [ITEM, ITEM.map((row) => row.map((x) => x * x - 1))];
  await ask(page, { ...TOY, gradients: own }, "demo");
  assert.equal(await state(page, "problem"), null);
  assert.equal(await page.getByLabel("Gradients").inputValue(), "request");
  equals(await table(page), await heads(TOY, "demo", own));
  await ask(page, TOY, "demo");
  assert.equal(await page.getByLabel("Gradients").inputValue(), "none");
});

// --- pruning ---

test("without a head the output loses what its delta foretold", async () => {
  const page = await fresh();
  for (const [body, model] of [[TOY, "demo"], [RAGGED, "demo"], [wide(5), "base"]]) {
    await ask(page, body, model);
    await look(page);
    const found = await heads(body, model), h = found.heads.length;
    const whole = await outputs(body, model);
    for (const head of [0, h - 1]) {
      await page.getByLabel(`head ${head}`, { exact: true }).uncheck();
      await timed(page);
      const told = await report(page);
      const is = lost(whole, await outputs(body, model, without(h, head)));
      near(told["Output change"], is.lost, "loss");
      near(told["Largest change"], is.most, "greatest change");
      assert.equal(Number(told["Predicted change"]), found.heads[head].delta);
      near(told["Output change"], found.heads[head].delta, "delta", 1e-4);
      assert.match(told["Compute time"],
        /^[\d.]+ ms → [\d.]+ ms \((.\d+ %|no clear difference)\), medians of [1-5] pairs$/);
      await page.getByRole("button", { name: "Enable all heads" }).click();
      await page.getByText("Disable heads in the table").waitFor();
      assert.equal(await page.locator("#measures input:not(:checked)").count(), 0);
    }
  }
});

test("the least important go first, and all may go", async () => {
  const page = await fresh(), body = wide(4);
  await ask(page, body, "base");
  await look(page);
  const { ranking } = await heads(body, "base"), whole = await outputs(body, "base");
  for (let n = 1; n <= 8; n++) {
    await page.getByRole("button", { name: "Disable next" }).click();
    await timed(page);
    for (const [at, head] of ranking.entries())
      assert.equal(await page.getByLabel(`head ${head}`, { exact: true }).isChecked(), at >= n);
    const is = lost(whole, await outputs(body, "base", without(8, ...ranking.slice(0, n))));
    await page.waitForFunction((x) =>
      Math.abs(document.querySelector("#loss dd [title]").title - x) < 1e-5, is.lost);
    assert.equal((await report(page))["Predicted change"] === "–", n > 1);
  }
  await page.getByRole("button", { name: "Disable next" }).click();
});

test("the curve along the ranking", async () => {
  const page = await fresh();
  for (const [body, model] of [[wide(4), "base"], [RAGGED, "demo"]]) {
    await ask(page, body, model);
    await look(page);
    const { ranking } = await heads(body, model), h = ranking.length;
    const whole = await outputs(body, model);
    await page.getByRole("button", { name: "Ablation curve" }).click();
    await page.waitForFunction((n) => document.querySelectorAll("#along li").length === n, h);
    const steps = await page.locator("#along li").evaluateAll((list) =>
      list.map((item) => [item.value, item.textContent, item.querySelector("[title]").title]));
    const points = (await page.locator("#along polyline").getAttribute("points")).split(" ")
      .map((point) => point.split(",").map(Number));
    const [x0, y0] = points[0], [xLast] = points.at(-1), top = Math.min(...points.map(([, y]) => y));
    const high = Math.max(...steps.map(([, , x]) => Number(x)));
    for (const [i, [n, text, value]] of steps.entries()) {
      const mask = without(h, ...ranking.slice(0, n));
      near(value, lost(whole, await outputs(body, model, mask)).lost, `without ${n}`);
      assert.ok(text.startsWith(`head ${ranking[n - 1]}: `), text);
      assert.ok(Math.abs((points[i + 1][0] - x0) / (xLast - x0) - n / h) < 1e-4);
      assert.ok(Math.abs((y0 - points[i + 1][1]) / (y0 - top) - value / high) < 1e-4);
    }
  }
});

test("only one curve is under way", async () => {
  const page = await fresh();
  await ask(page, wide(4), "base");
  await look(page);
  let sent = 0;
  const listen = (request) => (sent += request.url().endsWith("/attention"));
  page.on("request", listen);
  let go; // what is sent is held back until it is called: no answer comes before one looks
  const held = new Promise((resolve) => { go = resolve; });
  await page.route("**/attention", (route) => held.then(() => route.continue()));
  await page.getByRole("button", { name: "Ablation curve" })
    .evaluate((button) => [button.click(), button.click()] && null);
  assert.equal(await page.locator("#along").textContent(), "Measuring …");
  go();
  await page.waitForFunction(() => document.querySelectorAll("#along li").length === 8);
  await settle(page);
  page.off("request", listen);
  await page.unroute("**/attention");
  assert.equal(sent, 9, "of the first one request, of the second all");
});

test("a head that the request masks is off and stays so; another mask is kept", async () => {
  const page = await fresh();
  const body = { ...TOY, head_mask: [0.5, 1] }, masks = [];
  await ask(page, body, "demo");
  await look(page);
  const listen = (request) => request.url().endsWith("/attention")
    && masks.push(request.postDataJSON().head_mask[1]);
  page.on("request", listen);
  await page.getByLabel("head 1", { exact: true }).uncheck();
  await timed(page);
  near((await report(page))["Output change"],
    lost(await outputs(body, "demo"), await outputs(body, "demo", [0.5, 0])).lost, "loss");
  page.off("request", listen);
  const turns = [0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0];
  assert.ok(masks.length > 2);
  assert.deepEqual(masks, turns.slice(0, masks.length), "the loss, then pairs, in turns");
  await ask(page, { ...TOY, head_mask: [1, 0] }, "demo");
  assert.ok(await page.getByLabel("head 1", { exact: true }).isDisabled());
  assert.ok(!await page.getByLabel("head 1", { exact: true }).isChecked());
});

test("heads that are off are marked in every view, and go into the request", async () => {
  const page = await fresh();
  await ask(page, TOY, "demo");
  await look(page);
  const take = page.getByRole("button", { name: "Copy to request" });
  assert.ok(await take.isDisabled(), "all heads are on");
  await page.getByLabel("head 1", { exact: true }).uncheck();
  await tab(page, "Attention");
  await settle(page);
  assert.deepEqual(await page.locator("#multiples button").evaluateAll((list) =>
    list.map((tile) => getComputedStyle(tile).textDecorationLine)), ["none", "line-through", "none"]);
  await tab(page, "Head view");
  await settle(page);
  assert.deepEqual(await page.locator("#lines select").first().locator("option").allTextContents(),
    ["head 0", "head 1 (disabled)", "mean of heads"]);
  await look(page);
  await take.click();
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text), { ...TOY, head_mask: [1, 0] });
  assert.deepEqual(await state(page, "off"), []);
  assert.deepEqual((await state(page, "answer")).items[0].outputs.data.length, 12);
});

test("the digits of a column stand in line, and a table is one stop of the tab key", async () => {
  const page = await fresh();
  await ask(page, wide(5), "base");
  await look(page);
  const { texts } = await table(page);
  for (const m of texts[0].keys())
    assert.equal(new Set(texts.map((line) => line[m].split(".")[1]?.length)).size, 1, texts.join(" "));
  const stops = () => page.locator("#measures input").evaluateAll((list) =>
    list.map((one) => one.tabIndex));
  assert.equal((await stops()).filter((index) => index === 0).length, 1);
  await page.locator("#measures input").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal((await stops())[2], 0);
  await page.keyboard.press("End");
  assert.equal((await stops())[7], 0);
  assert.equal((await stops()).filter((index) => index === 0).length, 1);
});

test("nothing is measured where nobody looks, and again where somebody does", async () => {
  const page = await fresh();
  await ask(page, wide(4), "base");
  await look(page);
  let sent = 0;
  page.on("request", (request) => (sent += request.url().endsWith("/attention")));
  await page.evaluate(() => {
    document.querySelector("#measures input").click();
    document.getElementById("tab-look").click();
  });
  await settle(page);
  assert.equal(sent, 1);
  await look(page);
  await timed(page);
  assert.ok(sent > 3, String(sent));
});

test("a file is measured and pruned as text is", async () => {
  const page = await fresh(), body = wide(6);
  const bytes = [...new Uint8Array(Float32Array.from(body.queries.flat(2)).buffer)];
  await page.evaluate(async (data) => {
    const queries = { dtype: "F32", shape: [1, 6, 512], bytes: Uint8Array.from(data) };
    State.set({ model: "base",
      body: { name: "x", tensors: { queries }, fields: { return_attention: true } } });
    await Ask.send();
  }, bytes);
  await look(page);
  equals(await table(page), await heads(body, "base"));
  await page.getByLabel("Gradients").selectOption("of half the squared output");
  await settle(page);
  const whole = await outputs(body, "base");
  equals(await table(page), await heads(body, "base", whole));
  await page.getByLabel("head 2", { exact: true }).uncheck();
  await timed(page);
  near((await report(page))["Output change"],
    lost(whole, await outputs(body, "base", without(8, 2))).lost, "loss");
});

// --- other models, and errors ---

const random = (more) => ({ random: { seed: 7 }, query_size: 64, ...more });
const rows = (n) => ({ queries: [wide(3).queries[0].map((row) => row.slice(0, n))] });

test("sigmoid weights have no entropy and no divergence", async () => {
  const s = random({ heads: 4, weighting: "sigmoid" });
  const own = await serve([], { config: { models: { s } } });
  const page = await open({ server: own });
  const body = rows(64);
  await ask(page, body, "s");
  await look(page);
  const found = await heads(body, "s", null, own), shown = await table(page);
  assert.equal(found.divergence, null);
  assert.deepEqual(shown.texts.map((line) => line[1]), ["–", "–", "–", "–"]);
  assert.equal(shown.meanings[1], "not defined for sigmoid weights");
  assert.equal(await page.locator("[role=grid]").count(), 0);
  for (const [at, i] of found.ranking.entries())
    assert.equal(Number(shown.heads[at][6]), found.heads[i].delta);
});

test("models with one head, and with forty", async () => {
  const own = await serve([], { config: { models: { one: random({ heads: 1 }),
    many: random({ heads: 40, query_size: 160 }) } } });
  const page = await open({ server: own, viewport: [390, 800] });
  const body = rows(160), small = rows(64);
  await ask(page, small, "one");
  await look(page);
  equals(await table(page), await heads(small, "one", null, own));
  await page.getByLabel("head 0", { exact: true }).uncheck();
  await timed(page);
  near((await report(page))["Output change"], 1, "everything");
  await ask(page, body, "many");
  const found = await heads(body, "many", null, own);
  equals(await table(page), found);
  const cells = await grid(page);
  assert.equal(cells.length * cells[0].length, 1600);
  await page.getByRole("button", { name: "Ablation curve" }).click();
  await page.locator("#along li").first().waitFor();
  assert.equal(await page.locator("#along li").last().evaluate((item) => item.value), 40);
  assert.ok(await page.locator("#along li").count() <= 32);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test("what /heads refuses is told, and can be tried again", async () => {
  const own = await serve(["--max-pairs", "20"]), page = await open({ server: own, expect: [413] });
  const body = { queries: [ITEM] };
  await ask(page, body, "demo");
  assert.equal(await state(page, "problem"), null);
  await look(page);
  const refused = await own.post("/v1/models/demo/heads", body);
  assert.equal(refused.status, 413);
  const alert = page.locator("#heads [role=alert]");
  assert.ok((await alert.textContent()).includes(refused.json.title));
  assert.ok((await alert.textContent()).includes(refused.json.detail));
  const again = page.waitForResponse((response) => response.url().endsWith("/heads"));
  await page.getByRole("button", { name: "Try again" }).click();
  assert.equal((await again).status(), 413);
  await ask(page, { queries: [ITEM.slice(1)] }, "demo");
  assert.equal(await alert.count(), 0);
  assert.equal((await table(page)).heads.length, 2);
});

test("gradients that are wrong are told, the answer stays", async () => {
  const page = await open({ server, expect: [400] });
  await ask(page, { queries: [ITEM], gradients: [[[1]]] }, "demo");
  assert.equal(await state(page, "problem"), null);
  await look(page);
  assert.match(await page.locator("#heads [role=alert]").textContent(), /gradients/);
});

test("the divergence by keyboard", async () => {
  const page = await fresh(), body = wide(4);
  await ask(page, body, "base");
  await look(page);
  const { divergence } = await heads(body, "base");
  const told = (i, j) =>
    page.getByText(`head ${i} and head ${j}: ${divergence[i][j]} nats`).waitFor();
  await page.locator("[role=grid] td[tabindex='0']").focus();
  await told(0, 0);
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"])
    await page.keyboard.press(key);
  await told(0, 1);
  assert.equal(await page.locator("[role=grid] td[tabindex='0']").count(), 1);
});

test("text in a coloured cell can be read", async () => {
  const page = await fresh();
  await page.evaluate(() => document.getElementById("heads").replaceChildren(...Divergence.show(
    Array.from({ length: 16 }, (_, i) =>
      Array.from({ length: 16 }, (_, j) => (16 * i + j) / 255)))));
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const cells = (await grid(page)).flat().filter(({ back }) => back);
  assert.equal(cells.length, 240, "no head differs from itself");
  assert.ok(new Set(cells.map(({ back }) => back)).size > 200);
  for (const { back, colour } of cells) {
    const [a, b] = [light(back), light(colour)].sort((x, y) => y - x);
    assert.ok((a + 0.05) / (b + 0.05) >= 4.5, `${colour} on ${back}`);
  }
});

// --- the bar of times ---

test("the bar of times is Server-Timing", async () => {
  const page = await fresh();
  const response = page.waitForResponse((one) => one.url().endsWith("/attention"));
  await ask(page, wide(40), "base");
  const reply = await response, header = (await reply.allHeaders())["server-timing"];
  const stages = header.split(", ").map((part) => part.split(";dur="));
  await tab(page, "Response");
  await settle(page);
  const items = await page.locator("#time li").allTextContents();
  assert.deepEqual(items.slice(0, 4), ["read", "wait", "compute", "write"].map((name, i) =>
    `${name} ${Number(stages[i][1])} ms`));
  const sum = stages.reduce((all, [, ms]) => all + Number(ms), 0);
  near(/^total ([\d.]+) ms$/.exec(items[4])[1], sum, "sum");
  assert.match(items[5], /^round trip [\d.]+ ms$/);
  const bytes = await page.evaluate(() => Format.bytes(State.answer.bytes));
  assert.equal(items[6], `response ${bytes}`);
  const parts = await page.locator(".stages i").evaluateAll((list) =>
    list.map((part) => part.getBoundingClientRect().width));
  for (const [i, [name, ms]] of stages.entries())
    assert.equal(parts[i] >= 3, Number(ms) > 0, `${name}: ${ms} ms are ${parts[i]} px`);
  const width = await page.locator(".stages").evaluate((bar) => bar.clientWidth);
  assert.ok(parts.reduce((a, b) => a + b) >= width - 4);
});

for (const dark of [false, true])
  test(`nothing serious for axe-core, ${dark ? "dark, narrow" : "light, wide"}`, async () => {
    const page = await open({ server, dark, viewport: dark ? [390, 800] : [1280, 800] });
    await ask(page, wide(4), "base");
    await look(page);
    await page.getByRole("button", { name: "Disable next" }).click();
    await page.getByRole("button", { name: "Ablation curve" }).click();
    await timed(page);
    await page.locator("#along li").first().waitFor();
    await audit(page, "heads");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
