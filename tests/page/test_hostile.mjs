// test_hostile: servers that say what they should not, models that go, requests made to hurt: the
// page says something sensible and goes on.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { ask, drop, open, serve, settle, state, tab, test } from "./browser.mjs";
import { safetensors } from "./oracle.mjs";

const LAYER = { random: { seed: 7 }, query_size: 4, heads: 2 };
const BODY = { queries: [[[1, 2, 3, 4], [4, 3, 2, 1]]], return_attention: true };
const server = await serve([], { config: { models: { layer: LAYER } } });

// --- a server between, that lies where a path ends in one of these ---

let lies = {};
const liar = http.createServer(async (asked, said) => {
  const body = [];
  for await (const part of asked) body.push(part);
  const lie = Object.entries(lies).find(([end]) => asked.url.endsWith(end));
  if (lie) {
    const [status, type, text] = lie[1];
    said.writeHead(status, { "Content-Type": type });
    return said.end(text);
  }
  const { host, connection, ...headers } = asked.headers;
  const what = { method: asked.method, headers };
  const sent = http.request(server.origin + asked.url, what, (answer) => {
    said.writeHead(answer.statusCode, answer.headers);
    answer.pipe(said);
  });
  sent.on("error", () => said.destroy());
  sent.end(Buffer.concat(body));
});
await new Promise((done) => liar.listen(0, "127.0.0.1", done));
after(() => liar.close());
const before = { origin: `http://127.0.0.1:${liar.address().port}` };
const JSON_TYPE = "application/json", PROBLEM = "application/problem+json";
const json = (value) => [200, JSON_TYPE, JSON.stringify(value)];

// Does it answer again, once the lies are over?
const goesOn = async (page) => {
  lies = {};
  await ask(page, BODY, "layer");
  assert.equal(await state(page, "problem"), null);
  assert.equal((await state(page, "answer")).items.length, 1);
};

test("a problem's members of another form are left out", async () => {
  lies = {};
  const page = await open({ server: before, expect: [400, 503] });
  const odd = { toString: 1 };
  for (const text of ["null", "5", "[1]", "{", JSON.stringify({ title: odd, detail: odd, type: odd,
    pointer: odd, offset: "x", limit: odd, status: odd })]) {
    lies = { "/attention": [400, PROBLEM, text] };
    await ask(page, BODY, "layer");
    assert.equal((await state(page, "problem")).status, 400);
    assert.equal(await page.textContent("#problem h3"), "The server responded with 400");
  }
  lies = { "/attention": [400, PROBLEM, JSON.stringify({ title: "<b>t", detail: "</script>d" })] };
  await ask(page, BODY, "layer");
  assert.equal(await page.textContent("#problem"), "<b>t</script>d");
  await goesOn(page);
});

test("a list of models that is none is told", async () => {
  lies = {};
  const page = await open({ server: before });
  const [model] = await state(page, "models");
  for (const models of [null, 5, [null], ["x"], [{}], [{ name: "layer" }], [{ ...model, name: 5 }],
    [{ ...model, query_size: -1 }], [{ ...model, heads: {} }], [{ ...model, parameters: "1" }]]) {
    lies = { "/v1/models": json({ models }) };
    await page.evaluate(() => State.set({ problem: null }));
    await page.evaluate(() => Models.load());
    assert.equal((await state(page, "problem")).title, "The response did not come from an attend server",
      JSON.stringify(models));
    assert.equal(await state(page, "model"), "layer");
  }
  lies = { "/v1/models": json({ models: [{ ...model, name: "wide", query_size: 2 ** 20 }] }) };
  await page.evaluate(() => Models.load());
  await settle(page);
  assert.match(await page.textContent("#model-summary"), /1048576/);
  await goesOn(page);
});

test("measures of heads that are none are told, and can be asked for again", async () => {
  lies = {};
  const page = await open({ server: before });
  const one = { confidence: 1, delta: 0 };
  await tab(page, "Head importance");
  for (const text of ["", "<b>", "null", "{}", JSON.stringify({ heads: [], ranking: [] }),
    JSON.stringify({ heads: [null, null], ranking: [0, 1] }),
    JSON.stringify({ heads: [one, one], ranking: [7, 0] }),
    JSON.stringify({ heads: [one, one], ranking: [0, 1], divergence: [[0, 1]] })]) {
    lies = { "/heads": [200, JSON_TYPE, text] };
    await ask(page, BODY, "layer");
    assert.match(await page.textContent("#heads [role=alert]"), /^The response cannot be read/, text);
  }
  lies = {};
  await page.click("#heads [role=alert] button");
  await settle(page);
  assert.equal(await page.locator("#measures input").count(), 2);
  lies = { "/attention": [200, JSON_TYPE, "{}"] };
  await page.locator("#measures input").first().click();
  await page.waitForSelector("#loss [role=alert]");
  await goesOn(page);
});

