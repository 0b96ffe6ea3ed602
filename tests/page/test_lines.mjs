// test_lines: the table of rows, the line view, what is saved, and the answer as it came. Numbers
// are checked against what the server itself answers to the same request: it does so bit for bit.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { ask, audit, open, sample, serve, settle, state, tab, test } from "./browser.mjs";

const WORDS = ["the", "cat", "sat", "on", "a", "mat"];
const REQUEST = { return_attention: true, valid_lens: [[6, 3, 0, 6, 1, 2], [2, 6, 6, 6, 6, 6]],
  queries: [0, 1].map((b) => WORDS.map((_, i) =>
    [Math.sin(3 * i + b), Math.cos(5 * i) * 2, (i % 3) - 1, i / 4])) };
const HOSTILE = ["<b>bold</b>", "]]>", "nul\u0000 bell\u0007 \ufffe", 'say "so", so', "two\nlines",
  "=1+1", "\ud800 half", "&amp;"];

const server = await serve();
// Most tests share a page, as it was when it was new.
const shared = await open({ server });
const fresh = async () => {
  await shared.mouse.move(5, 5);
  await shared.evaluate(() => {
    State.set({ labels: { rows: [], cols: [] },
      view: { item: 0, head: 0, row: -1, col: -1, range: "shared", strong: false }, over: { row: -1, col: -1 } });
    document.getElementById("tab-look").click();
  });
  await settle(shared);
  return shared;
};
const PATH = "/v1/models/demo/attention";
const answerTo = async (request) => (await server.post(PATH, request)).json;
const label = (page, rows, cols = []) =>
  page.evaluate((labels) => State.set({ labels }), { rows, cols }).then(() => settle(page));
const view = (page, changes) =>
  page.evaluate((what) => State.show(what), changes).then(() => settle(page));
const download = async (page, name) => {
  const [file] = await Promise.all([page.waitForEvent("download"),
    page.getByRole("button", { name, exact: true }).click()]);
  return { name: file.suggestedFilename(), bytes: fs.readFileSync(await file.path()) };
};
// A bug of the page must not hide in a copy of it: everything here is worked out anew.
const parseCsv = (text) => {
  const rows = [[]];
  const cells = /("((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g;
  for (const [, cell, quoted, plain, end] of text.matchAll(cells)) {
    rows.at(-1).push(cell[0] === '"' ? quoted.replaceAll('""', '"') : plain);
    if (end !== ",") rows.push([]);
  }
  assert.deepEqual(rows.pop(), [], "every line ends with CR LF");
  return rows;
};
const tableOf = (page, where) => page.locator(`${where} tbody tr`).evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim())));

const percent = (x) =>
  `${x >= 0.1 ? Math.round(100 * x) : Number((100 * x).toPrecision(2))} %`;

// --- rows ---

test("each row has its entropy, what it sees, and its heaviest key", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await label(page, [WORDS, WORDS]);
  const { attention_weights: all } = await answerTo(REQUEST);
  for (const [item, head] of [[0, 0], [0, 1], [1, 1]]) {
    await view(page, { item, head });
    const want = all[item][head].map((row, i) => {
      const n = REQUEST.valid_lens[item][i];
      if (n === 0) return [WORDS[i], "all masked", "0", "–"];
      const nats = row.reduce((sum, x) => sum - (x > 0 ? x * Math.log(x) : 0), 0);
      const share = n > 1 ? Math.round(100 * nats / Math.log(n)) : 0;
      const top = row.indexOf(Math.max(...row));
      return [WORDS[i], `${nats.toFixed(3)} ${share} %`, String(n),
        `${WORDS[top]} ${percent(row[top])}`];
    });
    assert.deepEqual(await tableOf(page, "#rows"), want, `item ${item}, head ${head}`);
    assert.equal(await page.locator("#rows caption").innerText(), `Queries of head ${head}`);
  }
});

test("a row is chosen by the pointer and the keyboard, and let go of", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  const on = () => page.locator("#rows tr.on")
    .evaluateAll((rows) => rows.map((row) => row.sectionRowIndex));
  await page.locator("#rows tbody tr").nth(3).locator("td").last().click();
  assert.equal((await state(page, "view")).row, 3);
  assert.deepEqual(await on(), [3]);
  await page.locator("#rows tbody button").nth(1).focus();
  await page.keyboard.press("Enter");
  await settle(page);
  assert.deepEqual(await on(), [1]);
  const before = await page.locator("#rows table").elementHandle();
  await page.keyboard.press("Enter");
  assert.equal((await state(page, "view")).row, -1);
  await view(page, { row: 2, col: 2 });
  assert.deepEqual(await on(), [2]);
  assert.ok(await before.evaluate((node) => node.isConnected), "a cursor makes no new table");
});

