// test_code: the request as curl, Python and JavaScript, which are run.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { asFloat32, choose, open, send, source, toy, type, unfold, weights } from "./asking.mjs";
import { ask, download, drop, serve, settle, state, tab, test } from "./browser.mjs";
import { bytesOf, safetensors } from "./oracle.mjs";

const run = promisify(execFile);
const demo = { random: { seed: 1 }, query_size: 4, heads: 2 };
const server = await serve();

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
  const page = await open({ server, path: "/#api", expect: [400] });
  await unfold(page, "code-part");
  const coded = `${JSON.stringify(toy).slice(0, -1)}, "sel\\u0065ct": "soft"}`;
  for (const text of [await source(page), coded]) {
    await type(page, text);
    await send(page);
    const { json } = await server.post("/v1/attention", text);
    assert.deepEqual(JSON.parse((await state(page, "answer")).raw), json);
    for (const language of Object.keys(LANGUAGES))
      assert.deepEqual(await execute(await code(page, language), language), json, language);
  }
});

test("the request of a model gives the weights that the views show, short or long", async () => {
  const page = await open({ server: await serve([], { config: { models: { words: { transformer: { builtin: "words" } } } } }),
    path: "/#api?model=words" });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-code-")), one = "the animal was too tired because it was slow";
  const run = async (language) => execute(await code(page, language), language, { cwd: folder, maxBuffer: 1e8 });
  await unfold(page, "code-part");
  await ask(page, { text: one });
  const { part } = await state(page, "answer");
  for (const language of Object.keys(LANGUAGES)) {
    const { attention, strings } = await run(language);
    assert.deepEqual(Object.keys(attention), (await state(page, "answer")).names, language);
    assert.deepEqual([asFloat32(attention[part])], await weights(page), language);
    assert.deepEqual(strings, (await page.evaluate(() => State.answer.places[0])).encoder, language);
  }
  await ask(page, { text: one, return_attention: { of: [part], as: "average" } });
  assert.deepEqual(Object.keys((await run("curl")).attention), [part], "what the request itself says");
  await ask(page, { text: Array(250).fill(one) });
  const { name, bytes } = await download(page, () => page.getByRole("button", { name: "Save request" }).click());
  fs.writeFileSync(path.join(folder, name), bytes);
  const first = await page.evaluate(() => State.answer.items[0].weights.map(({ data }) => [...data]));
  assert.deepEqual((await run("Python")).attention[part][0].map((head) => asFloat32(head.flat())), first);
  fs.rmSync(folder, { recursive: true });
});

test("each view has the code of its own request", async () => {
  const models = { words: { transformer: { builtin: "words" } }, story: { transformer: { builtin: "story" } }, demo };
  const own = await serve([], { config: { models } }), page = await open({ server: own, path: "/#explore?model=words" });
  const copied = async (panel, language = "curl") => {
    await page.locator(`#code-language`).evaluate((one, value) => { one.value = value; }, language);
    await page.locator(panel).getByRole("button", { name: "Copy code" }).click();
    await page.locator(panel).getByText("Copied.").last().waitFor();
    return execute(await page.evaluate(() => navigator.clipboard.readText()), language === "Notebook" ? "Python" : language);
  };
  await ask(page, { text: "the animal was tired" }, "words");
  await tab(page, "Rollout");
  await page.locator("#flow tbody").waitFor();
  const { attention } = await copied("#flow", "Python");
  const all = await page.evaluate((weights) => Flow.roll(Object.values(weights), true).at(-1).at(-1), attention);
  const shown = await page.locator("#flow tbody tr").first().locator("[title]").evaluateAll((list) =>
    list.map(({ title }) => Number(title)));
  shown.slice(-all.length).forEach((x, i) => assert.ok(Math.abs(x - all[i]) < 1e-6, `${x}, not ${all[i]}`));
  await tab(page, "Computation");
  await page.locator("#steps").getByRole("button", { name: "3 Scores" }).click();
  const { trace } = await copied("#steps", "Notebook");
  assert.deepEqual(await page.locator("#steps [type=number]").evaluateAll((list) => list.map(({ value }) => Number(value))), trace.scores);
  await page.evaluate(() => Place.go("ablate"));
  await settle(page);
  await page.getByRole("button", { name: "Measure every head" }).click();
  await page.getByText(/Least important first/).waitFor();
  const { ranking } = await copied("#worth", "JavaScript");
  assert.equal(await page.evaluate(() => State.losses.size), ranking.length);
  const named = await page.evaluate((list) => list.slice(0, 5).map((one) => Part.head(...one)).join(", "), ranking);
  assert.ok((await page.locator("#worth").textContent()).includes(named), named);
  await page.evaluate(() => State.set({ model: "story", body: { text: JSON.stringify({ text: "the animal did" }) } }));
  await page.evaluate(() => Place.go("generate"));
  assert.ok(await page.locator("#generation").getByRole("button", { name: "Copy code" }).isDisabled());
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.locator("#generation p").filter({ hasText: /tokens?: / }).waitFor();
  const { sequences } = await copied("#generation");
  assert.equal(await page.locator(".column").count(), sequences[0].tokens.length);
  await ask(page, toy, "demo");
  await page.evaluate(() => Place.go("ablate"));
  await page.locator("#measures tbody").waitFor();
  assert.equal((await copied("#heads")).heads.length, 2);
});

test("gradients are for heads alone, and deep nesting keeps nothing waiting", async () => {
  const page = await open({ server, path: "/#api", expect: [400] });
  await unfold(page, "code-part");
  await type(page, JSON.stringify({ ...toy, gradients: [[[1, 0, 0, 0], [0, 0, 0, 1]]] }));
  await send(page);
  const { raw } = await state(page, "answer");
  assert.deepEqual(JSON.parse(raw), (await server.post("/v1/attention", toy)).json);
  assert.deepEqual(await execute(await code(page, "curl"), "curl"), JSON.parse(raw));
  await type(page, `{"gradients":1,"queries":${"[".repeat(20000)}${"]".repeat(20000)}}`);
  await send(page);
  assert.equal((await state(page, "problem")).status, 400);
});

test("code with any text in it", async () => {
  const page = await open({ server, path: "/#api" });
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
  const page = await open({ server, path: "/#api" });
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-code-"));
  await unfold(page, "code-part");
  const queries = ["F32", [1, 2, 4], bytesOf("F32", [1, 0, 0, 1, 0, 1, 1, 0])];
  const row = (_, i) => [i / 7, i / 11, i / 13, 1];
  const long = { ...toy, queries: [Array.from({ length: 150 }, row)] };
  for (const [name, bytes, saved] of [["a.json", JSON.stringify(long), "request.json"],
    ["a.safetensors", safetensors({ queries }, { return_attention: "true" }),
      "request.safetensors"]]) {
    await drop(page, "body", name, bytes);
    await send(page);
    assert.match(await page.locator("#code-told").textContent(), new RegExp(`reads ${saved}`));
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save request" }).click();
    assert.equal((await saving).suggestedFilename(), saved);
    await (await saving).saveAs(path.join(folder, saved));
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
  const page = await open({ server: closed, path: "/#api", expect: [401] });
  await page.locator("#key-text").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => State.answer);
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
  const page = await open({ server, path: "/#api" });
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
