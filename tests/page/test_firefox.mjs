// test_firefox: the page in Firefox, as far as its engine may matter: it draws, computes, streams,
// saves, and obeys the keyboard as in Chromium, where everything else is tested.
import assert from "node:assert/strict";
import http from "node:http";
import { asFloat32, choose, open as unfolded, send, source, type, unfold, weights } from "./asking.mjs";
import { NO_FIREFOX, ask, audit, download, everywhere, serve, settle, state, tab,
  test as plainTest, told } from "./browser.mjs";
import { cell, cells, columns, done, exact, flow, goOn, losses, measured, posting, readout, roll,
  sideways, steps, words } from "./looking.mjs";
import { random } from "./oracle.mjs";
import { pixelsOf } from "./png.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const test = (name, f) => plainTest(name, { skip: NO_FIREFOX || false }, f);
const tokenizer = wordsFolder();
const demo = { random: { seed: 1 }, query_size: 4, heads: 2 };
const additive = { random: { seed: 1 }, query_size: 4, score: "additive", score_size: 8,
  projection: "none", heads: 1 };
const models = { demo, additive, words: whole("encoder", { tokenizer }),
  writes: whole("decoder", { tokenizer, end: 0 }), both: whole("seq2seq", { end: 0 }) };
const server = NO_FIREFOX ? null : await serve([], { config: { models } });
const opened = (options = {}) => unfolded({ server, firefox: true, ...options });
const post = posting(server);
const WORDS = ["the", "cat", "sät"];
const BODY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 2, 0, 0]]], causal: true,
  return_attention: true };
const near = (a, b, by = 1e-6) =>
  assert.ok(Math.abs(a - b) <= by + 1e-4 * Math.abs(b), `${a}, not ${b}`);
// How many colours a canvas has, each of those that are seen.
const colours = (page, selector) => page.locator(selector).evaluateAll((list) =>
  list.filter((one) => one.checkVisibility()).map((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  }));
const drawn = async (page, selector) => {
  const all = await colours(page, selector);
  assert.ok(all.length && all.every((n) => n > 1), `${selector} has ${all} colours`);
};
const hoverCell = async (page, i, j) => {
  const canvas = page.locator("#frame canvas");
  const at = await canvas.evaluate((one) => ({ ...one.dataset }));
  const [side, left, top] = [at.cell, at.left, at.top].map(Number);
  await canvas.hover({ position: { x: left + (j + 0.5) * side, y: top + (i + 0.5) * side } });
  await settle(page);
};

// --- the page ---