test("many rows come in parts", async () => {
  const page = await fresh();
  const many = (n) => ({ queries: [Array.from({ length: n }, (_, i) => [i % 7, 1, 0, 0])],
    keys: [[[1, 0, 0, 0], [1, 0, 0, 0]]], return_attention: true });
  await ask(page, many(2100), "demo");
  assert.equal(await page.locator("#rows tbody tr").count(), 50);
  await page.getByRole("button", { name: "Show 500 of 2100 queries" }).waitFor();
  await ask(page, many(230), "demo");
  await page.getByRole("button", { name: "Show 230 of 230 queries" }).click();
  assert.equal(await page.locator("#rows tbody tr").count(), 230);
  assert.equal(await page.evaluate(() => document.activeElement.innerText), "50");
  assert.deepEqual((await tableOf(page, "#rows"))[229], ["229", "0.693 100 %", "2", "0 50 %"],
    "of equal keys the first is the heaviest");
  assert.equal(await page.locator("#rows button", { hasText: "Show" }).count(), 0);
});

test("a sigmoid has no entropy; what has nothing to show is no error", async () => {
  const models = { s: { weighting: "sigmoid", random: { seed: 7 }, heads: 2, query_size: 4 } };
  const page = await open({ server: await serve([], { config: { models } }) });
  await ask(page, { ...REQUEST, valid_lens: null }, "s");
  assert.equal(await state(page, "problem"), null);
  assert.deepEqual((await tableOf(page, "#rows")).map((row) => row[1]), WORDS.map(() => "–"));
  const empty = [{ queries: [] }, { queries: [[]] }, { queries: [[[1, 0, 0, 0]]], keys: [[]] }];
  for (const request of [...empty.map((one) => ({ ...one, return_attention: true })),
    { queries: [[[1, 0, 0, 0]]] }]) {
    await ask(page, request, "s");
    assert.equal(await state(page, "problem"), null);
    for (const name of ["Attention", "Head view", "Response"]) await tab(page, name);
    assert.equal(await page.locator("#save").isVisible(), false);
    assert.equal(await page.locator("#rows tr").count(), 0);
    assert.match(await page.locator("#lines p").textContent(), /no weights to draw/);
  }
});

// --- lines ---

// The color of a head is that of its button.
const colorOf = (page, head) => page.locator("#lines-also button").nth(head).evaluate((one) =>
  getComputedStyle(one).borderBottomColor.match(/\d+/g).map(Number));
// What the line from a query to each key covers of a column of pixels near the keys: its width
// there times its density, whatever the pixels that it falls between.
const coverage = async (page, i, names) => {
  const color = await colorOf(page, 0);
  const { width, height } = await page.locator("#lines canvas").boundingBox();
  const n = names.length, longest = Math.max(...names.map((name) => name.length));
  const room = Math.min(0.3 * width, 16 + 8 * longest), long = width - 2 * room;
  const points = names.flatMap((_, j) => Array.from({ length: 20 }, (__, up) =>
    [room + 0.85 * long, height * (0.15 * (i + 0.5) + 0.85 * (j + 0.5)) / n + up - 10]));
  const found = await sample(page, "#lines canvas", points);
  for (const rgba of found.filter((one) => one[3] > 100))
    for (const c of [0, 1, 2])
      assert.ok(Math.abs(rgba[c] - color[c]) < 4, `${rgba} is not the head's color`);
  return names.map((_, j) => found.slice(20 * j, 20 * j + 20)
    .reduce((sum, rgba) => sum + rgba[3] / 255, 0) / Math.hypot(1, (j - i) * height / n / long));
};

