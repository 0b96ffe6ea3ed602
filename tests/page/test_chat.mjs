// test_chat: a conversation with a model that has a chat template: its prompt, its streamed answers with their
// tokens and alternatives, and what goes wrong.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { audit, open, serve, settle, state, tab, test } from "./browser.mjs";
import { columns, done, posting, sideways } from "./looking.mjs";
import { whole, wordsFolder } from "./wholes.mjs";

// Roles are special tokens of the tokenizer, so that the prompt shows them.
const folder = wordsFolder(), template = path.join(folder, "template.jinja");
fs.writeFileSync(template, `{% for m in messages %}{% if m.content == "mat" %}
  {{ raise_exception("no mats") }}{% endif %}[CLS] {{ m.role }} {{ m.content }} [SEP] {% endfor %}
{%- if add_generation_prompt %}[CLS] a {% endif %}`);
const server = await serve([], { config: { models: { talks: whole("decoder", { tokenizer: folder,
  chat_template: template, vocabulary: 21 }), writes: whole("decoder", { tokenizer: folder }) } } });
const post = posting(server);
const opened = async (options = {}) => {
  const page = await open({ server, path: "/#generate/chat?model=talks", ...options });
  await page.getByLabel("max tokens").fill("6");
  return page;
};
const say = async (page, text) => {
  await page.getByLabel("Message").fill(text);
  await page.getByLabel("Message").press("Enter");
  await done(page);
};
const messages = (page) => page.locator("#chat li").evaluateAll((list) =>
  list.map((one) => [one.querySelector("b").textContent, one.querySelector("p").textContent]));
const rendered = (list) => post("talks", "render", { add_generation_prompt: true,
  messages: list.map(([role, content]) => ({ role, content })) });
const answered = async (list) => {
  const { tokens } = await rendered(list);
  const { sequences: [one] } = await post("talks", "generate", { tokens, max_tokens: 6, return_text: true });
  return one;
};

test("two turns with a system prompt: the prompt, the answers and their tokens are the server's", async () => {
  const page = await opened();
  assert.ok(await page.locator("#line").isHidden(), "the input of the other tabs");
  await page.getByText("System prompt").click();
  await page.locator("#chat details textarea").fill("the cat");
  await say(page, "the cat sat");
  const first = [["system", "the cat"], ["user", "the cat sat"]], one = await answered(first);
  assert.deepEqual(await messages(page), [first[1], ["assistant", one.text]]);
  await say(page, "on a mat .");
  const second = [...first, ["assistant", one.text], ["user", "on a mat ."]], two = await answered(second);
  assert.deepEqual(await messages(page), [...second.slice(1), ["assistant", two.text]]);
  await page.getByText("Prompt", { exact: true }).click();
  assert.equal(await page.locator("#chat pre").textContent(), (await rendered(second)).text);
  assert.match((await rendered(second)).text, /\[CLS\] user the cat sat \[SEP\]/);
  // Its tokens are columns with the most likely others; a click on one of those continues from it.
  const { text: words } = await post("talks", "detokenize", { tokens: two.tokens.map((token) => [token]), special_tokens: true });
  assert.deepEqual((await columns(page)).map(({ word }) => word), words);
  await page.locator(".column").nth(1).locator(".way").first().click();
  await done(page);
  const shown = (await columns(page)).map(({ word }) => word);
  assert.equal(shown[0], words[0]);
  assert.notEqual(shown[1], words[1]);
  assert.deepEqual((await messages(page)).at(-1), ["assistant", shown.filter((word) => !word.startsWith("[")).map((word) => ` ${word}`).join("")]);
  // A click on a token shows the attention with which it was chosen.
  const { tokens } = await rendered(second);
  await page.locator(".column b button").nth(2).click();
  await page.waitForFunction((row) => State.tab === "look" && State.view.row === row, tokens.length + 1);
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text).tokens, tokens);
  // The conversation stays.
  await tab(page, "Chat");
  assert.equal((await messages(page)).length, 4);
});

test("Regenerate, Edit, New chat, and a reload", async () => {
  const page = await opened();
  await say(page, "the cat");
  await say(page, "sat");
  const all = await messages(page);
  await page.getByRole("button", { name: "Regenerate" }).click();
  await done(page);
  assert.deepEqual(await messages(page), all);
  // At temperature 0 it is the same answer; above it, others.
  await page.getByLabel("temperature").fill("2");
  const answers = new Set();
  for (let i = 0; i < 4; i++) {
    await page.getByRole("button", { name: "Regenerate" }).click();
    await done(page);
    answers.add(JSON.stringify((await messages(page)).at(-1)));
  }
  assert.ok(answers.size > 1);
  await page.getByLabel("temperature").fill("0");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await done(page);
  assert.deepEqual(await messages(page), all);
  await page.reload();
  await page.locator("#chat li").nth(3).waitFor();
  assert.deepEqual(await messages(page), all);
  await page.getByRole("button", { name: "Edit" }).nth(1).click();
  assert.equal(await page.getByLabel("Message").inputValue(), "sat");
  assert.deepEqual(await messages(page), all.slice(0, 2));
  await page.getByRole("button", { name: "New chat" }).click();
  assert.deepEqual(await messages(page), []);
  assert.deepEqual(await columns(page), []);
});

