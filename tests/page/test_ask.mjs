// test_ask: the Ask side of the page: models, examples, random input, files, fields, labels, code.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { ask, audit, drop, open, serve, settle, state, test } from "./browser.mjs";

const run = promisify(execFile);
const server = await serve();
const toy = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], return_attention: true };
const source = (page) => page.locator("#source").inputValue();
const type = async (page, text) => {
  await page.locator("#source").fill(text);
  await settle(page);
};
const choose = async (page, what, value) => {
  await page.locator(`#${what}`).selectOption(value);
  await settle(page);
};
const unfold = async (page, part) => {
  await page.locator(`#${part} > summary`).click();
  await settle(page);
};
// A safetensors file of tensors { name: { dtype, shape, bytes } } and metadata.
const safetensors = (tensors, metadata) => {
  const header = metadata ? { __metadata__: metadata } : {};
  let at = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header)), front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([front, text, ...Object.values(tensors).map((t) => t.bytes)]);
};
const floats = (...list) => Buffer.from(Float32Array.from(list).buffer);
// The weights that the page holds, as the JSON answer has them, of batches with heads.
const weights = (page) => page.evaluate(() => State.get("answer").items.map((item) =>
  item.weights.map(({ rows, cols, data }) => Array.from({ length: rows }, (_, i) =>
    Array.from(data.subarray(i * cols, (i + 1) * cols))))));
const asFloat32 = (value) => (Array.isArray(value) ? value.map(asFloat32) : Math.fround(value));

test("it opens with the textbook's toy, sent", async () => {
  const page = await open({ server });
  const text = await source(page);
  assert.deepEqual(JSON.parse(text).valid_lens, [3, 2]);
  const { json } = await server.post("/v1/models/demo/attention", text);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
  assert.equal(await page.locator("#example").inputValue(), "toy");
  assert.equal((await state(page, "answer")).raw, JSON.stringify(json));
  await page.reload();
  await settle(page);
  assert.equal(await source(page), text, "the same numbers each time");
});

test("each example on each model", async () => {
  const page = await open({ server, expect: [400] });
  const names = await page.evaluate(() => Examples.list.map((example) => example.name));
  for (const model of ["demo", "base", "additive"])
    for (const name of names) {
      await choose(page, "model", model);
      await choose(page, "example", name);
      const used = name === "additive" ? "additive" : model;
      assert.equal(await page.locator("#model").inputValue(), used);
      assert.equal(await page.locator("#example").inputValue(), name);
      const reply = await server.post(`/v1/models/${used}/attention`, await source(page));
      assert.equal(reply.status, name === "invalid" ? 400 : 200, `${name} of ${used}`);
      const problem = await state(page, "problem");
      if (name === "invalid") {
        assert.equal(problem.pointer, "/queries/1/2");
        continue;
      }
      assert.equal(problem, null, `${name} of ${used}`);
      assert.equal((await state(page, "asked")).model, used);
      assert.deepEqual(await weights(page), asFloat32(reply.json.attention_weights));
    }
});

test("it says when the answer belongs to an earlier request", async () => {
  const page = await open({ server }), hint = page.locator("#send-hint");
  const text = await source(page), keys = await hint.textContent();
  await page.locator("#source").fill("{}");
  assert.match(await hint.textContent(), /earlier/);
  await page.locator("#source").fill(text);
  await page.locator("#send").click();
  await settle(page);
  assert.equal(await hint.textContent(), keys);
});

test("on a phone, sending brings the answer into sight", async () => {
  const page = await open({ server, viewport: [390, 800] });
  const top = () => page.locator("#answer-side").evaluate((side) => side.getBoundingClientRect().top);
  assert.ok(await top() > 700);
  await page.locator("#send").click();
  await settle(page);
  assert.ok(await top() < 100);
});

