// test_link: the address, and a file, bring the place, the request, its labels, the view and the tab back.
import assert from "node:assert/strict";
import { ask, audit, download, drop, open, serve, settle, state, tab, test, told } from "./browser.mjs";

const server = await serve();
const BODY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 2, 0, 0]], [[1, 0, 2, 1]]], return_attention: true };
const LABELS = { rows: [["the", "<b>cat</b>", "sät"], ["alone"]], cols: [] };
const looked = async (page) => {
  await ask(page, BODY, "demo");
  await page.evaluate((labels) => {
    State.set({ labels });
    State.show({ head: 1, row: 1, col: 2, range: "head" });
  }, LABELS);
  await tab(page, "Head view");
  await settle(page);
};
const copied = async (page) => {
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied.").waitFor();
  return page.evaluate(() => navigator.clipboard.readText());
};
const same = async (page) => {
  await page.waitForFunction(() => State.answer && State.view.row === 1);
  await settle(page);
  assert.equal((await state(page, "asked")).body.text, JSON.stringify(BODY));
  assert.deepEqual(await state(page, "labels"), LABELS);
  const { item, head, row, col, range } = await state(page, "view");
  assert.deepEqual([item, head, row, col, range], [0, 1, 1, 2, "head"]);
  assert.equal(await page.locator("[role=tab][aria-selected=true]").textContent(), "Head view");
};
// The parameters of the address, once it has the view.
const parameters = async (page, ...wanted) => {
  await page.waitForFunction((all) => all.every((one) => location.hash.includes(one)), wanted);
  const [, place, text] = /^#([^?]*)\?(.*)$/.exec(await page.evaluate(() => location.hash));
  return { place, ...Object.fromEntries(new URLSearchParams(text)) };
};
const shown = (page) => page.evaluate(() => ["place", "tab", "model"].map((name) => State[name]).join(" "));
const coded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a link brings all of it back, and nothing of it is sent", async () => {
  const page = await open({ server });
  await looked(page);
  const url = new URL(await copied(page));
  assert.equal(url.origin + url.pathname, `${server.origin}/`);
  assert.equal(url.hash, await page.evaluate(() => location.hash), "it is the address");
  const other = await open({ server, path: `/${url.hash}` });
  await same(other);
  await audit(other, "with a link");
  // In a tab that shows something else.
  const third = await open({ server });
  await third.evaluate((hash) => { location.hash = hash; }, url.hash);
  await same(third);
});

test("of a whole model: its layer and head", async () => {
  const page = await open({ server });
  await ask(page, { tokens: [3, 1, 2] }, "sort");
  await page.evaluate(() => Whole.show("encoder.1.self", 3));
  await page.waitForFunction(() => State.answer.part === "encoder.1.self");
  const other = await open({ server, path: `/${new URL(await copied(page)).hash}` });
  await other.waitForFunction(() => State.answer.part === "encoder.1.self");
  await settle(other);
  assert.deepEqual([(await state(other, "view")).head, await other.locator("#large h3").textContent()],
    [3, "Layer 1 · head 3"]);
});

test("a file does the same", async () => {
  const page = await open({ server });
  await looked(page);
  const { name, bytes } = await download(page, () => page.getByRole("button", { name: "Save view" }).click());
  assert.equal(name, "attend-demo-view.json");
  const other = await open({ server });
  await drop(other, "#source", "view.json", bytes);
  await same(other);
});

test("links that are broken, strange, too long or of models that are not there", async () => {
  for (const hash of ["#x", "#====", `#${coded({})}`, `#${coded([])}`, `#${coded({ attend: 1, model: 1, text: "" })}`,
    `#${coded({ attend: 2, model: "demo", text: "{}" })}`]) {
    const page = await open({ server, path: `/${hash}` });
    assert.match(await page.getByRole("alert").first().textContent(), /link is invalid/);
    await page.evaluate(() => document.querySelector('#places [href="#explore"]').click());
    assert.equal(await page.locator("#example").inputValue(), "lookup", hash);
  }
  for (const part of ["tokens=-1", "request=W10", "request=!"]) {
    const page = await open({ server, path: `/#explore?model=sort&${part}` });
    await page.getByText("This link is invalid or was cut off.").waitFor();
  }
  const strange = { attend: 1, model: "gone<img src=x>", text: JSON.stringify(BODY), labels: { rows: [[1]], cols: 5 },
    tab: "source", view: { item: 77, part: {}, head: -5, row: 1e9, col: "x", range: 7, strong: "yes" } };
  const page = await open({ server, path: `/#${coded(strange)}` });
  await page.getByText("This server has no model “gone<img src=x>”").waitFor();
  await settle(page);
  assert.deepEqual(told(page), []);
  assert.deepEqual([await page.locator("#example").inputValue(), (await state(page, "asked")).model], ["lookup", "demo"],
    "the text of a link is sent to no other model");
  await page.getByRole("button", { name: "Close" }).click();
  assert.ok(!await page.locator("#place-notice").isVisible());
  assert.ok(await page.locator("#frame").isVisible());
  await page.evaluate(() => State.set({ body: { text: `{"queries": [[${"1,".repeat(9000)}1]]}` } }));
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("too long for a link").waitFor();
});