test("it loads in Firefox, sends its first example, and complains of nothing", async () => {
  const page = await opened();
  assert.match(await page.evaluate(() => navigator.userAgent), /Firefox\//);
  assert.equal(await page.evaluate(() => document.compatMode), "CSS1Compat");
  assert.equal(await state(page, "problem"), null);
  const [item] = (await state(page, "answer")).items;
  assert.ok(item.weights[0].data instanceof Float32Array && item.weights[0].data.length > 0);
  await drawn(page, "#look canvas");
});

test("what no page may do fails the test that it is done in, in Firefox too", async () => {
  const page = await opened();
  const acts = { "console error: oh": () => console.error("oh"),
    "console warning: oh": () => console.warn("oh"),
    "exception: Error: ouch": () => { setTimeout(() => { throw new Error("ouch"); }); },
    "exception: Error: no": () => { Promise.reject(new Error("no")); },
    "console error: Policy violated: connect-src http://127.0.0.2": () =>
      fetch("http://127.0.0.2/").catch(() => 0),
    "console error: Policy violated: require-trusted-types-for": () => {
      setTimeout(() => { document.body.innerHTML = "<p>"; }); },
    "dialog: hello": () => { setTimeout(() => alert("hello")); },
    "another window": () => { window.open("about:blank"); },
    "request elsewhere: http://127.0.0.2": () => {
      setTimeout(() => { location.href = "http://127.0.0.2/"; }); } };
  for (const [wanted, act] of Object.entries(acts)) {
    await page.evaluate(act);
    const found = told(page);
    for (let i = 0; i < 6000 && !found.some((line) => line.startsWith(wanted)); i++) {
      await page.waitForTimeout(50);
      found.push(...told(page));
    }
    assert.ok(found.some((line) => line.startsWith(wanted)), `${wanted}: ${found}`);
  }
});

test("every tab is reached by the arrow keys, and shows something", async () => {
  const page = await opened();
  for (const [model, body, wanted] of [["demo", BODY, "Attention|Head view|Computation|Compare"],
    ["writes", { text: "the cat sat" }, "Attention|Head view|Rollout|Computation|Model|Compare"]]) {
    await ask(page, body, model);
    await page.locator("#tab-look").focus();
    const seen = [];
    for (const name of wanted.split("|")) {
      await settle(page);
      const [on, shown] = await page.evaluate(() => {
        const panels = document.querySelectorAll("[role=tabpanel]:not([hidden])");
        return [document.activeElement.textContent,
          [...panels].map((one) => one.innerText.trim()).join("|")];
      });
      seen.push(on);
      assert.ok(shown.length > 20, `${name} of ${model}: ${shown}`);
      await page.keyboard.press("ArrowRight");
    }
    assert.equal(seen.join("|"), wanted);
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-look", "around");
  }
});

// --- layers ---

test("every example is asked and drawn, with the numbers of the server", async () => {
  const page = await opened({ expect: [400] });
  const names = await page.locator("#example option:enabled").evaluateAll((list) =>
    list.map((one) => one.value));
  assert.ok(names.length > 9, `${names}`);
  for (const name of names) {
    await choose(page, "example", name);
    if (name === "invalid") continue;
    assert.equal(await state(page, "problem"), null, name);
    const { model, body } = await state(page, "asked");
    const { attention_weights: all } = await post(model, "attention", body.text);
    assert.deepEqual(await weights(page), asFloat32(all), name);
    await drawn(page, "#look canvas");
  }
  assert.equal((await state(page, "problem")).status, 400, "the last one");
  assert.match(await page.locator("#problem").innerText(), /query_size/);
});

test("the readout has the digits of the answer, by the pointer and by the keyboard", async () => {
  const page = await opened(), chance = random(5);
  const row = () => [0, 1, 2, 3].map(() => 6 * chance() - 3);
  const body = { queries: [[row(), row(), row(), row()]], return_attention: true };
  await ask(page, body, "demo");
  const [[, head]] = (await post("demo", "attention", body)).attention_weights;
  await page.evaluate(() => State.show({ head: 1 }));
  await settle(page);
  const said = async (i, j) => {
    const [, weight] = new RegExp(`^Query ${i} gives .* to key ${j}: (.*) \\(head 1\\)$`)
      .exec(await readout(page));
    assert.equal(Math.fround(Number(weight)), Math.fround(head[i][j]));
  };
  for (const [i, j] of [[0, 0], [3, 1], [2, 3]]) {
    await hoverCell(page, i, j);
    await said(i, j);
  }
  await page.mouse.move(5, 5);
  await page.locator("#frame").focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  await settle(page);
  await said(1, 1);
});

test("an example over a request of one's own is undone as one step", async () => {
  const page = await opened();
  await type(page, '{"queries": []}');
  await choose(page, "example", "causal");
  const causal = await source(page);
  await page.locator("#source").focus();
  await page.keyboard.press("Control+z");
  await settle(page);
  assert.equal(await source(page), '{"queries": []}');
  await page.keyboard.press("Control+Shift+z");
  await settle(page);
  assert.equal(await source(page), causal);
});

test("typed, labelled and sent by the keyboard", async () => {
  const page = await opened();
  await page.locator("#source").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(JSON.stringify(BODY));
  await unfold(page, "labels-part");
  await page.locator("#labels-rows").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(WORDS.join(" "));
  await page.locator("#source").focus();
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction((text) => State.asked.body.text === text
    && !State.asking, JSON.stringify(BODY));
  await settle(page);
  assert.deepEqual(await words(page), WORDS);
  await hoverCell(page, 2, 1);
  assert.match(await readout(page), /^Query 2, “sät”, gives .* to key 1, “cherry”: /);
});

test("lines, steps and heads of a layer", async () => {
  const page = await opened();
  await ask(page, BODY, "demo");
  await page.evaluate(() => State.show({ head: 1, row: 2, col: 0 }));
  await tab(page, "Head view");
  await drawn(page, "#lines canvas");
  assert.match(await page.locator("#lines-text").textContent(), /^query 2 → .*lines: 3$/);
  await tab(page, "Computation");
  const { return_attention, ...rest } = BODY;
  const { trace } = await post("demo", "attention",
    { ...rest, trace: { item: 0, head: 1, query: 2 } });
  const rows = await steps(page);
  assert.deepEqual(rows.map(({ score }) => Number(score)), trace.scores);
  rows.forEach(({ weight }, j) => assert.equal(Math.fround(weight), Math.fround(trace.weights[j])));
  await page.locator("#steps [type=number]").first().fill("9");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.ok((await steps(page))[0].weight > 0.9);
  await tab(page, "Head importance");
  await page.locator("#measures td").first().waitFor();
  assert.match(await page.locator("#measures").innerText(), /\d\.\d/);
});

test("a refused request shows its problem, and goes to the place", async () => {
  const page = await opened({ expect: [400] });
  await type(page, '{"queries": [[[1, 0, 0, 1], [0, "x", 1, 0]]]}');
  await send(page);
  assert.equal((await state(page, "problem")).pointer, "/queries/0/1/1");
  await audit(page, "with a problem");
  await page.getByRole("button", { name: "Go there" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.id), "source");
  assert.equal(await page.locator("#source").evaluate((area) =>
    area.value.slice(area.selectionStart, area.selectionEnd)), '"x"');
});

// --- whole models ---

test("a whole model: text in, a grid of heads, exact weights after a click", async () => {
  const page = await opened();
  await page.locator("#model").selectOption("words");
  await settle(page);
  await page.locator("#line").fill("The cat sat.");
  await page.locator("#line").press("Enter");
  await settle(page);
  assert.deepEqual(await words(page), ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]);
  assert.equal((await cells(page)).length, 12);
  await drawn(page, "#grid canvas");
  for (const [name, head] of [["encoder.0.self", 3], ["encoder.1.self", 2]]) {
    await cell(page, name, head).click();
    await page.waitForFunction((part) => State.answer.part === part, name);
    await settle(page);
    const { attention } = await post("words", "encode",
      { text: "The cat sat.", return_attention: [name] });
    assert.deepEqual(await exact(page), asFloat32(attention[name]));
    assert.equal(await page.locator("#large h3").textContent(), `Layer ${name.split(".")[1]} · head ${head}`);
  }
  await drawn(page, "#frame canvas");
  await page.locator("#grid-order").selectOption("distance");
  await settle(page);
  assert.equal((await cells(page)).length, 12);
});

