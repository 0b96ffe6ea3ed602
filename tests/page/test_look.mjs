// test_look: what the heatmaps draw and say, against the answer of the server itself.
import assert from "node:assert/strict";
import { ask, open, sample, serve, settle, shot, state, tab, test } from "./browser.mjs";
import { readout } from "./looking.mjs";

const CANVAS = "#frame canvas";
const server = await serve();
// Most tests share a page, as it was when it was new.
const shared = await open({ server });
const fresh = async () => {
  await shared.mouse.move(5, 5);
  await shared.evaluate(() => State.set({ labels: { rows: [], cols: [] },
    view: { item: 0, head: 0, row: -1, col: -1, range: "shared", strong: false }, over: { row: -1, col: -1 } }));
  await settle(shared);
  return shared;
};

// --- what ought to be seen ---

const answerOf = async (body, model = "demo") =>
  (await server.post(`/v1/models/${model}/attention`, body)).json;
const table = (page) => page.evaluate(() => [...Scale.ramp().bytes]);
const colour = (bytes, weight, high) => {
  const at = 3 * Math.round(255 * Math.min(1, weight / high));
  return [...bytes.slice(at, at + 3), 255];
};
const most = (matrices) => Math.max(...matrices.flat(2));
const place = (page) => page.locator(CANVAS).evaluate((canvas) =>
  Object.fromEntries(Object.entries(canvas.dataset).map(([name, value]) => [name, Number(value)])));
// A little off the middle, where no number stands.
const spot = ({ cell, left, top }, i, j) => [left + (j + 0.2) * cell, top + (i + 0.8) * cell];

const cells = async (page, matrix, high, seen = () => true) => {
  const at = await place(page), bytes = await table(page);
  const wanted = matrix.flatMap((row, i) => row.map((weight, j) => [i, j, weight]))
    .filter(([i, j]) => seen(i, j));
  const got = await sample(page, CANVAS, wanted.map(([i, j]) => spot(at, i, j)));
  wanted.forEach(([i, j, weight], n) =>
    assert.deepEqual(got[n], colour(bytes, weight, high), `query ${i}, key ${j}: ${weight}`));
};
const colours = async (page, i, j) => {
  const { cell, left, top } = await place(page), points = [];
  for (let y = 0; y < cell; y++)
    for (let x = 0; x < cell; x++) points.push([left + j * cell + x, top + i * cell + y]);
  return new Set((await sample(page, CANVAS, points)).map(String));
};
const named = (page, name) => page.evaluate((one) => {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(one).trim();
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).concat(255).join();
}, name);
const hatched = async (page, i, j) => {
  const found = await colours(page, i, j);
  const back = await named(page, "--back"), edge = await named(page, "--edge");
  return found.size === 2 && found.has(back) && found.has(edge);
};
const hover = async (page, i, j) => {
  const [x, y] = spot(await place(page), i, j);
  await page.locator(CANVAS).hover({ position: { x, y } });
  await settle(page);
};
const tile = (page, name) => page.locator("#multiples button", { hasText: name });
const body = (q, k, more) => ({
  queries: [Array.from({ length: q }, (_, i) => [0, 1, 2, 3].map((c) => Math.sin(7 * i + c)))],
  keys: [Array.from({ length: k }, (_, j) => [0, 1, 2, 3].map((c) => 3 * Math.cos(5 * j + c)))],
  return_attention: true, ...more });

// --- pictures ---

test("the readout's headline is the sentence, and the exact weight a note below it", async () => {
  const page = await open({ server: await serve(), path: "/#explore?model=sort&tokens=3+1+2&query=1&key=2" });
  await page.waitForFunction(() => State.view.row === 1);
  await settle(page);
  const [head, note, both] = await page.locator("#readout").evaluate((one) =>
    [one.querySelector("strong").textContent, one.lastChild.textContent, one.textContent]);
  assert.match(head, /^Query 1.* of its weight to key 2.*:$/);
  assert.match(note, /^ ?[\d<.e-]+ \(Layer \d · head \d\)$/);
  assert.equal(both, head + note);
});

