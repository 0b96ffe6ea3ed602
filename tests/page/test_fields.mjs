// test_fields: every field of a request as a control; labels.
import assert from "node:assert/strict";
import { open, send, source, toy, type, unfold } from "./asking.mjs";
import { ask, serve, settle, state, test } from "./browser.mjs";

const server = await serve();

// Of each field: a value, what its control says, another value, what is chosen or typed for it.
const FIELDS = {
  valid_lens: [[1], "[1]", [2], "[2]"],
  mask: [[[1, 0], [0, 1]], "[[1,0],[0,1]]", [[1, 1], [1, 1]], "[[1, 1], [1, 1]]"],
  bias: [[[0.5, 0], [0, 1]], "[[0.5,0],[0,1]]", [[0, 0], [0, 2]], "[[0,0],[0,2]]"],
  causal: [true, "true", false, "false"], causal_offset: [1, "1", "end", '"end"'],
  window: [[1, -1], "[1,-1]", [0, 0], "[0, 0]"], head_mask: [[1, 0], "[1,0]", [0.5, 1], "[0.5, 1]"],
  segments: [[[1, 1]], "[[1,1]]", [[2, 0]], "[[2,0]]"],
  select: ["hard", '"hard"', "soft", '"soft"'],
  seed: [3, "3", 4, "4"], empty_rows: ["zero", '"zero"', "uniform", '"uniform"'],
  return_attention: [true, "true", "average", '"average"'],
  return_pointers: [true, "true", false, "false"],
  encoding_format: ["base64", '"base64"', "float", '"float"'],
  trace: [{ item: 0, head: 1, query: 1 }, '{"item":0,"head":1,"query":1}',
    { item: 0, head: 0, query: 0 }, '{"item": 0, "head": 0, "query": 0}'],
};

test("every field is a control, and both ways", async () => {
  const page = await open({ server });
  await unfold(page, "fields-part");
  const named = await page.locator("[data-field]")
    .evaluateAll((all) => all.map((one) => one.dataset.field));
  assert.deepEqual(named, Object.keys(FIELDS));
  const bare = { queries: toy.queries };
  for (const [name, [value, shown, next, typed]] of Object.entries(FIELDS)) {
    const control = page.locator(`#field-${name}`);
    await type(page, JSON.stringify(bare));
    assert.equal(await control.inputValue(), "", name);
    await type(page, JSON.stringify({ ...bare, [name]: value }));
    assert.equal(await control.inputValue(), shown, name);
    const isList = await control.evaluate((node) => node.tagName === "SELECT");
    const set = async (text) => {
      if (isList) await control.selectOption(text);
      else {
        await control.fill(text);
        await control.press("Enter");
      }
      await settle(page);
    };
    await set(typed);
    assert.deepEqual(JSON.parse(await source(page)), { ...bare, [name]: next });
    await send(page);
    assert.equal(await state(page, "problem"), null, name);
    await set("");
    assert.deepEqual(JSON.parse(await source(page)), bare, name);
  }
});

