// test_place: the places: which one the page opens with, what each has, and what it offers where it has nothing.
import assert from "node:assert/strict";
import http from "node:http";
import { after } from "node:test";
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
  await page.waitForFunction(() => State.answer && !document.getElementById("learn-title").innerText.startsWith("Type"));
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

// --- on a phone, enlarged, and wide ---

const top = (page, what) => page.locator(what).evaluate((one) => one.getBoundingClientRect().top);
test("on a phone a link, an example and a model show the picture; no keys are named", async () => {
  const link = "/#explore/look?model=ids&example=ids&head=1";
  const page = await open({ server, path: link, viewport: [390, 844], touch: true });
  const sees = async (what) => {
    await page.waitForFunction(() => scrollY > 0 && !State.asking);
    await settle(page);
    assert.ok(await top(page, what) < 700, what);
    await page.evaluate(() => scrollTo(0, 0));
  };
  await sees("#grid");
  assert.equal(await page.locator("#send-hint").textContent(), "");
  await page.locator("#example").selectOption("ids");
  await sees("#grid");
  await page.locator("#model").selectOption("layer");
  await sees("#multiples");
  assert.ok(!await page.locator("#source").isVisible(), "JSON is folded away");
});

test("the places are one line on a phone", async () => {
  for (const width of [390, 320]) {
    const page = await open({ server, path: "/#explore?model=layer", viewport: [width, 844] });
    const tops = await page.locator("#places a").evaluateAll((all) => all.map((one) => one.offsetTop));
    assert.deepEqual([tops.length, new Set(tops).size], [5, 1], `${width} px`);
  }
});

test("the table of queries is not cut on a wide screen, however long the words are", async () => {
  const page = await open({ server, path: "/#explore?model=layer", viewport: [1920, 1000] });
  const word = "Donaudampfschifffahrtsgesellschaft";
  await page.evaluate((one) => State.set({ labels: { rows: Array(9).fill(Array(20).fill(one)), cols: Array(9).fill(Array(20).fill(one)) } }), word);
  await settle(page);
  assert.deepEqual(await page.locator("#rows").evaluate((one) => [one.textContent.includes("Donau"), one.scrollWidth - one.clientWidth]), [true, 0]);
});

test("enlarged to 200 % the picture is one scroll away", async () => {
  const page = await open({ server, path: "/#explore?model=layer", viewport: [640, 400] });
  await page.evaluate(() => scrollTo(0, 0));
  assert.ok(await top(page, "#multiples") < 800);
});

// --- in a frame ---

// A page of another origin, with the page of `framed` in a frame.
let framed = "";
const course = http.createServer((_, response) => response.setHeader("Content-Type", "text/html")
  .end(`<!doctype html><link rel="icon" href="data:,"><iframe width="900" height="600" src="${framed}"></iframe>`));
await new Promise((done) => { course.listen(0, "127.0.0.1", done); });
after(() => course.close());
const origin = `http://127.0.0.1:${course.address().port}`;
const visit = async (attend, where, ...more) => {
  const page = await open({ server: attend, expect: [new RegExp(`^${origin}`), ...more] });
  framed = attend.origin + where;
  await page.goto(origin);
  return page;
};

test("a page of a listed origin shows a view alone in a frame, with a link to the full page", async () => {
  const listed = await serve(["--cors-origins", `https://a.example,${origin}`]);
  const page = await visit(listed, "/?embed=1#explore/lines?model=sort&layer=encoder.1.self&head=2");
  const inside = page.frameLocator("iframe");
  await inside.locator("#lines canvas").first().waitFor();
  for (const part of ["header", "#ask-side", "[role=tablist]"]) assert.ok(!await inside.locator(part).isVisible(), part);
  const frame = page.frames()[1];
  await frame.waitForFunction(() => location.hash.includes("head=2") && State.view.head === 2);
  const entries = await frame.evaluate(() => history.length);
  await frame.evaluate(() => Place.go("explore", "look"));
  await frame.waitForFunction(() => location.hash.startsWith("#explore/look"));
  assert.equal(await frame.evaluate(() => history.length), entries, "Back belongs to the page around it");
  const full = new URL(await inside.getByRole("link", { name: "attend" }).evaluate((one) => one.href));
  assert.deepEqual([full.search, full.hash], ["", await frame.evaluate(() => location.hash)]);
});

test("no other page shows it in a frame", async () => {
  const page = await visit(layers, "/?embed=1", /frame-ancestors/);
  const frame = page.frames()[1];
  await frame.waitForLoadState();
  assert.equal(await frame.evaluate(() => typeof State), "undefined");
});
