// net: asks the server.
//
// Net.ask(method, path, { type, data, accept, signal }) -> a promise of a reply:
//   { status, ok, type, timing: [{ name, ms }], id, took, buffer, text(), problem, aborted }
// `path` has no slash in front, since a proxy may serve the page below a path of its own. The
// promise never rejects: without an answer, status is 0 and `problem` says why. `problem` is null
// if ok, else { title, detail, status, pointer?, offset?, limit?, wait? }, wait in seconds. `took`
// is in ms, from asking to the last byte. If `signal` (of an AbortController) has stopped the
// request, `aborted` is true, ok is false and `problem` is null.
// The reply may take long: after a 401 a dialog asks for a key (key.js), and while the server is
// away (away.js) the request waits for it. For each of these reasons it is sent again once.
//
// Net.stream(path, { type, data, signal }, each) -> a promise of a reply of events: each(event) is
// called with the JSON of every one of them; `problem` also says what went wrong behind the head.
// Net.peek(path) is a GET that does neither. Net.hasKey(): is a key sent with each request?
// Net.pause(ms) -> a promise, done after that time, and not while the page is hidden.
const Net = (() => {
  // A request that no user waits for is given up after this time, in ms.
  const PATIENCE = 10000;
  const timingOf = (text) =>
    (text || "").split(",").map((part) => /^\s*(\w+);dur=([\d.]+)/.exec(part)).filter(Boolean)
      .map(([, name, ms]) => ({ name, ms: Number(ms) }));
  const typeOf = (text) => (text || "").split(";")[0].trim().toLowerCase();

  // The members of a problem; those of another type are left out.
  const FORMS = { type: "string", title: "string", detail: "string", pointer: "string",
    offset: "number", limit: "string" };
  const problemOf = (reply) => {
    if (reply.ok) return null;
    const { status } = reply;
    const plain = { title: `The server responded with ${status}`, detail: "", status };
    if (reply.type !== "application/problem+json") return plain;
    try {
      const said = Object.entries(JSON.parse(reply.text()));
      const sound = said.filter(([name, value]) => typeof value === FORMS[name]);
      return { ...plain, ...Object.fromEntries(sound) };
    } catch {
      return plain;
    }
  };
  const nothing = { status: 0, ok: false, aborted: false, type: "", timing: [], id: null, took: 0,
    buffer: new ArrayBuffer(0), text: () => "", problem: { title: "No response", status: 0,
      detail: "The connection closed before the response was complete, also after a retry." } };
  const stopped = { ...nothing, aborted: true, problem: null };

  const read = async (answer) => {
    const buffer = await answer.arrayBuffer();
    const reply = { status: answer.status, ok: answer.ok, aborted: false, buffer,
      type: typeOf(answer.headers.get("Content-Type")),
      timing: timingOf(answer.headers.get("Server-Timing")),
      id: answer.headers.get("X-Request-Id"), text: () => new TextDecoder().decode(buffer) };
    const problem = problemOf(reply), wait = Number(answer.headers.get("Retry-After"));
    return { ...reply, problem: problem && wait > 0 ? { ...problem, wait } : problem };
  };
  const once = async (method, path, { type, data, accept, signal }) => {
    const headers = { Accept: accept || "application/json", ...Key.headers() };
    if (type) headers["Content-Type"] = type;
    const begun = performance.now();
    try {
      const answer = await fetch(path, { method, headers, body: data, signal, cache: "no-store" });
      const reply = await read(answer);
      return { ...reply, took: performance.now() - begun };
    } catch {
      return signal && signal.aborted && signal.reason.name !== "TimeoutError" ? stopped : nothing;
    }
  };
  // Repeats a request after a new key, and once after the server was away; never a stream that began.
  const patiently = async (signal, send) => {
    for (let waited = false; ;) {
      const count = Key.count(), reply = await send();
      if (reply.begun) return reply;
      if (reply.status === 401 && await Key.refused(count)) continue;
      if (reply.aborted || !Away.heard(reply) || waited) return reply;
      waited = true;
      if (!await Away.back(signal)) return stopped;
    }
  };
  const ask = (method, path, options = {}) =>
    patiently(options.signal, () => once(method, path, options));
  // Blocks of lines with an empty one behind them; comments and other names are left out.
  const events = async (answer, each) => {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += part.value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const data = /^data: ?(.*)$/m.exec(block);
        if (!data || data[1] === "[DONE]") continue;
        const said = JSON.parse(data[1]);
        if (/^event: ?error$/m.test(block)) return { ...nothing.problem, ...said };
        each(said);
      }
    }
    return null;
  };
  const flow = async (path, { type, data, signal }, each) => {
    const headers = { Accept: "text/event-stream", "Content-Type": type, ...Key.headers() };
    let begun = false;
    try {
      const answer = await fetch(path,
        { method: "POST", headers, body: data, signal, cache: "no-store" });
      if (!answer.ok) return await read(answer);
      begun = true;
      const problem = await events(answer, each);
      return { ...nothing, begun, status: answer.status, ok: !problem, problem };
    } catch {
      return { ...(signal && signal.aborted ? stopped : nothing), begun };
    }
  };
  const stream = (path, options, each) =>
    patiently(options.signal, () => flow(path, options, each));
  const peek = (path) =>
    once("GET", path, { accept: "*/*", signal: AbortSignal.timeout(PATIENCE) });

  const visible = () => new Promise((done) =>
    document.addEventListener("visibilitychange", done, { once: true }));
  const pause = async (ms) => {
    await new Promise((done) => setTimeout(done, ms));
    while (document.visibilityState === "hidden") await visible();
  };
  return { ask, stream, peek, pause, hasKey: Key.has };
})();
