// page: how the page holds up with 32 heads of 512 queries and keys, and with a whole model of 144. `node page.mjs` prints, beside
// TAP, lines "figure NAME VALUE": what page.py makes a table of.
//
// A frame's length is what passes between two requestAnimationFrame, while a real pointer moves and
// a real wheel turns; a screen of 60 Hz asks for one in 16.7 ms.
import { test, open, serve, settle } from "../page/browser.mjs";

const QUERIES = 512, WIDTH = 512, HEADS = 32;
const MODELS = { models: { wide: { random: { seed: 1 }, query_size: WIDTH, heads: HEADS },
  whole: { transformer: { random: { seed: 1 } }, kind: "encoder", layers: 12, width: 144, heads: 12,
    feed_forward: 288, vocabulary: 100 } } };
const say = (name, value) => console.log(`figure ${name} ${value}`);

// Sends random queries; ms from the last byte of the answer to the second frame that shows it.
const look = ([queries, width]) => {
  const bytes = new Uint8Array(Float32Array.from({ length: queries * width },
    (_, i) => Math.sin(i * 12.9898) * 3).buffer);
  State.set({ body: { name: "random", tensors: { queries: { dtype: "F32", shape: [1, queries, width], bytes } },
    fields: { return_attention: true, causal: true } } });
  return new Promise((done) => requestAnimationFrame(async () => {
    const begun = performance.now();
    await Ask.send();
    requestAnimationFrame(() => requestAnimationFrame(() => done({
      heads: State.answer.items[0].weights.length,
      shown: performance.now() - begun - State.answer.took })));
  }));
};

const begin = () => {
  const frames = [];
  let last = performance.now();
  const tick = (now) => {
    frames.push(now - last);
    last = now;
    globalThis.going = requestAnimationFrame(tick);
  };
  globalThis.frames = frames;
  globalThis.going = requestAnimationFrame(tick);
};
const end = () => {
  cancelAnimationFrame(globalThis.going);
  const sorted = globalThis.frames.slice(1).sort((a, b) => a - b);
  return { longest: sorted.at(-1), most: sorted[Math.floor(sorted.length * 0.95)],
    count: sorted.length };
};
// Milliseconds of the page's own script so far.
const scripted = async (session) => {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * metrics.find(({ name }) => name === "ScriptDuration").value;
};
const timed = async (page, session, name, act) => {
  await page.evaluate(begin);
  const before = await scripted(session);
  await act();
  const script = await scripted(session) - before;
  const { longest, most, count } = await page.evaluate(end);
  say(`${name}_longest`, longest.toFixed(1));
  say(`${name}_p95`, most.toFixed(1));
  say(`${name}_script`, (script / count).toFixed(2));
};
const steps = async (n, act) => {
  for (let i = 0; i < n; i++) await act(i / n);
};

test("figures", { timeout: 120000 }, async () => {
  const server = await serve([], { config: MODELS });
  for (const [name, coding] of [["sent", "gzip"], ["plain", "identity"]]) {
    const head = await fetch(`${server.origin}/`, { method: "HEAD", headers: { "Accept-Encoding": coding } });
    say(name, head.headers.get("content-length"));
  }
  const page = await open({ server, viewport: [1280, 900] });
  const { heads, shown } = await page.evaluate(look, [QUERIES, WIDTH]);
  if (heads !== HEADS) throw new Error(`${heads} heads`);
  say("shown", shown.toFixed(0));
  await settle(page);
  await page.waitForTimeout(1000);

  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const tiles = page.locator("#multiples"), large = page.locator("#frame");
  await tiles.scrollIntoViewIfNeeded();
  const a = await tiles.boundingBox();
  await timed(page, session, "tiles", () => steps(60, async (t) => {
    await page.mouse.move(a.x + 40 + t * (a.width - 80), a.y + 60);
    await page.mouse.wheel(0, t < 0.5 ? 60 : -60);
  }));
  await page.evaluate(() => scrollTo(0, document.getElementById("frame").offsetTop - 60));
  const b = await large.boundingBox();
  await timed(page, session, "hover", () => steps(200, (t) =>
    page.mouse.move(b.x + 60 + t * (b.width - 90), b.y + 60 + Math.abs(Math.sin(t * 9)) * (b.height - 90))));
  await page.evaluate(() => document.activeElement.blur());
  await large.press("+");
  await large.press("+");
  await large.press("+");
  await timed(page, session, "scroll", () => steps(80, (t) => page.mouse.wheel(t < 0.5 ? 40 : -40, 60)));
  await timed(page, session, "head", () => steps(16, async () => {
    await page.locator("#multiples button").nth(Math.floor(Math.random() * HEADS)).evaluate((one) => one.click());
    await page.waitForTimeout(80);
  }));

  // A chosen query is drawn in all 144 pictures as the pointer moves over one of them, large.
  await page.evaluate(async (tokens) => {
    State.set({ model: "whole", body: { text: JSON.stringify({ tokens }) } });
    await Ask.send();
  }, Array.from({ length: QUERIES }, (_, i) => i % 100));
  await settle(page);
  const pictures = await page.locator("#grid [data-part]").count();
  if (pictures !== 144) throw new Error(`${pictures} pictures`);
  await page.evaluate(() => scrollTo(0, document.getElementById("grid").offsetTop - 60));
  const c = await large.boundingBox();
  await timed(page, session, "whole", () => steps(200, (t) =>
    page.mouse.move(c.x + 60 + t * (c.width - 90), Math.min(880, c.y + 60 + Math.abs(Math.sin(t * 9)) * 200))));
});

// The opening screen: ms from the navigation to the first arcs, with an empty cache, and from a typed letter
// to the arcs of the new sentence.
test("opening", { timeout: 120000 }, async () => {
  const ARCS = () => document.querySelectorAll("#arcs path").length > 0;
  const server = await serve([], { config: null }), middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const opened = [];
  for (let i = 0; i < 9; i++) {
    const page = await open({ server, viewport: [1280, 800], path: "/healthz" });
    await page.goto(`${server.origin}/`, { waitUntil: "commit" });
    await page.waitForFunction(ARCS, null, { polling: "raf" });
    opened.push(await page.evaluate(() => performance.now()));
    if (i < 8) await page.close();
    else {
      const typed = await page.evaluate(async () => {
        const input = document.getElementById("learn-text"), times = [];
        const seen = () => [...document.querySelectorAll("#arcs button > :first-child")].map((one) => one.textContent).join(" ");
        for (const word of " the street was wide and the dog was very tired".split(/(?= )/)) {
          input.value += word;
          const wish = input.value.toLowerCase(), begun = performance.now();
          input.dispatchEvent(new Event("input"));
          while (seen() !== wish) await new Promise(requestAnimationFrame);
          times.push(performance.now() - begun);
        }
        return times;
      });
      say("typed", middle(typed).toFixed(0));
      say("typed_longest", Math.max(...typed).toFixed(0));
    }
  }
  say("opened", middle(opened).toFixed(0));
  say("opened_longest", Math.max(...opened).toFixed(0));
});
