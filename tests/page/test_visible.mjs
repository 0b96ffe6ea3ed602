// test_visible: which keys a query may see, and what came back, against the server's own answers.
import assert from "node:assert/strict";
import { open, serve, state, test } from "./browser.mjs";
import { bytesOf, coded, dice, flat, safetensors } from "./oracle.mjs";

const LAYER = { random: { seed: 7 }, query_size: 4, heads: 2 };
const server = await serve([], { config: { models: { layer: LAYER, later: { ...LAYER, causal: true } } } });
const post = async (model, body, accept = "application/json") => {
  const answer = await server.post(`/v1/models/${model}/attention`, body, { Accept: accept });
  assert.equal(answer.status, 200, `${answer.text}\n${JSON.stringify(body)}`);
  return answer;
};

// --- requests by chance ---

const HEADS = 2;
const grid = (rows, cols, cell) =>
  Array.from({ length: rows }, (_, i) => Array.from({ length: cols }, (_, j) => cell(i, j)));
// Which numbers there are, for a batch of items { q, k }; one of them where `single`.
const lengths = (d, items) => d.yes()
  ? items.map(({ k }) => d.int(0, k))
  : items.map(({ q, k }) => Array.from({ length: q }, () => d.int(0, k)));
const maskOf = (d, { q, k }) => grid(q, k, () => d.pick([true, false, 1, 0, 1]));
const biasOf = (d, { q, k }) => grid(q, k, () => d.yes(0.3) ? -Infinity : d.number());
const makers = {
  valid_lens: (d, items) => d.yes(0.1) ? null : lengths(d, items),
  mask: (d, items, ragged) => !ragged && d.yes() ? maskOf(d, items[0]) : items.map((one) => maskOf(d, one)),
  bias: (d, items, ragged) => !ragged && d.yes(0.4) ? biasOf(d, items[0])
    : d.yes() ? items.map((one) => biasOf(d, one))
      : items.map((one) => Array.from({ length: HEADS }, () => biasOf(d, one))),
  causal: (d) => d.yes(0.7),
  causal_offset: (d, items) => d.pick(["end", d.int(-3, 3), items.map(() => d.int(-3, 3))]),
  window: (d) => [d.int(-1, 3), d.int(-1, 3)],
};
const shared = { mask: 2, bias: 2 }; // of that depth they are for all items
const depth = (value) => Array.isArray(value) ? 1 + depth(value[0]) : 0;
const alone = (name, value) => {
  if (name === "window" || !Array.isArray(value)) return value;
  return depth(value) === shared[name] ? value : value[0];
};

// { fields, items, single }: a request with some of the fields that hide keys.
const request = (seed) => {
  const d = dice(seed), single = d.yes(0.2), count = single ? 1 : d.int(1, 3), ragged = d.yes(0.3) && count > 1;
  const sizes = { q: d.int(1, 4), k: d.int(1, 5) };
  const items = Array.from({ length: count }, () => ragged ? { q: d.int(1, 4), k: d.int(1, 5) } : sizes);
  const own = d.yes(0.3);
  for (const one of own ? items : []) one.k = one.q;
  const fields = { queries: items.map(({ q }) => d.numbers(q, 4)),
    ...(own ? {} : { keys: items.map(({ k }) => d.numbers(k, 4)) }) };
  fields.values = items.map(({ k }) => d.numbers(k, 4));
  for (const [name, make] of Object.entries(makers))
    if (d.yes(0.4)) fields[name] = make(d, items, items.some((i) => i.q !== items[0].q || i.k !== items[0].k));
  if (!single) return { fields, items, single };
  return { items, single, fields: Object.fromEntries(Object.entries(fields).map(([name, value]) =>
    [name, alone(name, value)])) };
};

// What may be seen, cell by cell, by the words of the contract.
const maySee = ({ fields, items, single }, causalModel, b, h, i, j) => {
  const { q, k } = items[b];
  const ofItem = (value) => single || !Array.isArray(value) ? value : value[b];
  const lens = fields.valid_lens === undefined || fields.valid_lens === null ? k : ofItem(fields.valid_lens);
  if (j >= (Array.isArray(lens) ? lens[i] : lens)) return false;
  if (fields.mask) {
    const mask = depth(fields.mask) === 2 ? fields.mask : fields.mask[b];
    if (!mask[i][j]) return false;
  }
  if (fields.bias) {
    let bias = depth(fields.bias) === 2 || single ? fields.bias : fields.bias[b];
    if (depth(bias) === 3) bias = bias[h];
    if (bias[i][j] === -Infinity) return false;
  }
  const offset = fields.causal_offset === undefined ? 0
    : fields.causal_offset === "end" ? k - q : ofItem(fields.causal_offset);
  if ((fields.causal === undefined ? causalModel : fields.causal) && j > i + offset) return false;
  const [left, right] = fields.window || [-1, -1];
  return !(left !== -1 && j < i + offset - left) && !(right !== -1 && j > i + offset + right);
};

