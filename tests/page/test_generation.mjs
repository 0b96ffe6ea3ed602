// test_generation: how texts go on, token by token, as the server says, and what each layer says of
// it; a likely other token is gone on from.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";
import { columns, done, goOn, posting } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder(), end = 0;
const server = await serve([], { config: { models: { writes: whole("decoder", { tokenizer, end }),
  ids: whole("decoder", { end }), both: whole("seq2seq", { end }), words: whole("encoder", { tokenizer }) } } });
const opened = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await tab(page, "Generation");
  await settle(page);
  return page;
};
const post = posting(server);
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6 + 1e-4 * b, `${a}, not ${b}`);

for (const [model, body] of [["ids", { tokens: [[4, 5, 6], [7]] }], ["both", { tokens: [4, 5, 6] }]])
  test(`tokens, their probabilities and the likeliest others are the server's: ${model}`, async () => {
    const page = await opened(model, body);
    await goOn(page, 6);
    const asked = { tokens: [4, 5, 6], max_tokens: 6, return_top: 5 };
    const { sequences: [one] } = await post(model, "generate", asked), shown = await columns(page);
    assert.deepEqual(shown.map(({ word }) => word), one.tokens.map(String));
    shown.forEach(({ share }, i) => near(share, Math.exp(one.log_probabilities[i])));
    for (const [i, { others }] of shown.entries())
      assert.deepEqual(others.map((text) => text.split(" ")[0]),
        one.top[i].map(({ token }) => token).filter((token) => token !== one.tokens[i]).map(String));
    // On from another one, in the third place.
    const other = Number(shown[2].others[1].split(" ")[0]), kept = [...one.tokens.slice(0, 2), other];
    await page.locator(".column").nth(2).locator(".way").nth(1).click();
    await done(page);
    const next = (await post(model, "generate", { ...(model === "both" ? { tokens: [4, 5, 6], targets: kept }
      : { tokens: [4, 5, 6, ...kept] }), max_tokens: 3 })).sequences[0].tokens;
    assert.deepEqual((await columns(page)).map(({ word }) => word), [...kept, ...next].map(String));
    // The lens.
    await page.getByRole("button", { name: "Logit lens" }).click();
    await page.locator("#generation table").waitFor();
    const { lens } = await post(model, "score",
      { tokens: [4, 5, 6], targets: [...kept, ...next], return_lens: 1 });
    const layers = await page.locator("#generation tbody tr").evaluateAll((rows) =>
      rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(layers, Object.keys(lens).reverse().map((name) =>
      [name.endsWith(".0") ? "embeddings" : `layer ${name.split(".")[1] - 1}`, ...lens[name].map(([{ token }]) => String(token))]));
    // All other views look inside.
    await page.getByRole("button", { name: "Inspect as targets" }).click();
    await settle(page);
    assert.deepEqual(JSON.parse((await state(page, "asked")).body.text),
      { tokens: [4, 5, 6], targets: [...kept, ...next] });
    assert.equal((await state(page, "answer")).path, "score");
  });

test("text goes on as text; a token that the tokenizer does not know stands as its number", async () => {
  const page = await opened("writes", { text: "the cat sat" });
  await goOn(page, 8);
  const { tokens } = await post("writes", "tokenize", { text: "the cat sat" });
  const { sequences: [one] } = await post("writes", "generate", { tokens, max_tokens: 8 });
  const { text } = await post("writes", "detokenize", { tokens: one.tokens.filter((t) => t < 21).map((t) => [t]) });
  assert.deepEqual((await columns(page)).map(({ word }) => word).filter((word) => word !== "21"), text);
  const all = (await columns(page)).flatMap(({ others }) => others);
  assert.ok(!all.some((other) => other.startsWith("…")));
});

test("Stop ends it and keeps what there is; errors are told and can be tried again", async () => {
  const page = await opened("ids", { tokens: [4, 5] }, { expect: [400] });
  await page.evaluate(() => {
    window.real = window.fetch;
    window.fetch = (path, options) => (!String(path).endsWith("/generate") ? window.real(path, options)
      : Promise.resolve(new Response(new ReadableStream({ start: (to) => {
        to.enqueue(new TextEncoder().encode(
          'data: {"item":0,"sequence":0,"token":7,"log_probability":-0.5,"top":[]}\n\n'));
        options.signal.addEventListener("abort", () => to.error(new Error("aborted")));
      } }))));
  });
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator(".column").first().waitFor();
  await page.locator("#generation").getByRole("button", { name: "Stop" }).click();
  await page.getByText("1 token: stopped.").waitFor();
  await page.evaluate(() => { window.fetch = window.real; });
  await page.evaluate(() => State.set({ body: { text: '{"tokens": [99]}' } }));
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator("#generation [role=alert]").waitFor();
  assert.match(await page.locator("#generation [role=alert]").textContent(), /vocabulary|99/);
  await page.evaluate(() => State.set({ body: { text: '{"tokens": [5]}' } }));
  await goOn(page, 2);
  assert.equal((await columns(page)).length, 2);
});

test("it goes on behind the request's targets, with its mask, and shows them to the others", async () => {
  const none = { "decoder.0.cross": [0, 0, 0, 0] };
  for (const [model, head_mask] of [["both", none], ["ids", { "decoder.1.self": [0, 1, 1, 1] }]]) {
    const body = { tokens: [4, 5, 6], targets: [9, 8], head_mask }, page = await opened(model, body);
    await goOn(page, 5);
    const asked = model === "both" ? body : { tokens: [4, 5, 6, 9, 8], head_mask };
    const { sequences: [one] } = await post(model, "generate", { ...asked, max_tokens: 5 });
    assert.deepEqual((await columns(page)).map(({ word }) => word), one.tokens.map(String));
    await page.getByRole("button", { name: "Logit lens" }).click();
    await page.locator("#generation table").waitFor();
    const { lens } = await post(model, "score", { ...body, targets: [9, 8, ...one.tokens], return_lens: 1 });
    assert.deepEqual(await page.locator("#generation tbody tr").last().locator("td").allTextContents(),
      lens["decoder.0"].slice(2).map(([{ token }]) => String(token)));
    await page.getByRole("button", { name: "Inspect as targets" }).click();
    await settle(page);
    assert.deepEqual(JSON.parse((await state(page, "asked")).body.text),
      { tokens: [4, 5, 6], targets: [9, 8, ...one.tokens], head_mask });
    assert.ok(await page.getByText("This belongs to an earlier request").isHidden());
    await ask(page, { tokens: [7] }, model);
    await page.getByText("This belongs to an earlier request").waitFor();
  }
});

test("a text stays a text inside; words stand at its own tokens, too", async () => {
  const page = await opened("writes", { text: "the cat sat" });
  await goOn(page, 3);
  let go; // the words come behind the picture
  const held = new Promise((resolve) => { go = resolve; });
  await page.route(/\/detokenize$/, (route) => held.then(() => route.continue()));
  await page.getByRole("button", { name: "Alignment" }).click();
  await page.locator("#generation figure").waitFor();
  go();
  await page.locator("#generation [role=application]").focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.getByText(/gives .* to key 1, “the”/).waitFor();
  await page.getByRole("button", { name: "Inspect as targets" }).click();
  await settle(page);
  assert.equal(await page.locator("#line").inputValue(), "the cat sat");
});

test("two clicks are one text; what ends early, and nothing to go on from, are told", async () => {
  const page = await opened("writes", { text: "the cat sat" });
  await page.getByLabel("max tokens").fill("5");
  await page.getByRole("button", { name: "Generate", exact: true })
    .evaluate((one) => [one.click(), one.click()] && null);
  await done(page);
  assert.equal((await columns(page)).length, 5);
  await page.route(/\/generate$/, (route) => route.fulfill({ contentType: "text/event-stream",
    body: 'data: {"item":0,"sequence":0,"token":7,"log_probability":-0.5,"top":[]}\n\n' }), { times: 1 });
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator("#generation [role=alert]").waitFor();
  assert.match(await page.locator("#generation [role=alert]").textContent(), /ended early/);
  await page.evaluate(() => State.set({ body: { text: '{"tokens": []}' } }));
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText("The prompt has no tokens.").waitFor();
});

test("it is there for models that generate, and for no others", async () => {
  const page = await open({ server });
  await ask(page, { text: "the cat" }, "words");
  assert.equal(await page.getByRole("tab", { name: "Generation" }).count(), 0);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [360, 740], true]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened("writes", { text: "the cat sat" }, { viewport, dark });
    await page.getByRole("button", { name: "Generate", exact: true }).focus();
    await page.keyboard.press("Enter");
    await done(page);
    await page.locator(".column").nth(1).locator(".way").first().focus();
    await page.keyboard.press("Enter");
    await done(page);
    await page.getByRole("button", { name: "Logit lens" }).press("Enter");
    await page.locator("#generation table").waitFor();
    await audit(page, "generation");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });

test("a decoder continues at once: no more tokens than its context leaves", async () => {
  const mine = await serve([], { config: { models: { story: { transformer: { builtin: "story" } } } } });
  const page = await open({ server: mine, path: "/#generate?model=story" });
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.waitForFunction(() => /\d+ tokens: /.test(document.getElementById("generation").innerText));
  assert.equal(await page.locator("#generation [role=alert]").count(), 0);
  await page.evaluate(async () => {
    State.set({ body: { text: JSON.stringify({ text: "the dog did not ".repeat(5) }) } });
    await Ask.send();
  });
  await settle(page);
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.waitForFunction(() => /\d+ tokens: /.test(document.getElementById("generation").innerText));
  assert.equal(await page.locator("#generation [role=alert]").count(), 0);
});

test("the example of a beam search has words: its beams are set, and the tree is the server's", async () => {
  const story = await serve([], { config: null });
  const page = await open({ server: story, path: "/#generate?model=story&example=beams" });
  assert.equal(await page.getByLabel("beams").inputValue(), "4");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText("the best of 4 hypotheses").waitFor();
  await settle(page);
  const post = async (what, body) => (await story.post(`/v1/models/story/${what}`, body)).json;
  const { sequences } = await post("generate", { text: "the dog did not", beams: 4, returns: 4, max_tokens: 20 });
  const shown = await page.locator(".column b").allTextContents();
  assert.deepEqual(shown.filter((word) => word !== ".").join(" "), sequences[0].text.replace(" .", "").trim());
  const nodes = await page.locator(".tree button").allTextContents();
  assert.ok(nodes.length > 8 && nodes.every((text) => /^[a-z,.]/.test(text.trim())), nodes.join());
});

test("Ctrl+Enter in the text generates, and no other button says that it runs; one token is not tokens", async () => {
  const page = await opened("writes", { text: "it" });
  await page.getByLabel("max tokens").fill("1");
  assert.deepEqual(await page.getByRole("main").locator(".primary:visible").allInnerTexts(), ["Generate"]);
  await page.locator("#line").press("Control+Enter");
  await done(page);
  assert.match(await page.locator("#generation").innerText(), /^1 token: /m);
  assert.equal((await columns(page)).length, 1);
});
