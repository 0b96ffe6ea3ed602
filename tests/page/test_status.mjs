// test_status: the corner that reads /metrics; the tabs.
import assert from "node:assert/strict";
import fs from "node:fs";
import { ask, audit, open, serve, settle, test, tab } from "./browser.mjs";

const METRICS_JS = new URL("../../server/page/net/metrics.js", import.meta.url);
const Metrics = new Function(
  `"use strict";${fs.readFileSync(METRICS_JS, "utf8")};return Metrics;`)();
const REQUEST = { queries: [[[1, 0, 0, 1]]], return_attention: true };
// A page whose time runs, and can be put forward.
const clocked = async (options) => {
  const page = await open({ path: "/#api", ...options });
  await page.clock.install();
  await page.reload();
  await settle(page);
  return page;
};
const forward = async (page, ms) => {
  await page.clock.fastForward(ms);
  await settle(page);
};
const cell = (page, name) => page.locator(`#status-${name}`);
const reads = (page, name, wanted) => page.waitForFunction(
  ([id, text]) => new RegExp(text).test(document.getElementById(id)?.textContent),
  [`status-${name}`, wanted.source]);

// --- metrics.js ---

test("Prometheus' text is read, whatever stands in labels", () => {
  const list = Metrics.parse(`# HELP a b
a 1
a{x="q\\"}, {\\\\ \\n,y=",y="} 5"} 2.5e-3 1700000000000
a{} -4

b{le="+Inf",} +Inf
b NaN
c -Inf
no number at all
{x="y"} 3
e 0x`);
  assert.deepEqual(list, [{ name: "a", labels: {}, value: 1 },
    { name: "a", labels: { x: "q\"}, {\\ \n,y=", y: "} 5" }, value: 0.0025 },
    { name: "a", labels: {}, value: -4 }, { name: "b", labels: { le: "+Inf" }, value: Infinity },
    { name: "c", labels: {}, value: -Infinity }]);
  assert.equal(Metrics.sum(list.slice(0, 3)), -2.9975);
});

// Where the share of observations at or below x, in straight lines between buckets, comes to q.
const oracle = (buckets, q) => {
  const total = buckets[buckets.length - 1][1];
  const finite = buckets.filter(([le]) => le < Infinity), [top, most] = finite[finite.length - 1];
  if (most < q * total) return top;
  const share = (x) => {
    let low = 0, below = 0;
    for (const [le, count] of finite) {
      if (x < le) return (below + (count - below) * (x - low) / (le - low)) / total;
      [low, below] = [le, count];
    }
    return below / total;
  };
  let [from, to] = [0, top];
  for (let i = 0; i < 200; i++) {
    const middle = (from + to) / 2;
    if (share(middle) < q) from = middle;
    else to = middle;
  }
  return to;
};
test("quantiles are what the buckets say", () => {
  const bounds = [0.001, 0.002, 0.005, 0.01, 0.1, 1, Infinity];
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 300; round++) {
    let sum = 0;
    const some = () => (random() < 0.4 ? 0 : Math.floor(random() * 50));
    const buckets = bounds.map((le) => [le, (sum += some())]);
    for (const q of [0.5, 0.99]) {
      const got = Metrics.quantile(buckets, q);
      if (sum === 0) assert.equal(got, null);
      else assert.ok(Math.abs(got - oracle(buckets, q)) < 1e-9, JSON.stringify([buckets, q, got]));
    }
  }
  assert.equal(Metrics.quantile([], 0.5), null);
  assert.deepEqual(Metrics.since([[1, 5], [Infinity, 9]], [[1, 2]]), [[1, 3], [Infinity, 9]]);
});

// --- the corner ---

test("the figures are the server's own", async () => {
  const server = await serve();
  const page = await open({ server, expect: [400] });
  for (let i = 0; i < 6; i++) await ask(page, REQUEST, "demo");
  await ask(page, { queries: 7 });
  await server.post("/v1/models/demo/heads", REQUEST);
  await server.post("/v1/models/words/encode", { text: "the animal" });
  await server.post("/v1/embeddings", { model: "words", input: "the animal" });
  const own = (await server.get("/metrics")).text;
  const total = [...own.matchAll(/^attend_http_requests_total\{.*method="POST".*\} (\d+)$/gm)]
    .reduce((sum, [, n]) => sum + Number(n), 0);
  assert.ok(total >= 10);
  await reads(page, "requests", new RegExp(`^${total}\\b`));
  const limit = /^attend_queue_limit (\d+)$/m.exec(own)[1];
  assert.equal(await cell(page, "queue").textContent(), `0 of ${limit}`);
  assert.match(await cell(page, "memory").textContent(), /^\d+(\.\d)? MB$/);
  await server.post("/v1/models/demo/heads", REQUEST);
  await reads(page, "p50", /ms$/);
  assert.match(await cell(page, "p99").textContent(), /ms last \d+ s$/);
});