test("lines, flow and steps of a whole model", async () => {
  const page = await opened(), tokens = [4, 5, 6, 5, 7];
  await ask(page, { tokens }, "writes");
  await tab(page, "Head view");
  await drawn(page, "#lines canvas");
  await tab(page, "Rollout");
  const names = [0, 1, 2].map((l) => `decoder.${l}.self`);
  const { attention } = await post("writes", "encode",
    { tokens, return_attention: { of: names, as: "average" } });
  for (const residual of [true, false]) {
    await page.getByLabel("with the residual").setChecked(residual);
    const wanted = roll(names.map((name) => attention[name]), residual).map((all) => all[4]);
    (await flow(page)).forEach((row, l) => row.forEach((x, j) => near(x, wanted[l][j])));
  }
  await page.evaluate(() => State.show({ row: 2, col: 1 }));
  await tab(page, "Computation");
  const view = await state(page, "view"), answer = await state(page, "answer");
  const { trace } = await post("writes", "encode",
    { tokens, trace: { attention: answer.part, item: 0, head: view.head, query: 2 } });
  const scores = (await steps(page)).map(({ score }) => (score === "" ? null : Number(score)));
  assert.deepEqual(scores, trace.scores);
});

test("what the heads of a whole model are worth comes as a stream", async () => {
  const page = await opened(), body = { tokens: [4, 5, 6], targets: [7, 8, 9] };
  await ask(page, body, "both");
  await tab(page, "Head importance");
  await measured(page);
  const { heads } = await post("both", "heads", body), shown = await losses(page);
  const most = Math.max(...Object.values(heads).flat().map(Math.abs));
  for (const [name, list] of Object.entries(heads))
    list.forEach((loss, i) => near(shown[name][i], loss, 0.01 * most));
  await page.locator("#worth td button").first().click();
  await page.getByText("Without this head").waitFor();
});

