// test_learn: the place Learn and the tour. All numbers are compared with what the server answers to
// requests of the test's own.
import assert from "node:assert/strict";
import { audit, open, serve, settle, state, test } from "./browser.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

const SENTENCE = "The animal did not cross the street because it was too tired";
const WORDS = SENTENCE.split(" "), IT = 8, PART = "encoder.1.self";
const server = await serve([], { config: null });
const post = async (what, body) => {
  const { json } = await server.post(`/v1/models/words/${what}`, body);
  return json;
};
const traced = (text, query, head = 0, attention = PART) =>
  post("encode", { text, trace: { attention, item: 0, head, query } }).then(({ trace }) => trace);
const shown = (page) => page.waitForFunction(() => document.querySelectorAll("#cards tbody tr").length > 1)
  .then(() => settle(page));
const learn = async (options = {}) => {
  const page = await open({ server, path: "/", ...options });
  await shown(page);
  return page;
};
const percent = (x) => `${Math.round(100 * x)} %`;
const title = (page) => page.locator("#learn-title").innerText();
const until = (page, text) => page.waitForFunction((part) =>
  document.querySelector("#learn-title").innerText.includes(part), text).then(() => shown(page));

test("the page opens with a finding, and its numbers are the server's", async () => {
  const page = await learn(), trace = await traced(SENTENCE, IT);
  const best = trace.weights.indexOf(Math.max(...trace.weights));
  assert.equal(best, 1);
  assert.ok((await title(page)).startsWith(`“it” gives ${percent(trace.weights[1])} of its attention to “animal”`));
  assert.deepEqual(await page.locator("#arcs button > :first-child").allInnerTexts(), WORDS.map((word) => word.toLowerCase()));
  const arcs = trace.weights.filter((x, j) => x >= 0.012 && j !== IT).length;
  assert.equal(await page.locator("#arcs path").count(), arcs);
  const scores = await page.locator("#cards tbody tr").evaluateAll((rows) => rows.slice(1)
    .map((row) => [row.cells[0].innerText, row.cells[row.cells.length - 1].innerText]));
  for (const [word, score] of scores)
    assert.ok(trace.scores.some((x, j) => WORDS[j].toLowerCase() === word && Number(x.toFixed(1)) === Number(score)), `${word} ${score}`);
  // The weight comes from query and key: the request has no bias, and the scores are q·k / √d.
  assert.deepEqual(Object.keys(JSON.parse((await state(page, "body")).text)), ["text"]);
  const dot = trace.query.reduce((sum, x, c) => sum + x * trace.keys[1][c], 0) / Math.sqrt(trace.query.length);
  assert.ok(Math.abs(dot - trace.scores[1]) < 1e-4 && trace.scores[1] === Math.max(...trace.scores));
  // The shares add up to 100 %.
  const shares = await page.locator("#cards .bar-row > :last-child").allInnerTexts();
  assert.ok(Math.abs(shares.reduce((sum, text) => sum + parseFloat(text.replace("<", "")), 0) - 100) < 0.4, shares.join());
  // Named numbers: the strongest of the query is "animal".
  const dots = await page.locator("#cards tbody tr").first().locator(".dot").evaluateAll((all) =>
    all.map((one) => one.title.split(" ")[0]));
  assert.deepEqual(dots, ["animal", "he", "she", "place", "thing", "holder"]);
  assert.equal(Math.max(...trace.query.slice(0, 6)), trace.query[0]);
  assert.match(await page.locator("#cards").innerText(), /“it” speaks of animal \(\d+ %\)/);
});

test("a word, a head, a layer, with mouse and keyboard", async () => {
  const page = await learn(), street = await traced(SENTENCE, 6);
  await page.locator("#arcs button").nth(6).click();
  await until(page, "“street” gives");
  assert.ok((await title(page)).includes(percent(Math.max(...street.weights))));
  await page.locator("#arcs button").nth(6).press("ArrowRight");
  await page.keyboard.press("Enter");
  await until(page, "“because” gives");
  await page.locator("#learn .heads button").nth(1).click();
  await page.waitForFunction(() => document.querySelector("#learn-title").innerText.includes("to “street”"));
  const before = await traced(SENTENCE, 7, 1);
  assert.equal(before.weights.indexOf(Math.max(...before.weights)), 6);
  assert.ok((await title(page)).includes(percent(before.weights[6])));
  assert.equal(await page.locator("#cards .dot").count(), 0);
  await page.getByRole("button", { name: "Layer 0" }).click();
  await page.waitForFunction(() => State.answer.part === "encoder.0.self");
  await shown(page);
  assert.equal((await state(page, "view")).head, 0);
  const first = await traced(SENTENCE, 7, 0, "encoder.0.self");
  assert.ok((await title(page)).includes(percent(Math.max(...first.weights))));
});

