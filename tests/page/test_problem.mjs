// test_problem: an error is shown where it is: in the text that was sent, and as a sentence.
import assert from "node:assert/strict";
import fs from "node:fs";
import { open } from "./asking.mjs";
import { ask, audit, serve, settle, state, test } from "./browser.mjs";
import { random } from "./oracle.mjs";

const JSON_JS = new URL("../../server/page/base/json.js", import.meta.url);
const Json = new Function(`"use strict";${fs.readFileSync(JSON_JS, "utf8")};return Json;`)();

// --- json.js against texts that know where their values are ---

const NAMES = ["a", "b", "", "a/b", "m~n", "~1", "0", "1", "é", "日本", "\u{1f600}", "\"", "\\",
  "\\u0041", "x y", "]", "{", "\n"];
const SCALARS = ["0", "-1.5e3", "true", "false", "null", '""', '"x,]}"', '"\\"\\\\"',
  '"é日\u{1f600}"'];

// Writes a random value; places has a line for each value: its pointer's parts, begin and end. Of
// members of one name the first is the way through, the last the end of a way.
const write = (r, depth) => {
  let text = "";
  const places = [];
  const pick = (list) => list[Math.floor(r() * list.length)];
  const blank = () => {
    if (r() < 0.3) text += pick([" ", "\n", "\t", "\r\n", "  "]);
  };
  const hex = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const escape = (name) =>
    r() < 0.3 ? `"${name.split("").map(hex).join("")}"` : JSON.stringify(name);
  const value = (path, left, reached) => {
    const begin = text.length, kind = left === 0 ? 2 : Math.floor(r() * 3);
    if (kind === 2) text += pick(SCALARS);
    else list(kind === 0, path, left, reached);
    places.push({ path, begin, end: text.length, reached });
  };
  const list = (isObject, path, left, reached) => {
    text += isObject ? "{" : "[";
    const seen = new Set(), length = Math.floor(r() * 5);
    for (let i = 0; i < length; i++) {
      blank();
      const name = isObject ? pick(NAMES) : String(i), own = [...path, name];
      if (isObject) {
        text += escape(name);
        blank();
        text += ":";
        blank();
      }
      const first = !seen.has(name);
      seen.add(name);
      if (!first) for (const one of places) if (same(one.path, own)) one.replaced = true;
      value(own, left - 1, reached && first);
      if (!first) places[places.length - 1].reached = reached;
      blank();
      if (i < length - 1) text += ",";
    }
    text += isObject ? "}" : "]";
  };
  const same = (a, b) => a.length === b.length && a.every((part, i) => part === b[i]);
  blank();
  value([], depth, true);
  blank();
  return { text, places };
};
const pointerOf = (path) =>
  path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

test("each value of a random text is found by its pointer", () => {
  let found = 0;
  for (let seed = 0; seed < 3000; seed++) {
    const { text, places } = write(random(seed), 4);
    for (const { path, begin, end, reached, replaced } of places) {
      if (!reached || replaced) continue;
      assert.deepEqual(Json.find(text, pointerOf(path)), [begin, end],
        `${pointerOf(path)} in ${text}`);
      found++;
    }
  }
  assert.ok(found > 10000);
});

test("each byte of a random text is found", () => {
  for (let seed = 0; seed < 300; seed++) {
    const { text } = write(random(seed), 3), characters = [...text];
    let at = 0, byte = 0;
    for (const c of characters) {
      for (let i = 0; i < Buffer.byteLength(c); i++)
        assert.deepEqual(Json.at(text, byte + i), [at, at + c.length]);
      at += c.length;
      byte += Buffer.byteLength(c);
    }
    for (const beyond of [byte, byte + 1, byte + 1e9])
      assert.deepEqual(Json.at(text, beyond), [text.length, text.length]);
  }
});

test("what is absent leads to the bracket of what it would be in", () => {
  const text = " {\"a\": [1, {\"b\": 2}]}";
  assert.deepEqual(Json.find(text, "/c"), [1, 2]);
  assert.deepEqual(Json.find(text, "/a/7"), [7, 8]);
  assert.deepEqual(Json.find(text, "/a/01"), [7, 8]);
  assert.deepEqual(Json.find(text, "/a/1/c/d"), [11, 12]);
  assert.deepEqual(Json.find(text, "/a/0/x"), [8, 9]);
  assert.deepEqual(Json.find("{\"a\":1,\"a\":[2],\"a\":3}", "/a"), [19, 20]);
});

test("broken texts, cut off or changed anywhere, lead somewhere within them", () => {
  for (let seed = 0; seed < 400; seed++) {
    const r = random(seed), { text, places } = write(r, 3);
    const cut = text.slice(0, Math.floor(r() * text.length));
    const at = Math.floor(r() * text.length);
    const other = "[]{}\",:\\ x\u0000\ud800"[Math.floor(r() * 12)];
    const changed = text.slice(0, at) + other + text.slice(at + 1);
    for (const broken of [cut, changed])
      for (const { path } of places) {
        const [begin, end] = Json.find(broken, pointerOf(path));
        assert.ok(begin >= 0 && begin <= end && end <= broken.length, broken);
      }
  }
});

