// test_beams: a search as a tree, node by node as the server tells it, and where each token of a way
// looked, against the server's own weights.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, shot, state, tab, test } from "./browser.mjs";
import { posting } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const example = JSON.stringify({ models: { translate: { transformer: new URL("../example/translate",
  import.meta.url).pathname } } });
const tokenizer = wordsFolder(), end = 0;
const server = await serve([], { config: { models: { ...JSON.parse(example).models,
  ids: whole("decoder", { end }), writes: whole("decoder", { tokenizer, end }),
  words: whole("encoder", { tokenizer }) } } });
const SOURCE = [57, 189, 220, 111, 123, 189, 143, 5, 2], IDS = [4, 5, 6];

const opened = async (model, tokens, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, { tokens }, model);
  await tab(page, "Generation");
  await settle(page);
  return page;
};
const post = posting(server);
const search = async (page, beams, most) => {
  await page.getByLabel("beams").fill(String(beams));
  await page.getByLabel("beams").blur();
  await page.getByLabel("max tokens").fill(String(most));
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText(/^\d+ tokens: the best of /).waitFor();
  await settle(page);
};
const nodes = (page) => page.locator(".tree button").evaluateAll((list) => list.map((one) => ({
  title: one.title, step: Number(/^Step (\d+)/.exec(one.title)[1]), done: one.classList.contains("done"),
  best: one.classList.contains("best"), pressed: one.getAttribute("aria-pressed") === "true",
  left: parseFloat(one.style.left), top: parseFloat(one.style.top) })));
const line = (page) => page.locator(".column b").allTextContents();
const short = (x) => String(Number(x.toPrecision(3)));
const asked = (tokens, beams, most) =>
  ({ tokens, beams, max_tokens: most, returns: beams, return_search: true });

for (const [model, tokens, beams, most] of [["translate", SOURCE, 4, 12], ["ids", IDS, 3, 5]])
  test(`every way of every step, and what is done: ${model}`, async () => {
    const page = await opened(model, tokens);
    await search(page, beams, most);
    const { search: steps, sequences } = await post(model, "generate", asked(tokens, beams, most));
    const shown = await nodes(page);
    assert.equal(shown.length, steps.flat().length + sequences.length);
    let at = 0;
    for (const [step, ways] of steps.entries())
      for (const way of ways) {
        const { title, step: said, done } = shown[at++];
        assert.equal(said, step + 1);
        assert.ok(!done && title.includes(`“${way.token}”`), title);
        assert.ok(title.endsWith(`log probability of the hypothesis ${short(way.sum)}`), `${title}, not ${way.sum}`);
      }
    for (const [i, { tokens: own, score }] of sequences.entries()) {
      const { title, step, done } = shown[at++];
      assert.ok(done && title.endsWith(`; finished, rank ${i + 1}, score ${short(score)}`), title);
      assert.equal(step, own.length);
    }
    // No two in one place; each edge leads from a step to the next.
    assert.equal(new Set(shown.map(({ left, top }) => `${left} ${top}`)).size, shown.length);
    assert.equal(await page.locator(".tree path").count(), shown.filter(({ step }) => step > 1).length);
    // The best way is marked, is the text, and is one node a step.
    assert.deepEqual(shown.filter(({ best }) => best).map(({ step }) => step).sort((a, b) => a - b),
      sequences[0].tokens.map((_, i) => i + 1));
    assert.deepEqual(await line(page), sequences[0].tokens.map(String));
    assert.deepEqual(shown.filter(({ pressed }) => pressed).length, 1);
    assert.ok(await page.getByLabel("temperature").isDisabled());
  });

