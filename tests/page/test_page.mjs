// test_page: the page as a whole: it loads, keeps to its policy, and takes whatever it is given.
import assert from "node:assert/strict";
import http from "node:http";
import { ask, audit, drop, everywhere, open, serve, settle, state, tab, test, told } from "./browser.mjs";

const TOY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], valid_lens: [1], return_attention: true };
const server = await serve();

test("it loads, sends its first example, and asks nobody else", async () => {
  const page = await open({ server });
  assert.equal(await page.title(), "attend");
  assert.equal(await page.evaluate(() => document.compatMode), "CSS1Compat");
  assert.deepEqual((await state(page, "models")).map((m) => m.name), ["demo", "base", "additive", "sort"]);
  assert.equal(await state(page, "problem"), null);
  const [item] = (await state(page, "answer")).items;
  assert.ok(item.weights[0].data instanceof Float32Array && item.weights[0].data.length > 0);
});

test("without a configuration it opens at the model of words", async () => {
  const page = await open({ server: await serve([], { config: null }) });
  assert.deepEqual((await state(page, "models")).map((m) => m.builtin || m.name),
    ["words", "story", "sort", "demo", "base", "additive"]);
  assert.equal(await state(page, "model"), "words");
});

test("a server without a model is no mistake", async () => {
  const page = await open({ server });
  await page.route("**/v1/models", (route) => route.fulfill({ json: { models: [] } }));
  await page.reload();
  await settle(page);
  assert.deepEqual([await state(page, "models"), await state(page, "model"), await state(page, "problem")],
    [[], null, null]);
  assert.equal(await page.locator("#model-summary").textContent(), "The server has no model.");
  for (const name of ["send", "model", "example"])
    assert.ok(await page.locator(`#${name}`).isDisabled(), name);
  await everywhere(page, () => settle(page));
  await audit(page, "no model");
});

test("what no page may do fails the test that it is done in", async () => {
  const page = await open({ server, expect: [404, /welcome/] });
  const acts = { "console error: oh": () => console.error("oh"), "console warning: oh": () => console.warn("oh"),
    "": () => { console.error("welcome"); console.log("fine"); return fetch("nothing-here"); },
    "console error: Failed to load resource: the server responded with a status of 405": () => fetch("healthz", { method: "PUT" }),
    "exception: Error: ouch": () => { setTimeout(() => { throw new Error("ouch"); }); },
    "exception: Error: no": () => { Promise.reject(new Error("no")); },
    "console error: Policy violated: connect-src http://127.0.0.2": () => fetch("http://127.0.0.2:1/").catch(() => 0),
    "dialog: hello": () => { setTimeout(() => alert("hello")); },
    "another window": () => { window.open("about:blank"); },
    "request elsewhere: http://127.0.0.2": () => { location.href = "http://127.0.0.2:1/"; } };
  for (const [wanted, act] of Object.entries(acts)) {
    await page.evaluate(act).catch(() => null);
    if (!wanted) await settle(page);
    const found = told(page), isThere = () => found.some((line) => line.startsWith(wanted));
    for (let i = 0; i < 6000 && wanted && !isThere(); i++) {
      await page.waitForTimeout(50);
      found.push(...told(page));
    }
    assert.equal(wanted ? isThere() : found.length === 0, true, `${wanted}: ${found}`);
  }
});

test("switched off there is no page", async () => {
  const without = await serve(["--no-page"]);
  const { status, headers } = await without.get("/");
  assert.equal(status, 404);
  assert.equal(headers["content-type"], "application/problem+json");
});

