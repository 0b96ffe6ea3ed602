// test_flow: rollout of attention, against the same products made of the server's weights.
import assert from "node:assert/strict";
import { ask, audit, open, serve, settle, state, tab, test } from "./browser.mjs";
import { flow as shown, roll } from "./looking.mjs";
import { whole } from "./wholes.mjs";

const server = await serve([], { config: { models: { ids: whole("encoder"), writes: whole("decoder") } } });
const opened = async (model, body, options = {}) => {
  const page = await open({ server, ...options });
  await ask(page, body, model);
  await tab(page, "Rollout");
  await settle(page);
  return page;
};
const rolled = async (model, tokens, layers, residual) => {
  const names = layers.map((l) => `${model === "ids" ? "encoder" : "decoder"}.${l}.self`);
  const { json } = await server.post(`/v1/models/${model}/encode`,
    { tokens, return_attention: { of: names, as: "average" } });
  return roll(names.map((name) => json.attention[name]), residual);
};
const near = (a, b) => a.flat().forEach((x, i) =>
  assert.ok(Math.abs(x - b.flat()[i]) < 1e-5, `${x}, not ${b.flat()[i]}`));

for (const model of ["ids", "writes"])
  test(`what may come from where, layer by layer: ${model}`, async () => {
    const tokens = [4, 5, 6, 5, 7], page = await opened(model, { tokens });
    const with_ = await rolled(model, tokens, [0, 1, 2], true);
    near(await shown(page), with_.map((all) => all[4]));
    await page.locator("#flow select").selectOption("1");
    await settle(page);
    assert.equal((await state(page, "view")).row, 1, "one choice for all views");
    near(await shown(page), with_.map((all) => all[1]));
    await page.getByLabel("with the residual").uncheck();
    near(await shown(page), (await rolled(model, tokens, [0, 1, 2], false)).map((all) => all[1]));
    assert.match(await page.locator("#flow").textContent(), /not why/);
  });

test("each item of a batch; too many tokens; what is refused", async () => {
  const page = await opened("ids", { tokens: [[4, 5], [6, 7, 8]] }, { expect: [504] });
  await page.evaluate(() => State.show({ item: 1 }));
  await page.waitForFunction(() => document.querySelectorAll("#flow tbody tr [title]").length === 9);
  near(await shown(page), (await rolled("ids", [6, 7, 8], [0, 1, 2], true)).map((all) => all[2]));
  await ask(page, { tokens: Array(65).fill(5) }, "ids");
  assert.match(await page.locator("#flow").textContent(), /up to 64 tokens; these are 65/);
  await tab(page, "Attention");
  await ask(page, { tokens: [4, 5, 6] }, "ids");
  await page.route(/\/encode$/, (route) => route.fulfill({ status: 504,
    contentType: "application/problem+json", body: '{"title":"Too slow","detail":"x"}' }), { times: 1 });
  await tab(page, "Rollout");
  await page.locator("#flow [role=alert]").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#flow tbody tr").first().waitFor();
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [360, 740], true]])
  test(`nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened("ids", { tokens: Array.from({ length: 30 }, (_, i) => i % 22) }, { viewport, dark });
    await audit(page, "flow");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
