// test_save: what every view saves: pictures that another XML parser reads, on pure white, and tables with the
// numbers of the API.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { ask, download, open, serve, settle, state, tab, test } from "./browser.mjs";
import { goOn, measured, posting, roll } from "./looking.mjs";
import { pixelsOf } from "./png.mjs";
import { whole } from "./wholes.mjs";

const server = await serve([], { config: { models: { ids: whole("encoder", { layers: 2 }), writes: whole("decoder", { layers: 2 }),
  demo: { random: { seed: 3 }, query_size: 4, heads: 2 } } } });
const post = posting(server);
const LAYER = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]], return_attention: true };
const TOKENS = [4, 5, 6, 7, 5];

const save = (page, name, place) =>
  download(page, () => page.locator(place).getByRole("button", { name, exact: true }).click());
const READ = `import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([(n.tag.split("}")[1], dict(n.attrib), n.text) for n in root.iter()]))`;
const svgOf = ({ bytes }) => {
  const { status, stdout, stderr } = spawnSync("python3", ["-c", READ], { input: bytes });
  assert.equal(status, 0, String(stderr));
  const nodes = JSON.parse(stdout);
  assert.equal(nodes[1][1].fill, "#fff", "on white");
  return { of: (name) => nodes.filter(([tag]) => tag === name).map(([, has]) => has),
    texts: nodes.filter(([tag]) => tag === "text").map(([, , text]) => text) };
};
// Cells with a comma or a quote are in none of these tables.
const csvOf = ({ bytes }) => bytes.toString().trimEnd().split("\r\n").map((line) =>
  line.split(",").map((cell) => (cell[0] === '"' ? cell.slice(1, -1) : Number(cell))));
const near = (a, b) => {
  assert.equal(a.length, b.length);
  a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-5, `${i}: ${x}, ${b[i]}`));
};

test("Attention: all heads of all layers, as one figure and as a table", async () => {
  const page = await open({ server });
  await ask(page, { tokens: TOKENS }, "ids");
  const { attention } = await post("ids", "encode", { tokens: TOKENS, return_attention: true });
  const picture = svgOf(await save(page, "SVG of all heads", "#save"));
  assert.equal(picture.of("image").length, 8);
  for (const word of ["Layer 0", "Layer 1", "head 0", "head 3"]) assert.ok(picture.texts.includes(word), word);
  const file = await save(page, "CSV of all heads", "#save"), [titles, ...rows] = csvOf(file);
  assert.equal(file.name, "attend-ids-all.csv");
  assert.deepEqual(titles, ["attention", "item", "head", "query_position", "query", "key_position", "key", "weight", "visible"]);
  assert.deepEqual(rows.map((row) => [row[0], ...row.slice(2, 7), Math.fround(row[7])]), Object.entries(attention).flatMap(([name, heads]) =>
    heads.flatMap((matrix, head) => matrix.flatMap((line, i) => line.map((x, j) =>
      [name, head, i, String(TOKENS[i]), j, String(TOKENS[j]), Math.fround(x)])))));
});

test("Attention: pictures are on pure white; a layer has a figure of its heads", async () => {
  const page = await open({ server, dark: true });
  await ask(page, LAYER, "demo");
  for (const name of ["PNG", "PNG of all heads"]) {
    const { pixels } = pixelsOf((await save(page, name, "#save")).bytes);
    assert.equal(pixels[0], 0xffffff);
    assert.equal(pixels.at(-1), 0xffffff);
  }
  assert.equal(svgOf(await save(page, "SVG of all heads", "#save")).of("image").length, 2);
});

test("Head view: a line for each weight", async () => {
  const page = await open({ server });
  await ask(page, LAYER, "demo");
  await tab(page, "Head view");
  const [[matrix]] = (await post("demo", "attention", LAYER)).attention_weights;
  const [, ...rows] = csvOf(await save(page, "CSV", "#lines"));
  for (const [, i, query, j, key, weight] of rows) {
    assert.deepEqual([query, key], [String(i), String(j)]);
    assert.equal(Math.fround(weight), Math.fround(matrix[i][j]));
  }
  assert.deepEqual(rows.map((row) => Math.fround(row[5])), matrix.flat().map(Math.fround).sort((a, b) => b - a));
  const lines = svgOf(await save(page, "SVG", "#lines")).of("line");
  assert.equal(lines.length, 9);
  assert.ok(lines.every((one) => Number(one["stroke-width"]) > 0.5));
  assert.equal(pixelsOf((await save(page, "PNG", "#lines")).bytes).pixels[0], 0xffffff);
});

