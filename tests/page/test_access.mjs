// test_access: the page is usable by everybody: with a screen reader, by keyboard alone, on a phone.
import assert from "node:assert/strict";
import { ask, audit, everywhere, open, serve, settle, state, tab, test } from "./browser.mjs";
import { goOn, measured, sideways } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const TOY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], valid_lens: [1], return_attention: true };
const SPOILT = { queries: [[[1, 0, 0, 1], [0, 1, 1]]], return_attention: true };
const server = await serve();

for (const dark of [false, true])
  for (const viewport of [[1280, 800], [390, 800]])
    test(`nothing serious for axe-core, ${dark ? "dark" : "light"}, ${viewport[0]} px`, async () => {
      const page = await open({ server, viewport, dark, expect: [400] });
      await everywhere(page, (name) => audit(page, name));
      await ask(page, SPOILT);
      assert.equal((await state(page, "problem")).status, 400);
      await audit(page, "with an error");
    });

const tokenizer = wordsFolder(), TEXT = { text: "the cat sat" };
const wholes = await serve([], { config: { models: { words: { transformer: { builtin: "words" } },
  writes: whole("decoder", { tokenizer, end: 0 }), both: whole("seq2seq", { tokenizer }) } } });
const pinned = async (page, now, model) => {
  await tab(page, "Compare");
  await page.getByRole("button", { name: "Pin this response" }).click();
  await ask(page, now, model);
  await page.locator("#compare canvas:visible").first().waitFor();
};
test("what a view has to show after a click is as usable", async () => {
  const page = await open({ server: wholes, path: "/#explore?model=writes" });
  for (const [model, more] of [["words", {}], ["writes", {}], ["both", { targets: [5, 6, 7] }]]) {
    await ask(page, { ...TEXT, ...more }, model);
    await everywhere(page, (name) => audit(page, `${name} of ${model}`));
    await tab(page, "Head importance");
    await measured(page);
    await page.locator("#worth td button").first().click();
    await audit(page, `the heads of ${model}`);
    await pinned(page, { text: "the cat cat", ...more }, model);
    await audit(page, `two responses of ${model}`);
  }
  await ask(page, TEXT, "writes");
  await tab(page, "Generation");
  for (const beams of [1, 3]) {
    await page.getByLabel("beams").fill(String(beams));
    await goOn(page, 4);
    for (const name of ["Logit lens", "Alignment"]) await page.getByRole("button", { name }).click();
    await settle(page);
    await audit(page, `${beams} beams`);
  }
});

// A tip, a value of an option, and what is copied or sent may have a machine's names.
test("views name layers and heads for readers", async () => {
  const page = await open({ server: wholes, path: "/#explore?model=both" });
  const words = async (where) => {
    const text = await page.locator("body").innerText();
    assert.deepEqual(text.match(/\b(en|de)coder\.\d+\S*/g), null, where);
  };
  await ask(page, { ...TEXT, targets: [5, 6, 7] }, "both");
  for (const name of ["Attention", "Head view", "Rollout", "Computation", "Model"]) {
    await tab(page, name);
    await words(name);
  }
  await tab(page, "Head importance");
  await measured(page);
  await page.getByRole("button", { name: "Ablation curve" }).click();
  await page.locator(".along svg").waitFor();
  await page.getByText(/^Cross-attention layer 0 · head \d: /).first().waitFor();
  await words("Head importance");
  await pinned(page, { text: "the cat cat", targets: [5, 6, 7] }, "both");
  await page.getByRole("button", { name: /^Cross-attention layer \d · head \d: / }).first().waitFor();
  await words("Compare");
  await tab(page, "Generation");
  await goOn(page, 3);
  await page.getByRole("button", { name: "Alignment" }).click();
  await page.locator("#generation figure").waitFor();
  await page.getByLabel("Alignment:").selectOption("Cross-attention layer 1");
  await words("Generation");
});

