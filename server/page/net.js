// net: asks the server. The bearer key lives here and nowhere else.
//
// Net.ask(method, path, { type, data, accept, signal }) -> a promise of a reply:
//   { status, ok, type, timing: [{ name, ms }], id, buffer, text(), problem }
// `path` has no slash in front, so that the page may live below a path of a proxy. It never rejects:
// where no answer came (or `signal` has ended it), status is 0 and `problem` says so. `problem` is null if ok, else { title,
// detail, status, pointer?, offset?, limit? }.
const Net = (() => {
  const timingOf = (text) =>
    (text || "").split(",").map((part) => /^\s*(\w+);dur=([\d.]+)/.exec(part)).filter(Boolean)
      .map(([, name, ms]) => ({ name, ms: Number(ms) }));
  const typeOf = (text) => (text || "").split(";")[0].trim().toLowerCase();

  const problemOf = (reply) => {
    if (reply.ok) return null;
    const plain = { title: `The server answered ${reply.status}`, detail: "", status: reply.status };
    if (reply.type !== "application/problem+json") return plain;
    try {
      return { ...plain, ...JSON.parse(reply.text()) };
    } catch {
      return plain;
    }
  };
  const unreachable = () => ({ status: 0, ok: false, type: "", timing: [], id: null,
    buffer: new ArrayBuffer(0), text: () => "",
    problem: { title: "The server does not answer", status: 0,
      detail: "It may be restarting; this page goes on trying to reach it." } });

  const read = async (answer) => {
    const buffer = await answer.arrayBuffer();
    const reply = { status: answer.status, ok: answer.ok, buffer,
      type: typeOf(answer.headers.get("Content-Type")),
      timing: timingOf(answer.headers.get("Server-Timing")),
      id: answer.headers.get("X-Request-Id"), text: () => new TextDecoder().decode(buffer) };
    return { ...reply, problem: problemOf(reply) };
  };
  const ask = async (method, path, { type, data, accept, signal } = {}) => {
    const headers = { Accept: accept || "application/json" };
    if (type) headers["Content-Type"] = type;
    try {
      const options = { method, headers, body: data, cache: "no-store", signal };
      return await read(await fetch(path, options));
    } catch {
      return unreachable();
    }
  };
  return { ask };
})();