test("Rollout: the numbers of each layer", async () => {
  const page = await open({ server });
  await ask(page, { tokens: TOKENS }, "ids");
  await tab(page, "Rollout");
  await page.locator("#flow tbody tr").first().waitFor();
  const { attention } = await post("ids", "encode", { tokens: TOKENS,
    return_attention: { of: ["encoder.0.self", "encoder.1.self"], as: "average" } });
  const [titles, ...rows] = csvOf(await save(page, "CSV", "#flow"));
  assert.deepEqual(titles, ["after", ...TOKENS.map((token, i) => `${i} ${token}`)]);
  roll(Object.values(attention), true).forEach((all, l) => near(rows[l].slice(1), all.at(-1)));
  const { texts } = svgOf(await save(page, "SVG", "#flow"));
  for (const word of ["Layer 0", "Layer 1", "after layer", "tokens"]) assert.ok(texts.includes(word), word);
});

test("Computation: the trace", async () => {
  const page = await open({ server });
  await ask(page, LAYER, "demo");
  await page.evaluate(() => State.show({ row: 1 }));
  await tab(page, "Computation");
  await page.locator("#steps tbody tr").first().waitFor();
  const { trace } = await post("demo", "attention", { ...LAYER, trace: { item: 0, head: 0, query: 1 } });
  const [titles, query, ...rows] = csvOf(await save(page, "CSV", "#steps"));
  assert.deepEqual(titles, ["key_position", "key", "q·k", "score", "weight", "k0", "k1", "v0", "v1"]);
  near(query.slice(5), trace.query);
  rows.forEach((row, j) => near([row[0], ...row.slice(2)], [j, trace.products[j], trace.scores[j], trace.weights[j],
    ...trace.keys[j], ...trace.values[j]]));
  const { texts } = svgOf(await save(page, "SVG", "#steps"));
  for (const x of trace.weights) assert.ok(texts.includes(x.toFixed(3)), String(x));
});

