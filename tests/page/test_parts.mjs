// test_parts: the core of the page, part by part, against what this folder and the server know.
import assert from "node:assert/strict";
import { ask, expect, open, serve, state, test } from "./browser.mjs";
import { brain, bytesOf, coded, dice, flat, half, readSafetensors, safetensors } from "./oracle.mjs";

const MODELS = { plain: { projection: "none", score: "dot", query_size: 2, value_size: 1 },
  square: { projection: "none", score: "dot", query_size: 2 },
  layer: { random: { seed: 7 }, query_size: 8, heads: 4 } };
const server = await serve([], { config: { models: MODELS } });
const page = await open({ server });

const same = (found, wanted, what) => {
  assert.equal(found.length, wanted.length, what);
  for (let i = 0; i < wanted.length; i++)
    if (!Object.is(Number(found[i]), Number(wanted[i])))
      assert.fail(`${what}: [${i}] is ${found[i]}, not ${wanted[i]}`);
};
// What the page reads in a file: { tensors: { name: { shape, data } }, fields }, or what it says.
const readInPage = (page, file) => page.evaluate((base64) => {
  try {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const { tensors, fields } = Tensor.read(bytes.buffer);
    for (const name of Object.keys(tensors)) tensors[name] = Tensor.of(tensors[name]);
    return { tensors, fields };
  } catch (error) {
    return { error: error.message };
  }
}, file.toString("base64"));
const inPage = (page, values) => page.evaluate((list) => list.map((v) => Tensor.of(v)), values);

test("Tensor.read knows every kind of number", async () => {
  const all = Array.from({ length: 65536 }, (_, i) => i);
  const wide = [0, -0, 1, -1.5, 5e-324, -1e308, Infinity, -Infinity, NaN, 0.1];
  const whole = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)];
  const long = [0, -1, 2 ** 53, -(2 ** 53), 4294967296];
  const cases = { F16: [all, all.map(half)], BF16: [all, all.map(brain)], F64: [wide, wide],
    F32: [wide, wide.map(Math.fround)], I32: [whole, whole], I64: [long, long],
    U8: [[0, 1, 255], [0, 1, 255]], BOOL: [[0, 1, 1], [0, 1, 1]] };
  const tensors = Object.fromEntries(Object.entries(cases).map(([kind, [numbers]]) =>
    [kind, [kind, [1, numbers.length], bytesOf(kind, numbers)]]));
  for (const blanks of [0, 1, 2, 3, 7]) {
    const found = await readInPage(page, safetensors(tensors, {}, blanks));
    for (const [kind, [numbers, wanted]] of Object.entries(cases)) {
      assert.deepEqual(found.tensors[kind].shape, [1, numbers.length]);
      same([...found.tensors[kind].data], wanted, `${kind}, ${blanks} blanks`);
    }
  }
});

test("Tensor.read: fields are JSON or words, what is wrong is said", async () => {
  const words = { return_attention: "true", select: '"hard"', empty_rows: "zero", window: "[1,2]" };
  assert.deepEqual((await readInPage(page, safetensors({}, words))).fields,
    { return_attention: true, select: "hard", empty_rows: "zero", window: [1, 2] });
  const good = safetensors({ queries: ["F32", [2], bytesOf("F32", [1, 2])] });
  const longer = Buffer.from(good);
  longer.writeBigUInt64LE(1000n);
  const endless = Buffer.from(good);
  endless.writeBigUInt64LE(2n ** 64n - 1n);
  for (const [bad, wanted] of [
    [Buffer.alloc(0), /8 bytes/], [good.subarray(0, 7), /8 bytes/], [longer, /longer/],
    [endless, /longer/], [safetensors({ a: ["F32", [3], Buffer.alloc(8)] }), /shape/],
    [safetensors({ a: ["F32", [-1, -2], Buffer.alloc(8)] }), /shape/],
    [safetensors({ a: ["F32", 2, Buffer.alloc(8)] }), /shape/],
    [good.subarray(0, good.length - 1), /outside/], [Buffer.concat([good.subarray(0, 8), Buffer.from("[")]), /./],
    [Buffer.from("\x04\0\0\0\0\0\0\0null", "latin1"), /./],
    [Buffer.from("\x0a\0\0\0\0\0\0\0{\"a\":null}", "latin1"), /./]])
    assert.match((await readInPage(page, bad)).error || "", wanted, JSON.stringify(bad.toString()));
});