test("generation is a stream, and a click goes on from another token", async () => {
  const page = await opened();
  await ask(page, { text: "the cat sat" }, "writes");
  await tab(page, "Generation");
  await goOn(page, 6);
  const { tokens } = await post("writes", "tokenize", { text: "the cat sat" });
  const { sequences: [one] } = await post("writes", "generate",
    { tokens, max_tokens: 6, return_top: 5 });
  const shown = await columns(page);
  assert.equal(shown.length, one.tokens.length);
  shown.forEach(({ share }, i) => near(share, Math.exp(one.log_probabilities[i])));
  await page.locator(".column").nth(2).locator(".way").nth(1).click();
  await done(page);
  assert.deepEqual((await columns(page)).slice(0, 2).map(({ word }) => word),
    shown.slice(0, 2).map(({ word }) => word));
  await page.getByRole("button", { name: "Logit lens" }).click();
  await page.locator("#generation table").waitFor();
  await audit(page, "generation");
});

test("a search is a tree, and a node shows where its way looked", async () => {
  const page = await opened();
  await ask(page, { tokens: [4, 5, 6] }, "both");
  await tab(page, "Generation");
  await page.getByLabel("beams").fill("3");
  await page.getByLabel("max tokens").fill("4");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText(/the best of \d hypotheses/).waitFor();
  const { search, sequences } = await post("both", "generate",
    { tokens: [4, 5, 6], max_tokens: 4, beams: 3, returns: 3, return_search: true });
  assert.equal(await page.locator(".tree button").count(), search.flat().length + sequences.length);
  assert.deepEqual((await columns(page)).map(({ word }) => Number(word)), sequences[0].tokens);
  await page.locator(".tree .done").first().click();
  await page.locator("#generation figure").waitFor();
  await drawn(page, "#generation canvas");
  await audit(page, "beams");
});

test("an answer is pinned and compared; a model stands in pieces", async () => {
  const page = await opened();
  await ask(page, { tokens: [4, 5, 6] }, "words");
  await tab(page, "Compare");
  await page.getByRole("button", { name: "Pin this response" }).click();
  await ask(page, { tokens: [4, 9, 6] }, "words");
  await page.locator("#compare figure:visible").nth(2).waitFor();
  await drawn(page, "#compare canvas");
  await audit(page, "compare");
  await tab(page, "Model");
  const { pieces } = (await server.get("/v1/models/words")).json;
  assert.deepEqual(await page.locator("#graph .card").evaluateAll((list) =>
    list.map((one) => one.dataset.piece)), pieces.map(({ name }) => name));
  await audit(page, "graph");
});

// What asks for a stream gets one token, and then nothing until it goes.
const held = async (t) => {
  let went = null;
  const gone = new Promise((resolve) => { went = resolve; });
  const { hostname, port } = new URL(server.origin);
  const proxy = http.createServer((asked, said) => {
    if (asked.url.endsWith("/generate")) {
      said.writeHead(200, { "Content-Type": "text/event-stream" });
      said.write('data: {"item":0,"sequence":0,"token":7,"log_probability":-0.5,"top":[]}\n\n');
      said.on("close", went);
      return;
    }
    asked.pipe(http.request({ hostname, port, path: asked.url, method: asked.method,
      headers: asked.headers }, (answer) => {
      said.writeHead(answer.statusCode, answer.headers);
      answer.pipe(said);
    }));
  });
  await new Promise((ready) => proxy.listen(0, "127.0.0.1", ready));
  t.after(() => proxy.close());
  return { origin: `http://127.0.0.1:${proxy.address().port}`, gone };
};
test("Stop ends a stream that goes on, on the wire too, and keeps what there is", async (t) => {
  const { origin, gone } = await held(t), page = await opened({ server: { origin } });
  await ask(page, { tokens: [4, 5] }, "writes");
  await tab(page, "Generation");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator(".column").first().waitFor();
  await page.locator("#generation").getByRole("button", { name: "Stop" }).click();
  await page.getByText("1 token: stopped.").waitFor();
  await gone;
  await settle(page);
  assert.equal((await columns(page)).length, 1);
});

