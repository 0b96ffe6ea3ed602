// browser: what the tests of the page share: a real Chromium, servers of their own, guards.
//
//   import { test, serve, open, ask, state } from "./browser.mjs";
//   test("what is checked", async () => {
//     const server = await serve(["--log-level", "debug"], { env: { ATTEND_THREADS: "1" } });
//     const page = await open({ server, viewport: [390, 800], dark: true, expect: [400] });
//     await ask(page, { queries: [[[1, 0, 0, 1]]], return_attention: true });
//     assert.deepEqual(await state(page, "problem"), null);
//   });
//
// A test file is a program: `node --test-reporter=tap tests/page/test_x.mjs` prints TAP. The program
// is $ATTEND_BIN, else build/release/attend; the browser $CHROMIUM, else what PATH has. One browser
// is started for a file; every page has a context of its own. A server that is started within a
// test ends with it, one that is started at the top of a file after its last test: by its own pid,
// and with status 0, else that is a failure.
//
// What fails a test by itself, wherever it comes from: an error or a warning on the console, an
// exception nobody has caught, a violation of the Content-Security-Policy or of Trusted Types, a
// request to anywhere but the page's own server, a dialog, another window, a crash. `expect` says
// what may happen all the same: statuses (400: Chromium writes a line for each failed request; 0:
// no answer at all) and expressions (/Trusted/) for lines of any kind.
//
// test(name, options, f)   node:test's, in order; f gets node:test's context
// serve(args, { env, config, ends }) -> { origin, port, pid, get(path), post(path, body, headers), stop() }
// open({ server, viewport, scale, dark, expect, path }) -> playwright's page on GET /, settled. With
//   `server` left out, the file's own. `scale`: device pixels to a CSS pixel, 1. Clipboard and
//   downloads are allowed.
// expect(page, ...what)    adds to what may happen from here on
// told(page)               what the guards have to complain of; it then fails the test no more
// state(page, name)        State.get(name); typed arrays come as typed arrays
// settle(page)             no request under way, all of State told, two frames drawn
// ask(page, body, model, labelled)   puts a request (an object, or text) into State and sends it;
//   settled. Without `labelled` it has no labels, else those that are there
// everywhere(page, f)      f(name) in each tab, with everything that folds open
// sample(page, selector, x, y) -> [r, g, b, a] of a canvas at CSS pixels; of [[x, y], ...], a list
// drop(page, selector, name, bytes)   drops a file on an element
// tree(page, selector)     what a screen reader is told, as text (playwright's aria snapshot)
// audit(page, where)       axe-core finds nothing serious or critical
// shot(page, name)         build/page/NAME.png, to look at
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, test as nodeTest } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const BIN = process.env.ATTEND_BIN || path.join(ROOT, "build/release/attend");
const require = createRequire(path.join(ROOT, "build/npm/package.json"));
// Milliseconds for whatever is waited for: what ends a test that hangs, and nothing else, so many
// times what a busy machine takes.
const PATIENCE = 300000;

// --- what must be there ---

const needed = (name) => {
  try {
    return require(name);
  } catch {
    throw new Error(`${name} is not in build/npm: make deps-test installs it`);
  }
};
const inPath = (name) =>
  (process.env.PATH || "").split(":").map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
const browserProgram = () => {
  const names = ["chromium", "google-chrome-stable", "google-chrome"];
  const unpacked = path.join(ROOT, "build/tools/usr/bin/chromium"); // by make deps-test, on Ubuntu
  const found = process.env.CHROMIUM || names.map(inPath).find(Boolean) || unpacked;
  if (!fs.existsSync(found))
    throw new Error(`${found} is not there: the page is tested in Chromium, which make deps-test `
      + "installs; else CHROMIUM=/path/to/chrome says where there is one");
  return found;
};

// --- tests, and what ends with them ---

const ours = { endings: [], complaints: [] }; // of the file
let scope = ours; // of the test that runs, else the file's

const end = async ({ endings, complaints }) => {
  for (const ending of endings.splice(0).reverse()) {
    try {
      await ending();
    } catch (error) {
      complaints.push(error.message);
    }
  }
};
after(async () => {
  await end(ours);
  assert.deepEqual(ours.complaints, []);
});