test("what is no tab of a link is not opened", async () => {
  const kept = { attend: 1, model: "demo", text: JSON.stringify(BODY), tab: "answer-side" };
  const page = await open({ server, path: `/#${coded(kept)}` });
  await page.waitForFunction(() => State.answer);
  assert.equal(await shown(page), "explore look demo");
});

test("a cell and a head that the answer does not have are not chosen", async () => {
  const page = await open({ server });
  await looked(page);
  const kept = JSON.parse(await page.evaluate(() => JSON.stringify({ attend: 1, model: "demo",
    text: State.body.text, view: { row: 999, col: 2, head: 99 }, tab: "tab-lines" })));
  await page.evaluate((one) => { location.hash = btoa(JSON.stringify(one)); }, kept);
  await page.waitForFunction(() => State.view.col === 2 && State.view.row === -1);
  assert.equal((await state(page, "view")).head, 0);
});

test("an older link is read, whose code has all of it", async () => {
  const page = await open({ server, path: `/#${coded({ attend: 1, model: "demo", text: JSON.stringify(BODY),
    labels: LABELS, view: { head: 1, row: 1, col: 2, range: "head" }, tab: "tab-lines" })}` });
  await same(page);
  await parameters(page, "#explore/lines?", "request=", "query=1");
});

test("the address can be read: an example, ids, a layer and a head", async () => {
  const page = await open({ server, path: "/#explore/lines?model=sort&layer=encoder.1.self&head=2&query=3&tokens=5+1+3+2" });
  await page.waitForFunction(() => State.view.row === 3);
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text), { tokens: [5, 1, 3, 2] });
  assert.deepEqual([await shown(page), (await state(page, "answer")).part], ["explore lines sort", "encoder.1.self"]);
  await page.evaluate(() => State.show({ head: 1, row: -1 }));
  assert.deepEqual(await parameters(page, "head=1"), { place: "explore/lines", model: "sort", tokens: "5 1 3 2",
    layer: "encoder.1.self", head: "1" });
  await page.locator("#example").selectOption("sort");
  assert.deepEqual(await parameters(page, "example=sort"), { place: "explore/lines", model: "sort", example: "sort",
    layer: "encoder.1.self", head: "1" });
});

test("Back and Forward go through places, tabs and models, and a reload keeps them", async () => {
  const page = await open({ server, path: "/#explore?model=demo" }), were = [];
  const visit = async (act) => {
    were.push(await shown(page));
    await act();
    await page.waitForFunction((last) => ["place", "tab", "model"].map((name) => State[name]).join(" ") !== last, were.at(-1));
    await settle(page);
  };
  await visit(() => page.getByRole("tab", { name: "Head view" }).click());
  await page.evaluate(() => State.show({ head: 1 }));
  await visit(() => page.locator("#model").selectOption("sort"));
  await visit(() => page.getByRole("tab", { name: "Rollout" }).click());
  await visit(() => page.getByRole("link", { name: "API" }).click());
  const last = await shown(page);
  assert.equal(last, "api raw sort");
  for (const was of were.toReversed()) {
    await page.goBack();
    await page.waitForFunction((one) => ["place", "tab", "model"].map((name) => State[name]).join(" ") === one, was);
    await settle(page);
    if (was === "explore lines demo") assert.equal((await state(page, "view")).head, 1);
    assert.equal((await state(page, "asked")).model, was.split(" ")[2]);
  }
  for (const was of [...were.slice(1), last]) {
    await page.goForward();
    await page.waitForFunction((one) => ["place", "tab", "model"].map((name) => State[name]).join(" ") === one, was);
    await settle(page);
  }
  await page.goBack();
  await settle(page);
  await page.reload();
  await settle(page);
  assert.equal(await shown(page), "explore flow sort");
});

test("the address has nothing of an API key", async () => {
  const page = await open({ server });
  await page.evaluate(() => { Key.ask(); });
  await page.locator("#key-text").fill("secret-of-the-test");
  await page.locator("#key-use").click();
  await page.evaluate(() => State.show({ head: 1 }));
  assert.ok(!JSON.stringify(await parameters(page, "head=1")).includes("secret"));
});