test("the policy holds: no HTML from text, no script, style or address that is not the page's", async () => {
  const page = await open({ server, expect: [/Content Security Policy/, /Policy violated/, /Trusted/] });
  const told = await page.evaluate(async () => {
    const attempts = {
      innerHTML: () => { document.querySelector("#rows").innerHTML = "<img src=x onerror='window.hit = 1'>"; },
      outerHTML: () => { document.querySelector("#rows").outerHTML = "<p>"; },
      insertAdjacentHTML: () => document.body.insertAdjacentHTML("beforeend", "<p>"),
      write: () => document.write("<p>"),
      eval: () => eval("window.hit = 1"),
      Function: () => new Function("window.hit = 1")(),
      timer: () => setTimeout("window.hit = 1"),
      text: () => { document.createElement("script").textContent = "window.hit = 1"; },
      source: () => { document.createElement("script").src = "data:text/javascript,window.hit = 1"; },
      parse: () => new DOMParser().parseFromString("<script>1</script>", "text/html"),
    };
    // Not within evaluate, which is excused from the policy.
    const later = (f) => new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        try {
          f();
          resolve("done");
        } catch (error) {
          resolve(error.name);
        }
      };
      port2.postMessage(0);
    });
    const all = {};
    for (const [name, f] of Object.entries(attempts)) all[name] = await later(f);
    all.elsewhere = await fetch("http://127.0.0.2:1/").then(() => "done", (error) => error.name);
    // A text node in a script is no sink for strings: it is the policy that keeps it from running.
    const script = document.createElement("script");
    script.append("window.hit = 1");
    document.body.append(script);
    const quiet = document.createElement("p");
    quiet.setAttribute("style", "color: rgb(1, 2, 3)");
    document.body.append(quiet);
    all.style = getComputedStyle(quiet).color;
    const image = new Image();
    all.image = await new Promise((resolve) => {
      image.onload = () => resolve("done");
      image.onerror = () => resolve("blocked");
      image.src = "/healthz";
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { ...all, hit: window.hit };
  });
  const { style, image, hit, eval: code, Function: made, ...rest } = told;
  assert.equal(hit, undefined);
  assert.notEqual(style, "rgb(1, 2, 3)");
  assert.equal(image, "blocked");
  for (const name of [code, made]) assert.equal(name, "EvalError");
  for (const [name, found] of Object.entries(rest)) assert.equal(found, "TypeError", name);
});

const EVIL = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>";
test("text of users and of the server stays text", async () => {
  const page = await open({ server, expect: [400, 404] });
  const name = `${EVIL}&amp;`;
  await page.route("**/v1/models", async (route) => {
    const answer = await route.fetch();
    const { models } = await answer.json();
    for (const one of models) Object.assign(one, { name: name + one.name, source: EVIL, score: EVIL, layout: EVIL });
    await route.fulfill({ response: answer, json: { models } });
  });
  await page.route(/\/(attention|heads)$/, (route) =>
    route.continue({ url: `${server.origin}/v1/models/demo/${route.request().url().split("/").pop()}` }));
  await page.evaluate(() => Models.load());
  await settle(page);
  assert.ok((await page.locator("#model").innerText()).includes(EVIL));
  const check = async (where) => {
    await settle(page);
    const found = await page.evaluate(() => [window.hit, document.querySelectorAll("main img, main script").length]);
    assert.deepEqual(found, [undefined, 0], where);
  };
  await page.evaluate(() => { document.querySelector("#labels-part").open = true; });
  const word = EVIL.replaceAll(" ", "/");
  await page.locator("#labels-rows").fill(`${word} b`);
  await page.locator("#labels-cols").fill(`a ${word}`);
  await ask(page, TOY, undefined, true);
  assert.equal(await state(page, "problem"), null);
  await everywhere(page, check);
  const labels = await page.evaluate(() => [Labels.row(0, 0), Labels.col(0, 1)]);
  assert.deepEqual(labels, [word, word]);
  for (const body of [{ ...TOY, [EVIL]: EVIL }, { ...TOY, select: EVIL }, `{"${EVIL}`, EVIL]) {
    await ask(page, body);
    assert.equal((await state(page, "problem")).status, 400);
    await everywhere(page, check);
  }
  await drop(page, "#source", `${EVIL}.json`, Buffer.from("no"));
  assert.ok((await page.locator("#source-note").innerText()).includes(EVIL));
  await drop(page, "#source", `${EVIL}.json`, Buffer.from(JSON.stringify({ ...TOY, [EVIL]: 1 })));
  await everywhere(page, check);
});

