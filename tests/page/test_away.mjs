// test_away: a server that stops, goes and comes back.
import assert from "node:assert/strict";
import { audit, open, serve, state, test } from "./browser.mjs";

const REQUEST = { queries: [[[1, 0, 0, 1]]], return_attention: true };
const notice = (page) => page.locator("#notice");
const begin = (page, text) => page.evaluate((body) => {
  State.set({ body: { text: body }, model: "demo" });
  window.done = Ask.send();
}, text);

test("a server that drains is noticed, though nothing is asked", async () => {
  const server = await serve(["--drain-delay-ms", "600000"], { ends: 128 + 15 });
  const page = await open({ server, expect: [503, 0] });
  const stopping = server.stop();
  await notice(page).filter({ hasText: "Server is stopping" }).waitFor();
  await audit(page);
  process.kill(server.pid, "SIGTERM"); // the second one ends it at once
  await stopping;
  await notice(page).filter({ hasText: "The server does not respond" }).waitFor();
});

test("a server that comes back gets what was sent meanwhile, and the text stays", async () => {
  const server = await serve();
  const page = await open({ server, expect: [503, 0] });
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
  await page.waitForFunction(() => State.models.length > 0);
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
  assert.match(await page.locator("#problem").textContent(), /No response/);
  await notice(page).waitFor({ state: "hidden" });
});

test("what a proxy says without a server behind it is no answer", async () => {
  const page = await open({ expect: [502, 503] });
  for (const status of [502, 503]) {
    await page.route("**/attention", (route) => route.fulfill({ status, body: "" }), { times: 1 });
    await begin(page, JSON.stringify(REQUEST));
    await notice(page).filter({ hasText: "does not respond" }).waitFor();
    await page.evaluate(() => window.done);
    assert.equal(await state(page, "problem"), null);
  }
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