const shown = (x) => (x === 0 ? "0" : x < 0.0005 ? "<0.001" : x.toFixed(3));
for (const scheme of ["light", "dark"])
  test(`lines are as thick and as dense as weights, ${scheme}`, async () => {
    const page = await open({ server, dark: scheme === "dark" });
    await ask(page, REQUEST, "demo");
    await label(page, [WORDS, WORDS]);
    await tab(page, "Head view");
    const weights = (await answerTo(REQUEST)).attention_weights[0][0];
    const high = Math.max(...(await answerTo(REQUEST)).attention_weights[0].flat(2));
    for (const row of [0, 1, 3]) {
      await view(page, { row });
      const got = await coverage(page, row, WORDS);
      for (const [j, weight] of weights[row].entries()) {
        const share = weight / high;
        const want = weight > 0 ? (0.15 + 0.85 * share) * (0.5 + 6 * share) : 0;
        assert.ok(Math.abs(got[j] - want) < 0.02 + 0.12 * want,
          `${row} ${j}: ${got[j]}, not ${want}`);
      }
      const top = weights[row].map((x, j) => [x, j]).filter(([x]) => x > 0);
      const words = top.sort((a, b) => b[0] - a[0]).slice(0, 5)
        .map(([x, j]) => `“${WORDS[j]}” ${shown(x)}`);
      assert.equal(await page.locator("#lines p").textContent(),
        `query ${row} “${WORDS[row]}” → ${words.join(", ")}; lines: ${top.length}`);
    }
    await audit(page, "lines");
  });

test("all queries, one by pointing, one by keys, one by name", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await label(page, [WORDS, WORDS]);
  await tab(page, "Head view");
  const text = () => page.locator("#lines p").textContent();
  const weights = (await answerTo(REQUEST)).attention_weights[0][0];
  const all = `queries: 6, keys: 6, lines: ${weights.flat().filter((x) => x > 0).length}`;
  assert.equal(await text(), all);
  const canvas = page.locator("#lines canvas"), { height } = await canvas.boundingBox();
  await canvas.hover({ position: { x: 20, y: height * 3.5 / 6 } });
  assert.match(await text(), /^query 3 “on” → /);
  assert.equal((await state(page, "view")).row, -1, "pointing chooses nothing");
  await canvas.hover({ position: { x: 700, y: 20 } });
  assert.match(await text(), /^key 0 “the” ← “a” 1\.000, “mat” 0\.709, /);
  await canvas.hover({ position: { x: 430, y: 20 } });
  assert.equal(await text(), all);
  await canvas.click({ position: { x: 20, y: height * 2.5 / 6 } });
  assert.equal((await state(page, "view")).row, 2);
  await page.mouse.move(0, 0);
  assert.equal(await text(), "query 2 “sat” → nothing; lines: 0");
  await page.locator("#lines [tabindex='0'][role=group]").focus();
  await page.keyboard.press("ArrowUp");
  assert.equal((await state(page, "view")).row, 1);
  await settle(page);
  assert.match(await text(), /^query 1 “cat”/);
  for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowUp");
  assert.equal((await state(page, "view")).row, -1);
  await page.getByRole("combobox", { name: "Query" }).selectOption({ label: "a" });
  await settle(page);
  assert.match(await text(), /^query 4 “a” → “the” 1\.000; lines: 1$/);
  await page.getByRole("combobox", { name: "Head" }).selectOption("mean of heads");
  assert.equal((await state(page, "view")).head, "mean");
});

test("several heads, each in its colour, with bars as long as their weights", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await label(page, [WORDS, WORDS]);
  await tab(page, "Head view");
  await view(page, { row: 4 });
  const boxes = page.locator("#lines-also button");
  assert.deepEqual(await boxes.allTextContents(), ["0", "1"]);
  const colours = async () => new Set((await page.locator("#lines canvas").evaluate((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, 0.7 * canvas.width, canvas.height);
    const found = {};
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 200) found[[data[i], data[i + 1], data[i + 2]].map((c) => c >> 4)] = 1;
    return Object.keys(found);
  })));
  const one = await colours();
  await boxes.nth(1).focus();
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await boxes.nth(1).getAttribute("aria-pressed"), "true");
  assert.ok((await colours()).size > one.size, "another colour is there");
  await audit(page, "several heads");
  await boxes.nth(1).click();
  await settle(page);
  assert.equal((await colours()).size, one.size);
  // Of query 4 all weight is on key 0: its bar is as long as there is room.
  const { width, height } = await page.locator("#lines canvas").boundingBox();
  const bars = await sample(page, "#lines canvas", [[width - 2, height * 0.5 / 6], [width - 2, height * 3.5 / 6]]);
  assert.deepEqual(bars.map((rgba) => rgba[3] > 50), [true, false]);
});