export const test = (name, ...rest) => {
  const f = rest.pop(), options = { timeout: 3 * PATIENCE, ...rest[0] };
  nodeTest(name, options, async (t) => {
    const own = { endings: [], complaints: [] };
    scope = own;
    try {
      await f(t);
    } catch (error) {
      for (const line of own.complaints) t.diagnostic(line);
      throw error;
    } finally {
      await end(own);
      scope = ours;
    }
    assert.deepEqual(own.complaints, [], "what the page must not do");
  });
};

// --- servers ---

const environment = (extra) => {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ATTEND_"));
  return { ...Object.fromEntries(kept), OPENBLAS_NUM_THREADS: "1", ...extra };
};

// What the server says on standard output, until it says where it listens.
const listening = (child) => new Promise((resolve, reject) => {
  let said = "";
  child.stdout.on("data", (part) => {
    said += part;
    const found = /^listening on (\S+):(\d+)\s*$/m.exec(said);
    if (found) resolve(Number(found[2]));
  });
  child.on("exit", (status) => reject(new Error(`attend ended with ${status}: ${child.told}`)));
  child.on("error", reject);
});

const ended = (child) => new Promise((resolve) => {
  if (child.exitCode !== null || child.signalCode !== null) resolve();
  else child.once("exit", resolve);
});
const stop = async (child) => {
  if (child.stopped) return;
  child.stopped = true;
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
  await ended(child);
  clearTimeout(late);
  if (child.exitCode !== child.ends)
    throw new Error(`attend ended with ${child.exitCode ?? child.signalCode}: ${child.told}`);
};

