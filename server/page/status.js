// status: what the server says of itself, in a corner, every two seconds while the page is seen.
// Requests are those that compute. Times are of the last interval; where nothing was asked in it, of
// all since the server began.
(() => {
  const PAUSE = 2000, LONG_PAUSE = 60000;
  const computes = ({ labels }) => /\/(attention|heads|infer)$/.test(labels.route);
  const box = Dom.id("status-box"), body = Dom.id("status-body");
  let last = null;

  const read = (text) => {
    const all = Metrics.parse(text);
    const named = (name) => all.filter((one) => one.name === name);
    const only = (name, write) => named(name).map(({ value }) => write(value))[0];
    return { at: performance.now(),
      total: Metrics.sum(named("attend_http_requests_total").filter(computes)),
      buckets: Metrics.buckets(
        named("attend_http_request_duration_seconds_bucket").filter(computes)),
      queue: only("attend_queue_depth", String),
      limit: only("attend_queue_limit", (limit) => `of ${limit}`),
      memory: only("process_resident_memory_bytes", Format.bytes) };
  };
  // A server that has begun anew has counted less.
  const figures = (now) => {
    const before = last && last.total <= now.total ? last : null;
    const seconds = before && (now.at - before.at) / 1000;
    const recent = before ? Metrics.since(now.buckets, before.buckets) : [];
    const isRecent = Metrics.quantile(recent, 0.5) !== null;
    const time = (q) => {
      const found = Metrics.quantile(isRecent ? recent : now.buckets, q);
      return found === null ? null : Format.ms(1000 * found);
    };
    return [
      ["Requests", now.total.toLocaleString("en"),
        before && `${Format.short((now.total - before.total) / seconds)}/s`],
      ["p50", time(0.5)], ["p99", time(0.99), isRecent ? `last ${Math.round(seconds)} s` : "so far"],
      ["Queue", now.queue, now.limit], ["Memory", now.memory]];
  };
  const cell = ([name, value, more]) => Dom.el("div", {}, Dom.el("dt", {}, name),
    Dom.el("dd", { id: `status-${name.toLowerCase()}` }, value || "–",
      more && Dom.el("span", { class: "soft" }, ` ${more}`)));

  let needsKey = false;
  const showKey = () => {
    Dom.id("key-forget").hidden = !Key.has();
    Dom.id("key-give").hidden = Key.has() || !needsKey;
  };
  // How long to wait for the next reading.
  const show = (reply) => {
    if (reply.status === 0) return PAUSE;
    needsKey = reply.status === 401;
    showKey();
    const now = reply.ok ? read(reply.text()) : null;
    if (now) Dom.fill(body, Dom.el("dl", {}, figures(now).map(cell)));
    else body.textContent = needsKey ? "Figures need a key" : "Figures are not shown here";
    last = now;
    return reply.status === 403 || reply.status === 404 ? LONG_PAUSE : PAUSE;
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

  const wide = matchMedia("(min-width: 901px)");
  const unfold = () => (box.open = wide.matches);
  wide.addEventListener("change", unfold);
  unfold();
  Dom.id("key-give").addEventListener("click", Key.ask);
  Dom.id("key-forget").addEventListener("click", Key.forget);
  Key.on(showKey);
  watch();
})();