// JSON has no -Infinity: bias travels as base64, one for each item where they differ.
const shapeOf = (value) => Array.isArray(value) ? [value.length, ...shapeOf(value[0])] : [];
const wired = ({ fields, items, single }) => {
  if (!fields.bias) return fields;
  const ragged = items.some((i) => i.q !== items[0].q || i.k !== items[0].k);
  const code = (value) => coded(shapeOf(value), flat(value));
  return { ...fields, bias: ragged && !single ? fields.bias.map(code) : code(fields.bias) };
};
// As a file has it: tensors, and words. None for a ragged batch.
const filed = ({ fields, items, single }) => {
  if (items.some((i) => i.q !== items[0].q || i.k !== items[0].k) && !single) return null;
  const kinds = { queries: "F32", keys: "F32", values: "F32", bias: "F32", valid_lens: "I64", mask: "BOOL" };
  const tensors = {}, words = {};
  for (const [name, value] of Object.entries(fields))
    if (kinds[name] && value !== null)
      tensors[name] = [kinds[name], shapeOf(value), bytesOf(kinds[name], flat(value).map(Number))];
    else if (value !== null) words[name] = JSON.stringify(value);
  return safetensors(tensors, words);
};

// What the page takes for visible: for each request each item, each head, flat.
const seenInPage = (page, cases) => page.evaluate((list) => list.map(({ text, file, items, model }) => {
  const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer;
  const body = text ? { text } : { name: "x", ...Tensor.read(bytes(file)) };
  return items.map(({ q, k }, b) => [0, 1].map((h) =>
    [...Visible.of(Request.fields(body), Models.find(model), b, q, k, h)].join("")));
}), cases);

const COUNT = 500;
test("Visible: as the contract says, and the server weighs nothing else", async () => {
  const page = await open({ server });
  const cases = Array.from({ length: COUNT }, (_, i) =>
    ({ ...request(i), model: i % 4 ? "layer" : "later" }));
  const wire = cases.map((one) => wired(one)), files = cases.map(filed);
  const found = await seenInPage(page, cases.map(({ items, model }, i) =>
    ({ text: JSON.stringify(wire[i]), items, model })));
  const again = await seenInPage(page, cases.map(({ items, model }, i) =>
    ({ text: files[i] ? "" : JSON.stringify(wire[i]), file: (files[i] || "").toString("base64"), items, model })));
  const told = { hidden: 0, seen: 0, files: files.filter(Boolean).length };
  for (const [i, one] of cases.entries()) {
    const { json } = await post(one.model, { ...wire[i], return_attention: true });
    const weights = one.single ? [json.attention_weights] : json.attention_weights;
    for (const [b, { q, k }] of one.items.entries())
      for (let h = 0; h < HEADS; h++) {
        const wanted = grid(q, k, (r, c) => maySee(one, one.model === "later", b, h, r, c) ? 1 : 0);
        const what = `request ${i}, item ${b}, head ${h}: ${JSON.stringify(one.fields)}`;
        assert.equal(found[i][b][h], flat(wanted).join(""), what);
        assert.equal(again[i][b][h], flat(wanted).join(""), `as a file: ${what}`);
        assert.deepEqual(weights[b][h].map((row) => row.map((x) => x > 0 ? 1 : 0)), wanted, what);
        for (const x of flat(wanted)) told[x ? "seen" : "hidden"]++;
      }
  }
  assert.ok(told.hidden > COUNT && told.seen > COUNT && told.files > COUNT / 2, JSON.stringify(told));
});