test("fields of what is no request, and of odd values", async () => {
  const page = await open({ server });
  await unfold(page, "fields-part");
  for (const text of ["", "[1]", "null", "{", "7", "[".repeat(20000)]) {
    await type(page, text);
    assert.equal(await page.locator("[data-field]:enabled").count(), 0, text.slice(0, 9));
    assert.match(await page.locator("#fields-note").textContent(), /not a JSON object/);
    assert.notEqual(await page.locator("#source-hint").textContent(), "");
  }
  const deep = `${"[".repeat(20000)}${"]".repeat(20000)}`;
  const odd = ["null", "0", "-1e400", '"x"', "[]", "{}", "[[],[1]]", '[{"a":1}]',
    '{"data":1,"shape":2}', '{"bytes":1,"dtype":"F32","shape":[1]}',
    '{"base64":"?","shape":[9],"dtype":"constructor"}',
    `[[${"0,".repeat(70000)}0],${"[],".repeat(70000)}[]]`, deep];
  for (const value of odd) {
    const names = ["queries", "mask", ...(value.length < 99 ? Object.keys(FIELDS) : [])];
    const members = [...new Set(names), "__proto__"].map((name) => `"${name}":${value}`);
    await type(page, `{${members}}`);
    assert.equal(await page.locator("[data-field]:enabled").count(), Object.keys(FIELDS).length);
  }
  const mask = page.locator("#field-mask");
  assert.equal(await mask.inputValue(), "… too long to show");
  await mask.fill("");
  await mask.press("Enter");
  assert.match(await page.locator("#field-mask-error").textContent(), /cannot be changed/);
  await type(page, `{"queries":[],"mask":[${"0,".repeat(9000)}0]}`);
  assert.equal(await mask.inputValue(), "… too long to show");
  await mask.fill("");
  await mask.press("Enter");
  await settle(page);
  assert.deepEqual(JSON.parse(await source(page)), { queries: [] });
  await mask.fill("[1, 0");
  await mask.press("Enter");
  assert.match(await page.locator("#field-mask-error").textContent(), /^Invalid JSON: \S/);
  assert.equal(await mask.getAttribute("aria-invalid"), "true");
  assert.equal(await mask.inputValue(), "[1, 0");
  await type(page, '{"select": "<img src=x onerror=alert(1)>"}');
  assert.equal(await page.locator("#field-select").inputValue(), '"<img src=x onerror=alert(1)>"');
});

test("a model's fields are those of the OpenAPI document, which can be read again", async () => {
  const own = await serve([], { config: null }), page = await open({ server: own, expect: [500] });
  await page.evaluate(() => State.set({ model: "words", body: { text: '{"text": "the cat"}' } }));
  await page.route("**/openapi.json", (route) => route.fulfill({ status: 500, contentType: "text/plain", body: "no" }), { times: 1 });
  await page.evaluate(() => Place.go("api"));
  await unfold(page, "fields-part");
  await page.locator("#fields").getByRole("button", { name: "Try again" }).click();
  await settle(page);
  const { components: { schemas } } = (await own.get("/openapi.json")).json;
  const inputs = ["text", "tokens", "embeddings", "targets"];
  assert.deepEqual(await page.locator("[data-field]").evaluateAll((all) => all.map((one) => one.dataset.field)),
    Object.keys(schemas.EncodeRequest.properties).filter((name) => !inputs.includes(name)));
  // A decoder with targets is scored.
  for (const changes of [{ model: "story" }, { body: { text: '{"tokens": [1], "targets": [2]}' } }]) {
    await page.evaluate((one) => State.set(one), changes);
    await settle(page);
  }
  assert.ok(await page.locator("#field-return_lens").isVisible());
  assert.equal(await page.locator("#field-special_tokens option").first().textContent(), "not set: true");
  assert.match(await page.locator("#field-return_lens-meaning").textContent(), /^Logit lens/);
});

test("labels stay in the browser", async () => {
  const page = await open({ server });
  await unfold(page, "labels-part");
  await page.getByLabel("Queries (rows)").fill("the  cat\n<b>sat</b> down ");
  await page.getByLabel("Keys (columns)").fill("a b c");
  await settle(page);
  assert.deepEqual(await state(page, "labels"),
    { rows: [["the", "cat"], ["<b>sat</b>", "down"]], cols: [["a", "b", "c"]] });
  const named = () => page.evaluate(() => [Labels.row(0, 1), Labels.row(1, 0), Labels.row(2, 0),
    Labels.row(0, 2), Labels.col(0, 2), Labels.col(1, 0)]);
  await ask(page, toy, undefined, true);
  assert.deepEqual(await named(), ["cat", "<b>sat</b>", "0", "2", "c", "<b>sat</b>"]);
  const sent = [];
  page.on("request", (request) => sent.push(request.postData() || ""));
  await ask(page, { ...toy, keys: toy.queries }, undefined, true);
  assert.deepEqual(await named(), ["cat", "<b>sat</b>", "0", "2", "c", "0"]);
  assert.ok(sent.length > 0 && !sent.some((data) => data.includes("cat")));
});
