// test_key: the key that a server asks for, and a server that stops, goes or comes back.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { ask, audit, open, serve, settle, state, test } from "./browser.mjs";

const REQUEST = { queries: [[[1, 0, 0, 1]]], return_attention: true };

// --- the key ---

const KEY = "correct-horse-battery-staple";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-key-"));
after(() => fs.rmSync(folder, { recursive: true }));
fs.writeFileSync(path.join(folder, "keys"), `${KEY}\n`);
const guarded = (...more) => serve(["--api-key-file", path.join(folder, "keys"), ...more]);
const dialog = (page) => page.locator("#key-dialog[open]");
const give = async (page, text) => {
  await page.getByLabel("Key", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
};

test("a key is asked for, and is kept nowhere", async () => {
  const page = await open({ server: await guarded(), expect: [401] });
  await dialog(page).waitFor();
  await audit(page);
  await give(page, "ключ с пробелом");
  assert.match(await page.locator("#key-says").textContent(), /cannot be sent/);
  await give(page, "not-the-key-at-all-but-long");
  await page.getByText("The server refused that key.").waitFor();
  assert.equal(await page.locator("#key-text").inputValue(), "");
  await give(page, KEY);
  await dialog(page).waitFor({ state: "detached" });
  await page.waitForFunction(() => State.get("models"));
  await ask(page, REQUEST, "demo");
  assert.equal(await state(page, "problem"), null);
  assert.equal((await state(page, "answer")).items.length, 1);
  assert.equal(await page.evaluate(() => Net.hasKey()), true);
  const kept = await page.evaluate(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state,
    await indexedDB.databases(), await caches.keys(), document.documentElement.outerHTML,
    [...document.querySelectorAll("input, textarea")].map((field) => field.value),
    ["models", "model", "body", "labels", "asked", "answer", "problem", "view"].map(State.get)]));
  assert.ok(!kept.includes(KEY));
  assert.deepEqual(await page.context().cookies(), []);
  await page.reload();
  await dialog(page).waitFor();
});

test("many that are refused ask once; who gives no key can give one later", async () => {
  const page = await open({ server: await guarded(), expect: [401] });
  await dialog(page).waitFor();
  await page.evaluate(() => {
    window.asked = Promise.all([1, 2, 3].map(() => Net.ask("GET", "v1/models")));
  });
  await settle(page);
  assert.equal(await page.locator("dialog[open]").count(), 1);
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
  const statuses = await page.evaluate(async () => (await window.asked).map((one) => one.status));
  assert.deepEqual(statuses, [401, 401, 401]);
  assert.match(await page.locator("#problem").textContent(), /A key is needed/);
  await page.locator("#problem").getByRole("button", { name: "Give a key" }).click();
  await give(page, KEY);
  await page.waitForFunction(() => State.get("models"));
  await settle(page);
  assert.equal(await page.locator("#problem").textContent(), "");
  await page.locator("#status-requests").waitFor();
  await page.getByRole("button", { name: "Forget key" }).click();
  assert.equal(await page.evaluate(() => Net.hasKey()), false);
  await page.getByText("Figures need a key").waitFor();
  assert.equal(await dialog(page).count(), 0);
});

test("requests that wait for a key go out again with it, each once", async () => {
  const page = await open({ server: await guarded(), expect: [401] });
  await dialog(page).waitFor();
  await page.evaluate(() => {
    window.asked = Promise.all([1, 2].map(() => Net.ask("GET", "v1/models/demo")));
  });
  await settle(page);
  const sent = [];
  page.on("request", (request) => request.url().endsWith("/demo") && sent.push(request));
  await give(page, KEY);
  const statuses = await page.evaluate(async () => (await window.asked).map((one) => one.status));
  assert.deepEqual(statuses, [200, 200]);
  assert.equal(sent.length, 2);
});

test("figures that need a key open no dialog by themselves", async () => {
  const page = await open({ expect: [401] });
  await page.route("**/metrics", (route) => route.fulfill({ status: 401, body: "" }));
  await page.getByText("Figures need a key").waitFor();
  assert.equal(await dialog(page).count(), 0);
  await page.locator("#status").getByRole("button", { name: "Give a key" }).click();
  await dialog(page).waitFor();
});

// --- a server that stops, goes and comes back ---

const notice = (page) => page.locator("#notice");
const begin = (page, text) => page.evaluate((body) => {
  State.set({ body: { text: body }, model: "demo" });
  window.done = Ask.send();
}, text);

test("a server that drains is noticed, though nothing is asked", async () => {
  const server = await serve(["--drain-delay-ms", "7000"]);
  const page = await open({ server, expect: [503, 0] });
  const stopping = server.stop();
  await notice(page).filter({ hasText: "The server is stopping" }).waitFor();
  await audit(page);
  await stopping;
  await notice(page).filter({ hasText: "The server does not answer" }).waitFor();
});

test("a server that comes back gets what was sent meanwhile, and the text stays", async () => {
  const server = await serve();
  const page = await open({ server, expect: [0] });
  await server.stop();
  await begin(page, JSON.stringify(REQUEST));
  await notice(page).filter({ hasText: "sent again" }).waitFor();
  await page.evaluate(() => State.set({ models: [] }));
  await serve(["--listen", `127.0.0.1:${server.port}`]);
  await page.evaluate(() => window.done);
  await notice(page).waitFor({ state: "hidden" });
  assert.equal(await state(page, "problem"), null);
  assert.equal((await state(page, "answer")).items.length, 1);
  assert.equal((await state(page, "body")).text, JSON.stringify(REQUEST));
  await page.waitForFunction(() => State.get("models").length > 0);
});

test("behind a proxy that has no /readyz, it waits for the server as well", async () => {
  const page = await open({ expect: [404, 502] });
  let away = true, asked = 0;
  await page.route("**/readyz", (route) => route.fulfill({ status: 404, body: "" }));
  await page.route(/attention|models$/, (route) => {
    asked += route.request().url().endsWith("models");
    return away ? route.fulfill({ status: 502, body: "" }) : route.continue();
  });
  await begin(page, JSON.stringify(REQUEST));
  while (asked < 2) await new Promise((done) => setTimeout(done, 50));
  assert.ok(await notice(page).isVisible());
  away = false;
  await page.evaluate(() => window.done);
  assert.equal(await state(page, "problem"), null);
  assert.equal((await state(page, "answer")).items.length, 1);
});

test("what gets no answer is sent again once", async () => {
  const page = await open({ expect: [0] });
  let count = 0;
  await page.route("**/attention", (route) => {
    count++;
    return route.abort();
  });
  await begin(page, JSON.stringify(REQUEST));
  await page.evaluate(() => window.done);
  assert.equal(count, 2);
  assert.match(await page.locator("#problem").textContent(), /No answer came/);
  await notice(page).waitFor({ state: "hidden" });
});

test("what waits for the server can be stopped", async () => {
  const page = await open({ expect: [503] });
  await page.route(/readyz|attention/, (route) => route.fulfill({ status: 503, body: "" }));
  const reply = await page.evaluate(async () => {
    const controller = new AbortController();
    const asked = Net.ask("POST", "v1/attention", { signal: controller.signal, data: "{}" });
    await new Promise((done) => setTimeout(done, 500));
    controller.abort();
    const { status, ok, aborted, problem } = await asked;
    return { status, ok, aborted, problem };
  });
  assert.deepEqual(reply, { status: 0, ok: false, aborted: true, problem: null });
});

test("a reply says how long it took", async () => {
  const page = await open();
  const took = await page.evaluate(async () => (await Net.ask("GET", "v1/models")).took);
  assert.ok(took > 0);
});