test("Tensor.write is the way back, and the server reads it", async () => {
  const chance = dice(3);
  const queries = chance.numbers(2, 3, 8);
  const kept = await page.evaluate(async (list) => {
    const bytes = new Uint8Array(Float32Array.from(list).buffer);
    const tensors = { queries: { dtype: "F32", shape: [2, 3, 8], bytes },
      valid_lens: { dtype: "I32", shape: [2], bytes: new Uint8Array([1, 0, 0, 0, 3, 0, 0, 0]) } };
    const fields = { return_attention: true, select: "hard", window: [1, 0], empty_rows: "zero" };
    const blob = Tensor.write(tensors, fields);
    State.set({ model: "layer", body: { name: "x", tensors, fields } });
    await Ask.send();
    return [...new Uint8Array(await blob.arrayBuffer())];
  }, flat(queries));
  const { words, tensors } = readSafetensors(Buffer.from(kept));
  assert.deepEqual(words, { return_attention: "true", select: '"hard"', window: "[1,0]", empty_rows: '"zero"' });
  same([...new Float32Array(Uint8Array.from(tensors.queries.bytes).buffer)], flat(queries), "queries");
  assert.deepEqual([...tensors.valid_lens.bytes], [1, 0, 0, 0, 3, 0, 0, 0]);
  const { json } = await server.post("/v1/models/layer/attention", { queries, valid_lens: [1, 3],
    return_attention: true, select: "hard", window: [1, 0], empty_rows: "zero" });
  assert.equal(await state(page, "problem"), null);
  const { items } = await state(page, "answer");
  for (const b of [0, 1])
    same(items[b].weights.flatMap((w) => [...w.data]), flat(json.attention_weights[b]).map(Math.fround), `item ${b}`);
});

test("Tensor.of: lists and base64; null for everything else", async () => {
  const lists = [[], [[]], [[], []], [[[]], [[]]], [1, 2, 3], [[1, 2], [3, 4]], [[[0.5], [-1e-45]]],
    [true, false], [[true, 0], [1, false]]];
  const shapes = [[0], [1, 0], [2, 0], [2, 1, 0], [3], [2, 2], [1, 2, 1], [2], [2, 2]];
  for (const [i, found] of (await inPage(page, lists)).entries()) {
    assert.deepEqual(found.shape, shapes[i]);
    same([...found.data], flat(lists[i]).map(Number), JSON.stringify(lists[i]));
  }
  const numbers = [1, -0.1, 3e38, -Infinity, 1e-45, 0].map(Math.fround);
  const [text] = await inPage(page, [coded([2, 3], numbers)]);
  assert.deepEqual(text.shape, [2, 3]);
  same([...text.data], numbers, "base64");

  const one = coded([1], [1]);
  const bad = [null, 1, "1", true, {}, [1, [2]], [[1], 2], [[1], [2, 3]], ["1"], [null], [{}],
    { ...one, shape: [2] }, { ...one, shape: [-1, -1] }, { ...one, shape: ["x"] },
    { ...one, shape: [0.5, 2] }, { ...one, shape: 1 }, { ...one, base64: "%" }, { ...one, base64: "AAA" },
    { ...one, dtype: "F8" }, { ...one, dtype: "constructor" }, { ...one, dtype: undefined },
    { data: 1, shape: 2 }, { data: [1], shape: [1] }, { bytes: "1", dtype: "F32", shape: [1] },
    { bytes: [1, 2, 3, 4], dtype: "F32", shape: [1] }];
  for (const [i, found] of (await inPage(page, bad)).entries())
    assert.equal(found, null, JSON.stringify(bad[i]));
});

test("what is deep, or ragged and large by its first items, does no harm", async () => {
  const found = await page.evaluate(() => {
    const deep = JSON.parse("[".repeat(100000) + "]".repeat(100000));
    const wide = new Array(50000).fill(0);
    wide[0] = new Array(50000).fill(0);
    wide[0][0] = new Array(50000).fill(0);
    const body = { text: `{"queries":${"[".repeat(100000)}${"]".repeat(100000)}}` };
    return [Tensor.of(deep), Tensor.of(wide), Request.batched({ queries: deep }),
      Request.change(body, { causal: true }), Request.size(body)];
  });
  assert.deepEqual(found, [null, null, true, null, 200012]);
});

