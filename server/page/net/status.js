// status: is the server ready, and numbers from /metrics, every two seconds while the page is visible.
// All requests with a body are counted. Times are those of the last minute.
// needs: dom format place key metrics models net
(() => {
  // A server without metrics is asked for them again after LONG_PAUSE.
  const PAUSE = 2000, LONG_PAUSE = 60000, WINDOW = 60000;
  const SHOWN = /^(attend_(http_request.*"POST"|models_loaded|queue)|process_resident)/; // hundreds of lines are not
  const body = id("status-body"), light = id("ready");
  let readings = []; // of the last minute, and the one before

  const read = (text) => {
    const all = Metrics.parse(text, SHOWN);
    const named = (name) => all.filter((one) => one.name === name);
    const only = (name, write) => named(name).map(({ value }) => write(value))[0];
    const http = (what) => named(`attend_http_request${what}`).filter(({ labels }) => labels.method === "POST");
    return { at: performance.now(), total: Metrics.sum(http("s_total")),
      buckets: Metrics.buckets(http("_duration_seconds_bucket")),
      loaded: only("attend_models_loaded_timestamp_seconds", String),
      queue: only("attend_queue_depth", String),
      limit: only("attend_queue_limit", (limit) => `of ${limit}`),
      memory: only("process_resident_memory_bytes", Format.bytes) };
  };
  const figures = (now, first) => {
    const seconds = (now.at - first.at) / 1000, recent = Metrics.since(now.buckets, first.buckets);
    const time = (q) => {
      const found = Metrics.quantile(recent, q);
      return found === null ? null : Format.ms(1000 * found);
    };
    return [
      ["Requests", Format.whole(now.total),
        seconds > 0 ? `${Format.short((now.total - first.total) / seconds)}/s` : null],
      ["p50", time(0.5)], ["p99", time(0.99), `last ${Math.round(seconds)} s`],
      ["Queue", now.queue, now.limit], ["Memory", now.memory]];
  };
  const cell = ([name, value, more]) => el("div", el("dt", name),
    el("dd", { id: `status-${name.toLowerCase()}` }, value || "–",
      value && more && el("span.soft", ` ${more}`)));

  let needsKey = false;
  const showKey = () => {
    id("key-forget").hidden = !Key.has();
    id("key-give").hidden = Key.has() || !needsKey;
  };
  const show = (reply) => {
    needsKey = reply.status === 401;
    showKey();
    const now = reply.ok ? read(reply.text()) : null, last = readings.at(-1);
    if (last && now && last.loaded !== now.loaded) Models.load();
    // Counts that have become smaller mean that the server was restarted.
    readings = now ? [...(last && last.total <= now.total ? readings : []), now] : [];
    while (readings.length > 2 && now.at - readings[1].at >= WINDOW) readings.shift();
    fill(body, now ? el("dl", figures(now, readings[0]).map(cell))
      : needsKey ? "Metrics require an API key" : "Metrics are not available");
  };
  const say = (isReady) => {
    const text = isReady ? "ready" : "offline";
    if (light.textContent !== text) light.textContent = light.className = text;
  };
  const watch = async () => {
    for (let due = 0; ; await Net.pause(PAUSE)) {
      if (Net.isAway()) {
        say(false);
        continue;
      }
      const isDue = performance.now() >= due;
      const [ready, reply] = await Promise.all([Net.peek("readyz"), isDue && Net.peek("metrics")]);
      say(!Net.heard(ready));
      if (!reply || reply.status === 0 || reply.status >= 500) continue;
      show(reply);
      due = reply.ok || needsKey ? 0 : performance.now() + LONG_PAUSE;
    }
  };

  id("key-give").addEventListener("click", Key.ask);
  id("key-forget").addEventListener("click", Key.forget);
  Key.on(showKey);
  if (!Place.embedded) watch();
})();
