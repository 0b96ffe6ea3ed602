// net: sends requests to the server, and waits for a server that is away.
//
// Net.ask(method, path, { type, data, accept, signal }) -> a promise of a reply:
//   { status, ok, type, timing: [{ name, ms }], id, took, buffer, text(), json(), problem, aborted }
// `path` does not begin with a slash, because a proxy may serve the page below a path of its own. The
// promise never rejects: without a response, status is 0 and `problem` has the reason. `problem` is
// null if ok, else { title, detail, status, pointer?, offset?, limit?, wait? }, wait in seconds.
// `took` is in ms, from sending to the last byte. If `signal` (of an AbortController) has stopped the
// request, `aborted` is true, ok is false and `problem` is null.
// The reply may take long: a dialog asks for a key after a 401 (key.js), and a request waits for a
// server that is away. The request is sent again once for each of these reasons.
//
// Net.post(what, model, fields, signal): the same for a request of fields to a model.
// Net.failed(title, detail) -> the reply { ok: false, problem } of a failure that is not the server's;
//   Net.unreadable(error): of a response that cannot be read.
// Net.stream(path, { type, data, signal }, each) -> a promise of a reply of events: each(event) is
//   called with the JSON of every event; `problem` also has errors that follow the header.
// Net.path(what, model): "v1/models/NAME/attention"; null: "v1/attention". Net.hasKey(): is a key sent with each request?
// Net.peek(path): a GET without a dialog and without waiting.
// Net.pause(ms) -> a promise that ends after that time, and not while the page is hidden.
// Net.heard(reply): does the reply mean that the server is away? After the first such reply #notice
//   says so, and /readyz is requested until the server is back. Net.isAway(). Net.onReturn(f): calls f
//   when the server is back.
// needs: dom key
const Net = (() => {
  const path = (what, model) => `v1/${model === null ? "" : `models/${encodeURIComponent(model)}/`}${what}`;
  // The timeout of a request that no user waits for, in ms.
  const PATIENCE = 10000;

  // The members of a problem; those of another type are ignored.
  const FORMS = { type: "string", title: "string", detail: "string", pointer: "string",
    offset: "number", limit: "string" };
  const problemOf = (reply) => {
    if (reply.ok) return null;
    const { status } = reply;
    const plain = { title: `The server responded with ${status}`, detail: "", status };
    if (reply.type !== "application/problem+json") return plain;
    try {
      const said = Object.entries(reply.json());
      const sound = said.filter(([name, value]) => typeof value === FORMS[name]);
      return { ...plain, ...Object.fromEntries(sound) };
    } catch {
      return plain;
    }
  };
  const nothing = { status: 0, ok: false, aborted: false, type: "", timing: [], id: null, took: 0,
    buffer: new ArrayBuffer(0), text: () => "", problem: { title: "No response", status: 0,
      detail: "The connection closed too early, also after a retry." } };
  const stopped = { ...nothing, aborted: true, problem: null };

  const read = async (answer) => {
    const buffer = await answer.arrayBuffer(), header = (name) => answer.headers.get(name) || "";
    const reply = { status: answer.status, ok: answer.ok, aborted: false, buffer,
      type: header("Content-Type").split(";")[0].trim().toLowerCase(),
      timing: header("Server-Timing").split(",").map((part) => /^\s*(\w+);dur=([\d.]+)/.exec(part))
        .filter(Boolean).map(([, name, ms]) => ({ name, ms: Number(ms) })),
      id: header("X-Request-Id"), text: () => new TextDecoder().decode(buffer), json: () => JSON.parse(reply.text()) };
    const problem = problemOf(reply), wait = Number(header("Retry-After"));
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
  const peek = (path) =>
    once("GET", path, { accept: "*/*", signal: AbortSignal.timeout(PATIENCE) });

  const pause = async (ms) => {
    await new Promise((done) => setTimeout(done, ms));
    while (document.visibilityState === "hidden") await new Promise((done) =>
      document.addEventListener("visibilitychange", done, { once: true }));
  };

  // --- a server that is away ---
  const FIRST = 1000, LONGEST = 5000;
  const notice = id("notice");
  const listeners = [];
  let coming = null, waiting = 0, how = "";

  // A proxy that does not reach the server responds with 502, or with 503 without attend's problem type.
  const kind = ({ status, problem }) => {
    const { type, title } = problem || {};
    if (status === 503 && /\/(draining|not-ready)$/.test(type)) return title;
    return status === 0 || status === 502 || (status === 503 && !type)
      ? "The server does not respond" : null;
  };
  const tell = () => {
    const then = waiting ? "your request will be sent again when it is back"
      : "this page keeps trying to reach it";
    const text = `${how}: ${then}.`;
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = false;
  };

  const watch = async () => {
    for (let ms = FIRST; ; ms = Math.min(1.5 * ms, LONGEST)) {
      await pause(ms);
      const ready = await peek("readyz");
      // A proxy may not forward /readyz.
      if (!heard(ready.status === 404 ? await peek("v1/models") : ready)) break;
    }
    coming = null;
    notice.hidden = true;
    for (const listener of listeners) listener();
  };
  const heard = (reply) => {
    how = kind(reply) || how;
    if (!kind(reply)) return false;
    tell();
    coming ||= watch();
    return true;
  };
  const back = async (signal) => {
    waiting++;
    tell();
    await Promise.race([coming, new Promise((done) => signal && (signal.onabort = done))]);
    waiting--;
    if (coming) tell();
    return !(signal && signal.aborted);
  };

  // Repeats a request after a new key, and once after the server was away, but no stream that has begun.
  const patiently = async (signal, send) => {
    for (let waited = false; ;) {
      const count = Key.count(), reply = await send();
      if (reply.begun) return reply;
      if (reply.status === 401 && await Key.refused(count)) continue;
      if (reply.aborted || !heard(reply) || waited) return reply;
      waited = true;
      if (!await back(signal)) return stopped;
    }
  };
  const ask = (method, path, options = {}) =>
    patiently(options.signal, () => once(method, path, options));
  const post = (what, model, fields, signal) => ask("POST", path(what, model),
    { type: "application/json", data: JSON.stringify(fields), signal });
  const failed = (title, detail = "") => ({ ok: false, problem: { title, detail, status: 0 } });
  const unreadable = ({ message }) => failed("The response cannot be read", message);
  // Calls `each` for the JSON of each event, which an empty line ends. Returns the problem of an error
  // event, or null. Comments and other fields are ignored.
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
  return { ask, post, failed, unreadable, stream, peek, pause, path, heard, hasKey: Key.has, isAway: () => coming !== null,
    onReturn: (listener) => listeners.push(listener) };
})();