test("an answer grows token by token; Stop ends it and keeps what there is", async () => {
  const page = await opened();
  await page.evaluate(() => {
    window.real = window.fetch;
    window.fetch = (path, options) => (!String(path).endsWith("/generate") ? window.real(path, options)
      : Promise.resolve(new Response(new ReadableStream({ start: (to) => {
        window.send = (text) => to.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(
          { item: 0, sequence: 0, token: 16, text, log_probability: -0.5, top: [] })}\n\n`));
        options.signal.addEventListener("abort", () => to.error(new Error("aborted")));
      } }))));
  });
  await page.getByLabel("Message").fill("the cat");
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.locator("#chat .assistant p");
  await page.waitForFunction(() => window.send);
  for (const shown of [" cat", " cat cat"]) {
    await page.evaluate(() => window.send(" cat"));
    await page.waitForFunction((text) => document.querySelector("#chat .assistant p").textContent === text, shown);
  }
  await page.locator("#chat").getByRole("button", { name: "Stop" }).click();
  await page.getByText("2 tokens: stopped.").waitFor();
  await settle(page);
  assert.equal(await answer.textContent(), " cat cat");
  assert.deepEqual((await columns(page)).map(({ word }) => word), ["cat", "cat"]);
});

test("an answer ends at the token that ends a message", async () => {
  const { text, tokens } = await answered([["user", "the cat sat"]]), other = tokens.find((token) => token !== tokens[0]);
  const words = (await post("talks", "detokenize", { tokens: tokens.map((token) => [token]), special_tokens: true })).text;
  const end = other ?? tokens[0], count = tokens.indexOf(end) + 1;
  fs.writeFileSync(path.join(folder, "tokenizer_config.json"), JSON.stringify({ eos_token: words[count - 1] }));
  const own = await serve([], { config: { models: { talks: whole("decoder", { tokenizer: folder, chat_template: template,
    vocabulary: 21 }) } } });
  const page = await opened({ server: own });
  await say(page, "the cat sat");
  await page.getByText(`${count} token${count === 1 ? "" : "s"}: end of the message.`).waitFor();
  assert.deepEqual((await columns(page)).map(({ word }) => word), words.slice(0, count));
  assert.ok(text.startsWith((await messages(page))[1][1]));
});

test("an error of the template is shown with its place, and the message can be edited", async () => {
  const page = await opened({ expect: [400] });
  await page.getByLabel("Message").fill("mat");
  await page.getByLabel("Message").press("Enter");
  const alert = page.locator("#chat [role=alert]");
  await alert.waitFor();
  assert.match(await alert.textContent(), /line 2, column \d+: no mats/);
  await page.getByRole("button", { name: "Edit" }).click();
  assert.equal(await page.getByLabel("Message").inputValue(), "mat");
  assert.equal(await alert.count(), 0);
  await say(page, "sat");
  assert.deepEqual((await messages(page)).map(([role]) => role), ["user", "assistant"]);
});

test("it is there for models with a chat template, and Generation stays what it is", async () => {
  const page = await opened();
  await say(page, "the cat");
  await tab(page, "Generation");
  assert.equal((await columns(page)).length, 6);
  await page.getByText("This belongs to an earlier request.").waitFor();
  await page.getByLabel("max tokens").fill("3");
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  await done(page);
  await tab(page, "Chat");
  assert.equal((await messages(page)).length, 2);
  await page.getByText("This belongs to an earlier request.").waitFor();
  await page.locator("#model").selectOption("writes");
  await settle(page);
  assert.equal(await page.getByRole("tab", { name: "Chat" }).count(), 0);
  assert.equal(await state(page, "tab"), "generation");
  assert.ok(await page.getByRole("button", { name: "Generate", exact: true }).isVisible());
});

test("the copied program asks for a chat completion", async () => {
  const page = await opened();
  await say(page, "the cat");
  await page.locator("#chat").getByRole("button", { name: "Copy code" }).click();
  await page.getByText("Copied.").waitFor();
  const program = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(program.startsWith(`curl -s '${server.origin}/v1/chat/completions'`), program);
  const body = JSON.parse(/--data-raw '([^']+)'/.exec(program)[1]);
  assert.deepEqual(body, { model: "talks", messages: [{ role: "user", content: "the cat" }] });
  const { status, json } = await server.post("/v1/chat/completions", { ...body, max_tokens: 6, temperature: 0 });
  assert.equal(status, 200);
  assert.equal(json.choices[0].message.content, (await messages(page))[1][1]);
});

for (const [name, viewport, dark] of [["light", [1440, 900], false], ["dark, narrow", [360, 740], true]])
  test(`by the keyboard alone, nothing serious for axe-core, nothing too wide: ${name}`, async () => {
    const page = await opened({ viewport, dark });
    const next = page.getByLabel("Message");
    await next.focus();
    await page.keyboard.type("the cat");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("sat");
    assert.equal(await next.inputValue(), "the cat\nsat");
    await page.keyboard.press("Control+Enter");
    await done(page);
    assert.deepEqual((await messages(page)).map(([role]) => role), ["user", "assistant"]);
    assert.equal(await next.inputValue(), "");
    await next.press("Enter"); // nothing to send
    await page.locator("#chat summary").first().press("Enter");
    await page.locator("#chat summary").nth(1).press("Enter");
    await page.locator("#chat pre").waitFor();
    await page.locator(".way").first().press("Enter");
    await done(page);
    await audit(page, "chat");
    assert.equal(await sideways(page), "");
    await page.locator(".column b button").first().press("Enter");
    await page.waitForFunction(() => State.tab === "look" && State.view.row > 0);
  });