test("examples respect what a model forbids, and one that is changed is nobody's", async () => {
  const sizes = { random: { seed: 1 }, query_size: 6, key_size: 4, value_size: 3, heads: 2 };
  const other = await serve([], { config: { models: {
    sigmoid: { ...sizes, weighting: "sigmoid" }, narrow: { ...sizes, hidden: 6 } } } });
  const page = await open({ server: other, expect: [400] });
  const shut = () => page.locator("#example option:disabled").allTextContents();
  const NO_ADDITIVE = "Additive pooling (no model has the score additive)";
  assert.deepEqual(await shut(),
    ["your own", "Two levels (not with sigmoid weights)", NO_ADDITIVE]);
  for (const model of ["sigmoid", "narrow"]) {
    await choose(page, "model", model);
    for (const option of await page.locator("#example option:enabled").all()) {
      const name = await option.getAttribute("value");
      await choose(page, "example", name);
      const problem = await state(page, "problem");
      assert.equal(problem && problem.pointer, name === "invalid" ? "/queries/1/2" : null, name);
    }
  }
  assert.deepEqual(await shut(), ["your own", NO_ADDITIVE]);
  await choose(page, "example", "levels");
  await choose(page, "model", "sigmoid");
  assert.equal(await page.locator("#example").inputValue(), "toy", "what does not fit gives way");
  await type(page, "{}");
  assert.equal(await page.locator("#example").inputValue(), "");
  await choose(page, "model", "narrow");
  assert.equal(await source(page), "{}", "a request of one's own stays");
});

test("the model is described", async () => {
  const page = await open({ server });
  await choose(page, "model", "base");
  assert.equal(await page.locator("#model-summary").textContent(),
    "8 heads · 512 → 512 · scaled_dot · 1.1 M parameters · random");
  await page.locator("#model-summary").click();
  const facts = Object.fromEntries(await page.locator("#model-facts div").evaluateAll((all) =>
    all.map((one) => [one.firstChild.textContent, one.lastChild.textContent])));
  const { json } = await server.get("/v1/models/base");
  assert.deepEqual(facts, { score: "scaled_dot", weighting: "softmax", projection: "linear",
    hidden: "512", query_size: "512", key_size: "512", value_size: "512", output_size: "512",
    heads: "8", kv_heads: "8", bias: "yes", causal: "no",
    parameters: "1050624", sha256: json.sha256.slice(0, 8), source: "random" });
});

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
    await page.locator("#send").click();
    await settle(page);
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
    assert.match(await page.locator("#fields-note").textContent(), /no JSON object/);
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
    assert.equal(await page.locator("[data-field]:enabled").count(), 14);
  }
  const mask = page.locator("#field-mask");
  assert.equal(await mask.inputValue(), "… too long to show");
  await mask.fill("");
  await mask.press("Enter");
  assert.match(await page.locator("#field-mask-error").textContent(), /cannot be rewritten/);
  await type(page, `{"queries":[],"mask":[${"0,".repeat(9000)}0]}`);
  assert.equal(await mask.inputValue(), "… too long to show");
  await mask.fill("");
  await mask.press("Enter");
  await settle(page);
  assert.deepEqual(JSON.parse(await source(page)), { queries: [] });
  await mask.fill("[1, 0");
  await mask.press("Enter");
  assert.equal(await page.locator("#field-mask-error").textContent(), "This is no JSON.");
  assert.equal(await mask.getAttribute("aria-invalid"), "true");
  assert.equal(await mask.inputValue(), "[1, 0");
  await type(page, '{"select": "<img src=x onerror=alert(1)>"}');
  assert.equal(await page.locator("#field-select").inputValue(), '"<img src=x onerror=alert(1)>"');
});

test("a JSON file is dropped anywhere", async () => {
  const page = await open({ server });
  await drop(page, "#answer-side", "mine.json", JSON.stringify(toy));
  assert.equal(await source(page), JSON.stringify(toy));
  assert.equal(await page.locator("#example").inputValue(), "");
  await page.locator("#send").click();
  await settle(page);
  const { json } = await server.post("/v1/attention", toy);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
});