test("behind a proxy that hides /readyz what was sent waits for the server, too", async () => {
  const gone = [502, "text/html", "<h1>502</h1>"];
  lies = { "/readyz": [404, PROBLEM, "{}"] };
  const page = await open({ server: before, expect: [404, 502] });
  const asked = [];
  page.on("response", (one) => asked.push(`${new URL(one.url()).pathname} ${one.status()}`));
  lies = { ...lies, "/v1/models": gone, "/attention": gone };
  await page.click("#send");
  const failed = (one) => one === "/v1/models 502";
  while (asked.filter(failed).length < 2) await page.waitForResponse("**/v1/models");
  assert.equal(await state(page, "asking"), true);
  assert.equal(await page.isVisible("#notice"), true);
  lies = { "/readyz": lies["/readyz"] };
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  assert.equal(asked.filter((one) => one.endsWith("/attention 502")).length, 1);
  assert.equal(await page.isVisible("#notice"), false);
  await goesOn(page);
});

test("figures come back after some that are none", async () => {
  lies = { "/metrics": [200, "text/plain",
    'attend_http_request_duration_seconds_bucket{route="/attention"} 1\n'] };
  const page = await open({ server: before });
  await page.waitForSelector("#status-memory", { state: "attached" });
  lies = {};
  await page.waitForFunction(() => /B/.test(Dom.id("status-memory").textContent));
});

test("a shape that claims more than there is", async () => {
  const page = await open({ server: before, expect: [400, 413] });
  for (const shape of [[4294967295, 0, 4], [2 ** 53 - 1, 0], [20000000, 0, 4000]]) {
    const file = safetensors({ outputs: ["F32", shape, Buffer.alloc(0)] });
    lies = { "/attention": [200, "application/x-safetensors", file] };
    await ask(page, BODY, "layer");
    assert.equal((await state(page, "problem")).title, "The response cannot be read");
    lies = {};
    await page.evaluate(() => { Dom.id("fields-part").open = Dom.id("drawer").open = true; });
    const mask = ["F32", shape, Buffer.alloc(0)];
    await drop(page, "body", "a.safetensors", safetensors({ mask }));
    await page.click("text=As JSON");
    await page.click("#send");
    await settle(page);
    assert.ok((await state(page, "problem")).status >= 400);
  }
  await goesOn(page);
});

test("a tensor called __proto__ is sent as it is", async () => {
  const page = await open({ server, expect: [400] });
  const header = Buffer.from(JSON.stringify({ queries: { dtype: "F32", shape: [1, 1, 4],
    data_offsets: [0, 16] } }).replace("}}", '},"__proto__":{"dtype":"F32","shape":[1],'
    + '"data_offsets":[16,20]}}'));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  await drop(page, "body", "a.safetensors", Buffer.concat([length, header, Buffer.alloc(20)]));
  await page.click("#send");
  await settle(page);
  assert.match((await state(page, "problem")).detail, /__proto__/);
});

test("gradients beside what cannot be changed", async () => {
  const page = await open({ server, expect: [400, 413] });
  const deep = "[".repeat(100000) + "]".repeat(100000);
  await ask(page, `{"gradients":[1],"mask":${deep}}`);
  assert.ok((await state(page, "problem")).status >= 400);
  assert.equal(await state(page, "asking"), false);
  // Valid for a browser only; its place in what was sent is not that in the text.
  await ask(page, '{"gradients":   [1],   "select":   "\\ud800"}');
  assert.equal((await state(page, "problem")).type, "/problems/invalid-json");
  assert.equal(await page.locator("#problem pre").count(), 0);
});

test("where the chosen model is gone the list is read anew", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
  const file = path.join(folder, "models.json");
  const write = (models) => fs.writeFileSync(file, JSON.stringify({ models }));
  write({ a: LAYER, b: LAYER });
  const own = await serve(["--config", file]);
  const page = await open({ server: own, expect: [404] });
  await ask(page, BODY, "a");
  write({ b: LAYER, c: LAYER });
  process.kill(own.pid, "SIGHUP");
  for (let names = ""; !names.includes('"c"');) names = (await own.get("/v1/models")).text;
  await ask(page, BODY, "a");
  assert.equal((await state(page, "problem")).type, "/problems/unknown-model");
  assert.deepEqual((await state(page, "models")).map((m) => m.name), ["b", "c"]);
  assert.equal(await page.inputValue("#model"), "b");
  await page.getByText("The server no longer has the model “a”. Now chosen: b.").waitFor();
  await page.click("#send");
  await settle(page);
  assert.equal(await state(page, "problem"), null);
  fs.rmSync(folder, { recursive: true });
});

test("a key that is given late brings the models", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
  fs.writeFileSync(path.join(folder, "keys"), "0123456789-abcdefghij\n", { mode: 0o600 });
  const own = await serve(["--api-key-file", path.join(folder, "keys")]);
  const page = await open({ server: own, expect: [401] });
  await page.click("#key-leave");
  assert.equal(await state(page, "models"), null);
  await page.click("text=Enter API key >> nth=-1");
  await page.fill("#key-text", "0123456789-abcdefghij");
  await page.click("#key-use");
  await settle(page);
  assert.ok((await state(page, "models")).length > 0);
  assert.ok(await state(page, "answer"));
  fs.rmSync(folder, { recursive: true });
});