test("labels of keys that the query may not see are faint", async () => {
  const page = await fresh();
  await ask(page, { ...REQUEST, keys: REQUEST.queries }, "demo");
  await label(page, [WORDS, WORDS.map(() => "mmmm")]);
  await tab(page, "Head view");
  await view(page, { row: 1 });
  const { width, height } = await page.locator("#lines canvas").boundingBox();
  const strongest = async (j) => {
    const points = Array.from({ length: 480 }, (_, i) =>
      [width - 42 + i % 40, height * (j + 0.5) / 6 - 6 + Math.floor(i / 40)]);
    return Math.max(...(await sample(page, "#lines canvas", points)).map((rgba) => rgba[3]));
  };
  for (const j of [0, 2]) assert.ok(await strongest(j) > 150, `key ${j}`);
  for (const j of [3, 5]) {
    const alpha = await strongest(j);
    assert.ok(alpha > 40 && alpha < 110, `key ${j}: ${alpha}`);
  }
});

test("of many weights the heaviest have lines, and it says how many have none", async () => {
  const page = await fresh();
  const queries = [Array.from({ length: 150 }, (_, i) => [Math.sin(i), Math.cos(3 * i), i % 2, 0])];
  const request = { queries, return_attention: true, causal: true };
  await ask(page, request, "demo");
  await tab(page, "Head view");
  const all = (await answerTo(request)).attention_weights[0][0].flat().filter((x) => x > 0);
  const least = all.sort((a, b) => b - a)[399];
  assert.equal(await page.locator("#lines p").textContent(),
    `queries: 150, keys: 150, lines: 400, ${(all.length - 400).toLocaleString("en")} weights below the threshold ${shown(least)}`);

  const scroller = page.locator("#lines [tabindex='0'][role=group]");
  assert.ok(await scroller.evaluate((node) => node.scrollHeight > node.clientHeight));
  await view(page, { row: 120 });
  await scroller.focus();
  await page.keyboard.press("ArrowDown");
  await settle(page);
  assert.ok(await scroller.evaluate((node) => node.scrollTop > 500), "the query is in sight");
});

test("the small weights of a large matrix are thin and faint", async () => {
  const page = await fresh();
  await ask(page, { queries: [Array.from({ length: 100 }, () => [0, 0, 0, 0])], return_attention: true }, "demo");
  await tab(page, "Head view");
  assert.match(await page.locator("#lines p").textContent(), /9,600 weights below the threshold 0\.010$/);
  const { width } = await page.locator("#lines canvas").boundingBox();
  const found = await sample(page, "#lines canvas", Array.from({ length: 2000 }, (_, y) => [width - 40, y]));
  const most = Math.max(...found.map((rgba) => rgba[3]));
  assert.ok(most > 0 && most < 200, `${most}`);
});

test("the chosen head has its own button pressed, in the color of its lines", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await tab(page, "Head view");
  await view(page, { head: 1, row: 4 });
  const boxes = page.locator("#lines-also button");
  assert.deepEqual(await boxes.evaluateAll((list) => list.map((one) => [one.ariaLabel, one.ariaPressed, one.disabled])),
    [["head 0", "false", false], ["head 1", "true", true]]);
  const [bar] = await sample(page, "#lines canvas",
    [[(await page.locator("#lines canvas").boundingBox()).width - 2, 11]]);
  const color = await colorOf(page, 1);
  assert.ok(color.every((x, c) => Math.abs(x - bar[c]) < 6), `${bar}, ${color}`);
});

// --- saving ---

const rgbOf = (page, weights, high) => page.evaluate(([list, most]) =>
  list.map((x) => [...Scale.paper().bytes.slice(3 * Scale.index(x / most)).slice(0, 3)]),
[weights, high]);
const highest = (weights) => Math.max(...weights.flat(Infinity));

test("PNG: a picture of the face, of its colours", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  const { name, bytes } = await download(page, "PNG");
  assert.equal(name, "attend-demo-item0-head0.png");
  const all = (await answerTo(REQUEST)).attention_weights[0];
  const want = await rgbOf(page, all[0].flat(), highest(all));
  const seen = await page.evaluate(async ([list, colours]) => {
    const file = new Blob([Uint8Array.from(list)], { type: "image/png" });
    const picture = await createImageBitmap(file);
    const drawn = Picture.svg(Look.sheet());
    const [width, height] = ["width", "height"].map((one) => Math.trunc(2 * drawn.getAttribute(one)));
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const ink = canvas.getContext("2d");
    ink.drawImage(picture, 0, 0);
    const { data } = ink.getImageData(0, 0, picture.width, picture.height);
    const there = new Set();
    for (let i = 0; i < data.length; i += 4) there.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
    return { size: [picture.width, picture.height], like: [width, height],
      missing: colours.filter((colour) => !there.has(colour.join(" "))) };
  }, [[...bytes], want.filter((_, at) => all[0].flat()[at] > 0)]);
  assert.equal(seen.size[1], seen.like[1], "as high as the SVG; a longer title makes it wider");
  assert.deepEqual(seen.missing, [], "every visible weight's colour is in the picture");
});