test("Visible: the value of a hidden key changes nothing, that of another one does", async () => {
  const page = await open({ server });
  for (let seed = 1000; seed < 1040; seed++) {
    const one = request(seed), wire = wired(one);
    const [items] = await seenInPage(page, [{ text: JSON.stringify(wire), items: one.items, model: "layer" }]);
    const rows = (json) => one.single ? [json.outputs] : json.outputs;
    const before = rows((await post("layer", wire)).json);
    const { q, k } = one.items[0];
    for (let j = 0; j < k; j++) {
      const values = structuredClone(wire.values);
      (one.single ? values : values[0])[j] = [9, -9, 9, 9];
      const now = rows((await post("layer", { ...wire, values })).json);
      for (let i = 0; i < q; i++) {
        const hidden = items[0].every((cells) => cells[i * k + j] === "0");
        assert.equal(JSON.stringify(now[0][i]) === JSON.stringify(before[0][i]), hidden,
          `request ${seed}, query ${i}, key ${j}`);
      }
    }
  }
});

test("Visible: what cannot be read hides nothing", async () => {
  const page = await open({ server });
  const odd = [undefined, null, 1e9, -1, "x", true, {}, [], ["x"], { base64: 1 },
    { dtype: "F32", shape: [-1], base64: "" }, [{}]];
  const nested = [[[]], [null], [[[[[1]]]]], [["x", 1], [1, 1]], [[1], [1, 2]]]; // a part may be read
  const found = await page.evaluate(([values, free]) => {
    const told = [];
    for (const name of ["valid_lens", "mask", "bias", "causal_offset", "window", "queries"])
      for (const value of [...values, ...free]) {
        const fields = { queries: [[[1], [2]]], [name]: value };
        for (const [q, k] of [[2, 2], [0, 2], [2, 0], [0, 0]])
          for (const [item, head] of [[0, 0], [1, 1], [0, "mean"]]) {
            const seen = Visible.of(fields, null, item, q, k, head);
            if (seen.length !== q * k || (values.includes(value) && value !== -1 && seen.includes(0)))
              told.push([name, JSON.stringify(value), q, k, item, head, seen.join("")].join(" "));
          }
      }
    return [...told, ...Visible.of(null, null, 0, 1, 2, 0)];
  }, [odd, nested]);
  assert.deepEqual(found, [1, 1]);
});

// --- Answer ---

const shapes = [[], [0], [0, 0], [2], [0, 2], [2, 3, 1], [3, 3]]; // rows of each item
const forms = [["application/json", {}], ["application/json", { encoding_format: "base64" }],
  ["application/x-safetensors, application/json;q=0.5", {}]];
// An answer's item as plain lists, from the server's JSON.
const wantedOf = (json, single, average, b) => {
  const part = (value) => value === undefined ? null : single ? value : value[b];
  const numbers = (value) => value && flat(value).map(Math.fround);
  const weights = part(json.attention_weights), segments = part(json.segment_weights);
  return { outputs: numbers(part(json.outputs)), pointers: part(json.pointers),
    weights: weights && (average ? [numbers(weights)] : weights.map(numbers)),
    segments: segments && segments.map(numbers) };
};
const plainItem = ({ outputs, weights, segments, pointers }) => ({ pointers, outputs: [...outputs.data],
  weights: weights && weights.map((w) => [...w.data]), segments: segments && segments.map((s) => [...s.data]) });

