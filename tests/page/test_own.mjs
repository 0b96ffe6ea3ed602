// test_own: the user's own requests stay: undone as one step, chosen again, over a reload; and models
// that the server replaces are asked as they are.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { asFloat32, choose, open, send, source, toy, type, unfold, weights } from "./asking.mjs";
import { drop, NO_FIREFOX, serve, settle, state, test } from "./browser.mjs";

const server = await serve();
const example = (page) => page.locator("#example").inputValue();
const undo = async (page) => {
  await page.locator("#source").focus();
  await page.keyboard.press("ControlOrMeta+z");
  await settle(page);
};

for (const firefox of NO_FIREFOX ? [false] : [false, true])
  test(`what is typed last is there after a reload, however soon: ${firefox ? "Firefox" : "Chromium"}`, async () => {
    const page = await open({ server, firefox, path: "/#explore?model=sort&tokens=3+1+2" });
    for (const [field, text] of [["#line", "5 4"], ["#source", '{"tokens": [6, 7, 8]}']]) {
      await Promise.all([page.waitForEvent("load"), page.evaluate(([where, value]) => {
        const area = document.querySelector(where);
        area.value = value;
        area.dispatchEvent(new Event("input"));
        setTimeout(() => location.reload()); // before the page writes the address
      }, [field, text])]);
      await page.waitForFunction(() => State.answer);
      await settle(page);
      assert.deepEqual(JSON.parse((await state(page, "body")).text).tokens, JSON.parse(text[0] === "{" ? text : '{"tokens": [5, 4]}').tokens);
      assert.equal(await page.evaluate(() => location.hash), await page.evaluate(() => Place.link()));
    }
  });

test("an example over a request of one's own is undone as one step", async () => {
  const page = await open({ server });
  await page.evaluate(() => navigator.clipboard.writeText('{"queries": []}'));
  await page.locator("#source").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("ControlOrMeta+v");
  await settle(page);
  await choose(page, "example", "causal");
  const causal = await source(page);
  assert.equal(await example(page), "causal");
  await undo(page);
  assert.equal(await source(page), '{"queries": []}', "nothing is glued together");
  assert.equal(await example(page), "own0");
  await page.keyboard.press("ControlOrMeta+Shift+z");
  await settle(page);
  assert.equal(await source(page), causal);
});

test("writing an example leaves the focus where it was", async () => {
  const page = await open({ server });
  await page.locator("#example").focus();
  await choose(page, "example", "ragged");
  assert.equal(await page.evaluate(() => document.activeElement.id), "example");
});

test("what was one's own can be chosen again, and answers", async () => {
  const page = await open({ server });
  const own = () => page.locator("#example option").allTextContents()
    .then((all) => all.filter((text) => text.startsWith("your request")));
  assert.deepEqual(await own(), []);
  await type(page, JSON.stringify(toy).slice(0, -1));
  await type(page, JSON.stringify(toy));
  assert.deepEqual(await own(), ["your request"], "an edit is the same request");
  await choose(page, "example", "hard");
  await unfold(page, "example-part details");
  await page.getByRole("button", { name: "Fill in and run" }).click();
  await settle(page);
  assert.deepEqual([await example(page), await own()], ["", ["your request"]]);
  await drop(page, "body", "mine.json", '{"queries": [[[1, 1, 1, 1]]], "return_attention": true}');
  assert.deepEqual([await example(page), await own()], ["own0", ["your request", "your request, 1 earlier"]]);
  await choose(page, "example", "own1");
  assert.equal(await source(page), JSON.stringify(toy));
  const { json } = await server.post("/v1/attention", toy);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
});

