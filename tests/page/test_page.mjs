// test_page: the page as a whole: it loads, keeps to its policy, and is usable by everybody.
import assert from "node:assert/strict";
import { ask, audit, open, state, test } from "./browser.mjs";

test("it loads, and a request is answered", async () => {
  const page = await open();
  assert.ok((await state(page, "models")).length > 0);
  await ask(page, { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], return_attention: true });
  assert.equal(await state(page, "problem"), null);
  const [item] = (await state(page, "answer")).items;
  assert.ok(item.weights[0].data instanceof Float32Array);
});

for (const dark of [false, true])
  for (const viewport of [[1280, 800], [390, 800]])
    test(`nothing serious for axe-core, ${dark ? "dark" : "light"}, ${viewport[0]} px`, async () => {
      const page = await open({ viewport, dark });
      await ask(page, { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], return_attention: true });
      for (const tab of await page.getByRole("tab").all()) {
        await tab.click();
        await audit(page, await tab.textContent());
      }
    });