test("cells have the colours of the answer's weights, and lengths hide keys", async () => {
  const page = await fresh(), asked = body(3, 6, { valid_lens: [4] });
  await ask(page, asked, "demo");
  const [heads] = (await answerOf(asked)).attention_weights;
  for (const [h, matrix] of heads.entries()) {
    await tile(page, `head ${h}`).click();
    assert.equal(await tile(page, `head ${h}`).getAttribute("aria-pressed"), "true");
    await settle(page);
    await cells(page, matrix, most(heads), (i, j) => j < 4);
    for (const j of [4, 5]) assert.ok(await hatched(page, 2, j));
    assert.ok(!await hatched(page, 2, 3));
  }
});

test("the mean of the heads has a tile of its own", async () => {
  const page = await fresh(), asked = body(4, 5);
  await ask(page, asked, "demo");
  const [heads] = (await answerOf(asked)).attention_weights;
  await tile(page, "mean").click();
  await settle(page);
  const mean = heads[0].map((row, i) => row.map((weight, j) =>
    Math.fround(Math.fround(weight + heads[1][i][j]) / 2)));
  await cells(page, mean, most(heads));
  assert.equal((await state(page, "view")).head, "mean");
  await hover(page, 1, 2);
  const [, weight] = /^Query 1 gives \d+ % of its weight to key 2: (.*) \(mean of heads\)$/
    .exec(await readout(page));
  assert.equal(Math.fround(Number(weight)), mean[1][2]);
});

test("causal attention of eight heads: tiles and the large one", async () => {
  const page = await fresh();
  const rows = Array.from({ length: 30 }, (_, i) =>
    Array.from({ length: 512 }, (_, c) => Math.sin(i * c + i)));
  const asked = { queries: [rows], causal: true, return_attention: true };
  await page.evaluate(() => State.set({ model: "base" }));
  await settle(page);
  await ask(page, asked);
  const [heads] = (await answerOf(asked, "base")).attention_weights, bytes = await table(page);
  await cells(page, heads[0], most(heads), (i, j) => j <= i && i < 20);
  assert.ok(await hatched(page, 3, 4) && await hatched(page, 0, 29) && !await hatched(page, 4, 4));
  await tile(page, "head 7").scrollIntoViewIfNeeded();
  await settle(page);
  const small = await page.locator("#multiples canvas").nth(7).evaluate((canvas) =>
    [...canvas.getContext("2d").getImageData(0, 0, 30, 30).data]);
  for (let i = 0; i < 30; i++)
    for (let j = 0; j < 30; j++)
      assert.deepEqual(small.slice(4 * (30 * i + j), 4 * (30 * i + j) + 4),
        j > i ? [0, 0, 0, 0] : colour(bytes, heads[7][i][j], most(heads)));
});

test("a mask hides; a weight that is zero is no hidden one", async () => {
  const page = await fresh();
  const asked = { queries: [[[900, 0, 0, 0], [0, 900, 0, 0]]],
    keys: [[[900, 0, 0, 0], [0, 900, 0, 0], [-900, 0, 0, 0]]],
    mask: [[true, true, true], [true, true, false]], return_attention: true };
  await ask(page, asked, "demo");
  const [[matrix]] = (await answerOf(asked)).attention_weights, bytes = await table(page);
  const zero = matrix[0].indexOf(0);
  assert.ok(zero >= 0, "the answer has a visible zero");
  await cells(page, matrix, 1, (i, j) => i === 0 || j < 2);
  assert.ok(!await hatched(page, 0, zero));
  assert.ok((await colours(page, 0, zero)).has(colour(bytes, 0, 1).join()));
  assert.ok(await hatched(page, 1, 2));
  await hover(page, 1, 2);
  assert.equal(await readout(page), "Query 1 cannot attend to key 2: it is masked (head 0)");
});

test("rows that see nothing may be uniform: all keys weigh, and none is hatched", async () => {
  const page = await fresh();
  await ask(page, body(2, 4, { valid_lens: [[0, 4]], empty_rows: "uniform" }), "demo");
  await hover(page, 0, 1);
  assert.equal(await readout(page),
    "Query 0 has no unmasked key, so all keys have the same weight: 0.25 (head 0)");
  assert.ok(!(await colours(page, 0, 1)).has(await named(page, "--edge")));
  const [seen] = await page.locator("#rows tbody tr").first().locator("td").allTextContents();
  assert.equal(seen, "all masked");
});

