// test_page: the page as a whole: it loads, keeps to its policy, and is usable by everybody.
import assert from "node:assert/strict";
import { ask, audit, drop, open, serve, settle, state, test, told } from "./browser.mjs";

const TOY = { queries: [[[1, 0, 0, 1], [0, 1, 1, 0]]], valid_lens: [1], return_attention: true };
const SPOILT = { queries: [[[1, 0, 0, 1], [0, 1, 1]]], return_attention: true };
const server = await serve();

const tabs = (page) => page.locator("[role=tab]").all();
// What is done in each tab, with everything that folds open.
const everywhere = async (page, f) => {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  for (const tab of await tabs(page)) {
    await tab.click();
    await settle(page);
    await f(await tab.textContent());
  }
};

test("it loads, sends its first example, and asks nobody else", async () => {
  const page = await open({ server });
  assert.equal(await page.title(), "attend");
  assert.equal(await page.evaluate(() => document.compatMode), "CSS1Compat");
  assert.deepEqual((await state(page, "models")).map((m) => m.name), ["demo", "base", "additive"]);
  assert.equal(await state(page, "problem"), null);
  const [item] = (await state(page, "answer")).items;
  assert.ok(item.weights[0].data instanceof Float32Array && item.weights[0].data.length > 0);
});

test("what no page may do fails the test that it is done in", async () => {
  const page = await open({ server, expect: [404, /welcome/] });
  const acts = { "console error: oh": () => console.error("oh"), "console warning: oh": () => console.warn("oh"),
    "": () => { console.error("welcome"); console.log("fine"); return fetch("nothing-here"); },
    "console error: Failed to load resource: the server responded with a status of 405": () => fetch("healthz", { method: "PUT" }),
    "exception: Error: ouch": () => { setTimeout(() => { throw new Error("ouch"); }); },
    "exception: Error: no": () => { Promise.reject(new Error("no")); },
    "console error: Policy violated: connect-src http://127.0.0.2": () => fetch("http://127.0.0.2:1/").catch(() => 0),
    "request elsewhere: http://127.0.0.2": () => { document.createElement("a").href = "x"; location.href = "http://127.0.0.2:1/"; },
    "dialog: hello": () => { setTimeout(() => alert("hello")); },
    "another window": () => { window.open("about:blank"); } };
  for (const [wanted, act] of Object.entries(acts)) {
    await page.evaluate(act).catch(() => null);
    await settle(page);
    const found = told(page), isThere = () => found.some((line) => line.startsWith(wanted));
    for (let i = 0; i < 100 && wanted && !isThere(); i++) {
      await page.waitForTimeout(50);
      found.push(...told(page));
    }
    assert.equal(wanted ? isThere() : found.length === 0, true, `${wanted}: ${found}`);
    if (page.url() !== `${server.origin}/`) await page.goto(server.origin);
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

for (const dark of [false, true])
  for (const viewport of [[1280, 800], [390, 800]])
    test(`nothing serious for axe-core, ${dark ? "dark" : "light"}, ${viewport[0]} px`, async () => {
      const page = await open({ server, viewport, dark, expect: [400] });
      await everywhere(page, (name) => audit(page, name));
      await ask(page, SPOILT);
      assert.equal((await state(page, "problem")).status, 400);
      await audit(page, "with an error");
    });

test("nothing scrolls sideways at 360 px", async () => {
  const page = await open({ server, viewport: [360, 740], expect: [400] });
  const wide = () => page.evaluate(() => {
    for (const node of [document.documentElement, document.body])
      if (getComputedStyle(node).overflowX !== "visible") return `${node.tagName} hides what sticks out`;
    if (document.documentElement.scrollWidth <= innerWidth) return "";
    const out = [...document.querySelectorAll("body *")].filter((node) =>
      node.getBoundingClientRect().right > innerWidth + 0.5);
    return out.map((node) => node.outerHTML.slice(0, 120)).join("\n") || "something sticks out";
  });
  const words = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen";
  const rows = (count) => Array.from({ length: count }, (_, i) =>
    Array.from({ length: 512 }, (_, j) => Math.sin(i * 31 + j * 7)));
  for (const [body, model] of [[TOY, "demo"], [{ queries: [rows(40)], return_attention: true }, "base"],
    [{ queries: [[], []], return_attention: true }, "demo"], [SPOILT, "demo"],
    [{ queries: [], [words.repeat(3)]: words.repeat(9) }, "demo"]]) {
    await ask(page, body, model);
    await page.evaluate((word) => State.set({ labels: { rows: [[word, "b"]], cols: [[word, word]] } }), words);
    await everywhere(page, async (name) => assert.equal(await wide(), "", `${name} of ${Object.keys(body)}`));
  }
});

// Where the focus is, and whether that can be seen.
const focus = (page) => page.evaluate(() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
  const { width, height } = node.getBoundingClientRect();
  if (!node.dataset.stop) node.dataset.stop = String(document.querySelectorAll("[data-stop]").length + 1);
  return { id: node.id, stop: node.dataset.stop, html: node.outerHTML.slice(0, 160), role: node.getAttribute("role"),
    seen: width > 0 && height > 0 && ((outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none") };
});
const tabTo = async (page, wanted) => {
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press("Tab");
    const now = await focus(page);
    if (now && wanted(now)) return now;
  }
  assert.fail(`Tab does not lead to ${wanted}`);
};

test("by keyboard alone: to the request, to Send, to every tab", async () => {
  const page = await open({ server });
  await page.keyboard.press("Tab");
  assert.match((await focus(page)).html, /class="skip"/);
  await tabTo(page, ({ id }) => id === "source");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(JSON.stringify(TOY));
  await tabTo(page, ({ id }) => id === "send");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => State.get("answer").items.length === 1 && !State.get("asking"));
  await settle(page);
  assert.deepEqual(JSON.parse((await state(page, "asked")).body.text), TOY);
  await tabTo(page, ({ role }) => role === "tab");
  const shown = [];
  for (const _ of await tabs(page)) {
    shown.push(await page.evaluate(() => {
      const own = document.activeElement, panels = [...document.querySelectorAll("[role=tabpanel]")];
      return [own.getAttribute("aria-selected"), panels.filter((one) => !one.hidden).map((one) => one.id).join(),
        own.getAttribute("aria-controls")].join(" ");
    }));
    await page.keyboard.press("ArrowRight");
    await settle(page);
  }
  assert.deepEqual(shown, ["true look look", "true lines lines", "true heads heads", "true raw raw"]);
});

test("the link at the top leads to the answer", async () => {
  const page = await open({ server });
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal((await focus(page)).id, "answer-side");
});

// What can be used must be reached, in each tab; and where the focus is must be seen.
test("Tab reaches everything that can be used, and the focus is seen", async () => {
  const page = await open({ server });
  await everywhere(page, async (name) => {
    const wanted = await page.evaluate(() => {
      document.activeElement.blur();
      getSelection().removeAllRanges();
      scrollTo(0, 0);
      const all = "a[href], button, input, select, textarea, summary, [tabindex]";
      const stops = [...document.querySelectorAll(all)].filter((node) =>
        node.tabIndex >= 0 && !node.disabled && node.checkVisibility() && node.type !== "radio");
      stops.forEach((node, i) => { node.dataset.stop = `${i}`; });
      return stops.map((node) => node.outerHTML.slice(0, 160));
    });
    await page.locator("h1").click();
    const reached = new Set(), hidden = [];
    for (let i = 0; i < wanted.length + 5; i++) {
      await page.keyboard.press("Tab");
      const now = await focus(page);
      if (now && reached.has(now.stop)) break;
      if (!now) continue;
      reached.add(now.stop);
      if (!now.seen) hidden.push(now.html);
    }
    assert.deepEqual(wanted.filter((_, i) => !reached.has(`${i}`)), [], `not reached in ${name}`);
    assert.deepEqual(hidden, [], `the focus is not seen in ${name}`);
  });
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
  await ask(page, TOY);
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
  const buttons = await tabs(page);
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
