// browser: what the tests of the page share: a real Chromium or Firefox, servers of their own, guards.
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
// is $ATTEND_BIN, else build/release/attend; the browser $CHROMIUM or $FIREFOX, else what PATH has.
// One browser is started for a file (of Firefox one for light and one for dark pages), when a page
// needs it; every page has a context of its own. A server that is started within a test ends with
// it, one that is started at the top of a file after its last test: by its own pid, and with status
// 0, else that is a failure.
//
// What fails a test by itself, wherever it comes from: an error or a warning on the console, an
// exception nobody has caught, a violation of the Content-Security-Policy or of Trusted Types, a
// request to anywhere but the page's own server, a dialog, another window, a crash. `expect` says
// what may happen all the same: statuses (400: Chromium writes a line for each failed request; 0:
// no answer at all) and expressions (/Trusted/) for lines of any kind. Firefox, driven over WebDriver
// BiDi, tells of no crash, and has no line for a request that failed.
//
// test(name, options, f)   node:test's, in order; f gets node:test's context
// serve(args, { env, config, ends }) -> { origin, port, pid, get(path), post(path, body, headers), stop() }
// open({ server, viewport, scale, dark, touch, expect, path, firefox }) -> playwright's page on `path`, by
//   default "/#explore", settled. `touch`: on a phone. With `server` left out, the file's own. `scale`: device pixels to a CSS pixel, 1.
//   Clipboard and downloads are allowed. `firefox`: true opens it in Firefox, where the clipboard
//   can be used as by any page alone.
// NO_FIREFOX   why there is no Firefox to test in, or "": it need not be there on Ubuntu alone
// expect(page, ...what)    adds to what may happen from here on
// told(page)               what the guards have to complain of; it then fails the test no more
// state(page, name)        State[name]; typed arrays come as typed arrays
// settle(page)             no request under way, all of State told, two frames drawn
// ask(page, body, model, labelled)   puts a request (an object, or text) into State and sends it;
//   settled. Without `labelled` it has no labels, else those that are there
// tab(page, name)          goes to a tab, by its label, through its place; settled
// everywhere(page, f)      f(name) in each tab of each place but Learn, with everything that folds open
// sample(page, selector, x, y) -> [r, g, b, a] of a canvas at CSS pixels; of [[x, y], ...], a list
// drop(page, selector, name, bytes)   drops a file on an element; not in Firefox
// download(page, act) -> { name, bytes } of the file that act() saves
// tree(page, selector)     what a screen reader is told, as text (playwright's aria snapshot)
// audit(page, where)       axe-core finds nothing serious or critical, every target has 24 px or that much room, and no
//   head of a table is empty
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
const require = createRequire(path.join(ROOT, "build/npm/page/package.json"));
// Milliseconds for whatever is waited for: what ends a test that hangs, and nothing else, so many
// times what a busy machine takes.
const PATIENCE = 300000;

// --- what must be there ---

const needed = (name) => {
  try {
    return require(name);
  } catch {
    throw new Error(`${name} is not in build/npm/page: make deps-page installs it`);
  }
};
const inPath = (name) =>
  (process.env.PATH || "").split(":").map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
const browserProgram = () => {
  const names = ["chromium-headless-shell", "chromium", "google-chrome-stable", "google-chrome"];
  const unpacked = path.join(ROOT, "build/tools/usr/bin/chromium"); // by make deps-page, on Ubuntu
  const found = process.env.CHROMIUM || names.map(inPath).find(Boolean) || unpacked;
  if (!fs.existsSync(found))
    throw new Error(`${found} is not there: the page is tested in Chromium, which make deps-page `
      + "installs; else CHROMIUM=/path/to/chrome says where there is one");
  return found;
};
const foxProgram = () => process.env.FIREFOX || inPath("firefox-esr");
const isUbuntu = () => fs.existsSync("/etc/os-release")
  && /^ID="?ubuntu"?$/m.test(fs.readFileSync("/etc/os-release", "utf8"));
export const NO_FIREFOX = foxProgram() || !isUbuntu() ? ""
  : "Ubuntu has Firefox as a snap alone; FIREFOX=/path/to/firefox says where there is another one";
