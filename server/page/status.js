// status: what the server says of itself, in a corner, every two seconds while the page is seen.
// Requests are those that compute. Times are of the last interval; where nothing was asked in it, of
// all since the server began.
(() => {
  const PAUSE = 2000, LONG_PAUSE = 60000;
  const computes = ({ route }) => /\/(attention|heads|infer)$/.test(route);
  let last = null;

  const reading = (text) => {
    const map = Metrics.parse(text);
    return { at: performance.now(), map,
      start: Metrics.sum(map, "process_start_time_seconds"),
      total: Metrics.sum(map, "attend_http_requests_total", computes) || 0,
      buckets: Metrics.buckets(map, "attend_http_request_duration_seconds", computes) };
  };
  const interval = (now, before) =>
    before && before.start === now.start && before.total <= now.total
      ? { seconds: (now.at - before.at) / 1000, requests: now.total - before.total,
        buckets: Metrics.since(now.buckets, before.buckets) } : null;

  const time = (buckets, q) => {
    const seconds = Metrics.quantile(buckets, q);
    return seconds === null ? "–" : Format.ms(1000 * seconds);
  };
  const known = (value, write) => (value === undefined ? "–" : write(value));
  const figures = (now, before) => {
    const part = interval(now, before), sum = (name) => Metrics.sum(now.map, name);
    const isRecent = part !== null && Metrics.quantile(part.buckets, 0.5) !== null;
    const times = isRecent ? part.buckets : now.buckets;
    const span = isRecent ? `last ${Math.round(part.seconds)} s` : "so far";
    return [
      ["requests", "Requests", now.total.toLocaleString("en"),
        part && `${Format.short(part.requests / part.seconds)}/s`],
      ["p50", "p50", time(times, 0.5), null],
      ["p99", "p99", time(times, 0.99), span],
      ["queue", "Queue", known(sum("attend_queue_depth"), String),
        known(sum("attend_queue_limit"), (limit) => `of ${limit}`)],
      ["memory", "Memory", known(sum("process_resident_memory_bytes"), Format.bytes), null],
    ];
  };
  const cell = ([id, name, value, more]) => Dom.el("div", null, Dom.el("dt", null, name),
    Dom.el("dd", { id: `status-${id}` }, value, more && Dom.el("span", { class: "soft" }, ` ${more}`)));

  const key = () => Net.hasKey()
    ? Dom.el("button", { type: "button", class: "plain", onclick: Key.forget }, "Forget key")
    : Dom.el("button", { type: "button", class: "plain", onclick: Key.ask }, "Give a key");
  const keyPart = Dom.el("span", { id: "status-key" });
  const body = Dom.el("div", { id: "status-body" });
  const more = Dom.el("button", { type: "button", class: "plain", id: "status-more",
    "aria-expanded": "false", "aria-controls": "status-body", onclick: () => {
      const isOpen = more.getAttribute("aria-expanded") === "true";
      more.setAttribute("aria-expanded", String(!isOpen));
    } }, "Server");

  let needsKey = false;
  const showKey = () => Dom.fill(keyPart, Net.hasKey() || needsKey ? key() : null);
  const needs = (value) => {
    if (needsKey === value) return;
    needsKey = value;
    showKey();
  };
  const say = (text) => Dom.fill(body, Dom.el("p", { class: "soft" }, text));

  // How long to wait for the next reading.
  const show = (reply) => {
    if (reply.status === 0) return PAUSE;
    needs(reply.status === 401);
    if (!reply.ok) {
      last = null;
      say(needsKey ? "Figures need a key" : "Figures are not shown here");
      return reply.status === 403 || reply.status === 404 ? LONG_PAUSE : PAUSE;
    }
    const now = reading(reply.text());
    Dom.fill(body, Dom.el("dl", null, figures(now, last).map(cell)));
    last = now;
    return PAUSE;
  };
  const watch = async () => {
    for (let pause = 0; ;) {
      await Net.pause(pause);
      pause = PAUSE;
      if (Away.now()) continue;
      const [reply, ready] = await Promise.all([Net.peek("metrics"), Net.peek("readyz")]);
      Away.heard(ready);
      pause = show(reply);
    }
  };
  Dom.fill(Dom.id("status"), more, body, keyPart);
  Key.on(showKey);
  watch();
})();