test("each item of a ragged batch, in its own shape", async () => {
  const page = await fresh();
  const asked = { queries: [[[1, 0, 0, 1]], [[0, 1, 1, 0], [1, 2, 0, 1], [2, 0, 1, 1]], []],
    return_attention: true };
  await ask(page, asked, "demo");
  const weights = (await answerOf(asked)).attention_weights;
  assert.equal(await page.locator("#item").textContent(), "of 3 · 1 query × 1 key");
  assert.equal(await page.getByLabel("item", { exact: true }).inputValue(), "0");
  await page.getByRole("button", { name: "Next item" }).click();
  await settle(page);
  assert.equal(await page.locator("#item").textContent(), "of 3 · 3 queries × 3 keys");
  assert.equal(await page.getByLabel("item", { exact: true }).inputValue(), "1");
  for (const [name, there] of [["Head view", true], ["Response", true], ["Head importance", false]]) {
    await tab(page, name);
    assert.equal(await page.locator("#item").isVisible(), there, name);
  }
  await tab(page, "Attention");
  await cells(page, weights[1][0], most(weights[1]));
  await page.getByRole("button", { name: "Next item" }).click();
  await settle(page);
  assert.match(await page.locator("#empty").textContent(), /no queries/);
  assert.ok(await page.getByRole("button", { name: "Next item" }).isDisabled());
  await page.getByRole("button", { name: "Previous item" }).click();
  await settle(page);
  assert.equal(await page.locator("#empty").isVisible(), false);
  await cells(page, weights[1][0], most(weights[1]));
});

test("any item of hundreds is a number away, and numbers that are none do nothing", async () => {
  const page = await fresh();
  await ask(page, { queries: Array.from({ length: 300 }, (_, i) => [[i / 10, 1, 0, 0]]),
    return_attention: true }, "demo");
  const which = page.getByLabel("item", { exact: true });
  for (const [typed, item] of [["299", 299], ["17", 17], ["300", 299], ["-3", 0], ["12.5", 0], ["", 0]]) {
    await which.fill(typed);
    await which.press("Enter");
    await which.blur();
    await settle(page);
    assert.equal((await state(page, "view")).item, item, typed);
    assert.equal(await which.inputValue(), String(item), typed);
  }
  assert.ok(await page.getByRole("button", { name: "Previous item" }).isDisabled());
});

test("one range for all heads, or each its own", async () => {
  const page = await fresh(), asked = body(3, 4);
  await ask(page, asked, "demo");
  const [heads] = (await answerOf(asked)).attention_weights;
  const [low, high] = heads.map((head) => most([head]));
  assert.notEqual(low, high);
  const lesser = low < high ? 0 : 1;
  await tile(page, `head ${lesser}`).click();
  await settle(page);
  await cells(page, heads[lesser], most(heads));
  await page.getByLabel("One color scale").uncheck();
  await settle(page);
  await cells(page, heads[lesser], most([heads[lesser]]));
  const said = Number((await page.locator("#legend").textContent()).replace(/^weight0|masked$/g, ""));
  assert.ok(Math.abs(said - most([heads[lesser]])) < 0.001);
});

test("with contrast, colours end where one weight in a hundred is greater", async () => {
  const page = await fresh(), asked = body(40, 40, { causal: true });
  await ask(page, asked, "demo");
  const [[weights]] = (await answerOf(asked)).attention_weights;
  await page.getByLabel("One color scale").uncheck();
  await page.getByLabel("Contrast").check();
  await settle(page);
  const sorted = weights.flat().filter((x) => x > 0).sort((a, b) => a - b);
  const end = sorted[Math.floor(0.99 * sorted.length)];
  assert.ok(end < 0.9, `${end}`);
  await cells(page, weights, end, (i, j) => j <= i && i < 20);
  assert.match(await page.locator("#legend").textContent(), /0≥ /);
  await page.getByLabel("Contrast").uncheck();
  await settle(page);
  await cells(page, weights, 1, (i, j) => j <= i && i < 20);
});

