// test_key: the key that a server asks for.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";

const REQUEST = { queries: [[[1, 0, 0, 1]]], return_attention: true };

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
  const page = await open({ server: await guarded(), path: "/#api", expect: [401] });
  await dialog(page).waitFor();
  await audit(page);
  await give(page, "ключ с пробелом");
  assert.match(await page.locator("#key-says").textContent(), /ASCII text/);
  await give(page, "not-the-key-at-all-but-long");
  await page.getByText("The server rejected this key.").waitFor();
  assert.equal(await page.locator("#key-text").inputValue(), "");
  await give(page, KEY);
  await dialog(page).waitFor({ state: "detached" });
  await page.waitForFunction(() => State.models);
  await ask(page, REQUEST, "demo");
  assert.equal(await state(page, "problem"), null);
  assert.equal((await state(page, "answer")).items.length, 1);
  assert.equal(await page.evaluate(() => Net.hasKey()), true);
  const kept = await page.evaluate(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state,
    await indexedDB.databases(), await caches.keys(), document.documentElement.outerHTML,
    [...document.querySelectorAll("input, textarea")].map((field) => field.value),
    ["models", "model", "body", "labels", "asked", "answer", "problem", "view"].map((name) => State[name])]));
  assert.ok(!kept.includes(KEY));
  assert.deepEqual(await page.context().cookies(), []);
  await page.reload();
  await dialog(page).waitFor();
});

test("many that are refused ask once; who gives no key can give one later", async () => {
  const page = await open({ server: await guarded(), path: "/#api", expect: [401] });
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
  assert.match(await page.locator("#problem").textContent(), /Unauthorized/);
  await page.locator("#problem").getByRole("button", { name: "Enter API key" }).click();
  await give(page, KEY);
  await page.waitForFunction(() => State.models);
  await settle(page);
  assert.equal(await page.locator("#problem").textContent(), "");
  await page.locator("#status-requests").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Forget key" }).click();
  assert.equal(await page.evaluate(() => Net.hasKey()), false);
  await page.getByText("Metrics require an API key").waitFor({ state: "attached" });
  assert.equal(await dialog(page).count(), 0);
});

test("requests that wait for a key go out again with it, each once", async () => {
  const page = await open({ server: await guarded(), path: "/#api", expect: [401] });
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
  const page = await open({ path: "/#api", expect: [401] });
  await page.route("**/metrics", (route) => route.fulfill({ status: 401, body: "" }));
  await page.getByText("Metrics require an API key").waitFor({ state: "attached" });
  assert.equal(await dialog(page).count(), 0);
  await page.locator("#status").getByRole("button", { name: "Enter API key" }).click();
  await dialog(page).waitFor();
});

test("what streams asks for the key, too, and goes on with it", async () => {
  const model = { transformer: { random: { seed: 1 } }, kind: "decoder", layers: 1, width: 8, heads: 2,
    feed_forward: 16, vocabulary: 22 };
  const page = await open({ server: await serve(["--api-key-file", path.join(folder, "keys")],
    { config: { models: { writes: model } } }), expect: [401] });
  await dialog(page).waitFor();
  await give(page, KEY);
  await page.waitForFunction(() => State.models);
  await ask(page, { tokens: [4, 5] }, "writes");
  await tab(page, "Generation");
  await page.evaluate(() => Key.forget());
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await dialog(page).waitFor();
  await give(page, KEY);
  await page.getByText(/^20 tokens: /).waitFor();
});