// What an SVG holds, read by another XML parser than the one that wrote it.
const READ = `import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([(n.tag.split("}")[1], dict(n.attrib), n.text) for n in root.iter()]))`;
const readSvg = (bytes) => {
  const { status, stdout, stderr } = spawnSync("python3", ["-c", READ], { input: bytes });
  assert.equal(status, 0, String(stderr));
  const nodes = JSON.parse(stdout).map(([name, has, text]) => ({ name, has, text }));
  const of = (name) => nodes.filter((node) => node.name === name);
  return { names: [...new Set(nodes.map((node) => node.name))].sort(),
    rects: of("rect").slice(1).map(({ has }) => has).filter(({ stroke }) => !stroke),
    circles: of("circle").map(({ has }) => has),
    lines: of("path").slice(1).map(({ has }) => has), texts: of("text").map(({ text }) => text),
    image: of("image").map(({ has }) => has.href)[0] };
};

test("SVG: a rectangle for each run of one colour, hatching where keys are hidden", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await label(page, [WORDS, WORDS]);
  const { name, bytes } = await download(page, "SVG");
  assert.equal(name, "attend-demo-item0-head0.svg");
  const all = (await answerTo(REQUEST)).attention_weights[0];
  const colours = await rgbOf(page, all[0].flat(), highest(all));
  const { rects, texts } = readSvg(bytes), short = Number(highest(all).toPrecision(3));
  const grid = {}, size = Number(rects[0].height);
  for (const { x, y, width, fill } of rects)
    for (let j = x / size; j < (Number(x) + Number(width)) / size; j++) {
      assert.equal(grid[[y / size, j]], undefined, "no cell twice");
      grid[[y / size, j]] = fill;
    }
  assert.equal(Object.keys(grid).length, 36);
  for (let i = 0; i < 6; i++)
    for (let j = 0; j < 6; j++)
      assert.equal(grid[[i, j]], j < REQUEST.valid_lens[0][i]
        ? `rgb(${colours[6 * i + j]})` : "url(#hidden)", `cell ${i} ${j}`);
  const title = `demo, item 0, head 0, 6 queries × 6 keys, 0 to ${short}`;
  assert.equal(texts[0], title);
  assert.deepEqual(texts.filter((text) => WORDS.includes(text)), [...WORDS, ...WORDS]);
  assert.deepEqual(texts.slice(-5), ["keys", "queries", "0", String(short), "masked"]);
  assert.equal(texts.filter((text) => /^[01]/.test(text)).length, 2 + 18, "a number in each visible cell");
});

test("SVG: where all keys weigh as a query sees none, none is hatched", async () => {
  const page = await fresh();
  await ask(page, { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], valid_lens: [[0, 2]],
    empty_rows: "uniform", return_attention: true }, "demo");
  const { rects } = readSvg((await download(page, "SVG")).bytes);
  assert.ok(rects.some(({ y }) => y === "0"));
  assert.ok(rects.every(({ fill }) => fill.startsWith("rgb")));
});

test("SVG: segments end at lines, and pointers lead to circles", async () => {
  const page = await fresh();
  const request = { ...REQUEST, segments: [[0, 2, 4], [6]], return_pointers: true };
  await ask(page, request, "demo");
  const { rects, lines, circles } = readSvg((await download(page, "SVG")).bytes);
  const size = Number(rects[0].height);
  assert.deepEqual(lines.map(({ d }) => d), [`M${2 * size} 0V${6 * size}`]);
  const [[pointers]] = (await answerTo(request)).pointers;
  assert.equal(pointers[2], -1);
  assert.deepEqual(circles.map(({ cx, cy }) => [cx / size - 0.5, cy / size - 0.5]),
    pointers.map((key, i) => [key, i]).filter(([key]) => key >= 0));
});