// Each is sent, and looked at in every tab: what the page does not like it says, and goes on.
test("no request breaks the page", async () => {
  const page = await open({ server, expect: [400, 413, 422] });
  const q = [[[1, 2, 3, 4], [4, 3, 2, 1]]], odd = [null, 0, -1, 1e39, "x", true, {}, [], [[]], [[[]]], [null],
    [[[[[[[[[[1]]]]]]]]]], { dtype: "F32", shape: [2], base64: "AAAA" }, { shape: 3 }];
  const good = [{ queries: [] }, { queries: [[]] }, { queries: [[], []] }, { queries: q, keys: [[]], values: [[]] },
    { queries: q[0], return_attention: "average" }, { queries: q, return_attention: false },
    { queries: q, valid_lens: [0] }, { queries: [[], q[0]] }, { queries: q, encoding_format: "base64" },
    { queries: [[]], return_attention: "average", encoding_format: "base64" }, { queries: q, segments: [[0, 2, 0]] },
    { queries: [q[0].slice(1)], keys: [Array.from({ length: 300 }, () => q[0][0])] }];
  const bad = ["queries", "keys", "valid_lens", "mask", "bias", "causal", "causal_offset", "window", "head_mask", "segments",
    "select", "gradients", "return_attention"].flatMap((name, i) =>
    odd.filter((_, j) => (i + j) % 3 === 0).map((value) => ({ queries: q, [name]: value })));
  const texts = ["", " ", "null", "[]", "{", "NaN", "{\"queries\": [[[NaN]]]}", "\u0000", "\ud800", "[".repeat(9000),
    `{"queries":${"[".repeat(9000)}`];
  const requests = [...[...good, ...bad].map((one) => JSON.stringify({ return_attention: true, ...one })), ...texts];
  const buttons = await page.getByRole("tab").all();
  for (const [i, text] of requests.entries()) {
    await page.evaluate((words) => {
      State.set({ body: { text: words }, problem: null });
      return Ask.send();
    }, text);
    if (i < good.length) {
      assert.equal(await state(page, "problem"), null, text);
      for (const tab of buttons) {
        await tab.click();
        await settle(page);
      }
    } else {
      await buttons[i % buttons.length].click();
    }
  }
  await settle(page);
  await ask(page, TOY);
  assert.deepEqual([await state(page, "problem"), (await state(page, "answer")).items.length], [null, 1]);
});

test("it lives below a path of a proxy, too", async (t) => {
  const { hostname, port } = new URL(server.origin), others = [];
  const proxy = http.createServer((asked, said) => {
    if (!asked.url.startsWith("/deep/er/")) others.push(asked.url);
    const onward = http.request({ hostname, port, path: asked.url.slice("/deep/er".length),
      method: asked.method, headers: asked.headers }, (answer) => {
      said.writeHead(answer.statusCode, answer.headers);
      answer.pipe(said);
    });
    asked.pipe(onward);
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  t.after(() => proxy.close());
  const origin = `http://127.0.0.1:${proxy.address().port}`;
  const page = await open({ server: { origin }, path: "/deep/er/" });
  await tab(page, "Head importance");
  await page.locator("#measures td").first().waitFor();
  await tab(page, "Response");
  await page.locator("#status-memory").filter({ hasText: "MB" }).waitFor();
  await page.locator("#code-part summary").click();
  await page.locator("#code-part")
    .filter({ hasText: `${origin}/deep/er/v1/models/demo/attention` }).waitFor();
  assert.deepEqual(others, []);
});
