// test_place: the places: which one the page opens with, what each has, and what it offers where it has nothing.
import assert from "node:assert/strict";
import { audit, open, serve, settle, state, test } from "./browser.mjs";
import { sideways } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const tokenizer = wordsFolder(), end = 0;
const server = await serve([], { config: { models: { ids: whole("encoder"), words: whole("encoder", { tokenizer }),
  writes: whole("decoder", { tokenizer, end }), layer: { random: { seed: 1 }, query_size: 4, heads: 2 } } } });
const layers = await serve([], { config: { models: { layer: { random: { seed: 1 }, query_size: 4, heads: 2 } } } });
const place = (page) => state(page, "place");
const go = async (page, name) => {
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name }).click();
  await settle(page);
};

test("the page opens with Learn if a model takes text, else with Explore", async () => {
  const page = await open({ server, path: "/" });
  assert.deepEqual([await place(page), await state(page, "model")], ["learn", "words"]);
  assert.deepEqual(await page.locator("#model option").allTextContents(), ["words", "writes"]);
  for (const side of ["#ask-side", "#answer-side", "[role=tablist]"])
    assert.ok(!await page.locator(side).isVisible(), side);
  await page.waitForFunction(() => State.get("answer") && !document.getElementById("learn-title").innerText.startsWith("Type"));
  assert.deepEqual(Object.keys(JSON.parse((await state(page, "asked")).body.text)), ["text"]);
  await go(page, "Explore");
  assert.deepEqual([await place(page), (await state(page, "asked")).model], ["explore", "words"]);
  assert.equal(await page.locator("#model option").count(), 4);
  const other = await open({ server: layers, path: "/" });
  assert.equal(await place(other), "explore");
  await go(other, "Learn");
  assert.equal(await other.locator("#elsewhere").textContent(),
    "layer is a single attention layer and takes no text. No model of this server takes text.");
});

test("a place that has nothing for the model offers the models that it has something for", async () => {
  const page = await open({ server, path: "/#generate?model=ids" });
  assert.equal(await page.locator("#elsewhere").textContent(),
    "ids is an encoder and does not generate. Models that do:writes");
  assert.equal(await page.locator("[role=tabpanel]:visible").count(), 0);
  await audit(page, "without a tab");
  await page.getByRole("button", { name: "writes" }).click();
  await settle(page);
  assert.deepEqual([await state(page, "model"), await state(page, "tab")], ["writes", "generation"]);
  assert.ok(!await page.locator("#elsewhere").isVisible());
});

test("a tab alone has no strip, and the parts of the API are in its place", async () => {
  const page = await open({ server, path: "/#explore?model=words" });
  for (const [name, tabs, parts] of [["Explore", 6, []], ["Generate", 0, []], ["Ablate", 0, []],
    ["API", 0, ["drawer", "fields-part", "code-part", "status-box"]]]) {
    await go(page, name);
    assert.equal(await page.getByRole("tab").count(), tabs, name);
    assert.deepEqual(await page.locator("#ask-side > details:visible").evaluateAll((all) => all.map(({ id }) => id)),
      parts, name);
  }
});

for (const [name, viewport] of [["a phone", [320, 700]], ["a wide screen", [1920, 1080]]])
  test(`on ${name} nothing sticks out, and axe has no violation`, async () => {
    const page = await open({ server, path: "/", viewport });
    for (const where of ["Learn", "Explore", "Generate", "Ablate", "API"]) {
      await go(page, where);
      assert.equal(await sideways(page), "", where);
      await audit(page, where);
    }
  });