test("Tensor.part: an item of each form", async () => {
  const list = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]];
  const found = await page.evaluate(([value, code]) => {
    const tensor = Tensor.of(value);
    const bytes = { dtype: "F32", shape: tensor.shape,
      bytes: new Uint8Array(Float32Array.from(tensor.data).buffer) };
    const items = [value, code, tensor, bytes].map((one) => Tensor.of(Tensor.part(one, 1)));
    const none = [Tensor.part({ shape: [], data: [1] }, 0), Tensor.part("x", 0), Tensor.part(null, 0)];
    return { items: items.map(({ shape, data }) => [shape, [...data]]), none };
  }, [list, coded([2, 3, 2], flat(list))]);
  for (const item of found.items) assert.deepEqual(item, [[3, 2], [7, 8, 9, 10, 11, 12]]);
  for (const none of found.none) assert.ok(none === null || none === undefined, String(none));
});

test("Request: text is changed and laid out, and stays what it was", async () => {
  const object = { "queries": [[[1, -0.5e-7], [3, 4]]], "a \"b\"": "c\nd", mask: [], window: [1, -1],
    bias: [[]], x: [[[]], [1]], keys: coded([1], [1]), n: null, deep: { a: [[1]] }, ünï: "✓ </script>" };
  const text = JSON.stringify(object);
  const found = await page.evaluate((words) => {
    const body = { text: words };
    return { laid: Request.change(body, {}).text, text: body.text, none: Request.change({ text: "[1]" }, {}),
      changed: Request.change(body, { mask: undefined, n: undefined, causal: true, window: [0, 0] }).text,
      twice: Request.change(Request.change(body, {}), {}).text,
      nulls: ["", "{", "[]", "1", "null", '"x"'].map((t) => Request.fields({ text: t })),
      nobody: Request.fields(null) };
  }, text);
  assert.equal(found.text, text);
  assert.deepEqual(JSON.parse(found.laid), object);
  assert.equal(found.twice, found.laid);
  assert.ok(found.laid.includes("\n      [1, -5e-8],\n      [3, 4]\n"), found.laid);
  const { mask, n, ...rest } = object;
  assert.deepEqual(JSON.parse(found.changed), { ...rest, causal: true, window: [0, 0] });
  assert.deepEqual([...found.nulls, found.nobody, found.none], new Array(8).fill(null));
});

test("Request: a field that is changed in a file, the server takes", async () => {
  const chance = dice(5);
  const queries = chance.numbers(2, 3, 8);
  const changes = { valid_lens: [2, 3], mask: [[1, 0, 1], [true, true, false], [1, 1, 1]],
    bias: chance.numbers(2, 4, 3, 3), head_mask: [1, 0, 0.5, 1], segments: [[1, 2], [3, 0]],
    causal: true, causal_offset: [1, 0], window: [2, 2], return_attention: true, keys: chance.numbers(2, 3, 8) };
  const file = safetensors({ queries: ["F32", [2, 3, 8], bytesOf("F32", flat(queries))] });
  for (const names of [...Object.keys(changes).map((n) => [n]), Object.keys(changes)]) {
    const some = Object.fromEntries(names.map((n) => [n, changes[n]]));
    const answers = await page.evaluate(async ([base64, wanted]) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const body = Request.change({ name: "a file", ...Tensor.read(bytes.buffer) }, wanted);
      State.set({ model: "layer", body });
      await Ask.send();
      const { problem, answer } = { problem: State.problem, answer: State.answer };
      const gone = Object.fromEntries(Object.keys(wanted).map((name) => [name, undefined]));
      const fields = Request.change(body, gone);
      return { problem, outputs: answer && answer.items.flatMap((i) => [...i.outputs.data]),
        left: Object.keys(Request.fields(fields)), name: fields.name };
    }, [file.toString("base64"), some]);
    assert.equal(answers.problem, null, `${names}: ${JSON.stringify(answers.problem)}`);
    const { json } = await server.post("/v1/models/layer/attention", { queries, ...some });
    same(answers.outputs, flat(json.outputs).map(Math.fround), String(names));
    assert.deepEqual([answers.left, answers.name], [["queries"], "a file"]);
  }
});

