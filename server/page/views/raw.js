// raw: the tab Response: how long its stages took; its text, or the tensors of a binary one; and the
// first of its outputs as exact numbers. All of it can be downloaded.
// needs: dom format list state tensor answer labels
(() => {
  const CUT = 200000, SIDE = 8;
  const panel = id("raw");
  let made = [];

  const about = (answer) => {
    const { status, type, id, bytes, buffer } = answer;
    const parts = [status, type, Format.bytes(bytes), id && `request ${id}`].filter(Boolean);
    const name = `outputs.${type === "application/json" ? "json" : "safetensors"}`;
    return el("div.bar", el("span.soft", parts.join(" · ")),
      button("Download", () => Dom.save(new Blob([buffer], { type }), name)));
  };
  const WORDS = { decode: "read", queue: "wait", encode: "write" };
  // The times of the stages, from Server-Timing: reading the request, waiting, computing, writing.
  const timeOf = ({ timing, took, bytes }) => {
    const parts = timing.map(({ name, ms }) => {
      const part = el("i", { class: name, hidden: ms === 0 });
      part.style.flexGrow = 1000 * ms;
      return part;
    });
    const item = (name, value, mark) => el("li", mark, `${name} `, el("b", value));
    const all = List.sum(timing, ({ ms }) => ms);
    return el("div", { id: "time", role: "group", "aria-label": "Time and size" },
      el("div.stages", { "aria-hidden": "true" }, parts),
      el("ul.row.small.soft",
        timing.map(({ name, ms }) =>
          item(WORDS[name] || name, `${ms} ms`, el("i", { class: name }))),
        item("total", `${Number(all.toFixed(3))} ms`), item("round trip", Format.ms(took)),
        item("response", Format.bytes(bytes))));
  };
  const region = (tag, name, ...parts) =>
    el(tag, { tabindex: 0, role: "region", "aria-label": name }, parts);
  const textOf = (text, end) => {
    const pre = region("pre", "Response body", text.slice(0, end));
    const all = () => {
      more.remove();
      fill(pre, text).focus();
    };
    const more = button(`Show all ${Format.count(text.length)} characters`, all);
    return [pre, end < text.length ? more : null];
  };
  const table = (caption, titles, rows) => region("div", caption, Dom.table(caption, titles, rows));
  const tensorsOf = (buffer) => {
    const { tensors, fields } = Tensor.read(buffer);
    const rows = Object.entries(tensors).map(([name, { dtype, shape, bytes }]) =>
      [name, dtype, shape.join(" × "), Format.bytes(bytes.length)]);
    return [table("Tensors of the response", ["Name", "Type", "Shape", "Size"], rows),
      el("p.mono", JSON.stringify(fields))];
  };
  const outputsOf = (item, outputs) => {
    const { rows, cols } = outputs, n = Math.min(SIDE, rows), m = Math.min(SIDE, cols);
    const row = (_, i) => [Labels.row(item, i).slice(0, 40),
      ...Array.from(Answer.row(outputs, i).subarray(0, m), Format.float)];
    const part = n * m < rows * cols ? `the first ${n} × ${m} of ` : "";
    return table(`Outputs of item ${item}, ${part}${rows} × ${cols}`,
      ["row", ...Array(m).keys()], Array.from({ length: n }, row));
  };

  const parts = (answer, item) => {
    if (!answer) return [el("p.soft", "There is no response yet.")];
    if (answer.tooLarge)
      return [about(answer), timeOf(answer),
        el("p", "This response is too large to draw. Download it instead.")];
    const part = answer.items[item];
    return [about(answer), timeOf(answer),
      part && part.outputs ? outputsOf(item, part.outputs) : null,
      ...(answer.raw === null ? tensorsOf(answer.buffer) : textOf(answer.raw, CUT))];
  };
  const draw = () => {
    const now = [State.answer, State.view.item, Labels.now()];
    if (now.some((x, i) => x !== made[i])) fill(panel, parts(...now));
    made = now;
  };
  State.on(["answer", "labels", "body", "view"], draw, panel);
})();