test("a long JSON file is summed up", async () => {
  const page = await open({ server });
  const rows = Array.from({ length: 1100 }, (_, i) => [i % 7 / 10, 1, 0, i % 5]);
  const text = JSON.stringify({ queries: [rows] }) + " ".repeat(2e6);
  await drop(page, "body", "long.json", text);
  assert.equal(await page.locator("#source").isVisible(), false);
  assert.match(await page.locator("#source-whole").textContent(), /^long\.json · JSON · 2\.0 MB/);
  await page.locator("#send").click();
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  await page.getByRole("button", { name: "Remove" }).click();
  assert.equal(await source(page), "");
  await page.waitForFunction(() => document.activeElement.id === "source");
  assert.equal(await page.locator("#send").isDisabled(), true);
});

test("a safetensors file is summed up, changed, sent, and made text", async () => {
  const page = await open({ server });
  const queries = { dtype: "F32", shape: [1, 2, 4], bytes: floats(1, 0, 0, 1, 0, 1, 1, 0.1) };
  await drop(page, "body", "mine.safetensors",
    safetensors({ queries }, { return_attention: "true", select: "hard" }));
  assert.deepEqual(await page.locator("#source-whole td").allTextContents(),
    ["queries", "F32 [1, 2, 4]", "return_attention", "true", "select", '"hard"']);
  await unfold(page, "fields-part");
  assert.equal(await page.locator("#field-select").inputValue(), '"hard"');
  await page.locator("#field-select").selectOption("");
  for (const [name, text] of [["valid_lens", "[1]"], ["mask", "[[1,1],[0,1]]"],
    ["head_mask", "[1, 0.5]"], ["window", "[1, 1]"], ["bias", "[[0, 0.25], [1, 0]]"]]) {
    const field = page.locator(`#field-${name}`);
    await field.fill(text);
    await field.press("Enter");
    await settle(page);
    assert.deepEqual(JSON.parse(await field.inputValue()), JSON.parse(text));
  }
  await page.locator("#send").click();
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  const request = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0.1]]], return_attention: true,
    valid_lens: [1], mask: [[1, 1], [0, 1]], head_mask: [1, 0.5], window: [1, 1],
    bias: [[0, 0.25], [1, 0]] };
  const { json } = await server.post("/v1/attention", request);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
  await page.getByRole("button", { name: "As JSON" }).click();
  await settle(page);
  assert.deepEqual(JSON.parse(await source(page)), request);
});

test("broken files say what is wrong, and change nothing", async () => {
  const page = await open({ server });
  const before = await source(page);
  const header = (text) => {
    const front = Buffer.alloc(8);
    front.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([front, Buffer.from(text)]);
  };
  const bad = [
    ["a.png", Buffer.from("89504e470d0a1a0a00", "hex"), "neither"],
    ["a.txt", "hello", "neither"], ["a.json", "", "neither"], ["a.json", "[1]", "neither"],
    ["a.safetensors", "", "fewer than 8 bytes"], ["a.safetensors", Buffer.alloc(8, 255), "longer"],
    ["a.safetensors", header("{]"), "its header is no JSON object"],
    ["a.safetensors", header("[1,2]"), "its header is no JSON object"],
    ["a.safetensors", header('{"queries":5}'), "queries has no shape"],
    ["a.safetensors", header('{"queries":null}'), "queries has no shape"],
    ["a.safetensors", header('{"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'), "outside"],
    ["a.safetensors", header('{"q":{"dtype":"F32","shape":[1],"data_offsets":[0,0]}}'),
      "not its shape"],
  ];
  for (const [name, bytes, says] of bad) {
    await drop(page, "body", name, bytes);
    const told = await page.locator("#source-note").textContent();
    assert.ok(told.startsWith(`${name} cannot be sent: `) && told.includes(says), told);
    assert.equal(await source(page), before);
  }
  await drop(page, "body", "cut.json", '{"queries":\r\n [[1, 2');
  assert.equal((await state(page, "body")).text, '{"queries":\n [[1, 2');
  assert.equal(await page.locator("#source-note").textContent(), "");
  assert.match(await page.locator("#source-hint").textContent(), /^No JSON yet: /);
  // Numbers that JSON cannot write stay in the file.
  const queries = { dtype: "F32", shape: [1, 1, 4], bytes: floats(1, NaN, 0, 1) };
  await drop(page, "body", "nan", safetensors({ queries }));
  await page.getByRole("button", { name: "As JSON" }).click();
  assert.match(await page.locator("#source-note").textContent(), /JSON cannot write/);
});

