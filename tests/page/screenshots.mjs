// screenshots: draws README's pictures of the page, tests/page/screenshots/*.png: `make screenshots`.
//
// What is shown is the layer of tests/example, trained to look at the token before, behind and
// flagged, and the program's own models; each picture has to show what it is there for, or making it fails.
import assert from "node:assert/strict";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { ask, open, serve, settle, state, tab, test } from "./browser.mjs";
import { dice } from "./oracle.mjs";
import { smaller } from "./png.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const FOLDER = here("screenshots/"), LARGEST = 100000;
const server = await serve(["--config", here("../example/attend.json")]);

// A part of the ring of tests/example/ring.py: contents, a flag, a constant, the code of the place.
const PLACES = 64;
const code = (place) => Array.from({ length: 54 }, (_, i) => {
  const angle = 2 * Math.PI * ((i >> 1) + 1) * place / PLACES;
  return Number((i % 2 ? Math.sin(angle) : Math.cos(angle)).toFixed(4));
});
const ring = (count) => {
  const { number } = dice(4);
  const content = () => Array.from({ length: 8 }, () => Number((2 * number()).toFixed(4)));
  return Array.from({ length: count }, (_, i) => [...content(), i === 7 ? 1 : 0, 1, ...code(i)]);
};

const keep = async (page, name) => {
  const picture = smaller(await page.screenshot());
  assert.ok(picture.length < LARGEST, `${name} has ${picture.length} bytes`);
  fs.mkdirSync(FOLDER, { recursive: true });
  fs.writeFileSync(`${FOLDER}${name}.png`, picture);
};
const asked = async (viewport, count, fields) => {
  const page = await open({ server, viewport });
  const request = { queries: [ring(count)], ...fields, return_attention: true };
  await ask(page, await page.evaluate((one) => Request.layout(one), request), "heads-example");
  assert.equal(await state(page, "problem"), null);
  return page;
};

test("weights", async () => {
  const count = 12, page = await asked([1200, 1110], count, { valid_lens: [10] });
  await page.evaluate(() => State.show({ head: 1 }));
  await settle(page);
  // Over the cell that looks at the token behind.
  const { data } = (await state(page, "answer")).items[0].weights[1], at = data.indexOf(Math.max(...data));
  await page.evaluate(([row, col]) => State.show({ row, col }), [Math.floor(at / count), at % count]);
  await settle(page);
  assert.ok((await page.locator("#large").innerText()).includes(`key ${at % count}`));
  await keep(page, "weights");
});

test("learn", async () => {
  const page = await open({ server: await serve([], { config: null }), viewport: [1280, 730], path: "/" });
  await page.waitForFunction(() => document.querySelectorAll("#cards tbody tr").length > 1);
  await settle(page);
  assert.match(await page.locator("#learn-title").innerText(), /“it” gives \d+ % of its attention to “animal”/);
  await keep(page, "learn");
});

test("whole", async () => {
  const page = await open({ server: await serve(), viewport: [1200, 800] });
  await page.locator("#model").selectOption("sort");
  await settle(page);
  const wait = page.waitForFunction(() => State.answer.part === "encoder.2.self");
  await page.locator("#grid [data-part]").nth(8).click();
  await wait;
  await settle(page);
  assert.match(await page.locator("#rows").innerText(), /100 %/);
  await page.locator("h1").click();
  await keep(page, "whole");
});

test("heads", async () => {
  const page = await asked([1200, 1030], 64, {});
  await tab(page, "Head importance");
  await settle(page);
  for (const box of (await page.locator("#heads input[type=checkbox]").all()).slice(0, 3)) {
    await box.uncheck();
    await settle(page);
  }
  assert.equal(await page.locator("#heads input[type=checkbox]:not(:checked)").count(), 3);
  await page.mouse.move(0, 0);
  await keep(page, "heads");
});

test("search", async () => {
  const page = await open({ server: await serve([], { config: null }), viewport: [1480, 1230],
    path: "/#generate?model=story&example=beams" });
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await page.getByText("the best of 4 hypotheses").waitFor();
  await page.locator(".tree .done.best").click();
  await page.locator("#generation figure").waitFor();
  await page.locator("h1").click();
  await settle(page);
  await keep(page, "search");
});

test("error", async () => {
  const page = await open({ server, viewport: [1200, 930], expect: [400] });
  await page.locator("#model").selectOption("pointer-example");
  await page.locator("#example").selectOption("invalid");
  await settle(page);
  assert.equal((await state(page, "problem")).status, 400);
  assert.notEqual(await page.locator("#problem").innerText(), "");
  await keep(page, "error");
});
