// asking: what the tests of the Ask side share: its controls, and the answer as numbers. The page is opened with
// the request unfolded.
import { open as openPage, settle } from "./browser.mjs";

export const open = async (options) => {
  const page = await openPage(options);
  await page.evaluate(() => { document.getElementById("drawer").open = true; });
  await settle(page);
  return page;
};
export const toy = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], return_attention: true };
export const source = (page) => page.locator("#source").inputValue();
export const type = async (page, text) => {
  await page.locator("#source").fill(text);
  await settle(page);
};
export const choose = async (page, what, value) => {
  await page.locator(`#${what}`).selectOption(value);
  await settle(page);
};
export const unfold = async (page, part) => {
  await page.locator(`#${part} > summary`).click();
  await settle(page);
};
export const send = async (page) => {
  await page.locator("#send").click();
  await settle(page);
};
// The weights that the page holds, as the JSON answer has them, of batches with heads.
export const weights = (page) => page.evaluate(() => State.answer.items.map((item) =>
  item.weights.map(({ rows, cols, data }) => Array.from({ length: rows }, (_, i) =>
    Array.from(data.subarray(i * cols, (i + 1) * cols))))));
export const asFloat32 = (value) =>
  (Array.isArray(value) ? value.map(asFloat32) : Math.fround(value));