test("a file is chosen by the keyboard", async () => {
  const page = await open({ server });
  const chooser = page.waitForEvent("filechooser");
  await page.locator("#source-open").focus();
  await settle(page);
  await page.keyboard.press("Enter");
  await (await chooser).setFiles({ name: "x.json", mimeType: "", buffer: Buffer.from("{ }") });
  await page.waitForFunction(() => Dom.id("source").value === "{ }");
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
  await ask(page, toy);
  assert.deepEqual(await named(), ["cat", "<b>sat</b>", "0", "2", "c", "<b>sat</b>"]);
  const sent = [];
  page.on("request", (request) => sent.push(request.postData() || ""));
  await ask(page, { ...toy, keys: toy.queries });
  assert.deepEqual(await named(), ["cat", "<b>sat</b>", "0", "2", "c", "0"]);
  assert.ok(sent.length > 0 && !sent.some((data) => data.includes("cat")));
});

const LANGUAGES = { curl: ["sh", "-c"], Python: ["python3", "-c"],
  JavaScript: ["node", "--input-type=module", "-e"] };
const code = async (page, language) => {
  await choose(page, "code-language", language);
  return page.locator("#code").textContent();
};
const execute = async (text, language, options) => {
  const [program, ...words] = LANGUAGES[language];
  return JSON.parse((await run(program, [...words, text], options)).stdout);
};

test("the request as code runs, and answers what the page shows", async () => {
  const page = await open({ server, expect: [400] });
  await unfold(page, "code-part");
  const coded = `${JSON.stringify(toy).slice(0, -1)}, "sel\\u0065ct": "soft"}`;
  for (const text of [await source(page), coded]) {
    await type(page, text);
    await page.locator("#send").click();
    await settle(page);
    const { json } = await server.post("/v1/attention", text);
    assert.deepEqual(JSON.parse((await state(page, "answer")).raw), json);
    for (const language of Object.keys(LANGUAGES))
      assert.deepEqual(await execute(await code(page, language), language), json, language);
  }
});

test("code with any text in it", async () => {
  const page = await open({ server });
  await unfold(page, "code-part");
  const text = "@{\"it's\": '''\\'''', `${1 + 1}` $HOME \\\\ \u00e9\u2028\u{1f600} \"\"\" !"
    + "\n$(x) `x` \\";
  await type(page, text);
  const { json } = await server.post("/v1/models/demo/attention", text);
  for (const language of ["curl", "JavaScript"])
    assert.deepEqual(await execute(await code(page, language), language), json, language);
  const lines = (await code(page, "Python")).split("\nheaders = ")[0];
  const { stdout } = await run("python3", ["-c", `${lines}\nprint(body.decode())`]);
  assert.equal(stdout, `${text}\n`);
  const script = (await code(page, "JavaScript")).split("\nconst headers")[0];
  assert.equal((await run("node", ["-e", `${script}; console.log(body)`])).stdout, `${text}\n`);
});