test("SVG: hostile labels stay text, and XML stays well-formed", async () => {
  const page = await fresh();
  const queries = [HOSTILE.map((_, i) => [i, 1, 0, 0])];
  await ask(page, { queries, return_attention: true }, "demo");
  await label(page, [HOSTILE]);
  const { bytes } = await download(page, "SVG");
  const { names, texts } = readSvg(bytes);
  assert.deepEqual(names, ["g", "linearGradient", "path", "pattern", "rect", "stop", "svg", "text"]);
  const want = HOSTILE.map((text) => text.replace(/[\0\x07\ufffe\ud800]/g, "\ufffd"));
  assert.deepEqual(texts.filter((text) => want.includes(text)), [...want, ...want]);
  assert.deepEqual((await tableOf(page, "#rows")).length, HOSTILE.length);
  assert.equal(await page.locator("#rows b").count(), 0);
});

test("SVG: many cells become an image", async () => {
  const page = await fresh();
  const queries = [Array.from({ length: 201 }, (_, i) => [Math.sin(i), Math.cos(i), 0, 1])];
  await ask(page, { queries, return_attention: true }, "demo");
  const { bytes } = await download(page, "SVG");
  const { rects, image } = readSvg(bytes);
  assert.deepEqual(rects, []);
  assert.ok(image.startsWith("data:image/png;base64,"));
  assert.equal(Buffer.from(image.split(",")[1], "base64").subarray(1, 4).toString(), "PNG");
});

test("CSV: the face, to the bit, under hostile labels", async () => {
  const page = await fresh();
  const queries = [HOSTILE.map((_, i) => [Math.sin(i), 1, 0, 1 / 3])];
  await ask(page, { queries, return_attention: true }, "demo");
  await label(page, [HOSTILE]);
  await view(page, { head: 1 });
  const { name, bytes } = await download(page, "CSV");
  assert.equal(name, "attend-demo-item0-head1.csv");
  const [titles, ...rows] = parseCsv(bytes.toString()), want = HOSTILE.map((text) => text.replace("\ud800", "\ufffd"));
  assert.deepEqual(titles, ["query_position", "query", ...want.map((text, i) => `${i} ${text}`)]);
  assert.deepEqual(rows.map((row) => row.slice(0, 2)),
    want.map((text, i) => [String(i), text === "=1+1" ? "'=1+1" : text]));
  const weights = (await answerTo({ queries, return_attention: true })).attention_weights[0][1];
  assert.deepEqual(rows.map((row) => row.slice(2).map((x) => Math.fround(Number(x)))),
    weights.map((row) => row.map(Math.fround)));
});

test("CSV of all heads and items, ragged ones and means as well", async () => {
  const page = await fresh();
  const queries = [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], [[1, 0, 0, 0]]];
  for (const request of [{ queries, return_attention: true, valid_lens: [[2, 3, 1], [1]] },
    { queries, return_attention: "average" }]) {
    await ask(page, request, "demo");
    await label(page, [["=x", "-", "+"]]);
    const { name, bytes } = await download(page, "CSV of all heads");
    assert.equal(name, "attend-demo-all.csv");
    const mean = request.return_attention === "average", want = [];
    const words = [["'=x", "'-", "'+"], ["0"]];
    for (const [item, part] of (await answerTo(request)).attention_weights.entries())
      for (const [head, rows] of (mean ? [part] : part).entries())
        for (const [i, row] of rows.entries())
          for (const [j, x] of row.entries())
            want.push([String(item), mean ? "mean" : String(head), String(i), words[item][i], String(j), words[item][j],
              Math.fround(x), mean || j < request.valid_lens[item][i] ? "1" : "0"]);
    const [titles, ...got] = parseCsv(bytes.toString());
    assert.deepEqual(titles, ["item", "head", "query_position", "query", "key_position", "key", "weight", "visible"]);
    assert.deepEqual(got.map((row) =>
      row.map((cell, i) => (i === 6 ? Math.fround(Number(cell)) : cell))), want);
  }
});