test("Answer.read: JSON, base64 and safetensors, ragged, averaged, of one item, empty", async () => {
  const page = await open({ server });
  const d = dice(77);
  const cases = [];
  for (const rows of shapes)
    for (const return_attention of [true, "average", false])
      cases.push({ queries: rows.map((n) => d.numbers(n, 4)), return_attention,
        return_pointers: return_attention !== false });
  for (const return_attention of [true, "average"]) {
    cases.push({ queries: d.numbers(3, 4), return_attention, return_pointers: true });
    cases.push({ queries: d.numbers(2, 3, 4), keys: [[], []], return_attention, return_pointers: true });
    cases.push({ queries: d.numbers(2, 2, 4), keys: d.numbers(2, 5, 4), return_attention,
      segments: [[2, 0, 3], [1, 1, 3]] });
    cases.push({ queries: [d.numbers(2, 4), d.numbers(3, 4)], segments: [[2], [1, 2]], return_attention });
    cases.push({ queries: d.numbers(2, 4), segments: [1, 1], return_attention });
  }
  for (const fields of cases)
    for (const [accept, more] of forms) {
      const body = { ...fields, ...more }, [first] = fields.queries;
      const single = first !== undefined && typeof first[0] === "number";
      const { json } = await post("layer", fields);
      const sent = JSON.stringify(body), average = fields.return_attention === "average";
      const found = await page.evaluate(async ([text, want]) => {
        const reply = await Net.ask("POST", "v1/models/layer/attention",
          { type: "application/json", data: text, accept: want });
        const { raw, buffer, ...rest } = Answer.read(reply, JSON.parse(text));
        return { ...rest, size: buffer.byteLength, isText: raw === reply.text(), faces:
          rest.items.map((_, b) => Answer.faces(rest, b).map(({ head, matrix }) => [head, matrix.rows, matrix.cols])) };
      }, [sent, accept]);
      const what = `${accept} ${sent}`;
      assert.equal(found.items.length, single ? 1 : json.outputs.length, what);
      assert.deepEqual([found.batched, found.average, found.model], [!single, average, "layer"], what);
      assert.equal(found.bytes, found.size);
      assert.deepEqual(found.timing.map((one) => one.name).slice(0, 2), ["decode", "queue"]);
      for (const [b, item] of found.items.entries()) {
        assert.deepEqual(plainItem(item), wantedOf(json, single, average, b), `item ${b} of ${what}`);
        const q = (single ? fields.queries : fields.queries[b]).length;
        const keys = fields.keys || fields.queries, k = (single ? keys : keys[b]).length;
        const heads = fields.return_attention === false ? [] : average ? ["mean"] : [0, 1, "mean"];
        assert.deepEqual(found.faces[b].map(([head]) => head), heads, what);
        // JSON does not say how many keys no row has.
        for (const [, rows, cols] of found.faces[b])
          assert.deepEqual([rows, q ? cols : 0], [q, q ? k : 0], what);
      }
    }
});

test("Answer: mean, entropy and the heaviest key of a row", async () => {
  const page = await open({ server });
  const found = await page.evaluate(() => {
    const one = { rows: 3, cols: 4, data: Float32Array.of(0.25, 0.25, 0.25, 0.25, 0, 1, 0, 0, 0, 0, 0, 0) };
    const other = { rows: 3, cols: 4, data: Float32Array.of(0.5, 0, 0.5, 0, 0, 0, 1, 0, 0, 0, 0, 0) };
    const answer = { average: false, items: [{ weights: [one, other] }, { weights: null }, { weights: [one] }] };
    const faces = Answer.faces(answer, 0);
    return { labels: faces.map((f) => [f.head, f.label]), mean: [...faces[2].matrix.data],
      same: Answer.faces(answer, 0)[2].matrix === faces[2].matrix,
      single: Answer.faces(answer, 2).length, none: [Answer.faces(answer, 1), Answer.faces(answer, 9), Answer.faces(null, 0)],
      face: [{ item: 0, head: 1 }, { item: 0, head: 7 }, { item: 1, head: 0 }].map((view) => (Answer.face(answer, view) || {}).head),
      entropy: [0, 1, 2].map((i) => Answer.entropy(one, i)), heaviest: [0, 1, 2].map((i) => Answer.heaviest(one, i)) };
  });
  assert.deepEqual(found.labels, [[0, "head 0"], [1, "head 1"], ["mean", "mean of heads"]]);
  assert.deepEqual(found.mean, [0.375, 0.125, 0.375, 0.125, 0, 0.5, 0.5, 0, 0, 0, 0, 0]);
  assert.deepEqual([found.same, found.single, found.none], [true, 1, [[], [], []]]);
  assert.deepEqual(found.face, [1, 0, undefined]);
  assert.ok(Math.abs(found.entropy[0] - Math.log(4)) < 1e-12);
  assert.deepEqual(found.entropy.slice(1), [0, 0]);
  assert.deepEqual(found.heaviest, [0, 1, -1]);
});

test("what the server sends that is no answer is told, not thrown", async () => {
  const page = await open({ server });
  for (const [type, body] of [["application/json", "["], ["application/json", "null"], ["application/json", "{}"],
    ["application/json", '{"outputs": 1}'], ["application/x-safetensors", "short"], ["text/html", "<b>"], ["", ""]]) {
    await page.route("**/attention", (route) => route.fulfill({ body, headers: { "Content-Type": type } }));
    await page.evaluate(async () => {
      State.set({ model: "layer", problem: null, body: { text: '{"queries": [[[1,2,3,4]]]}' } });
      await Ask.send();
    });
    await page.unroute("**/attention");
    assert.equal((await state(page, "problem") || {}).title, "The response cannot be read", `${type} ${body}`);
  }
});
