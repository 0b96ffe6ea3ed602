// test_worth: what the heads of a whole model are worth, as the server measures it, and what is lost
// without some of them, as two answers of the server differ.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";
import { losses, measured, named, posting } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder();
const config = { models: { words: whole("encoder", { tokenizer }), writes: whole("decoder"),
  both: whole("seq2seq", { layers: 1 }) } };
const server = await serve([], { config });
const SCORED = { tokens: [[4, 5, 6, 7, 8], [9, 10]], targets: [[9, 10, 11], [12]] };
const TEXT_OF_IDS = { tokens: [4, 5, 6] };
const TEXT = { text: "The animal was tired." };

const opened = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await tab(page, "Head importance");
  await settle(page);
  return page;
};
const post = posting(server);
const head = (page, name, i) =>
  page.locator(`#worth button[title*="(${name})"]`).nth(i);
const lost = async (page) => Number(await page.locator("#worth b").textContent())
  * (/rises by/.test(await page.locator("#worth p", { hasText: "Without th" }).textContent()) ? -1 : 1);
const near = (a, b, by = 0.01) => assert.ok(Math.abs(a - b) <= by * Math.max(1, Math.abs(b)), `${a}, not ${b}`);
const flat = (answer) => (answer.log_probabilities || answer.outputs).flat(Infinity);

for (const [model, body] of [["writes", SCORED], ["words", TEXT],
  ["both", { tokens: [4, 5, 6], targets: [7, 8, 9] }]])
  test(`every head's loss is the server's: ${model}`, async () => {
    const page = await opened(model, body);
    await measured(page);
    const { heads, ranking, measure } = await post(model, "heads", body), table = await losses(page);
    assert.deepEqual(Object.keys(table).sort(), Object.keys(heads).sort());
    const most = Math.max(...Object.values(heads).flat().map(Math.abs));
    for (const [name, list] of Object.entries(heads))
      for (const [i, loss] of list.entries()) near(table[name][i], loss, 0.01 * most);
    assert.ok((await page.locator("#worth").textContent())
      .includes((await named(page, ranking.slice(0, 5))).join(", ")));
    assert.match(await page.locator("#worth").textContent(),
      measure === "outputs" ? /the outputs change by/ : /log probability falls by/);
    // Off by hand: the difference of two answers.
    const name = Object.keys(heads)[0];
    await head(page, name, 1).click();
    await page.getByText("Without this head").waitFor();
    await settle(page);
    near(await lost(page), heads[name][1]);
    const [a, b] = [await post(model, measure === "outputs" ? "encode" : "score", body),
      await post(model, measure === "outputs" ? "encode" : "score",
        { ...body, head_mask: { [name]: [0, 0, 1, 1] } })].map(flat);
    await head(page, name, 0).click();
    await page.getByText("Without these 2 heads").waitFor();
    await settle(page);
    near(await lost(page), measure === "outputs"
      ? Math.hypot(...a.map((x, i) => x - b[i])) / Math.hypot(...a)
      : a.reduce((sum, x, i) => sum + x - b[i], 0));
    assert.deepEqual((await state(page, "off")).sort(), [`${name} 0`, `${name} 1`]);
    await tab(page, "Attention");
    assert.equal(await page.locator("#grid .off").count(), 2, "they are marked in the grid");
  });

test("along the ranking a curve with its ends in numbers, and what is off goes into the request", async () => {
  const page = await opened("writes", SCORED);
  assert.ok(await page.getByRole("button", { name: "Ablation curve" }).isDisabled());
  await measured(page);
  let asked = 0;
  page.on("request", (request) => (asked += request.url().endsWith("/score")));
  await page.getByRole("button", { name: "Ablation curve" }).click();
  await page.locator("#worth svg").waitFor();
  assert.equal(asked, 13, "one with all heads, and one for each step");
  assert.equal((await page.locator("#worth polyline").getAttribute("points")).split(" ").length, 13);
  const all = flat(await post("writes", "score", SCORED)), names = [0, 1, 2].map((i) => `decoder.${i}.self`);
  const none = flat(await post("writes", "score", { ...SCORED,
    head_mask: Object.fromEntries(names.map((name) => [name, [0, 0, 0, 0]])) }));
  const last = all.reduce((sum, x, i) => sum + x - none[i], 0);
  const numbers = await page.locator("#worth svg text").allTextContents();
  assert.equal(numbers.at(-1), "12 heads");
  assert.ok(last <= Number(numbers[0]) * 1.01 + 0.01 && last >= Number(numbers[1]) * 1.01 - 0.01);
  await head(page, "decoder.1.self", 3).click();
  await page.getByText("Without this head").waitFor();
  await page.getByRole("button", { name: "Copy to request" }).click();
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text).head_mask,
    { "decoder.1.self": [1, 1, 1, 0] });
  assert.deepEqual(await state(page, "off"), []);
});

