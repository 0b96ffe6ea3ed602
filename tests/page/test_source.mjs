// test_source: the request as text, and as a file that is dropped, pasted or chosen.
import assert from "node:assert/strict";
import { asFloat32, choose, open, send, source, toy, unfold, weights } from "./asking.mjs";
import { drop, serve, settle, state, test } from "./browser.mjs";
import { bytesOf, safetensors } from "./oracle.mjs";

const server = await serve();

test("a JSON file is dropped anywhere", async () => {
  const page = await open({ server });
  await drop(page, "#answer-side", "mine.json", JSON.stringify(toy));
  assert.equal(await source(page), JSON.stringify(toy));
  assert.equal(await page.locator("#example").inputValue(), "own0");
  await send(page);
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
  await send(page);
  assert.equal(await state(page, "problem"), null);
  await page.getByRole("button", { name: "Remove" }).click();
  assert.equal(await source(page), "");
  await page.waitForFunction(() => document.activeElement.id === "source");
  assert.equal(await page.locator("#send").isDisabled(), true);
});

test("a safetensors file is summed up, changed, sent, and made text", async () => {
  const page = await open({ server });
  const queries = ["F32", [1, 2, 4], bytesOf("F32", [1, 0, 0, 1, 0, 1, 1, 0.1])];
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
  await send(page);
  assert.equal(await state(page, "problem"), null);
  const request = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0.1]]], return_attention: true,
    valid_lens: [1], mask: [[1, 1], [0, 1]], head_mask: [1, 0.5], window: [1, 1],
    bias: [[0, 0.25], [1, 0]] };
  const { json } = await server.post("/v1/attention", request);
  assert.deepEqual(await weights(page), asFloat32(json.attention_weights));
  await page.getByRole("button", { name: "As JSON" }).click();
  await settle(page);
  assert.deepEqual(JSON.parse(await source(page)), request);
  assert.equal(await page.evaluate(() => document.activeElement.id), "source");
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
    ["a.safetensors", header("{]"), "its header is not a JSON object"],
    ["a.safetensors", header("[1,2]"), "its header is not a JSON object"],
    ["a.safetensors", header('{"queries":5}'), "queries has no shape"],
    ["a.safetensors", header('{"queries":null}'), "queries has no shape"],
    ["a.safetensors", header('{"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'), "outside"],
    ["a.safetensors", header('{"q":{"dtype":"F32","shape":[1],"data_offsets":[0,0]}}'),
      "not match its shape"],
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
  assert.match(await page.locator("#source-hint").textContent(), /^Invalid JSON: /);
  // Numbers that JSON cannot write stay in the file.
  const queries = ["F32", [1, 1, 4], bytesOf("F32", [1, NaN, 0, 1])];
  await drop(page, "body", "nan", safetensors({ queries }));
  await page.getByRole("button", { name: "As JSON" }).click();
  assert.match(await page.locator("#source-note").textContent(), /JSON cannot represent/);
});

const paste = async (page, parts) => {
  await page.locator("#source").evaluate((area, all) => {
    const clipboardData = new DataTransfer();
    for (const [type, text] of all)
      if (type) clipboardData.setData(type, text);
      else clipboardData.items.add(new File([text], "pasted.json"));
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    area.dispatchEvent(event);
  }, parts);
  await settle(page);
};
test("a file is pasted; a picture of text that is pasted is not taken for it", async () => {
  const page = await open({ server });
  await paste(page, [["", "[]"]]);
  assert.match(await page.locator("#source-note").textContent(), /^pasted\.json cannot be sent/);
  await choose(page, "example", "causal");
  assert.equal(await page.locator("#source-note").textContent(), "", "it was of another request");
  await paste(page, [["", "{ }"]]);
  assert.equal(await source(page), "{ }");
  await paste(page, [["text/plain", "x"], ["", "{}"]]);
  assert.equal(await source(page), "{ }");
});

test("of two files the last one counts, also where it is read first", async () => {
  const page = await open({ server });
  await page.evaluate(() => {
    const bytes = (text) => new TextEncoder().encode(text).buffer;
    const late = Promise.withResolvers();
    const file = (name, buffer) => ({ name, size: 2, arrayBuffer: () => buffer });
    const all = ["{}", "[]"].map((text) => [text, file("late", late.promise.then(() => bytes(text)))]);
    window.taken = all.map(([, one]) => Source.take(one));
    window.taken.push(Source.take(file("soon", bytes("{ }"))));
    late.resolve();
    return Promise.all(window.taken);
  });
  await settle(page);
  assert.equal(await source(page), "{ }");
  assert.equal(await page.locator("#source-note").textContent(), "");
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

test("a request of many lines is not typed line by line, and is undone all the same", async () => {
  const page = await open({ server });
  const typed = await page.evaluateHandle(() => {
    const list = [], before = document.execCommand.bind(document);
    document.execCommand = (name, ui, text) => list.push(text.split("\n").length) && before(name, ui, text);
    return list;
  });
  const small = await source(page), rows = Array.from({ length: 4096 }, (_, i) => [i % 7, 1, 0, i % 5]);
  for (const [name, act] of [["a file", () => drop(page, "body", "rows.json",
    JSON.stringify({ queries: [rows] }, null, 1))],
  ["random input", async () => {
    await page.locator("#random [name=q]").fill("512");
    await page.getByRole("button", { name: "Fill in and run" }).click();
    await settle(page);
  }]]) {
    await choose(page, "example", "lookup");
    if (!await page.locator("#random").isVisible()) await unfold(page, "example-part details");
    await act();
    const long = await source(page);
    assert.ok(long.split("\n").length > 500, name);
    await page.locator("#source").press("ControlOrMeta+z");
    await settle(page);
    assert.equal(await source(page), small, name);
    await page.locator("#source").press("ControlOrMeta+Shift+z");
    await settle(page);
    assert.equal(await source(page), long, name);
    await page.locator("#source").press("End");
    await page.keyboard.type(" ");
    await page.locator("#source").press("ControlOrMeta+z");
    await settle(page);
    assert.equal(await source(page), long, "what was typed since is undone first");
  }
  assert.ok((await typed.jsonValue()).every((lines) => lines < 200));
});