test("nesting of any depth and long texts are read", () => {
  const deep = 100000, text = "[".repeat(deep) + "7" + "]".repeat(deep);
  assert.deepEqual(Json.find(text, "/0".repeat(deep)), [deep, deep + 1]);
  assert.deepEqual(Json.find(text, "/0".repeat(3)), [3, text.length - 3]);
  assert.deepEqual(Json.find(`{"a":${"[".repeat(deep)}`, "/b"), [0, 1]);
  const long = `{"x":[${"1.25,".repeat(2e6)}3],"é":"y"}`;
  assert.deepEqual(Json.find(long, "/é"), [long.length - 4, long.length - 1]);
  assert.deepEqual(Json.at(long, Buffer.byteLength(long) - 4), [long.length - 4, long.length - 3]);
  assert.deepEqual(Json.place(long, long.length), { line: 1, column: long.length + 1 });
});

// --- the page ---

const marked = (page) => page.locator("#source-back mark").textContent();
const told = (page) => page.locator("#problem").textContent();
const ROW = "[1, 0, 0, 1]";

const WRONG = [
  ["a string for a number", `{"queries": [[${ROW},\n [0, 1, "two", 0]]]}`, "\"two\"", 2, 9],
  ["a row that is too short", `{"queries": [[${ROW}, [0, 1]]]}`, "[0, 1]", 1, 29],
  ["an unknown field", `{"querys":\n[[${ROW}]]}`, `[[${ROW}]]`, 2, 1],
  ["a field that stands twice", `{"queries": [[${ROW}]], "queries": []}`, "[]", 1, 42],
  ["a missing field", " {\"keys\": []}", "{", 1, 2],
  ["a length beyond the keys", `{"queries": [[${ROW}]], "valid_lens": [7]}`, "7", 1, 46],
  ["a word that is none of them", `{"queries": [], "select": "mäybe"}`, "\"mäybe\"", 1, 27],
  ["no JSON after signs of several bytes", `{"日本\u{1f600}" 1, "queries": []}`, "1", 1, 8],
  ["text after the end", `{"queries": []}\n x`, "x", 2, 2],
  ["a text that is cut off", `{"queries": [[${ROW}`, "", 1, 27],
];
test("what is wrong is marked, told, and gone to", async () => {
  const page = await open({ expect: [400] });
  for (const [name, text, piece, line, column] of WRONG) {
    await ask(page, text);
    const problem = await state(page, "problem");
    assert.equal(await marked(page), piece, name);
    assert.equal(await page.locator("#problem mark").textContent(), piece);
    assert.ok((await told(page)).includes(problem.title));
    assert.ok((await told(page)).includes(problem.detail));
    assert.match(await told(page), new RegExp(`ine ${line}, column ${column}(?!\\d)`));
    await page.getByRole("button", { name: "Go there" }).click();
    const chosen = await page.locator("#source").evaluate((area) => [
      document.activeElement === area,
      area.value.slice(area.selectionStart, area.selectionEnd), area.selectionStart]);
    assert.deepEqual(chosen.slice(0, 2), [true, piece]);
    assert.equal(chosen[2], text.split("\n").slice(0, line - 1).join("\n").length + (line > 1)
      + [...text.split("\n")[line - 1]].slice(0, column - 1).join("").length);
  }
});

