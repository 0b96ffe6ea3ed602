// test_link: a link, and a file, bring the request, its labels, the view and the tab back.
import assert from "node:assert/strict";
import { ask, audit, download, drop, open, serve, settle, state, test, told } from "./browser.mjs";

const server = await serve();
const BODY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0], [1, 2, 0, 0]], [[1, 0, 2, 1]]], return_attention: true };
const LABELS = { rows: [["the", "<b>cat</b>", "sät"], ["alone"]], cols: [] };
const looked = async (page) => {
  await ask(page, BODY, "demo");
  await page.evaluate((labels) => {
    State.set({ labels });
    State.view({ head: 1, row: 1, col: 2, range: "head" });
  }, LABELS);
  await page.getByRole("tab", { name: "Head view" }).click();
  await settle(page);
};
const copied = async (page) => {
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied.").waitFor();
  return page.evaluate(() => navigator.clipboard.readText());
};
const same = async (page) => {
  await page.waitForFunction(() => State.get("answer") && State.get("view").row === 1);
  await settle(page);
  assert.equal((await state(page, "asked")).body.text, JSON.stringify(BODY));
  assert.deepEqual(await state(page, "labels"), LABELS);
  const { item, head, row, col, range } = await state(page, "view");
  assert.deepEqual([item, head, row, col, range], [0, 1, 1, 2, "head"]);
  assert.equal(await page.locator("[role=tab][aria-selected=true]").textContent(), "Head view");
};
const coded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a link brings all of it back, and nothing of it is sent", async () => {
  const page = await open({ server });
  await looked(page);
  const url = new URL(await copied(page));
  assert.equal(url.origin + url.pathname, `${server.origin}/`);
  assert.ok(await page.evaluate(() => location.hash === ""), "the address stays clean");
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
  await page.waitForFunction(() => State.get("answer").part === "encoder.1.self");
  const other = await open({ server, path: `/${new URL(await copied(page)).hash}` });
  await other.waitForFunction(() => State.get("answer").part === "encoder.1.self");
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
    assert.match(await page.locator("#link").textContent(), /link is invalid/);
    assert.equal(await page.locator("#example").inputValue(), "pronoun", hash);
  }
  const strange = { attend: 1, model: "gone<img src=x>", text: JSON.stringify(BODY), labels: { rows: [[1]], cols: 5 },
    tab: "source", view: { item: 77, part: {}, head: -5, row: 1e9, col: "x", range: 7, strong: "yes" } };
  const page = await open({ server, path: `/#${coded(strange)}` });
  await page.getByText("This server has no model gone").waitFor();
  await settle(page);
  assert.deepEqual(told(page), []);
  assert.equal((await state(page, "answer")).items.length, 2);
  assert.ok(await page.locator("#frame").isVisible());
  await page.evaluate(() => State.set({ body: { text: `{"queries": [[${"1,".repeat(9000)}1]]}` } }));
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("too long for a link").waitFor();
});

test("a cell and a head that the answer does not have are not chosen", async () => {
  const page = await open({ server });
  await looked(page);
  const kept = JSON.parse(await page.evaluate(() => JSON.stringify({ attend: 1, model: "demo",
    text: State.get("body").text, view: { row: 999, col: 2, head: 99 }, tab: "tab-lines" })));
  await page.evaluate((one) => { location.hash = btoa(JSON.stringify(one)); }, kept);
  await page.waitForFunction(() => State.get("view").col === 2 && State.get("view").row === -1);
  assert.equal((await state(page, "view")).head, 0);
});