const answer = async (url, options) => {
  const response = await fetch(url, options);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(response.headers), bytes,
    get text() { return bytes.toString(); }, get json() { return JSON.parse(bytes.toString()); } };
};

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
export const serve = async (args = [], { env = {}, config, ends = 0 } = {}) => {
  const words = ["serve", ...args];
  if (!args.some((word) => word.startsWith("--listen"))) words.push("--listen", "127.0.0.1:0");
  if (config) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-"));
    scope.endings.push(() => fs.rmSync(folder, { recursive: true }));
    fs.writeFileSync(path.join(folder, "attend.json"), JSON.stringify(config));
    words.push("--config", path.join(folder, "attend.json"));
  }
  const child = spawn(BIN, words, { env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
  child.told = "";
  child.ends = ends;
  child.stderr.on("data", (part) => { child.told = (child.told + part).slice(-4000); });
  children.add(child);
  scope.endings.push(() => stop(child));
  const port = await listening(child), origin = `http://127.0.0.1:${port}`;
  return { origin, port, pid: child.pid, stop: () => stop(child),
    get: (where, headers = {}) => answer(origin + where, { headers }),
    post: (where, body, headers = {}) => answer(origin + where, { method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: typeof body === "string" || ArrayBuffer.isView(body) ? body : JSON.stringify(body) }) };
};
let common = null;

// --- the browser ---

let running = null;
const launch = async () => {
  const { chromium } = needed("playwright-core");
  const browser = await chromium.launch({ executablePath: browserProgram(), timeout: PATIENCE, args: [
    "--no-sandbox", "--disable-gpu", "--disable-lcd-text", "--font-render-hinting=none",
    "--force-color-profile=srgb", "--disable-background-networking"] });
  ours.endings.push(() => browser.close());
  return browser;
};

const pages = new WeakMap(); // of each: what it expects, the requests under way, complaints
const guard = (context, origin, own, expected) => {
  const excused = (text) => expected.some((one) => typeof one === "number"
    ? text.startsWith("Failed to load resource: ")
      && text.includes(one ? ` status of ${one} ` : " net::ERR_")
    : one.test(text));
  const complain = (kind, text) => {
    if (!excused(text)) own.complaints.push(`${kind}: ${text}`);
  };
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      complain(`console ${message.type()}`, message.text());
  });
  context.on("weberror", (error) => complain("exception", String(error.error().stack)));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["data:", "blob:"].includes(url.protocol))
      complain("request elsewhere", request.url());
  });
  context.on("dialog", (dialog) => {
    complain("dialog", dialog.message());
    dialog.dismiss();
  });
  let count = 0;
  context.on("page", (page) => {
    if (++count > 1) complain("another window", page.url());
    page.on("crash", () => complain("crash", page.url()));
    page.on("websocket", (socket) => complain("request elsewhere", socket.url()));
  });
};
// Violations of the policy reach the console, too; but not those of a policy that only reports.
const tellViolations = () => document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`Policy violated: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));

const counted = (context) => {
  const under = new Set();
  context.on("request", (request) => under.add(request));
  for (const name of ["requestfinished", "requestfailed"])
    context.on(name, (request) => under.delete(request));
  return under;
};

export const open = async (options = {}) => {
  const { viewport = [1280, 800], scale = 1, dark = false, expect: expected = [],
    path: where = "/" } = options;
  const own = scope;
  if (!options.server && !common) {
    scope = ours; // it serves the whole file
    common = serve();
    scope = own;
  }
  const server = options.server || await common;
  running = running || launch();
  const context = await (await running).newContext({
    viewport: { width: viewport[0], height: viewport[1] }, deviceScaleFactor: scale, locale: "en-US",
    timezoneId: "UTC", colorScheme: dark ? "dark" : "light", reducedMotion: "reduce",
    serviceWorkers: "block", permissions: ["clipboard-read", "clipboard-write"] });
  own.endings.push(() => context.close());
  context.setDefaultTimeout(PATIENCE);
  const list = [...expected];
  guard(context, server.origin, own, list);
  await context.addInitScript(tellViolations);
  const page = await context.newPage();
  pages.set(page, { list, under: counted(context), complaints: own.complaints });
  await page.goto(server.origin + where);
  await settle(page);
  return page;
};
export const expect = (page, ...what) => pages.get(page).list.push(...what);
export const told = (page) => pages.get(page).complaints.splice(0);

// --- what tests do with a page ---

export const state = (page, name) => page.evaluate((one) => State.get(one), name);

const frames = () => new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(
    typeof State !== "undefined" && State.get("asking")))));
export const settle = async (page) => {
  const { under } = pages.get(page);
  const until = Date.now() + PATIENCE;
  for (let quiet = 0; quiet < 2;) {
    if (Date.now() > until)
      throw new Error(`not settled: ${[...under].map((r) => r.url()).join(" ") || "asking"}`);
    const busy = under.size > 0;
    const asking = await page.evaluate(frames);
    quiet = busy || asking || under.size > 0 ? 0 : quiet + 1;
  }
};

export const ask = async (page, body, model, labelled = false) => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  await page.evaluate(async ([request, name, keeps]) => {
    State.set({ body: { text: request }, ...(keeps ? {} : { labels: Labels.NONE }),
      ...(name ? { model: name } : {}) });
    await Ask.send();
  }, [text, model, labelled]);
  await settle(page);
};

export const everywhere = async (page, f) => {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  for (const tab of await page.getByRole("tab").all()) {
    await tab.click();
    await settle(page);
    await f(await tab.textContent());
  }
};

// Drawn into another canvas: many readings of one canvas make Chromium complain, and slow.
const pixels = (canvas, points) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const wide = canvas.width / canvas.clientWidth, high = canvas.height / canvas.clientHeight;
  return points.map(([x, y]) =>
    [...pen.getImageData(Math.floor(x * wide), Math.floor(y * high), 1, 1).data]);
};
export const sample = async (page, selector, x, y) => {
  const many = Array.isArray(x);
  const found = await page.locator(selector).evaluate(pixels, many ? x : [[x, y]]);
  return many ? found : found[0];
};

export const drop = async (page, selector, name, bytes) => {
  const data = await page.evaluateHandle(([called, base64]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], called));
    return transfer;
  }, [name, Buffer.from(bytes).toString("base64")]);
  for (const type of ["dragenter", "dragover", "drop"])
    await page.dispatchEvent(selector, type, { dataTransfer: data });
  await settle(page);
};

export const tree = (page, selector = "body") => page.locator(selector).ariaSnapshot();

const axe = () => fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const audit = async (page, where = "") => {
  if (!await page.evaluate("typeof axe !== 'undefined'")) await page.evaluate(axe());
  const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = bad.flatMap((one) =>
    one.nodes.map((node) => `${one.impact} ${one.id}: ${node.html}\n  ${node.failureSummary}`));
  assert.equal(told.join("\n"), "", `axe-core ${where}`);
};

export const shot = async (page, name) => {
  const file = path.join(ROOT, "build/page", `${name}.png`);
  await page.screenshot({ path: file });
  return file;
};