test("the mark is scrolled into sight, moves with the text, goes when that is edited", async () => {
  const page = await open({ expect: [400] });
  const rows = Array.from({ length: 200 }, () => `  ${ROW}`).join(",\n");
  await ask(page, `{"queries": [[\n${rows},\n ${" ".repeat(300)}[1, 2, {}, 4]]]}`);
  const boxes = async () => [await page.locator("#source").boundingBox(),
    await page.locator("#source-back mark").boundingBox()];
  const [area, mark] = await boxes();
  assert.ok(mark.x >= area.x && mark.x + mark.width <= area.x + area.width);
  assert.ok(mark.y >= area.y && mark.y + mark.height <= area.y + area.height);
  await page.locator("#source").evaluate((node) => { node.scrollTop -= 31; });
  await settle(page);
  assert.equal(Math.round((await boxes())[1].y - mark.y), 31);
  await page.locator("#source").focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type(" ");
  await settle(page);
  assert.equal(await page.locator("#source-back").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Go there" }).count(), 0);
});

test("a text that is edited while it is under way has no mark", async () => {
  const page = await open({ expect: [400] });
  await page.evaluate(async () => {
    State.set({ body: { text: "{\"queries\": 7}" } });
    const done = Ask.send();
    State.set({ body: { text: "{\"queries\": [  ]}" } });
    await done;
  });
  await settle(page);
  assert.equal(await page.locator("#problem mark").textContent(), "7");
  assert.equal(await page.locator("#source-back").count(), 0);
});

test("a text too long for a mark has its place told", async () => {
  const page = await open({ expect: [400] });
  await ask(page, `{"queries": [[${`${ROW}, `.repeat(25000)}"<far>"]]}`);
  assert.equal(await page.locator("#problem mark").textContent(), "\"<far>\"");
  assert.equal(await page.locator("#source-back").count(), 0);
});

test("text of a request stays text", async () => {
  const page = await open({ expect: [400] });
  const evil = "<img src=x onerror=alert(1)><script>alert(2)</script>";
  for (const request of [{ queries: [[[1, 0, 0, evil]]] }, { queries: [], [evil]: 1 },
    { queries: [], select: evil }]) {
    await ask(page, request);
    assert.equal(await page.locator("#problem img, #problem script, #source-wrap img").count(), 0);
  }
  await ask(page, `{"${evil}`);
  assert.ok((await page.locator("#problem pre").textContent()).includes(evil.slice(-20)));
  assert.equal(await page.locator("#problem img, #problem script").count(), 0);
});

test("of a file the tensor, the place and the value are told", async () => {
  const page = await open({ expect: [400, 422] });
  await page.evaluate(async () => {
    const floats = (list) => new Uint8Array(Float32Array.from(list).buffer);
    State.set({ body: { name: "x", fields: {}, tensors: {
      queries: { dtype: "F32", shape: [1, 2, 4], bytes: floats([1, 2, 3, 4, 5, 6, 7, 8]) },
      mask: { dtype: "U8", shape: [2, 2], bytes: Uint8Array.from([1, 0, 7, 1]) } } } });
    await Ask.send();
  });
  assert.match(await told(page), /mask\[1\]\[0\]: 7/);
  await page.evaluate(async () => {
    const body = State.body;
    State.set({ body: Request.change(body, { mask: undefined, select: "maybe" }) });
    await Ask.send();
  });
  assert.match(await told(page), /must be .*select$/);
  assert.equal(await page.locator("#problem mark").count(), 0);
});

test("errors without a place say what can be done", async () => {
  const server = await serve(["--max-pairs", "3", "--max-body-bytes", "5000"]);
  const page = await open({ server, expect: [413, 422, 0] });
  await ask(page, { queries: [[[1, 0, 0, 1], [1, 1, 1, 1]]] }, "demo");
  assert.match(await told(page), /setting max_pairs/);
  await ask(page, `{"queries": ${" ".repeat(6000)}[]}`);
  assert.match(await told(page), /setting max_body_bytes|No response/);
  await ask(page, { queries: [[[3e38, 3e38, 3e38, 3e38]]] });
  assert.match(await told(page), /float32/);
  assert.equal(await page.locator("#problem mark").count(), 0);
  await audit(page);
  await ask(page, { queries: [[[1, 0, 0, 1]]] });
  assert.equal(await told(page), "");
});

test("what passes by itself can be tried again", async () => {
  const page = await open({ expect: [429, 504] });
  let left = 1;
  await page.route("**/attention", (route) => (left-- <= 0 ? route.continue() : route.fulfill({
    status: 429, contentType: "application/problem+json", headers: { "Retry-After": "3" },
    body: JSON.stringify({ title: "Too many requests", status: 429 }) })));
  await ask(page, { queries: [[[1, 0, 0, 1]]], return_attention: true }, "demo");
  assert.match(await told(page), /about 3 s/);
  await page.getByRole("button", { name: "Try again" }).click();
  await settle(page);
  assert.equal(await told(page), "");
  assert.equal((await state(page, "answer")).items.length, 1);
});

test("the field that is wrong is marked as such", async () => {
  const page = await open({ expect: [400] });
  const field = page.locator("#field-select"), before = "field-select-meaning field-select-error";
  await ask(page, { queries: [], select: "maybe" });
  await page.locator("#fields-part > summary").click();
  await settle(page);
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.equal(await field.getAttribute("aria-describedby"), `problem-says ${before}`);
  await ask(page, { queries: [] });
  assert.equal(await field.getAttribute("aria-invalid"), "false");
  assert.equal(await field.getAttribute("aria-describedby"), before);
  for (const name of ["select-meaning", "\"]", "__proto__", "constructor"]) {
    await ask(page, `{"queries": [], ${JSON.stringify(name)}: 1}`);
    assert.equal(await marked(page), "1", name);
    assert.equal(await page.locator("[aria-describedby*=problem-says]").count(), 0, name);
  }
});

for (const dark of [false, true])
  test(`an error is for everybody, ${dark ? "dark" : "light"}`, async () => {
    const page = await open({ dark, viewport: [390, 800], expect: [400] });
    await ask(page, { queries: [[[1, 0, "two", 1]]] });
    await audit(page);
    assert.match(await page.locator("#problem").ariaSnapshot(), /alert/);
  });