const neededFox = () => {
  const found = foxProgram();
  if (found && fs.existsSync(found)) return found;
  throw new Error(`${found || "firefox-esr"} is not there: the page is tested in Firefox, too, which `
    + "make deps-page installs; else FIREFOX=/path/to/firefox says where there is one");
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
  return { ...Object.fromEntries(kept), OPENBLAS_NUM_THREADS: "1", ATTEND_DRAIN_DELAY_MS: "0", ...extra };
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

// The models of a server without a definition: the page's tests begin with the layer `demo`. With
// `config: null` they are the program's own.
const random = { seed: 1 };
const MODELS = { demo: { random, query_size: 4, heads: 2 }, base: { random, query_size: 512, heads: 8, bias: true },
  additive: { random, projection: "none", score: "additive", query_size: 20, key_size: 2, value_size: 4, score_size: 8 },
  sort: { transformer: { builtin: "sort" } } };

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
export const serve = async (args = [], { env = {}, config = { models: MODELS }, ends = 0 } = {}) => {
  const words = ["serve", ...args];
  if (!args.some((word) => word.startsWith("--listen"))) words.push("--listen", "127.0.0.1:0");
  if (config && !args.includes("--config")) {
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

const running = new Map(); // "chromium", "firefox light", "firefox dark" -> a promise of a browser
const saved = path.join(os.tmpdir(), `attend-test-saved-${process.pid}`); // what Firefox downloads
const start = {
  chromium: () => needed("playwright-core").chromium.launch({ executablePath: browserProgram(),
    timeout: PATIENCE, args: ["--no-sandbox", "--disable-gpu", "--disable-lcd-text",
      "--font-render-hinting=none", "--force-color-profile=srgb", "--disable-background-networking"] }),
  // What a context of Chromium is told, a whole Firefox is: playwright-core has no other way.
  firefox: (scheme) => needed("playwright-core").firefox.launch({ executablePath: neededFox(),
    channel: "moz-firefox", timeout: PATIENCE, downloadsPath: saved, firefoxUserPrefs: {
      "layout.css.prefers-color-scheme.content-override": scheme === "dark" ? 0 : 1,
      "ui.prefersReducedMotion": 1 } }),
};
const launch = async (kind) => {
  const [name, scheme] = kind.split(" ");
  const browser = await start[name](scheme);
  ours.endings.push(() => browser.close());
  return browser;
};
const browserOf = (kind) => {
  if (!running.has(kind)) running.set(kind, launch(kind));
  return running.get(kind);
};
process.on("exit", () => fs.rmSync(saved, { recursive: true, force: true }));

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
  const { viewport = [1280, 800], scale = 1, dark = false, touch = false, firefox = false,
    expect: expected = [], path: where = "/#explore" } = options;
  const own = scope;
  if (!options.server && !common) {
    scope = ours; // it serves the whole file
    common = serve();
    scope = own;
  }
  const server = options.server || await common;
  const scheme = dark ? "dark" : "light";
  const browser = await browserOf(firefox ? `firefox ${scheme}` : "chromium");
  const context = await browser.newContext({
    viewport: { width: viewport[0], height: viewport[1] }, deviceScaleFactor: scale, locale: "en-US",
    timezoneId: "UTC", ...(!firefox && { colorScheme: scheme, reducedMotion: "reduce",
      isMobile: touch, hasTouch: touch,
      serviceWorkers: "block", permissions: ["clipboard-read", "clipboard-write"] }) });
  own.endings.push(() => context.close());
  context.setDefaultTimeout(PATIENCE);
  const list = [...expected];
  guard(context, server.origin, own, list);
  await context.addInitScript(tellViolations);
  const page = await context.newPage();
  pages.set(page, { list, firefox, under: counted(context), complaints: own.complaints });
  await page.goto(server.origin + where);
  await settle(page);
  return page;
};
export const expect = (page, ...what) => pages.get(page).list.push(...what);
export const told = (page) => pages.get(page).complaints.splice(0);

// --- what tests do with a page ---

export const state = (page, name) => page.evaluate((one) => State[one], name);

const frames = () => new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(
    typeof State !== "undefined" && State.asking))));
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

const place = (page, name) => page.locator(`#places a[href="#${name}"]`).click();
export const tab = async (page, name) => {
  const own = page.getByRole("tab", { name, exact: true, includeHidden: true });
  await place(page, await own.first().getAttribute("data-place"));
  const shown = page.getByRole("tab", { name, exact: true }); // a tab alone has no strip
  if (await shown.count()) await shown.click();
  await settle(page);
};
export const everywhere = async (page, f) => {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  for (const where of ["explore", "generate", "ablate", "api"]) {
    await place(page, where);
    const tabs = await page.getByRole("tab").all();
    for (const one of tabs.length ? tabs : [null]) {
      if (one) await one.click();
      await settle(page);
      await f(one ? await one.textContent() : where);
    }
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

// Firefox tells playwright-core nothing of files that a page has made: they are found where they lie,
// first empty, or with a part beside them, then whole.
const savedFile = async () => {
  for (const until = Date.now() + PATIENCE; Date.now() < until;) {
    const names = fs.existsSync(saved) ? fs.readdirSync(saved) : [];
    const bytes = names.length === 1 ? fs.readFileSync(path.join(saved, names[0])) : "";
    if (bytes.length && !names[0].endsWith(".part")) {
      fs.rmSync(path.join(saved, names[0]));
      return { name: names[0], bytes };
    }
    await new Promise((go) => setTimeout(go, 20));
  }
  throw new Error("no file was saved");
};
export const download = async (page, act) => {
  if (pages.get(page).firefox) return act().then(savedFile);
  const [file] = await Promise.all([page.waitForEvent("download"), act()]);
  return { name: file.suggestedFilename(), bytes: fs.readFileSync(await file.path()) };
};

export const tree = (page, selector = "body") => page.locator(selector).ariaSnapshot();

const axe = () => fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const audit = async (page, where = "") => {
  if (!await page.evaluate("typeof axe !== 'undefined'")) await page.evaluate(axe());
  const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'], "
    + "rules: { 'target-size': { enabled: true } } })");
  const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact) || one.id === "empty-table-header");
  const told = bad.flatMap((one) =>
    one.nodes.map((node) => `${one.impact} ${one.id}: ${node.html}\n  ${node.failureSummary}`));
  assert.equal(told.join("\n"), "", `axe-core ${where}`);
};

export const shot = async (page, name) => {
  const file = path.join(ROOT, "build/page", `${name}.png`);
  await page.screenshot({ path: file });
  return file;
};