test("Request: of a file, too, a length that is no integer stays one, for the server", async () => {
  const found = await page.evaluate(() => Request.change({ name: "x", tensors: {}, fields: {} },
    { valid_lens: [1.5], mask: [[2 ** 40]], head_mask: [0.5] }));
  assert.deepEqual(found.fields, { valid_lens: [1.5], mask: [[2 ** 40]] });
  assert.deepEqual(Object.keys(found.tensors), ["head_mask"]);
});

test("Request: a file of one item, too, and base64", async () => {
  const queries = dice(6).numbers(3, 8), bias = dice(7).numbers(3, 3);
  const file = safetensors({ queries: ["F32", [3, 8], bytesOf("F32", flat(queries))] });
  for (const [mine, theirs] of [[{ valid_lens: 2 }, { valid_lens: 2 }],
    [{ valid_lens: [0, 1, 3] }, { valid_lens: [0, 1, 3] }], [{ bias: coded([3, 3], flat(bias)) }, { bias }]]) {
    const found = await page.evaluate(async ([base64, changes]) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      State.set({ model: "layer", body: Request.change({ name: "x", ...Tensor.read(bytes.buffer) }, changes) });
      await Ask.send();
      return State.problem || [...State.answer.items[0].outputs.data];
    }, [file.toString("base64"), mine]);
    const { json } = await server.post("/v1/models/layer/attention", { queries, ...theirs });
    assert.ok(Array.isArray(found), JSON.stringify(found));
    same(found, flat(json.outputs).map(Math.fround), JSON.stringify(theirs));
  }
});

test("Request.asText: a file as JSON says the same; not what JSON cannot write", async () => {
  const queries = dice(8).numbers(2, 3, 8), keys = dice(9).numbers(2, 2, 8);
  const tensors = { queries: ["F32", [2, 3, 8], bytesOf("F32", flat(queries))], valid_lens: ["I64", [2], bytesOf("I64", [1, 2])],
    keys: ["F64", [2, 2, 8], bytesOf("F64", flat(keys))], mask: ["BOOL", [3, 2], bytesOf("BOOL", [1, 0, 1, 1, 0, 1])] };
  const hidden = { ...tensors, bias: ["F32", [3, 2], bytesOf("F32", [0, -Infinity, 0, 0, 0, 0])] };
  const words = { return_attention: "true", select: "hard", window: "[1,1]" };
  const [text, none] = await page.evaluate((files) => files.map((base64) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return Request.asText({ name: "x", ...Tensor.read(bytes.buffer) });
  }), [tensors, hidden].map((one) => safetensors(one, words).toString("base64")));
  assert.equal(none, null);
  assert.deepEqual(JSON.parse(text.text, (_, x) => typeof x === "number" ? Math.fround(x) : x), { queries, keys,
    valid_lens: [1, 2], mask: [[1, 0], [1, 1], [0, 1]], return_attention: true, select: "hard", window: [1, 1] });
});