const alignment = async (model, prompt, targets, names) => {
  const { attention } = await post(model, "score", { tokens: prompt, targets,
    return_attention: { of: names, as: "average" } });
  return names.map((name) => attention[name].slice(-targets.length));
};
const readout = (page) => page.locator("figure:visible").locator("xpath=..").locator("p").textContent();
const cells = async (page, matrix) => {
  await page.locator("#generation [role=application]").focus();
  await page.keyboard.press("Control+Home");
  for (const [i, row] of matrix.entries()) {
    for (const [j, weight] of row.entries()) {
      const said = await readout(page), value = /: (<?[\d.e-]+) \(/.exec(said);
      if (value && value[1] === "<0.001") assert.ok(weight > 0 && weight < 0.0005, `${i} ${j} ${said}, not ${weight}`);
      else if (value) assert.ok(Math.abs(Number(value[1]) - weight) < 0.0005 + 1e-5 * weight, `${i} ${j} ${said}, not ${weight}`);
      else assert.ok(weight === 0 && /cannot attend to/.test(said), said);
      if (j + 1 < row.length) await page.keyboard.press("ArrowRight");
    }
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Home");
  }
};

test("a node opens where its way looked at the source, behind all layers and behind one", async () => {
  const page = await opened("translate", SOURCE);
  await search(page, 4, 12);
  const { sequences } = await post("translate", "generate", asked(SOURCE, 4, 12)), [, second] = sequences;
  await page.locator(".tree .done").nth(1).click();
  await page.locator("#generation figure").waitFor();
  await settle(page);
  assert.deepEqual(await line(page), second.tokens.map(String));
  const names = [0, 1].map((i) => `decoder.${i}.cross`);
  const parts = await alignment("translate", SOURCE, second.tokens, names);
  await cells(page, parts[0].map((row, i) => row.map((_, j) =>
    parts.reduce((sum, one) => sum + one[i][j], 0) / parts.length)));
  await page.getByLabel("Alignment:").selectOption(names[0]);
  await cells(page, parts[0]);
  // A node in the midst: its way alone.
  const { title } = (await nodes(page))[5];
  await page.locator(".tree button").nth(5).click();
  await page.waitForFunction((n) => document.querySelectorAll(".column").length === n,
    Number(/^Step (\d+)/.exec(title)[1]));
  await settle(page);
  assert.equal((await nodes(page)).filter(({ pressed }) => pressed).length, 1);
  assert.ok((await nodes(page))[5].pressed);
});

test("of a decoder alone: what stood before each token", async () => {
  const page = await opened("ids", IDS);
  await page.getByLabel("max tokens").fill("3");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText(/^3 tokens: /).waitFor();
  await page.getByRole("button", { name: "Alignment" }).click();
  await page.locator("#generation figure").waitFor();
  const targets = (await line(page)).map(Number), names = [0, 1, 2].map((i) => `decoder.${i}.self`);
  await page.getByLabel("Alignment:").selectOption(names[1]);
  await cells(page, (await alignment("ids", IDS, targets, names))[1]);
});

test("a search goes on behind what was chosen; its failures are told", async () => {
  const page = await opened("ids", IDS, { expect: [400, 504] });
  await page.getByLabel("max tokens").fill("4");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText(/^4 tokens: /).waitFor();
  await page.getByLabel("beams").fill("2");
  const other = await page.locator(".column").nth(1).locator(".way").first().textContent();
  const before = (await line(page)).map(Number);
  await page.locator(".column").nth(1).locator(".way").first().click();
  await page.getByText(/the best of 2 hypotheses/).waitFor();
  const begun = [before[0], Number(other.split(" ")[0])];
  const { sequences } = await post("ids", "generate", asked([...IDS, ...begun], 2, 2));
  assert.deepEqual(await line(page), [...begun, ...sequences[0].tokens].map(String));
  await page.route(/\/score$/, (route) => route.fulfill({ status: 504,
    contentType: "application/problem+json", body: '{"title":"Too slow","detail":"x"}' }), { times: 1 });
  await page.locator(".tree button").first().click();
  await page.locator("#generation [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#generation figure").waitFor();
  await page.getByLabel("beams").fill("65");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator("#generation [role=alert]").waitFor();
  assert.match(await page.locator("#generation [role=alert]").textContent(), /beams/);
  assert.equal(await page.locator(".tree").count(), 0);
});

test("words stand in the nodes, and in the picture", async () => {
  const page = await opened("writes", [5, 14, 15]);
  await search(page, 3, 6);
  await page.waitForFunction(() => !document.querySelector(".tree").textContent.includes("…"));
  const { sequences } = await post("writes", "generate", asked([5, 14, 15], 3, 6));
  const known = sequences[0].tokens.filter((token) => token < 21);
  const { text } = await post("writes", "detokenize", { tokens: known.map((token) => [token]) });
  assert.deepEqual((await page.locator(".tree .best span").allTextContents()).filter((word) => word !== "21"), text);
});

for (const [name, viewport, dark] of [["light", [1440, 1000], false], ["dark, narrow", [360, 740], true]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened("translate", SOURCE, { viewport, dark });
    await search(page, 4, 12);
    await page.locator(".tree button[tabindex='0']").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.locator("#generation figure").waitFor();
    await settle(page);
    assert.ok(await page.evaluate(() => document.activeElement.closest(".tree")), "the focus stays");
    await shot(page, `beams-${name.slice(0, 4)}`);
    await audit(page, "beams");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.equal(await state(page, "problem"), null);
  });