test("code of long requests reads a file that is saved", async () => {
  const page = await open({ server });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-code-"));
  await unfold(page, "code-part");
  const queries = { dtype: "F32", shape: [1, 2, 4], bytes: floats(1, 0, 0, 1, 0, 1, 1, 0) };
  const row = (_, i) => [i / 7, i / 11, i / 13, 1];
  const long = { ...toy, queries: [Array.from({ length: 150 }, row)] };
  for (const [name, bytes, saved] of [["a.json", JSON.stringify(long), "request.json"],
    ["a.safetensors", safetensors({ queries }, { return_attention: "true" }),
      "request.safetensors"]]) {
    await drop(page, "body", name, bytes);
    await page.locator("#send").click();
    await settle(page);
    assert.match(await page.locator("#code-told").textContent(), new RegExp(`reads ${saved}`));
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save request" }).click();
    assert.equal((await download).suggestedFilename(), saved);
    await (await download).saveAs(path.join(folder, saved));
    for (const language of Object.keys(LANGUAGES)) {
      const text = await code(page, language);
      assert.ok(text.includes(saved) && text.length < 700);
      const answer = await execute(text, language, { cwd: folder, maxBuffer: 1e8 });
      assert.deepEqual(await weights(page), asFloat32(answer.attention_weights), language);
    }
  }
  fs.rmSync(folder, { recursive: true });
});

test("code takes the key from the environment", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-key-")), key = "k".repeat(20);
  fs.writeFileSync(path.join(folder, "keys"), `${key}\n`, { mode: 0o600 });
  const closed = await serve(["--api-key-file", path.join(folder, "keys")]);
  const page = await open({ server: closed, expect: [401] });
  await page.locator("#key-text").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => State.get("answer"));
  await unfold(page, "code-part");
  const { raw } = await state(page, "answer");
  for (const language of Object.keys(LANGUAGES)) {
    const text = await code(page, language);
    assert.ok(text.includes("ATTEND_KEY") && !text.includes(key));
    const answer = await execute(text, language, { env: { ...process.env, ATTEND_KEY: key } });
    assert.deepEqual(answer, JSON.parse(raw), language);
  }
  fs.rmSync(folder, { recursive: true });
});

test("code is copied, or selected where there is no clipboard", async () => {
  const page = await open({ server });
  await unfold(page, "code-part");
  await page.locator("#code-copy").click();
  await page.waitForFunction(() => Dom.id("code-told").textContent === "Copied.");
  const shown = await page.locator("#code").textContent();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.locator("#code-copy").click();
  await page.waitForFunction(() => Dom.id("code-told").textContent.startsWith("Selected"));
  assert.equal(await page.evaluate(() => getSelection().toString()), shown);
});

const random = async (page, shape) => {
  for (const [name, value] of Object.entries(shape))
    await page.locator(`#random [name=${name}]`).fill(String(value));
  await page.getByRole("button", { name: "Fill in and send" }).click();
  await settle(page);
};

test("random input, small as text and large as a file", async () => {
  const page = await open({ server });
  await page.locator("#example-part summary").click();
  await random(page, { b: 2, q: 3, k: "", seed: 5 });
  const first = await source(page), fields = JSON.parse(first);
  assert.deepEqual([fields.queries.length, fields.queries[1].length, fields.queries[1][2].length],
    [2, 3, 4]);
  assert.deepEqual(Object.keys(fields), ["queries", "return_attention"]);
  assert.equal(await state(page, "problem"), null);
  await random(page, { seed: 6 });
  assert.notEqual(await source(page), first);
  await random(page, { seed: 5 });
  assert.equal(await source(page), first);
  await page.locator("#random [name=lengths]").check();
  for (const shape of [{ b: 3, q: 2, k: 7 }, { b: 0 }, { b: 2, q: 0 }, { q: 2, k: 0 }, { k: 1 }]) {
    await random(page, shape);
    const { keys, valid_lens: lens } = JSON.parse(await source(page));
    assert.ok(lens.every((n, i) => n <= keys[i].length));
    assert.equal(await state(page, "problem"), null, JSON.stringify(shape));
  }
  await choose(page, "model", "base");
  await random(page, { b: 2, q: 64, k: 96 });
  assert.deepEqual((await page.locator("#source-whole td").allTextContents()).slice(0, 6),
    ["queries", "F32 [2, 64, 512]", "keys", "F32 [2, 96, 512]", "valid_lens", "I32 [2]"]);
  assert.equal(await state(page, "problem"), null);
  assert.deepEqual(await page.evaluate(() => State.get("answer").items.map(({ weights }) =>
    [weights.length, weights[7].rows, weights[7].cols])), [[8, 64, 96], [8, 64, 96]]);
  const before = await page.locator("#source-whole").textContent();
  await random(page, { b: 65536, q: 1000 });
  const said = await page.locator("#random-note").textContent();
  assert.match(said, /^That is 3\d G numbers; .* 64 M\.$/);
  assert.equal(await page.locator("#source-whole").textContent(), before);
});