test("Request.batched: as the server sees it", async () => {
  const cases = [[[], true], [[[]], true], [[[], []], true], [[[[1, 2]]], true], [[[1, 2]], false],
    [[[1, 2], [3, 4]], false], [[[], [[1, 2]]], true], [[[[1, 2]], []], true],
    [coded([1, 2], [1, 2]), false], [coded([1, 1, 2], [1, 2]), true], [[coded([1, 2], [1, 2])], true]];
  const found = await page.evaluate((list) => list.map((queries) => Request.batched({ queries })),
    cases.map(([queries]) => queries));
  for (const [i, [queries, wanted]] of cases.entries()) {
    assert.equal(found[i], wanted, JSON.stringify(queries));
    const { status, text, json } = await server.post("/v1/models/square/attention", { queries });
    assert.equal(status, 200, text);
    const rows = flat(json.outputs).length;
    if (rows) assert.equal(/"outputs":\[(\[\],)*\[\[/.test(text), wanted, text);
  }
  const odd = [undefined, null, 1, "x", {}, { shape: 2 }, [null], [{}], ["x"], [[null]]];
  assert.deepEqual(await page.evaluate((list) => list.map((queries) => Request.batched({ queries })), odd),
    odd.map(() => true));
});

test("Format.float: digit by digit what the server writes", async () => {
  const chance = dice(11);
  const bits = new Uint32Array(6000).map((_, i) =>
    i < 254 ? (i + 1) << 23 : i < 508 ? ((i - 253) << 23) - 1 : Math.floor(chance.chance() * 2 ** 32));
  const floats = [...new Float32Array(bits.buffer), 0.1, 1e21, 1e-7, 16777216, 9999999, 123456.7, 0]
    .map(Math.fround).filter((x) => Number.isFinite(x) && (x === 0 || Math.abs(x) >= 2 ** -126));
  const rows = floats.map((x) => [[x]]);
  const { text } = await server.post("/v1/models/plain/attention",
    { queries: floats.map(() => [[0, 0]]), keys: floats.map(() => [[0, 0]]), values: rows });
  const digits = text.slice(text.indexOf("[")).replace(/[[\]}]/g, "").trim().split(",");
  const found = await page.evaluate((list) => list.map((x) => Format.float(x)), floats);
  assert.equal(await page.evaluate(() => Format.float(2 ** -149)), "1e-45"); // computing flushes it
  // Sign, digits without zeros at either end, and where the point is.
  const plain = (word) => {
    const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(word);
    const all = (whole + part).replace(/^0+/, ""), kept = all.replace(/0+$/, "");
    return kept ? `${sign}${kept}e${Number(power) - part.length + all.length - kept.length}` : "0";
  };
  const off = (word, i) => Math.abs(Number(word) - floats[i]);
  // Halfway between two decimals either is the shortest.
  const tie = (i, word) => Math.abs(off(word, i) - off(found[i], i)) < 1e-6 * off(word, i)
    && Math.fround(Number(found[i])) === floats[i] && plain(found[i]).length === plain(word).length;
  assert.equal(digits.length, floats.length);
  for (const [i, word] of digits.entries()) {
    assert.equal(Math.fround(Number(found[i])), floats[i] + 0);
    // The server writes a large integer whole where that is no longer.
    if (tie(i, word) || /^-?\d{10,}$/.test(word)) continue;
    assert.equal(plain(found[i]), plain(word), `${floats[i]}`);
  }
});

test("Format: units, and what is no number", async () => {
  const found = await page.evaluate(() => [Format.float(NaN), Format.short(Infinity), Format.short(0.123456),
    Format.short(0), Format.bytes(0), Format.bytes(999), Format.bytes(1500), Format.bytes(25e6),
    Format.count(1250000), Format.ms(0.01234), Format.ms(12.345), Format.ms(0)]);
  assert.deepEqual(found, ["NaN", "–", "0.123", "0", "0 B", "999 B", "1.5 kB", "25 MB", "1.3 M", "0.012 ms",
    "12.3 ms", "0 ms"]);
});

for (const dark of [false, true])
  test(`Scale: even steps of lightness, from ${dark ? "dark to light" : "paper to ink"}`, async () => {
    const { bytes, css, index, highs } = await page.evaluate((isDark) => {
      State.set({ dark: isDark });
      const face = (...data) => ({ matrix: { data: Float32Array.from(data) } });
      const list = [face(0.25, 0.5), face(0, 0.125), face(0, 0)];
      return { bytes: [...Scale.ramp().bytes], css: [0, 0.5, 1].map(Scale.css),
        index: [-1, 0, 1e-9, 0.5, 1, 2, NaN, Infinity].map(Scale.index),
        highs: [list, ...list.map((one) => [one]), [face()], []].map((faces) => Scale.high(faces)) };
    }, dark);
    const light = (i) => {
      const [r, g, b] = bytes.slice(3 * i, 3 * i + 3).map((c) =>
        c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
      const y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
      return y > 216 / 24389 ? 116 * Math.cbrt(y) - 16 : y * 24389 / 27;
    };
    const mean = (light(255) - light(0)) / 15;
    assert.ok((dark ? mean : -mean) > 4.5, `from ${light(0)} to ${light(255)}`);
    for (let i = 0; i < 255; i += 17) {
      const step = light(i + 17) - light(i);
      assert.ok(Math.abs(step / mean - 1) < 0.2, `from ${i}: ${step}, on the mean ${mean}`);
    }
    for (let i = 0; i < 255; i++) assert.ok((dark ? 1 : -1) * (light(i + 1) - light(i)) >= -0.05, `turns after ${i}`);
    assert.deepEqual(index, [0, 0, 0, 128, 255, 255, 0, 255]);
    assert.deepEqual(css, [0, 128, 255].map((i) => `rgb(${bytes.slice(3 * i, 3 * i + 3).join(" ")})`));
    assert.deepEqual(highs, [0.5, 0.5, 0.125, 1, 1, 1]);
  });