test("Head importance: the losses, the measures and the curve", async () => {
  const page = await open({ server });
  await ask(page, { tokens: TOKENS }, "ids");
  await tab(page, "Head importance");
  await measured(page);
  const losses = await page.evaluate(() => [...State.losses]);
  const [, ...rows] = csvOf(await save(page, "CSV", "#worth"));
  assert.deepEqual(rows.map(([name, head]) => `${name} ${head}`), losses.map(([name]) => name));
  near(rows.map((row) => row[2]), losses.map(([, loss]) => loss));
  await page.getByRole("button", { name: "Ablation curve" }).click();
  await page.locator(".along svg").waitFor();
  const drawn = svgOf(await save(page, "SVG", ".along"));
  assert.equal(drawn.of("polyline")[0].points.split(" ").length, 9);
  const [, ...points] = csvOf(await save(page, "CSV", ".along"));
  assert.deepEqual(points.map(([n]) => n), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await ask(page, LAYER, "demo");
  await tab(page, "Head importance");
  await page.locator("#measures td").first().waitFor();
  const { heads } = await post("demo", "heads", { queries: LAYER.queries });
  const [titles, ...measures] = csvOf(await save(page, "CSV", "#heads"));
  assert.deepEqual(titles, ["head", ...Object.keys(heads[0])]);
  heads.forEach((head, i) => near(measures[i], [i, ...Object.values(head)]));
});

test("Generation: the tree of a beam search", async () => {
  const page = await open({ server });
  await ask(page, { tokens: TOKENS }, "writes");
  await tab(page, "Generation");
  await page.getByLabel("beams").fill("2");
  await goOn(page, 3);
  const { search, sequences } = await post("writes", "generate", { tokens: TOKENS, max_tokens: 3, beams: 2, returns: 2,
    return_search: true });
  const all = search.flat(2).length + sequences.flat().length;
  const [titles, ...rows] = csvOf(await save(page, "CSV", "#generation"));
  assert.deepEqual(titles, ["step", "token", "text", "log_probability", "sum", "rank", "score", "path"]);
  assert.equal(rows.length, all);
  near(rows.filter((row) => row[5] !== "").map((row) => row[6]).sort(), sequences.flat().map(({ score }) => score).sort());
  assert.equal(svgOf(await save(page, "SVG", "#generation")).of("rect").length, all + 1);
});

test("Compare: the pinned weights, those of now and the difference, of tokens that are the same word", async () => {
  const page = await open({ server, dark: true }), other = [4, 5, 9, 7, 5];
  await ask(page, { tokens: TOKENS }, "ids");
  await tab(page, "Compare");
  await page.getByRole("button", { name: "Pin this response" }).click();
  await ask(page, { tokens: other }, "ids");
  await page.locator("#compare figure:visible").nth(2).waitFor();
  const fields = { return_attention: ["encoder.1.self"] };
  const [then, now] = await Promise.all([TOKENS, other].map(async (tokens) =>
    (await post("ids", "encode", { tokens, ...fields })).attention["encoder.1.self"][0]));
  const [titles, ...rows] = csvOf(await save(page, "CSV", "#compare"));
  assert.deepEqual(titles, ["response", "query_position", "query", "key_position", "key", "weight", "visible"]);
  const wanted = [["pinned", TOKENS, (i, j) => then[i][j]], ["now", other, (i, j) => now[i][j]],
    ["difference", other, (i, j) => now[i][j] - then[i][j]]].flatMap(([response, words, weight]) => words.flatMap((query, i) =>
    words.map((key, j) => [response, i, String(query), j, String(key), weight(i, j)])));
  assert.deepEqual(rows.map((row) => row.slice(0, 5)), wanted.map((row) => row.slice(0, 5)));
  near(rows.map((row) => row[5]), wanted.map((row) => row[5]));
  const { of, texts } = svgOf(await save(page, "SVG", "#compare"));
  assert.equal(of("svg").length, 4);
  for (const word of ["Pinned, 0 to", "Now, 0 to", "Now − pinned: red is less"])
    assert.ok(texts.some((text) => text?.startsWith(word)), word);
  const most = Math.max(...wanted.slice(-25).map((row) => Math.abs(row[5])));
  assert.ok(texts.includes(await page.evaluate((x) => Format.short(x), -most)), "a difference may be negative");
  assert.equal(pixelsOf((await save(page, "PNG", "#compare")).bytes).pixels[0], 0xffffff);
});

test("Generation: the alignment, and the tokens of the logit lens", async () => {
  const page = await open({ server });
  await ask(page, { tokens: TOKENS }, "writes");
  await tab(page, "Generation");
  await goOn(page, 3);
  const { sequences: [one] } = await post("writes", "generate", { tokens: TOKENS, max_tokens: 3 });
  const scored = { tokens: TOKENS, targets: one.tokens }, name = "decoder.1.self";
  await page.getByRole("button", { name: "Alignment" }).click();
  await page.locator("#generation figure").waitFor();
  await page.getByLabel("Alignment:").selectOption(name);
  const { attention } = await post("writes", "score", { ...scored, return_attention: { of: [name], as: "average" } });
  const [titles, ...rows] = csvOf(await save(page, "CSV", "#generation > div:has(figure)")), all = [...TOKENS, ...one.tokens];
  assert.deepEqual(titles, ["attention", "query_position", "query", "key_position", "key", "weight", "visible"]);
  const matrix = attention[name].slice(-3);
  assert.deepEqual(rows.map((row) => row.slice(0, 5)), matrix.flatMap((line, i) =>
    line.map((_, j) => [name, i, String(one.tokens[i]), j, String(all[j])])));
  near(rows.map((row) => row[5]), matrix.flat());
  assert.ok(svgOf(await save(page, "SVG", "#generation > div:has(figure)")).texts.some((text) => text?.includes("Layer 1")));
  await page.getByRole("button", { name: "Logit lens" }).click();
  const place = "[aria-label='Logit lens']";
  await page.locator(`${place} table`).waitFor();
  const { lens } = await post("writes", "score", { ...scored, return_lens: 1 });
  const [, ...said] = csvOf(await save(page, "CSV", place)), wanted = Object.entries(lens).flatMap(([layer, list]) =>
    list.slice(-3).map(([best], i) => [layer, i + 1, one.tokens[i], best.token, Math.exp(best.log_probability)]));
  assert.deepEqual(said.map((row) => [...row.slice(0, 3), row[4]]), wanted.map((row) => row.slice(0, 4)));
  near(said.map((row) => row[6]), wanted.map((row) => row[4]));
  const { texts } = svgOf(await save(page, "SVG", place));
  for (const [, , , token] of wanted) assert.ok(texts.includes(String(token)), String(token));
  for (const word of ["layer 1", "embeddings", "generated tokens"]) assert.ok(texts.includes(word), word);
});

test("a cell of a notebook has the weights as numpy arrays", async (t) => {
  const python = "/usr/bin/python3", { status } = spawnSync(python, ["-c", "import numpy"]);
  if (status !== 0) return t.skip("numpy is not installed");
  const page = await open({ server });
  for (const [body, model, shape] of [[LAYER, "demo", "[(2, 3, 3)]"], [{ tokens: TOKENS }, "ids", "(5, 5)"]]) {
    await ask(page, body, model);
    await page.getByRole("button", { name: "Copy notebook cell" }).click();
    await page.getByText("Copied.").waitFor();
    const cell = await page.evaluate(() => navigator.clipboard.readText()), lines = cell.split("\n");
    lines.push(`print(${lines.pop()})`, "import json", "first = weights if isinstance(weights, list) else next(iter(weights.values()))",
      "print(json.dumps(first[0].tolist()))");
    const run = spawnSync(python, ["-c", lines.join("\n")], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    assert.ok(run.stdout.includes(shape), run.stdout);
    const shown = await state(page, "answer");
    assert.ok(shown.items[0].weights.length > 0);
    const first = JSON.parse(run.stdout.trim().split("\n").at(-1)).flat(Infinity);
    const wanted = model === "demo" ? (await post("demo", "attention", LAYER)).attention_weights[0]
      : (await post("ids", "encode", { tokens: TOKENS, return_attention: true })).attention["encoder.0.self"][0];
    near(first, wanted.flat(Infinity));
    await settle(page);
  }
});