test("on a phone the arcs lead from line to line, from the word to the words that it attends to", async () => {
  for (const width of [390, 320]) {
    const page = await learn({ viewport: [width, 844] }), trace = await traced(SENTENCE, IT);
    const drawn = await page.evaluate(() => {
      const boxes = [...document.querySelectorAll("#arcs button")].map((one) => one.getBoundingClientRect());
      const on = ({ x, y }) => boxes.findIndex((box) => Math.abs(box.left + box.width / 2 - x) < 1 && Math.abs(box.top - y) < 1);
      const svg = document.querySelector("#arcs svg");
      return { isSeen: svg.checkVisibility(), top: svg.getBoundingClientRect().top, lines: new Set(boxes.map(({ top }) => top)).size,
        arcs: [...svg.querySelectorAll("path")].map((path) => ({ high: path.getBoundingClientRect().top,
          ends: [0, path.getTotalLength()].map((at) => on(path.getPointAtLength(at).matrixTransform(path.getScreenCTM()))) })) };
    });
    assert.ok(drawn.isSeen && drawn.lines > 1);
    assert.deepEqual(drawn.arcs.map(({ ends }) => ends),
      [...trace.weights.keys()].filter((j) => j !== IT && trace.weights[j] >= 0.012).map((j) => [IT, j]));
    for (const { high } of drawn.arcs) assert.ok(high >= drawn.top, "no arc sticks out");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }
});

test("one word changes, and the arc moves: by query and key alone", async () => {
  const page = await learn();
  await page.getByRole("button", { name: "“tired” → “wide”" }).click();
  await until(page, "to “street”");
  const wide = SENTENCE.replace("tired", "wide"), trace = await traced(wide, IT);
  assert.ok((await title(page)).startsWith(`“it” gives ${percent(trace.weights[6])}`));
  assert.equal(await page.locator("#learn-text").inputValue(), wide);
  assert.match(await page.locator("#cards").innerText(), /speaks of street/);
  await page.getByRole("button", { name: "“wide” → “tired”" }).click();
  await until(page, "to “animal”");
  // Each of the sentences to try has one that is next.
  const seen = new Set();
  for (let i = 0; i < 5; i++) {
    seen.add(await page.locator("#learn-text").inputValue());
    const old = await page.evaluate(() => State.answer.thumbs && State.asked.body.text);
    await page.getByRole("button", { name: "Another sentence" }).click();
    await page.waitForFunction((text) => State.asked.body.text !== text, old);
    await shown(page);
  }
  assert.equal(seen.size, 5);
});

test("a masked word has no weight, and the server computes the others", async () => {
  const page = await learn();
  await page.getByRole("button", { name: "Mask “animal”" }).click();
  await page.getByRole("button", { name: "Unmask “animal”" }).waitFor();
  await page.waitForFunction(() => !document.querySelector("#learn-title").innerText.includes("to “animal”"));
  const name = `${PART}.input`;
  const { hidden } = await post("encode", { text: SENTENCE, return_hidden: [name] }), queries = hidden[name];
  const reply = await post(`layers/${PART}/attention`, { queries, return_attention: true,
    mask: queries.map(() => queries.map((_, j) => j !== 1)) });
  const weights = reply.attention_weights[0][IT];
  assert.equal(weights[1], 0);
  assert.ok((await title(page)).includes(percent(Math.max(...weights))));
  assert.equal(await page.locator("#arcs s").innerText(), "animal");
  await page.waitForFunction(() => /mask=1/.test(location.hash));
  const found = await title(page);
  await page.reload();
  await page.getByRole("button", { name: "Unmask “animal”" }).waitFor();
  await page.waitForFunction((text) => document.querySelector("#learn-title").innerText === text, found);
  await page.getByRole("button", { name: "Unmask “animal”" }).click();
  await until(page, "to “animal”");
});

test("typing: the sentence follows, unknown words are told, nothing is sent when it is empty", async () => {
  const page = await learn(), input = page.locator("#learn-text");
  await input.fill("the dog did not catch the elephant because it was too slow");
  await page.waitForFunction(() => document.querySelectorAll("#arcs button").length === 12
    && document.querySelector("#learn-note").innerText.includes("One word is not in the model's vocabulary"));
  await shown(page);
  assert.equal(await page.evaluate(() => document.activeElement.id), "learn-text");
  const sent = [];
  page.on("request", (request) => sent.push(request.url()));
  await input.fill("");
  await settle(page);
  assert.ok(!sent.some((url) => /encode/.test(url)));
  assert.equal(await title(page), "Type a sentence");
  await input.fill("<img src=x onerror=alert(1)> it");
  await page.waitForFunction(() => State.asked.body.text.includes("onerror"));
  await shown(page);
  assert.equal(await page.locator("#learn img").count(), 0);
});