test("a large table is written in slices; one that is too large is refused in words", async () => {
  const page = await fresh();
  const item = (n) => Array.from({ length: n }, (_, i) => [Math.sin(i), Math.cos(i), 0, 1]);
  await ask(page, { queries: [item(300)], return_attention: true }, "demo");
  const { bytes } = await download(page, "CSV of all heads");
  const rows = parseCsv(bytes.toString());
  assert.equal(rows.length, 1 + 2 * 300 * 300);
  assert.deepEqual(rows.at(-1).slice(0, 4), ["0", "1", "299", "299"]);
  await page.evaluate(() => { Save.most = 8 * 2 * 300 * 300 - 1; });
  await page.getByRole("button", { name: "CSV of all heads" }).click();
  const told = await page.locator("#save [role=status]").nth(1).textContent();
  await page.evaluate(() => { Save.most = 64e6; });
  assert.match(told, /1.4 M cells are too many/);
});

// --- the answer as it came ---

test("the answer's text is the server's, and is offered as a file", async () => {
  const page = await fresh();
  await ask(page, REQUEST, "demo");
  await label(page, [WORDS, WORDS]);
  await tab(page, "Response");
  const { bytes } = await server.post(PATH, REQUEST);
  assert.equal(await page.locator("#raw pre").textContent(), bytes.toString());
  assert.equal(await page.getByRole("button", { name: /^Show all/ }).count(), 0);
  const file = await download(page, "Download");
  assert.equal(file.name, "outputs.json");
  assert.ok(file.bytes.equals(bytes));
  const { outputs } = JSON.parse(bytes);
  assert.deepEqual(await tableOf(page, "#raw"),
    outputs[0].map((row, i) => [WORDS[i], ...row.map((x) => String(x))]));
  assert.match(await page.locator("#raw .bar span").textContent(),
    /^200 · application\/json · .* · request \w+/);
  await audit(page, "answer");
});

test("a long text is cut, until all of it is asked for", async () => {
  const page = await fresh();
  const queries = [Array.from({ length: 150 }, (_, i) => [Math.sin(i), Math.cos(i), 0, 1])];
  await ask(page, { queries, return_attention: true }, "demo");
  await tab(page, "Response");
  const text = (await server.post(PATH, { queries, return_attention: true })).bytes.toString();
  const pre = page.locator("#raw pre");
  assert.equal(await pre.textContent(), text.slice(0, 200000));
  await page.getByRole("button", { name: /^Show all/ }).click();
  assert.equal(await pre.textContent(), text);
  assert.match(await page.locator("#raw caption").first().textContent(), /8 × 4 of 150 × 4$/);
});

test("a binary answer is a list of tensors", async () => {
  const page = await fresh();
  await page.evaluate(async () => {
    const data = Float32Array.from({ length: 1 * 3000 * 4 }, (_, i) => Math.sin(i));
    const tensor = (n) =>
      ({ dtype: "F32", shape: [1, n, 4], bytes: new Uint8Array(data.buffer, 0, n * 16) });
    State.set({ model: "demo", body: { name: "x.safetensors", fields: { return_attention: true },
      tensors: { queries: tensor(3000), keys: tensor(5) } } });
    await Ask.send();
  });
  await settle(page);
  await tab(page, "Response");
  const rows = await tableOf(page, "#raw");
  assert.deepEqual(rows.slice(-2).map((row) => row.slice(0, 3)).sort(),
    [["attention_weights", "F32", "1 × 2 × 3000 × 5"], ["outputs", "F32", "1 × 3000 × 4"]]);
  assert.equal(await page.locator("#raw pre").count(), 0);
  const { name, bytes } = await download(page, "Download");
  assert.equal(name, "outputs.safetensors");
  const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))));
  assert.deepEqual(header.outputs.shape, [1, 3000, 4]);
});

test("an answer too large to draw is offered as a file", async () => {
  const page = await open({ server });
  await page.evaluate(() => { Ask.limit = 1000; });
  await ask(page, REQUEST, "demo");
  assert.equal((await state(page, "answer")).tooLarge, true);
  for (const name of ["Attention", "Head view", "Response"]) await tab(page, name);
  assert.match(await page.locator("#raw").textContent(), /too large to draw/);
  const { name, bytes } = await download(page, "Download");
  assert.equal(name, "outputs.json");
  assert.ok(bytes.equals((await server.post(PATH, REQUEST)).bytes));
});

test("nothing is wider than a phone", async () => {
  const page = await open({ server, viewport: [360, 740] });
  const long = WORDS.map((word) => word.repeat(30));
  await ask(page, REQUEST, "demo");
  await label(page, [long, long]);
  for (const name of ["Attention", "Head view", "Response"]) {
    await tab(page, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360, name);
    await audit(page, name);
  }
});