const readings = (counts) => counts.map((count, i) => {
  const labels = `route="/v1/attention",method="POST",le="${[0.01, 0.1, "+Inf"][i]}"`;
  return `attend_http_request_duration_seconds_bucket{${labels}} ${count}`;
}).concat(`attend_http_requests_total{route="/v1/attention",method="POST"} ${counts[2]}`).join("\n");
test("times are of the last minute: one slow request is not shown for ever", async () => {
  const page = await clocked();
  let fast = 0, slow = 0;
  await page.route("**/metrics", (route) => route.fulfill({ body: readings([fast, fast + slow, fast + slow]) }));
  const turns = async (n) => {
    for (let i = 0; i < n; i++) await forward(page, 2000);
  };
  await turns(2);
  await reads(page, "p50", /^–$/);
  fast = 10;
  await turns(1);
  await reads(page, "p50", /^5 ms/);
  await reads(page, "p99", /^9\.9 ms last \d+ s/);
  slow = 10;
  await turns(1);
  await reads(page, "p99", /^98\.2 ms last \d+ s/);
  await turns(2);
  await reads(page, "p99", /^98\.2 ms/);
  assert.equal(await cell(page, "memory").textContent(), "–");
  await turns(32);
  await reads(page, "p99", /^–$/);
  await reads(page, "requests", /^20 0\/s$/);
  [fast, slow] = [3, 0];
  await turns(1);
  await reads(page, "requests", /^3$/);
});

test("a server that is away is told within seconds, also where metrics are hidden", async () => {
  const page = await clocked({ expect: [0, 403] });
  await page.route("**/metrics", (route) => route.fulfill({ status: 403, body: "no" }));
  await forward(page, 2000);
  await page.getByText("Metrics are not available").waitFor({ state: "attached" });
  await page.context().setOffline(true);
  await forward(page, 2000);
  await page.getByText("The server does not respond").waitFor();
  await forward(page, 2000);
  await page.locator("#ready").getByText("offline").waitFor();
  await page.context().setOffline(false);
  await forward(page, 6000);
  await page.locator("#notice").waitFor({ state: "hidden" });
  await forward(page, 2000);
  await page.locator("#ready").getByText("ready").waitFor();
});

test("a page that is not seen asks for nothing", async () => {
  const page = await clocked();
  await reads(page, "requests", /^\d/);
  let count = 0;
  page.on("request", () => count++);
  const turn = (value) => page.evaluate((word) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value: word });
    document.dispatchEvent(new Event("visibilitychange"));
  }, value);
  await turn("hidden");
  await settle(page);
  count = 0;
  for (let i = 0; i < 3; i++) await forward(page, 5000);
  assert.equal(count, 0);
  const asked = page.waitForRequest("**/metrics");
  await turn("visible");
  await asked;
});

test("figures that a proxy hides are not asked for again and again", async () => {
  const page = await clocked({ expect: [403] });
  await reads(page, "requests", /^\d/);
  let count = 0;
  await page.route("**/metrics", (route) => {
    count++;
    return route.fulfill({ status: 403, body: "no" });
  });
  await forward(page, 2000);
  await page.getByText("Metrics are not available").waitFor({ state: "attached" });
  for (let i = 0; i < 3; i++) await forward(page, 5000);
  assert.equal(count, 1);
  await audit(page);
});

test("where the models were loaded anew, the list is read anew", async () => {
  const page = await clocked();
  let loaded = 1, lists = 0;
  await page.route("**/metrics", (route) => route.fulfill({ contentType: "text/plain",
    body: `attend_models_loaded_timestamp_seconds ${loaded}\n` }));
  await page.route("**/v1/models", (route) => {
    lists++;
    route.continue();
  });
  for (let i = 0; i < 2; i++) await forward(page, 2000);
  lists = 0;
  for (let i = 0; i < 3; i++) await forward(page, 2000);
  assert.equal(lists, 0);
  loaded = 2;
  const read = page.waitForResponse("**/v1/models");
  for (let i = 0; i < 2; i++) await forward(page, 2000);
  await read;
});

test("the figures are in the place of the API; above each place is whether the server is ready", async () => {
  const page = await open({ viewport: [360, 800] });
  await page.locator("#ready").getByText("ready").waitFor();
  assert.ok(!await page.locator("#status-box").isVisible());
  await tab(page, "Response");
  await reads(page, "requests", /^\d/);
  assert.ok((await page.locator("#status-box").boundingBox()).width <= 360);
});

// --- the tabs ---

test("the tabs are moved through by keys, round and round", async () => {
  const page = await open();
  const names = await page.getByRole("tab").allTextContents();
  await page.getByRole("tab").first().focus();
  const chosen = () => page.evaluate(() => [document.activeElement.textContent,
    document.activeElement.getAttribute("aria-selected"),
    [...document.querySelectorAll("[role=tab]")].filter((tab) => !tab.hidden && tab.tabIndex === 0).length,
    [...document.querySelectorAll("[role=tabpanel]")].filter((panel) => !panel.hidden).length]);
  for (const [key, at] of [["ArrowRight", 1], ["End", names.length - 1], ["ArrowRight", 0],
    ["ArrowLeft", names.length - 1], ["Home", 0]]) {
    await page.keyboard.press(key);
    assert.deepEqual(await chosen(), [names[at], "true", 1, 1]);
  }
});
