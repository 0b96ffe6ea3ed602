// status: is the server ready, and numbers from /metrics, every two seconds while the page is visible. Only
// requests that compute are counted. Times are those of the last interval or, if it had no requests,
// those since the server started.
// needs: dom format key metrics models net
(() => {
  const PAUSE = 2000, LONG_PAUSE = 60000;
  const computes = ({ labels }) => /\/(attention|heads|infer)$/.test(labels.route);
  const body = Dom.id("status-body"), light = Dom.id("ready");
  let last = null;

  const read = (text) => {
    const all = Metrics.parse(text);
    const named = (name) => all.filter((one) => one.name === name);
    const only = (name, write) => named(name).map(({ value }) => write(value))[0];
    const http = (what) => named(`attend_http_request${what}`).filter(computes);
    return { at: performance.now(), total: Metrics.sum(http("s_total")),
      buckets: Metrics.buckets(http("_duration_seconds_bucket")),
      loaded: only("attend_models_loaded_timestamp_seconds", String),
      queue: only("attend_queue_depth", String),
      limit: only("attend_queue_limit", (limit) => `of ${limit}`),
      memory: only("process_resident_memory_bytes", Format.bytes) };
  };
  // Counts that have become smaller mean that the server was restarted.
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
      ["p50", time(0.5)],
      ["p99", time(0.99), isRecent ? `last ${Math.round(seconds)} s` : "since start"],
      ["Queue", now.queue, now.limit], ["Memory", now.memory]];
  };
  const cell = ([name, value, more]) => Dom.el("div", {}, Dom.el("dt", {}, name),
    Dom.el("dd", { id: `status-${name.toLowerCase()}` }, value || "–",
      value && more && Dom.el("span", { class: "soft" }, ` ${more}`)));

  let needsKey = false;
  const showKey = () => {
    Dom.id("key-forget").hidden = !Key.has();
    Dom.id("key-give").hidden = Key.has() || !needsKey;
  };
  // Returns the pause before the next reading, in ms.
  const show = (reply) => {
    if (reply.status === 0 || reply.status >= 500) return PAUSE;
    needsKey = reply.status === 401;
    showKey();
    const now = reply.ok ? read(reply.text()) : null;
    Dom.fill(body, now ? Dom.el("dl", {}, figures(now).map(cell))
      : needsKey ? "Metrics require an API key" : "Metrics are not available");
    if (last && now && last.loaded !== now.loaded) Models.load();
    last = now;
    return now || needsKey ? PAUSE : LONG_PAUSE;
  };
  const say = (isReady) => {
    const text = isReady ? "ready" : "offline";
    if (light.textContent !== text) light.textContent = light.className = text;
  };
  const watch = async () => {
    for (let pause = 0; ;) {
      await Net.pause(pause);
      pause = PAUSE;
      if (Net.isAway()) {
        say(false);
        continue;
      }
      const [reply, ready] = await Promise.all([Net.peek("metrics"), Net.peek("readyz")]);
      say(!Net.heard(ready));
      pause = show(reply);
    }
  };

  Dom.id("key-give").addEventListener("click", Key.ask);
  Dom.id("key-forget").addEventListener("click", Key.forget);
  Key.on(showKey);
  watch();
})();