test("segments are divided, and their weights are shown; pointers are marked", async () => {
  const page = await fresh();
  const asked = body(3, 6, { segments: [[2, 4]], return_pointers: true });
  await ask(page, asked, "demo");
  const answer = await answerOf(asked), { cell, left, top } = await place(page);
  const [line] = await sample(page, CANVAS, [[left + 2 * cell, top + 1.5 * cell]]);
  assert.equal(line.join(), await named(page, "--text"));
  assert.match(await page.locator("#segments").textContent(), /2 segments/);
  const segment = page.locator("#segments [role=application]");
  await segment.focus();
  for (const key of ["Home", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  assert.equal(await page.locator("#segments p").textContent(),
    `Query 1 gives segment 1 the weight ${answer.segment_weights[0][0][1][1]} (head 0)`);
  assert.match(await segment.getAttribute("aria-label"), /^Weights of the 2 segments, 0 to 1\. Arrow keys/);
  await page.keyboard.press("Escape");
  await hover(page, 1, 3);
  assert.ok((await readout(page))
    .endsWith(`(head 0, segment 1 ${answer.segment_weights[0][0][1][1]})`));
  for (const [i, j] of answer.pointers[0][0].entries()) {
    const [at] = await sample(page, CANVAS, [[left + (j + 0.8) * cell, top + (i + 0.12) * cell]]);
    const fill = await sample(page, CANVAS, ...spot({ cell, left, top }, i, j));
    assert.notDeepEqual(at, fill, `the ring of query ${i}`);
  }
});

// --- the pointer, the keyboard, and zooming ---

test("the readout has the digits of the answer, and the words of labels", async () => {
  const page = await fresh(), asked = body(2, 3);
  await ask(page, asked, "demo");
  await page.evaluate(() =>
    State.set({ labels: { rows: [["cat", "<b>"]], cols: [["a", "b", "c"]] } }));
  await settle(page);
  const raw = (await server.post("/v1/models/demo/attention", asked)).text;
  const digits = /"attention_weights":(.*)/.exec(raw)[1].match(/[-+.\de]+/g);
  for (const [i, j] of [[0, 0], [1, 2], [0, 1]]) {
    await hover(page, i, j);
    const row = ["cat", "<b>"][i], col = ["a", "b", "c"][j];
    const weight = Number(digits[3 * i + j]);
    const share = weight >= 0.1 ? Math.round(100 * weight) : Number((100 * weight).toPrecision(2));
    assert.equal(await readout(page), `Query ${i}, “${row}”, gives ${share} % of its weight to `
      + `key ${j}, “${col}”: ${weight} (head 0)`);
    assert.deepEqual(await state(page, "over"), { row: i, col: j });
  }
  await page.mouse.move(5, 5);
  await settle(page);
  assert.equal((await state(page, "over")).row, -1);
});

test("sigmoid weights are no shares of one", async () => {
  const own = await serve([], { config: { models: {
    s: { random: { seed: 7 }, query_size: 4, heads: 1, weighting: "sigmoid" } } } });
  const page = await open({ server: own });
  await ask(page, body(2, 3), "s");
  await hover(page, 1, 2);
  const [{ data }] = (await state(page, "answer")).items[0].weights;
  assert.equal(await readout(page), `Query 1 has weight ${await page.evaluate((x) =>
    Format.float(x), data[5])} on key 2 (head 0)`);
});

test("the pointer looks, a click chooses: what is chosen stays until Escape", async () => {
  const page = await fresh();
  await ask(page, body(3, 4), "demo");
  const [x, y] = spot(await place(page), 1, 2);
  await page.locator(CANVAS).click({ position: { x, y } });
  const chosen = async () => [(await state(page, "view")).row, (await state(page, "view")).col];
  await hover(page, 0, 0);
  assert.match(await readout(page), /^Query 0 gives .* key 0:/);
  assert.deepEqual(await chosen(), [1, 2]);
  assert.ok(await page.locator("#rows tbody tr").nth(1).evaluate((row) => row.matches(".on")));
  assert.deepEqual(await page.locator("#multiples i").evaluateAll((list) =>
    list.map((mark) => [mark.hidden, mark.style.top.slice(0, 4)])), Array(3).fill([false, "33.3"]));
  await page.mouse.move(5, 5);
  await settle(page);
  assert.match(await readout(page), /^Query 1 gives .* key 2:/);
  await page.locator("#frame").press("Escape");
  await settle(page);
  assert.deepEqual(await chosen(), [-1, -1]);
  assert.match(await readout(page), /^Point at a cell/);
});

test("the keyboard moves a cursor, and the window follows", async () => {
  const page = await fresh();
  await ask(page, body(60, 90), "demo");
  await page.locator("#frame").focus();
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await settle(page);
    const { row, col } = await state(page, "view");
    return [row, col];
  };
  assert.deepEqual(await press("ArrowDown"), [0, 0]);
  assert.deepEqual(await press("ArrowRight", "ArrowRight", "ArrowDown"), [1, 2]);
  assert.equal(await page.locator("#readout").getAttribute("aria-live"), "polite");
  assert.deepEqual(await press("+", "+", "+", "+", "+", "+"), [1, 2]);
  assert.deepEqual(await press("End"), [1, 89]);
  const { cell, left } = await place(page);
  const seen = await page.locator("#frame").evaluate((frame) =>
    [frame.scrollLeft, frame.scrollLeft + frame.clientWidth]);
  assert.ok(seen[0] <= 89 * cell && left + 90 * cell <= seen[1], `${seen}, cells of ${cell}`);
  assert.deepEqual(await press("Control+End"), [59, 89]);
  assert.deepEqual(await press("Control+Home"), [0, 0]);
  assert.equal(await page.locator("#frame").evaluate((frame) => frame.scrollTop), 0);
  assert.ok((await press("PageDown"))[0] > 1);
  assert.deepEqual(await press("Escape"), [-1, -1]);
});

test("zooming keeps the cell under the pointer", async () => {
  const page = await fresh(), asked = body(60, 90);
  await ask(page, asked, "demo");
  const [[matrix]] = (await answerOf(asked)).attention_weights;
  const high = most((await answerOf(asked)).attention_weights[0]), bytes = await table(page);
  const before = await place(page);
  await hover(page, 30, 45);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await settle(page);
  assert.ok((await place(page)).cell > before.cell);
  const { row, col } = await state(page, "over");
  assert.ok(Math.abs(row - 30) <= 1 && Math.abs(col - 45) <= 1, `${row}, ${col}`);
  const larger = page.getByRole("button", { name: "Zoom in" });
  while (await larger.isEnabled()) await larger.click();
  await settle(page);
  const { cell, left, top } = await place(page);
  assert.equal(cell, 48);
  const [x, y] = await page.locator("#frame").evaluate((f) => [f.scrollLeft, f.scrollTop]);
  const i = Math.ceil(y / cell) + 1, j = Math.ceil(x / cell) + 1;
  const got = await sample(page, CANVAS, left + (j + 0.2) * cell - x, top + (i + 0.85) * cell - y);
  assert.deepEqual(got, colour(bytes, matrix[i][j], high));
  const fit = page.getByRole("button", { name: "Fit" });
  await fit.click();
  await settle(page);
  assert.deepEqual(await place(page), before);
  assert.ok(await fit.isDisabled(), "there is nothing to fit");
});

// --- sizes, themes ---

test("2048 queries and keys: all of them at once, and each of them", async () => {
  const page = await fresh();
  await page.evaluate(async () => {
    const data = Float32Array.from({ length: 4 * 2048 }, (_, i) => 3 * Math.sin(i * i));
    const queries = { dtype: "F32", shape: [1, 2048, 4], bytes: new Uint8Array(data.buffer) };
    const fields = { causal: true, return_attention: true };
    State.set({ model: "demo", body: { name: "x", tensors: { queries }, fields } });
    await Ask.send();
  });
  await settle(page);
  // The whole is seen, a pixel for the heaviest of a block.
  const whole = await place(page), bytes = await table(page), n = whole.block;
  assert.deepEqual([whole.cell, n > 1], [1, true]);
  assert.ok(await page.locator("#frame").evaluate((frame) => frame.scrollWidth <= frame.clientWidth
    && frame.scrollHeight <= frame.clientHeight));
  const blocks = await page.evaluate((side) => {
    const [{ matrix: { data } }] = Answer.faces(State.answer, 0), peaks = [];
    for (const [a, b] of [[0, 0], [100, 30], [Math.floor(2047 / side), 7]]) {
      let most = 0;
      for (let i = a * side; i < Math.min(2048, (a + 1) * side); i++)
        for (let j = b * side; j < (b + 1) * side; j++) most = Math.max(most, data[i * 2048 + j]);
      peaks.push([a, b, most]);
    }
    return [peaks, Scale.high(Answer.faces(State.answer, 0))];
  }, n);
  for (const [a, b, peak] of blocks[0])
    assert.deepEqual(await sample(page, CANVAS, whole.left + b + 0.5, whole.top + a + 0.5),
      colour(bytes, peak, blocks[1]), `block ${a}, ${b}`);
  await page.locator(CANVAS).hover({ position: { x: whole.left + 30.5, y: whole.top + 100.5 } });
  await settle(page);
  const over = await state(page, "over");
  assert.deepEqual([Math.floor(over.row / n), Math.floor(over.col / n)], [100, 30]);
  assert.ok(await page.getByRole("button", { name: "Zoom out" }).isDisabled());
  const larger = page.getByRole("button", { name: "Zoom in" });
  while ((await place(page)).block > 1) {
    await larger.click();
    await settle(page);
  }
  const at = await place(page);
  assert.equal(at.cell, 1);
  for (const [x, y] of [[0, 0], [400, 0], [400, 900], [3000, 3000]]) {
    const [dx, dy] = await page.locator("#frame").evaluate((frame, [a, b]) => {
      frame.scrollTo(a, b);
      return [frame.scrollLeft, frame.scrollTop];
    }, [x, y]);
    await settle(page);
    const [i, j] = [dy + 300, dx + 200];
    const wanted = await page.evaluate(([a, b]) => {
      const faces = Answer.faces(State.answer, 0);
      return [faces[0].matrix.data[a * 2048 + b], Scale.high(faces)];
    }, [i, j]);
    const got = await sample(page, CANVAS, at.left + 200.5, at.top + 300.5);
    if (j <= i) assert.deepEqual(got, colour(bytes, ...wanted), `query ${i}, key ${j}`);
    else assert.ok([await named(page, "--back"), await named(page, "--edge")].includes(got.join()));
  }
  const size = await page.locator(CANVAS).evaluate((canvas) => canvas.width * canvas.height);
  assert.ok(size < 1280 * 800, "the canvas is no larger than its window");
});

test("a narrow screen, dark", async () => {
  const page = await open({ server, viewport: [360, 740], dark: true });
  const asked = body(12, 30, { valid_lens: [20] });
  await ask(page, asked, "demo");
  for (const part of ["#look-tools", "#multiples", "#large"]) {
    const { x, width } = await page.locator(part).boundingBox();
    assert.ok(x >= 0 && x + width <= 360, part);
    assert.ok(await page.locator(part).evaluate((node) => node.scrollWidth <= node.clientWidth));
  }
  const [heads] = (await answerOf(asked)).attention_weights;
  await cells(page, heads[0], most(heads), (i, j) => j < 20);
  assert.ok(await hatched(page, 0, 25));
  await shot(page, "look_narrow_dark");
});

for (const scale of [1.5, 2])
  test(`screens of ${scale} device pixels to a pixel`, async () => {
    const page = await open({ server, scale, viewport: [700, 800] });
    const asked = body(12, 37, { valid_lens: [30] });
    await ask(page, asked, "demo");
    const [heads] = (await answerOf(asked)).attention_weights;
    await cells(page, heads[0], most(heads), (i, j) => j < 30);
    assert.ok(await hatched(page, 11, 36) && !await hatched(page, 11, 29));
    const [wide, of] = await page.locator(CANVAS).evaluate((canvas) =>
      [canvas.width, canvas.getBoundingClientRect().width]);
    assert.ok(Math.abs(wide / of - scale) < 0.01, `${wide} pixels on ${of}`);
    for (const [i, j] of [[0, 0], [11, 36], [5, 17]]) {
      await hover(page, i, j);
      assert.match(await readout(page), new RegExp(`^Query ${i} (gives .* to|cannot attend to) key ${j}\\b`));
    }
    await shot(page, `look_scale_${scale}`);
  });

test("a change of theme draws again", async () => {
  const page = await open({ server });
  await ask(page, body(2, 4, { valid_lens: [2] }), "demo");
  const light = await named(page, "--back");
  assert.ok(await hatched(page, 0, 3));
  await page.emulateMedia({ colorScheme: "dark" });
  await settle(page);
  assert.notEqual(await named(page, "--back"), light);
  assert.ok(await hatched(page, 0, 3));
});

// --- nothing to draw ---

test("where there is nothing to draw, the page says why", async () => {
  const page = await fresh();
  const said = () => page.locator("#empty").textContent();
  await page.evaluate(() => State.set({ answer: null }));
  await settle(page);
  assert.match(await said(), /Run a request/);
  const row = [1, 0, 0, 1];
  for (const [asked, expected] of [
    [{ queries: [[row]] }, /no weights/],
    [{ queries: [], return_attention: true }, /batch is empty/],
    [{ queries: [[]], return_attention: true }, /no queries/],
    [{ queries: [[row]], keys: [[]], return_attention: true }, /no keys/],
    [{ queries: [[]], return_attention: "average" }, /no queries/]]) {
    await ask(page, asked, "demo");
    assert.equal(await state(page, "problem"), null);
    assert.match(await said(), expected);
    assert.equal(await page.locator("#large").isVisible(), false);
  }
  await page.evaluate(() => { Ask.limit = 10; });
  await ask(page, body(2, 2), "demo");
  assert.match(await said(), /too large to draw/);
  await page.evaluate(() => { Ask.limit = 1e8; });
  await ask(page, body(2, 2), "demo");
  assert.equal(await page.locator("#empty").isVisible(), false);
  assert.ok(await page.locator("#large").isVisible());
});

test("contrast is chosen by the page for long rows, and by whoever wants it", async () => {
  const page = await fresh(), box = page.getByLabel("Contrast");
  await page.evaluate(() => State.show({ strong: null }));
  await ask(page, body(3, 4), "demo");
  assert.equal(await box.isChecked(), false);
  await ask(page, body(60, 100, { causal: true }), "demo");
  assert.equal(await box.isChecked(), true);
  assert.match(await page.locator("#legend").textContent(), /0≥ /);
  await box.uncheck();
  await settle(page);
  assert.doesNotMatch(await page.locator("#legend").textContent(), /≥/);
  await ask(page, body(60, 100, { causal: true }), "demo");
  assert.equal(await box.isChecked(), false, "what was chosen stays");
});

test("zero is paper on a light page, and night on a dark one", async () => {
  for (const dark of [false, true]) {
    const page = await open({ server, dark });
    const [zero, one] = await page.evaluate(() => [0, 1].map(Scale.css));
    const light = (text) => text.match(/\d+/g).reduce((sum, x) => sum + Number(x), 0);
    assert.equal(light(zero) < light(one), dark);
    if (!dark) assert.equal(zero.match(/\d+/g).concat(255).join(), await named(page, "--back"));
  }
});

test("labels are measured, whatever their letters, and cut", async () => {
  const page = await fresh();
  const widths = await page.evaluate(() => ["iiiiiiiiii", "WWWWWWWWWW", "W".repeat(500), "", "漢字".repeat(200),
    "👩‍👩‍👧".repeat(300)].map((word) => Heatmap.brief(word)));
  assert.ok(widths[0][1] < widths[1][1] / 2, "ten letters and ten letters");
  assert.equal(widths[1][0], "WWWWWWWWWW");
  for (const [text, wide] of widths) assert.ok(wide <= 140 && text.length < 200, text);
  assert.ok(widths[2][0].endsWith("…"));
});

test("labels belong to their request, and wrong counts are told", async () => {
  const page = await fresh(), asked = body(2, 3), note = page.locator("#labels-note");
  await ask(page, asked, "demo");
  await page.locator("#labels-part summary").click();
  await page.locator("#labels-rows").fill("cat dog bird");
  await page.locator("#labels-cols").fill("a b c");
  await settle(page);
  assert.equal(await note.textContent(), "Item 0 has queries: 2, words: 3.");
  await page.locator("#labels-rows").fill("cat dog");
  await settle(page);
  assert.equal(await note.textContent(), "");
  const words = () => page.locator("#rows tbody th").allTextContents();
  assert.deepEqual(await words(), ["cat", "dog"]);
  await page.locator("#example").selectOption("ragged");
  await settle(page);
  assert.deepEqual(await words(), ["0", "1", "2"], "they are not the next request's");
  assert.equal(await page.locator("#labels-rows").inputValue(), "");
  await page.locator("#example").selectOption("own0");
  await settle(page);
  assert.deepEqual(await words(), ["cat", "dog"], "and come back with their own");
  await page.locator("#labels-part summary").click();
});

test("144 heads are one stop of the tab key", async () => {
  const own = await serve([], { config: { models: {
    many: { random: { seed: 7 }, query_size: 144, heads: 144 } } } });
  const page = await open({ server: own });
  await ask(page, { queries: [[Array(144).fill(0.1), Array.from({ length: 144 }, (_, i) => i / 100)]],
    return_attention: true }, "many");
  const stops = () => page.locator("#multiples button").evaluateAll((list) =>
    list.flatMap((tile, i) => (tile.tabIndex === 0 ? [i] : [])));
  assert.deepEqual(await stops(), [0]);
  await page.locator("#multiples button").first().focus();
  for (const [key, at] of [["ArrowRight", 1], ["End", 144], ["ArrowLeft", 143], ["Home", 0]]) {
    await page.keyboard.press(key);
    assert.deepEqual(await stops(), [at], key);
  }
  await page.keyboard.press("ArrowDown");
  const [below] = await stops();
  assert.ok(below > 1 && below < 20, `${below} is below the first`);
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal((await state(page, "view")).head, below);
});

test("the table of queries is not cut at 1280 pixels, whatever the number of keys", async () => {
  const page = await fresh();
  for (const keys of [2, 5, 8, 12]) {
    await ask(page, body(4, keys), "demo");
    const cut = await page.locator("#rows").evaluate((node) => node.scrollWidth - node.clientWidth);
    assert.ok(cut <= 0, `${keys} keys: ${cut}`);
  }
});

test("cells have three decimals, no powers of ten", async () => {
  assert.deepEqual(await shared.evaluate(() => [0, 3e-28, 0.00049, 0.0005, 0.09, 1].map(Format.weight)),
    ["0", "<0.001", "<0.001", "0.001", "0.090", "1.000"]);
});

test("words of the page have a tip", async () => {
  const page = await fresh();
  await ask(page, body(3, 4), "demo");
  await page.getByRole("button", { name: "Entropy, nats" }).click();
  assert.match(await page.locator("#tip").textContent(), /0 is one key alone/);
  assert.ok(await page.locator("#tip").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!await page.locator("#tip").isVisible());
});

for (const [dark, scale] of [[false, 1], [true, 2]])
  test(`pictures to be saved are on paper${dark ? ", from a dark page too" : ""}`, async () => {
    const page = await open({ server, dark, scale }), asked = body(3, 4, { valid_lens: [3] });
    await ask(page, asked, "demo");
    const [heads] = (await answerOf(asked)).attention_weights;
    const seen = await page.evaluate(async () => {
      const picture = await createImageBitmap(await Picture.png(Picture.svg(Look.sheet())));
      const { width, height } = picture, pen = new OffscreenCanvas(width, height).getContext("2d");
      pen.drawImage(picture, 0, 0);
      const counts = {};
      for (const one of new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer))
        counts[one] = (counts[one] || 0) + 1;
      const drawn = Picture.svg(Look.sheet());
      return { counts, bytes: [...Scale.paper().bytes], text: drawn.textContent,
        size: [width, height], svg: ["width", "height"].map((name) => Number(drawn.getAttribute(name))) };
    });
    for (const weight of heads[0].flatMap((row) => row.slice(0, 3))) {
      const [r, g, b] = colour(seen.bytes, weight, most(heads));
      assert.ok(seen.counts[(0xff000000 | (b << 16) | (g << 8) | r) >>> 0] > 1000, String(weight));
    }
    seen.size.forEach((n, i) => assert.ok(Math.abs(n / 2 - seen.svg[i]) <= 1, "one layout"));
    for (const word of ["queries", "keys", "masked", "head 0, 3 queries × 4 keys"])
      assert.ok(seen.text.includes(word), word);
  });