test("a reload keeps the request, the model, the labels and what can be chosen", async () => {
  const page = await open({ server, expect: [400] }); // the toy is too narrow for the model
  const request = JSON.stringify({ ...toy, valid_lens: [1] });
  await choose(page, "model", "base");
  await type(page, request);
  await unfold(page, "labels-part");
  await page.locator("#labels-rows").fill("one two");
  await settle(page);
  await page.reload();
  await page.waitForFunction(() => State.answer || State.problem);
  await settle(page);
  assert.equal(await source(page), request);
  assert.deepEqual([await example(page), await page.locator("#model").inputValue()], ["own0", "base"]);
  assert.equal(await page.locator("#labels-rows").inputValue(), "one two");
  assert.deepEqual((await state(page, "labels")).rows, [["one", "two"]]);
  await choose(page, "example", "causal");
  await page.reload();
  await settle(page);
  assert.equal(await example(page), "causal", "an example is no request of one's own, and is in the address");
  await choose(page, "example", "own0");
  assert.equal(await source(page), request);
});

test("what a browser keeps of somebody else's, or does not keep, does not matter", async () => {
  const page = await open({ server });
  for (const text of ["[", "{}", '{"own": 1}', '{"own": [1, {}], "current": 7, "labels": {"rows": [1]}}']) {
    await page.evaluate((kept) => sessionStorage.setItem("attend", kept), text);
    await page.evaluate(() => { Storage.prototype.setItem = () => { throw new Error("full"); }; });
    await page.reload();
    await page.waitForFunction(() => State.answer);
    await settle(page);
    assert.equal(await example(page), "lookup", text);
  }
});

test("a model that the server has replaced is asked as it is now", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-")), file = path.join(folder, "attend.json");
  const write = (size) => fs.writeFileSync(file,
    JSON.stringify({ models: { one: { random: { seed: 1 }, query_size: size, heads: 2 } } }));
  write(4);
  const other = await serve(["--config", file]);
  const page = await open({ server: other, expect: [400] });
  write(8);
  const before = (await other.get("/v1/models")).text;
  process.kill(other.pid, "SIGHUP");
  while ((await other.get("/v1/models")).text === before) await new Promise((done) => setTimeout(done, 20));
  await choose(page, "example", "causal");
  await page.waitForFunction(() => State.problem === null && State.asked.body === State.body
    && Models.current().query_size === 8);
  await settle(page);
  assert.equal(await example(page), "causal");
  assert.equal(JSON.parse(await source(page)).queries[0][0].length, 8);
  fs.rmSync(folder, { recursive: true });
});

test("an error stands above the answer, whose pictures are dimmed until the next", async () => {
  const page = await open({ server, viewport: [1280, 720], expect: [400] });
  await choose(page, "example", "invalid");
  const card = await page.locator("#problem .card").boundingBox();
  assert.ok(card.y >= 0 && card.y + card.height < 720, "it is seen without scrolling");
  const dim = () => page.locator("#large canvas").first().evaluate((one) => getComputedStyle(one).opacity);
  assert.ok(Number(await dim()) < 1);
  await choose(page, "example", "pronoun");
  assert.equal(await dim(), "1");
});

test("on a phone an example's answer is scrolled to", async () => {
  const page = await open({ server, viewport: [390, 800], expect: [400] });
  for (const name of ["causal", "invalid"]) {
    await page.evaluate(() => scrollTo(0, 0));
    await choose(page, "example", name);
    await page.waitForFunction(() => Math.abs(Dom.id("answer-side").getBoundingClientRect().top) < 2);
  }
});

test("a tile that is not drawn yet hides no keys", async () => {
  const page = await open({ server });
  await page.evaluate(() => {
    window.before = Heatmap.small;
    Heatmap.small = function* wait(...all) {
      while (!window.go) yield;
      yield* window.before(...all);
    };
  });
  await choose(page, "example", "causal");
  const hatched = () => page.locator("#multiples canvas.hatched").count();
  assert.equal(await hatched(), 0);
  await page.evaluate(() => { window.go = true; });
  await page.waitForFunction(() => document.querySelectorAll("#multiples canvas").length
    === document.querySelectorAll("#multiples canvas.hatched").length);
  assert.ok(await hatched() > 1);
});