// --- what a model that writes goes on with, and the grid ---

test("whether the text goes on otherwise, as the server writes it, with and without heads", async () => {
  for (const [model, asked] of [["writes", SCORED], ["both", { tokens: [4, 5, 6], targets: [7, 8] }]]) {
    const page = await opened(model, asked), { tokens } = asked, names = new Set();
    const write = async (head_mask) => (await post(model, "generate", { tokens, max_tokens: 16,
      ...(head_mask && { head_mask }) })).sequences.flat().map((one) => one.tokens.join(" "));
    const buttons = await page.locator("#worth td button").all(), mask = {};
    for (const button of buttons) {
      const [, at, name] = /head (\d+) \((\S+)\)/.exec(await button.getAttribute("title"));
      await button.click();
      await page.locator("#worth p", { hasText: "greedy continuation" }).waitFor();
      await settle(page);
      (mask[name] = mask[name] || [1, 1, 1, 1])[at] = 0;
      const [a, b] = [await write(), await write(mask)], differ = a.filter((text, i) => text !== b[i]);
      const said = await page.locator("#worth p", { hasText: "greedy continuation" }).textContent();
      if (!differ.length) assert.equal(said, `The greedy continuation is unchanged: “${a[0]}”.`);
      else {
        const i = a.findIndex((text, n) => text !== b[n]);
        assert.ok(said.endsWith(`: “${b[i]}”, not “${a[i]}”.`), said);
        if (a.length > 1) assert.match(said, new RegExp(`in ${differ.length} of 2 items, in item ${i}:`));
      }
      names.add(Boolean(differ.length));
      if (names.size === 2) break;
    }
    assert.ok(model === "both" || names.has(true), `${model}: no text has changed`);
  }
});

test("what is measured of an answer is not taken for the next one's", async () => {
  const page = await opened("words", TEXT);
  let go;
  const held = new Promise((resolve) => { go = resolve; });
  await page.route(/\/heads$/, (route) => held.then(() => route.continue()));
  await page.getByRole("button", { name: "Measure every head" }).click();
  await page.evaluate((text) => {
    Place.go("explore", "look");
    State.set({ model: "writes", body: { text } });
    return Ask.send();
  }, JSON.stringify(SCORED));
  go();
  await settle(page);
  assert.equal(await state(page, "losses"), null);
});

test("a decoder without targets is measured by the next tokens of its own text, with one click", async () => {
  for (const [body, asked] of [[{ tokens: [4, 5, 6, 7] }, { tokens: [4], targets: [5, 6, 7] }],
    [{ tokens: [[4, 5, 6], [7, 8]] }, { tokens: [[4], [7]], targets: [[5, 6], [8]] }]]) {
    const page = await opened("writes", body);
    await page.getByText("the next tokens of the text itself").waitFor();
    await measured(page);
    const { heads } = await post("writes", "heads", asked), table = await losses(page);
    for (const [name, list] of Object.entries(heads))
      for (const [i, loss] of list.entries()) near(table[name][i], loss);
    await head(page, "decoder.1.self", 2).click();
    await page.getByText("Without this head").waitFor();
    near(await lost(page), heads["decoder.1.self"][2]);
    assert.deepEqual(JSON.parse((await state(page, "body")).text), body, "the request stays what it was");
  }
  const page = await opened("writes", { tokens: [4] });
  await page.getByText("Enter targets").waitFor();
});

test("a mask of the request's own, by another name; targets are asked for; a head that does harm", async () => {
  const page = await opened("writes", { ...SCORED, head_mask: { "decoder.*.self": [1, 1, 1, 0] } });
  await head(page, "decoder.0.self", 0).click();
  await page.getByText("Without this head").waitFor();
  await page.getByRole("button", { name: "Copy to request" }).click();
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text).head_mask, { "decoder.0.self":
    [0, 1, 1, 0], "decoder.1.self": [1, 1, 1, 0], "decoder.2.self": [1, 1, 1, 0] });
  const bare = await opened("writes", { tokens: [4] });
  assert.ok(await bare.getByRole("button", { name: "Measure every head" }).isDisabled());
  assert.match(await bare.locator("#worth").textContent(), /Enter targets/);
  const other = await opened("writes", SCORED);
  await measured(other);
  const { heads } = await post("writes", "heads", SCORED);
  const name = Object.keys(heads).find((one) => heads[one].some((x) => x < -0.01));
  assert.ok(name, "a head that does harm");
  await head(other, name, heads[name].findIndex((x) => x < -0.01)).click();
  await other.getByText(/log probability rises by [\d.]+\./).waitFor();
});

