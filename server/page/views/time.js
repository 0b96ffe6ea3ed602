// time: how long the stages of an answer took, from Server-Timing: reading the request, waiting,
// computing, writing.
//
// Time.show(answer) -> nodes.
// needs: dom format
const Time = (() => {
  const { el } = Dom;
  const WORDS = { decode: "read", queue: "wait", encode: "write" };

  const show = ({ timing, took, bytes }) => {
    const parts = timing.map(({ name, ms }) => {
      const part = el("i", { class: name, hidden: ms === 0 });
      part.style.flexGrow = 1000 * ms;
      return part;
    });
    const item = (name, value, mark) => el("li", null, mark, `${name} `, el("b", null, value));
    const all = timing.reduce((sum, { ms }) => sum + ms, 0);
    return el("div", { id: "time", role: "group", "aria-label": "Time and size" },
      el("div", { class: "stages", "aria-hidden": "true" }, parts),
      el("ul", { class: "row small soft" },
        timing.map(({ name, ms }) =>
          item(WORDS[name] || name, `${ms} ms`, el("i", { class: name }))),
        item("total", `${Number(all.toFixed(3))} ms`), item("round trip", Format.ms(took)),
        item("response", Format.bytes(bytes))));
  };
  return { show };
})();