test("nothing scrolls sideways at 360 px", async () => {
  const page = await open({ server, viewport: [360, 740], expect: [400] });
  const words = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen";
  const rows = (count) => Array.from({ length: count }, (_, i) =>
    Array.from({ length: 512 }, (_, j) => Math.sin(i * 31 + j * 7)));
  for (const [body, model] of [[TOY, "demo"], [{ queries: [rows(40)], return_attention: true }, "base"],
    [{ queries: [[], []], return_attention: true }, "demo"], [SPOILT, "demo"],
    [{ queries: [], [words.repeat(3)]: words.repeat(9) }, "demo"]]) {
    await ask(page, body, model);
    await page.evaluate((word) => State.set({ labels: { rows: [[word, "b"]], cols: [[word, word]] } }), words);
    await everywhere(page, async (name) => assert.equal(await sideways(page), "", `${name} of ${Object.keys(body)}`));
  }
});

// Where the focus is, and whether that can be seen.
const focus = (page) => page.evaluate(() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
  const { width, height } = node.getBoundingClientRect();
  if (!node.dataset.stop) node.dataset.stop = String(document.querySelectorAll("[data-stop]").length + 1);
  return { id: node.id, stop: node.dataset.stop, html: node.outerHTML.slice(0, 160), role: node.getAttribute("role"),
    seen: width > 0 && height > 0 && ((outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none") };
});
const tabTo = async (page, wanted) => {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press("Tab");
    const now = await focus(page);
    if (now && wanted(now)) return now;
  }
  assert.fail(`Tab does not lead to ${wanted}`);
};

test("by keyboard alone: to the request, to Send, to every tab", async () => {
  const page = await open({ server });
  await page.keyboard.press("Tab");
  assert.match((await focus(page)).html, /class="skip"/);
  await tabTo(page, ({ id }) => id === "source");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(JSON.stringify(TOY));
  await tabTo(page, ({ id }) => id === "send");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => State.answer.items.length === 1 && !State.asking);
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text), TOY);
  await tabTo(page, ({ role }) => role === "tab");
  const shown = [];
  for (let i = 0; i < 4; i++) {
    shown.push(await page.evaluate(() => {
      const own = document.activeElement, panels = [...document.querySelectorAll("[role=tabpanel]")];
      return [own.getAttribute("aria-selected"), panels.filter((one) => !one.hidden).map((one) => one.id).join(),
        own.getAttribute("aria-controls")].join(" ");
    }));
    await page.keyboard.press("ArrowRight");
    await settle(page);
  }
  assert.deepEqual(shown, ["true look look", "true lines lines", "true steps steps",
    "true compare compare"]);
});

test("the link at the top leads to the answer", async () => {
  const page = await open({ server });
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal((await focus(page)).id, "answer-side");
});

// What can be used must be reached, in each tab; and where the focus is must be seen.
test("Tab reaches everything that can be used, and the focus is seen", async () => {
  const page = await open({ server });
  await everywhere(page, async (name) => {
    const wanted = await page.evaluate(() => {
      document.activeElement.blur();
      getSelection().removeAllRanges();
      scrollTo(0, 0);
      const all = "a[href], button, input, select, textarea, summary, [tabindex]";
      const stops = [...document.querySelectorAll(all)].filter((node) =>
        node.tabIndex >= 0 && !node.disabled && node.checkVisibility() && node.type !== "radio");
      stops.forEach((node, i) => { node.dataset.stop = `${i}`; });
      return stops.map((node) => node.outerHTML.slice(0, 160));
    });
    await page.locator("h1").click();
    const reached = new Set(), hidden = [];
    for (let i = 0; i < wanted.length + 5; i++) {
      await page.keyboard.press("Tab");
      const now = await focus(page);
      if (now && reached.has(now.stop)) break;
      if (!now) continue;
      reached.add(now.stop);
      if (!now.seen) hidden.push(now.html);
    }
    assert.deepEqual(wanted.filter((_, i) => !reached.has(`${i}`)), [], `not reached in ${name}`);
    assert.deepEqual(hidden, [], `the focus is not seen in ${name}`);
  });
});