test("a text that cannot be asked for is told beside the loss; an encoder writes none", async () => {
  const page = await opened("writes", SCORED, { expect: [504] });
  await page.route(/\/generate$/, (route) => route.fulfill({ status: 504,
    contentType: "application/problem+json", body: '{"title":"Too slow","detail":"it took long"}' }));
  await head(page, "decoder.0.self", 0).click();
  await page.getByText("The greedy continuation is unknown: it took long").waitFor();
  const other = await opened("words", TEXT);
  await head(other, "encoder.0.self", 0).click();
  await other.getByText("Without this head").waitFor();
  await settle(other);
  assert.ok(!(await other.locator("#worth").textContent()).includes("greedy continuation"));
});

test("the grid of heads can be sorted by what was measured, until another answer comes", async () => {
  const page = await opened("writes", SCORED);
  const order = page.locator("#grid-order"), last = order.locator("option[value=loss]");
  assert.ok(await last.evaluate((one) => one.disabled));
  await measured(page);
  await tab(page, "Attention");
  await order.selectOption("loss");
  await settle(page);
  const { ranking } = await post("writes", "heads", SCORED);
  assert.deepEqual(await page.locator("#grid [data-part]").evaluateAll((list) =>
    list.map(({ dataset }) => [dataset.part, Number(dataset.head)])), ranking.toReversed());
  await ask(page, TEXT_OF_IDS, "writes");
  assert.equal(await order.inputValue(), "");
  assert.ok(await last.evaluate((one) => one.disabled));
});

test("what is refused is told, and can be tried again; stopping keeps what is measured", async () => {
  const own = await serve(["--max-pairs", "1100"], { config });
  const page = await opened("writes", { tokens: [4, 5, 6, 7, 8, 9, 10], targets: [5, 6, 7] },
    { server: own, expect: [413] });
  await page.getByRole("button", { name: "Measure every head" }).click();
  await page.locator("#worth [role=alert]").waitFor();
  assert.match(await page.locator("#worth [role=alert]").textContent(), /the limit is 1100/);
  const again = page.waitForResponse((response) => response.url().endsWith("/heads"));
  await page.getByRole("button", { name: "Try again" }).click();
  assert.equal((await again).status(), 413);
  // A stream that is never ended, of which three heads have come.
  const said = [0, 1, 2].map((i) => `data: {"attention":"decoder.0.self","head":${i},"loss":${i}.5}\n\n`);
  await page.evaluate((parts) => {
    const real = window.fetch;
    window.fetch = (path, options) => (!String(path).endsWith("/heads") ? real(path, options)
      : Promise.resolve(new Response(new ReadableStream({ start: (to) => {
        to.enqueue(new TextEncoder().encode(`: hello\n\n${parts.join("")}`));
        options.signal.addEventListener("abort", () => to.error(new Error("aborted")));
      } }))));
  }, said);
  await page.getByRole("button", { name: "Measure every head" }).click();
  await page.getByText("3 of 12 heads are measured").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped: 3 of 12").waitFor();
  assert.deepEqual((await page.locator("#worth td button").allTextContents()).slice(0, 4),
    ["0.50", "1.50", "2.50", "·"]);
});

test("a failure behind the head of a stream is told", async () => {
  const page = await opened("writes", SCORED);
  await page.route(/\/heads$/, (route) => route.fulfill({ contentType: "text/event-stream",
    body: 'data: {"attention":"decoder.0.self","head":0,"loss":1}\n\nevent: error\n'
      + 'data: {"title":"Too slow","detail":"deadline_ms has passed","status":504}\n\n' }));
  await page.getByRole("button", { name: "Measure every head" }).click();
  assert.match(await page.locator("#worth [role=alert]").textContent(), /Too slow.*deadline_ms/);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [360, 740], true]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened("writes", SCORED, { viewport, dark });
    await page.getByRole("button", { name: "Measure every head" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("least important first").waitFor();
    await page.locator("#worth td button[tabindex='0']").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByText("Without this head").waitFor();
    assert.deepEqual(await state(page, "off"), ["decoder.1.self 1"]);
    await audit(page, "worth");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