// --- what is kept ---

const looked = async (page) => {
  await ask(page, BODY, "demo");
  await page.evaluate((row) => {
    State.set({ labels: { rows: [row], cols: [] } });
    State.show({ head: 1, row: 1, col: 0, range: "head" });
  }, WORDS);
  await tab(page, "Head view");
};
const same = async (page) => {
  await page.waitForFunction(() => State.answer && State.view.row === 1);
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text), BODY);
  assert.deepEqual(await state(page, "labels"), { rows: [WORDS], cols: [] });
  const { head, row, col, range } = await state(page, "view");
  assert.deepEqual([head, row, col, range], [1, 1, 0, "head"]);
  assert.equal(await page.locator("[role=tab][aria-selected=true]").textContent(), "Head view");
};
// What the clipboard holds, as a user finds out.
const pasted = async (page) => {
  await page.evaluate(() => {
    const area = document.createElement("textarea");
    document.body.append(area);
    area.focus();
  });
  await page.keyboard.press("Control+v");
  return page.evaluate(() => {
    const area = document.activeElement, { value } = area;
    area.remove();
    return value;
  });
};

test("a link in the fragment brings all of it back, and so does a file", async () => {
  const page = await opened();
  await looked(page);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied.").waitFor();
  const { hash, origin } = new URL(await pasted(page));
  assert.equal(origin, server.origin);
  await same(await opened({ path: `/${hash}` }));
  const { name, bytes } = await download(page, () =>
    page.getByRole("button", { name: "Save view" }).click());
  assert.equal(name, "attend-demo-view.json");
  const other = await opened();
  await other.locator("#source-file")
    .setInputFiles({ name, mimeType: "application/json", buffer: bytes });
  await same(other);
  // It is there after the tab is loaded anew.
  await type(other, JSON.stringify({ ...BODY, causal: false }));
  await other.reload();
  await settle(other);
  assert.deepEqual(JSON.parse(await source(other)), { ...BODY, causal: false });
});

test("pictures and tables are saved", async () => {
  const page = await opened();
  await ask(page, BODY, "demo");
  const save = (name) =>
    download(page, () => page.getByRole("button", { name, exact: true }).click());
  const png = await save("PNG"), { width, height, pixels } = pixelsOf(png.bytes);
  assert.equal(png.name, "attend-demo-item0-head0.png");
  assert.ok(width > 100 && height > 100, `${width} x ${height}`);
  assert.ok(new Set(pixels).size > 6, "cells have colours of their own");
  const svg = (await save("SVG")).bytes.toString();
  assert.match(svg, /^<svg .*<rect /s);
  const csv = (await save("CSV")).bytes.toString().split("\r\n");
  const [[[row]]] = (await post("demo", "attention", BODY)).attention_weights;
  assert.deepEqual(csv[1].split(",").slice(2).map((x) => Math.fround(Number(x))), asFloat32(row));
});

// --- how it looks ---

test("light and dark", async () => {
  const seen = [];
  for (const dark of [false, true]) {
    const page = await opened({ dark });
    assert.equal(await state(page, "dark"), dark);
    await drawn(page, "#look canvas");
    seen.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    await everywhere(page, (name) => audit(page, `${name}, dark: ${dark}`));
  }
  assert.notEqual(seen[0], seen[1]);
});

for (const width of [360, 1280, 2560])
  test(`nothing scrolls sideways, and axe-core is silent, at ${width} px`, async () => {
    const page = await opened({ viewport: [width, 800], expect: [400] });
    assert.equal(await page.evaluate(() => innerWidth), width);
    for (const [model, body] of [["demo", BODY],
      ["writes", { text: "the animal did not cross the street" }]]) {
      await ask(page, body, model);
      await everywhere(page, async (name) => {
        assert.equal(await sideways(page), "", `${name} of ${model}`);
        if (width !== 1280) await audit(page, `${name} of ${model}`);
      });
    }
  });