test("a decoder, a model of many heads, a model without text", async () => {
  const mine = await serve([], { config: { models: {
    big: whole("decoder", { layers: 4, width: 48, heads: 12, tokenizer: wordsFolder() }),
    ids: whole("encoder") } } });
  const page = await open({ server: mine, path: "/" });
  await shown(page);
  const rows = await page.evaluate(() => State.answer.words(0, "decoder.3.self").rows);
  await page.locator("#arcs button").nth(2).click();
  await page.waitForFunction((word) => document.querySelector("#learn-title").innerText.startsWith(`“${word}”`), rows[2]);
  // Later words are masked for a decoder: they have no arc.
  const arcs = await page.locator("#arcs path").count();
  assert.ok(arcs === 1 || arcs === 2, `${arcs}`);
  assert.equal(await page.locator("#learn .heads button").count(), 12);
});

test("an error is told in Learn, and no older picture stays", async () => {
  const page = await learn({ expect: [400] });
  await page.locator("#learn-text").fill("the ".repeat(30));
  await page.waitForFunction(() => document.querySelector("#learn [role=alert]"));
  assert.match(await page.locator("#learn [role=alert]").innerText(), /24/);
  assert.equal(await title(page), "No response");
  assert.equal(await page.locator("#arcs").isVisible(), false);
  await page.locator("#learn-text").fill(SENTENCE);
  await until(page, "to “animal”");
  assert.equal(await page.locator("#learn [role=alert]").count(), 0);
});

test("an encoder-decoder model has its self-attentions; the user's request is not lost", async () => {
  const mine = await serve([], { config: { models: {
    both: whole("seq2seq", { layers: 2, tokenizer: wordsFolder(), end: 0 }), words: { transformer: { builtin: "words" } },
    layer: { random: { seed: 1 }, query_size: 4, heads: 2 } } } });
  const page = await open({ server: mine, path: "/#explore?model=both" });
  await settle(page);
  await page.evaluate(() => Place.go("learn"));
  await shown(page);
  assert.match((await state(page, "answer")).part, /self$/);
  const names = await page.getByRole("group", { name: "Attention blocks" }).getByRole("button").allInnerTexts();
  assert.ok(names.length && new Set(names).size === names.length && names.every((name) => !/Cross/.test(name)), names.join());
  const other = await open({ server: mine, path: "/#explore?model=layer" });
  const body = JSON.stringify({ queries: [[[1, 0, 0, 1]]], return_attention: true });
  await other.evaluate(async (text) => {
    State.set({ body: { text } });
    await Ask.send();
    Place.go("learn");
  }, body);
  await shown(other);
  assert.ok(await other.evaluate((text) => Own.list().some((one) => one.text === text), body));
  assert.equal(await other.evaluate(() => Own.list().length), 1, "the page's sentence is not the user's");
});

test("the address has the sentence, the head and the word; a reload and Back keep them", async () => {
  const page = await learn(), wide = SENTENCE.replace("tired", "wide");
  await page.locator("#learn-text").fill(wide);
  await until(page, "to “street”");
  await page.locator("#learn .heads button").nth(1).click();
  await page.locator("#arcs button").nth(4).click();
  await until(page, "“cross” gives");
  await page.waitForFunction(() => /word=4/.test(location.hash) && /head=1/.test(location.hash));
  const found = await title(page);
  await page.reload();
  await until(page, "“cross” gives");
  assert.equal(await title(page), found);
  assert.equal(await page.locator("#learn-text").inputValue(), wide);
  await page.getByRole("link", { name: "Explore" }).click();
  await page.waitForFunction(() => State.place === "explore" && !document.getElementById("look").hidden);
  await page.goBack();
  await until(page, "“cross” gives");
  assert.equal(await title(page), found);
  for (const odd of ["head=99&word=999", "layer=encoder.9.self&head=-1", "text=&word=x"]) {
    const other = await open({ server, path: `/#learn?${odd.includes("text") ? "" : "text=the+dog+saw+it&"}${odd}` });
    await settle(other);
    assert.match(await title(other), /gives|Type a sentence/, odd);
  }
});

test("the tour: eight steps over real views, each with its part marked", async () => {
  const page = await learn();
  await page.getByRole("button", { name: /^Tour/ }).click();
  const seen = new Set(), books = new Set();
  for (let i = 1; i <= 8; i++) {
    await page.waitForFunction((n) => Tour.step() === n && document.querySelector("#tour .row").innerText.startsWith(`${n + 1} of 8`)
      && document.querySelectorAll(".toured").length === 1, i - 1);
    await settle(page);
    const marked = page.locator(".toured");
    assert.ok(await marked.isVisible(), `step ${i}`);
    const [part, panel] = [await marked.boundingBox(), await page.locator("#tour").boundingBox()];
    assert.ok(part.y < panel.y, `step ${i}: the marked part is behind the panel`);
    seen.add(await page.locator("#tour-title").innerText());
    books.add((await page.locator("#tour p").nth(1).innerText()).slice(0, 29));
    await audit(page, `step ${i} of the tour`);
    await page.locator("#tour .primary").click();
  }
  await page.waitForFunction(() => Tour.step() === -1);
  assert.equal(seen.size, 8);
  assert.ok(books.size >= 6);
  assert.equal(await page.locator(".toured").count(), 0);
  assert.equal(await page.locator("#tour").isVisible(), false);
});