test("an answer too large to draw is kept, not read", async () => {
  const page = await open({ server });
  await page.evaluate(() => State.set({ model: "base" }));
  await page.locator("#example-part summary").click();
  await random(page, { b: 1, q: 2048, k: "" });
  const [limit, size, ...rest] = await page.evaluate(() => {
    const { tooLarge, items, bytes, buffer, type } = State.get("answer");
    return [Ask.limit, bytes, buffer.byteLength === bytes, tooLarge, items.length, type];
  });
  assert.ok(size > limit && size > 8 * 2048 * 2048 * 4);
  assert.deepEqual(rest, [true, true, 0, "application/x-safetensors"]);
  assert.equal(await state(page, "problem"), null);
  await choose(page, "example", "toy");
  assert.equal(await page.evaluate(() => State.get("answer").items.length), 2);
});

test("what takes long is stopped, and gives way to what is sent next", async () => {
  const page = await open({ server });
  await page.route("**/attention", () => {}, { times: 2 });
  await page.locator("#send").click();
  await page.locator("#stop").click();
  await settle(page);
  assert.deepEqual([await state(page, "asking"), await state(page, "problem")], [false, null]);
  assert.equal(await page.locator("#stop").isVisible(), false);
  const before = (await state(page, "answer")).raw;
  await page.locator("#send").click();
  assert.equal(await page.locator("#send").isDisabled(), true);
  await choose(page, "example", "cross");
  assert.notEqual((await state(page, "answer")).raw, before);
  assert.equal(await state(page, "problem"), null);
});

test("by the keyboard alone", async () => {
  const page = await open({ server });
  const focused = () => page.evaluate(() => document.activeElement.id);
  const path = ["model", "model-summary", "example", "", "source-open", "source", "send"];
  await page.locator("#model").focus();
  for (const name of path.slice(1)) {
    await page.keyboard.press("Tab");
    assert.equal(await focused(), name);
  }
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await focused(), "send", "the focus stays");
  await page.locator("#source").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type(JSON.stringify(toy));
  await page.keyboard.press("Control+Enter");
  await settle(page);
  assert.equal((await state(page, "asked")).body.text, JSON.stringify(toy));
  await page.locator("#fields-part > summary").focus();
  await page.keyboard.press("Enter");
  await settle(page);
  await page.locator("#field-head_mask").focus();
  await page.keyboard.type("[0, 1]");
  await page.keyboard.press("Control+Enter");
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text).head_mask, [0, 1]);
});

for (const [width, dark] of [[1280, false], [360, true]])
  test(`its parts open, ${width} px: no sideways scrolling, nothing for axe-core`, async () => {
    const page = await open({ server, viewport: [width, 800], dark });
    await page.evaluate(() => {
      for (const part of document.querySelectorAll("#ask-side details")) part.open = true;
      Dom.id("answer-side").hidden = true;
    });
    await settle(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await audit(page, "all open");
  });
