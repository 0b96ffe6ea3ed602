// looking: what the tests of the page share of its views: what they show, as numbers and words.
import assert from "node:assert/strict";
import { settle, state } from "./browser.mjs";

export const readout = (page) => page.locator("#readout").textContent();
// post(model, what, body): the server's own answer.
export const posting = (server) => async (model, what, body) => {
  const { status, json, text } = await server.post(`/v1/models/${model}/${what}`, body);
  assert.equal(status, 200, text);
  return json;
};
// What sticks out to the right, or hides that it does; "" is nothing.
export const sideways = (page) => page.evaluate(() => {
  for (const node of [document.documentElement, document.body])
    if (getComputedStyle(node).overflowX !== "visible") return `${node.tagName} hides what sticks out`;
  if (document.documentElement.scrollWidth <= innerWidth) return "";
  const out = [...document.querySelectorAll("body *")].filter((node) =>
    node.getBoundingClientRect().right > innerWidth + 0.5);
  return out.map((node) => node.outerHTML.slice(0, 120)).join("\n") || "something sticks out";
});

// --- a whole model ---

// The exact weights of the item that is shown, for each head, as the JSON answer has them.
export const exact = async (page) => {
  const answer = await state(page, "answer"), { item } = await state(page, "view");
  return answer.items[item].weights.map(({ rows, cols, data }) =>
    Array.from({ length: rows }, (_, i) => [...data.slice(i * cols, (i + 1) * cols)]));
};
// The grid of heads, and the words of the rows.
export const cells = (page) => page.locator("#grid [data-part]").evaluateAll((list) =>
  list.map((one) => `${one.dataset.part} ${one.dataset.head}`));
export const cell = (page, name, head) =>
  page.locator(`#grid [data-part="${name}"][data-head="${head}"]`);
export const words = (page) => page.locator("#rows tbody th").allTextContents();

// --- the tabs ---

// Rollout, behind each layer, the first one first.
export const flow = (page) => page.locator("#flow tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.querySelectorAll("[title]")].map((one) => Number(one.title))).reverse());
export const multiply = (a, b) =>
  a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
// Rollout of averaged weights, layer by layer.
export const roll = (layers, residual) => {
  let all = layers[0].map((row, i) => row.map((_, j) => Number(i === j)));
  return layers.map((weights) => {
    const a = weights.map((row, i) => row.map((x, j) => (residual ? (x + (i === j)) / 2 : x)));
    all = multiply(a, all);
    return all;
  });
};
// All columns of Computation: those of the last step. Waits for the first row: the trace is asked for when the
// tab is opened, and Firefox may say that the request has ended before the page has its answer.
export const steps = async (page) => {
  const rows = page.locator("#steps tbody tr");
  await rows.first().waitFor();
  await page.getByRole("button", { name: "6 Context" }).click();
  return rows.evaluateAll((list) =>
    list.map((row) => ({ product: row.cells[1].textContent,
      score: row.querySelector("[type=number]").value, seen: row.querySelector("[type=checkbox]").checked,
      weight: Number(row.cells[3].querySelector("[title]").title) })));
};
// Part.head of an attention and a head, as the page names them.
export const named = (page, list) => page.evaluate((all) => all.map(([part, head]) => Part.head(part, head)), list);
// What is lost without each head of a whole model.
export const measured = async (page) => {
  await page.getByRole("button", { name: "Measure every head" }).click();
  await page.locator("#worth").getByText("least important first").waitFor();
  await settle(page);
};
export const losses = (page) => page.locator("#worth tbody tr").evaluateAll((rows) =>
  Object.fromEntries(rows.map((row) => [/\((\S+)\)/.exec(row.querySelector("button").title)[1],
    [...row.querySelectorAll("button")].map((one) => Number(one.textContent))])));
// Generation.
export const done = async (page) => {
  await page.getByText(/^\d+ tokens?: /).waitFor();
  await settle(page);
};
export const goOn = async (page, most) => {
  await page.getByLabel("max tokens").fill(String(most));
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await done(page);
};
export const columns = (page) => page.locator(".column").evaluateAll((list) => list.map((one) => ({
  word: one.querySelector("b").textContent, share: Number(one.querySelector("span[title]").title),
  others: [...one.querySelectorAll(".way")].map((other) => other.textContent) })));