test("narrow, dark and enlarged: no sideways scrolling, nothing for axe", async () => {
  for (const [viewport, dark] of [[[320, 800], false], [[390, 844], true], [[640, 400], false], [[1280, 800], true], [[2560, 1400], false]]) {
    const page = await learn({ viewport, dark });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${viewport}`);
    await audit(page, `Learn at ${viewport}`);
  }
});

test("a word that the tokenizer does not know has what was typed beside it", async () => {
  const text = "the Zebra 🦓 did not see the Lion", read = ["the", "<unk>", "<unk>", "did", "not", "see", "the", "<unk>"];
  const shown = ["the", "Zebra <unk>", "🦓 <unk>", "did", "not", "see", "the", "Lion <unk>"];
  for (const [path, item] of [[`text=${encodeURIComponent(text)}`, 0], ["text=it", 1]]) {
    const page = await open({ server, path: `/#explore?model=words&${path}` });
    if (item) {
      await page.locator("#line").fill(`it\n${text}`);
      await page.locator("#line").press("Enter");
      await settle(page);
    }
    const rows = (name) => page.evaluate(([what, i]) => State.answer[what](i, "encoder.1.self").rows, [name, item]);
    assert.deepEqual([await rows("words"), await rows("reads")], [shown, read]);
  }
  // The maps and Learn have the typed words.
  const page = await open({ server, path: `/#explore?model=words&text=${encodeURIComponent(text)}` });
  assert.deepEqual(await page.locator("#rows tbody th").allTextContents(), shown);
  await page.evaluate(() => Place.go("learn"));
  await page.locator("#arcs button").nth(7).waitFor();
  assert.match(await page.locator("#learn-note").innerText(), /^3 words are not in the model's vocabulary: it reads <unk>\.$/);
  assert.ok((await page.locator("#arcs").innerText()).includes("Lion <unk>"));
});

test("Explore begins with the sentence of Learn", async () => {
  const page = await open({ server, path: "/#explore?model=words" });
  assert.equal(JSON.parse((await state(page, "body")).text).text, SENTENCE);
  const known = (text) => server.post("/v1/models/words/tokenize", { text });
  for (const example of ["sentence", "texts"]) {
    await page.locator("#example").selectOption(example);
    await settle(page);
    const { tokens } = (await known(JSON.parse((await state(page, "body")).text).text)).json;
    assert.ok(!tokens.flat().includes(0), "the model knows all of its words");
  }
});

test("Learn leads to an example for each section of chapter 11, and Back leads to Learn", async () => {
  const page = await learn(), list = page.locator("#learn aside details").last();
  await list.locator("summary").click();
  const titles = await list.getByRole("button").allInnerTexts();
  for (let i = 1; i <= 7; i++) assert.ok(titles.some((title) => title.includes(`11.${i}`)), `11.${i}`);
  for (const [title, model, example] of [["Kernel regression (d2l 11.2)", "demo", "kernel"],
    ["Bahdanau attention (d2l 11.4)", "additive", "bahdanau"], ["Numbers to sort (d2l 11.7)", "sort", "sort"]]) {
    await list.getByRole("button", { name: title }).click();
    await settle(page);
    assert.deepEqual([await state(page, "place"), await state(page, "tab"), (await state(page, "asked")).model,
      await page.locator("#example").inputValue(), await state(page, "problem")], ["explore", "look", model, example, null]);
    await page.goBack();
    await until(page, "to “animal”");
    assert.equal(await state(page, "model"), "words");
  }
  // What the page itself wrote is no example, and not random either.
  await page.getByRole("button", { name: "Another sentence" }).click();
  await until(page, "gives");
  await page.getByRole("link", { name: "Explore" }).click();
  await settle(page);
  assert.equal(await page.locator("#example option:checked").textContent(), "none of these");
});

test("on a phone the arcs pass behind the words", async () => {
  const page = await open({ server, path: "/", viewport: [390, 844] });
  await page.locator("#arcs path").first().waitFor();
  const words = await page.locator("#arcs [aria-pressed=false] span").evaluateAll((list) => list.map((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [getComputedStyle(one).backgroundColor, document.elementsFromPoint(left + width / 2, top + height / 2).indexOf(one)];
  }));
  const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(words.length > 8);
  for (const [color, depth] of words) assert.deepEqual([color, depth], [back, 0]);
});
