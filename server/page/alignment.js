// alignment: where each token that was generated looked as it was chosen: at the source, of a decoder
// behind an encoder, else at what stands before it. The mean of a layer's heads, or of all layers.
//
// Alignment.show({ model, prompt, tokens, spelt, post }): asks for it and draws it into
// Alignment.node; post(what, body) -> a promise of a reply. Alignment.clear().
const Alignment = (() => {
  const { el, fill } = Dom, ALL = "all layers";
  const words = el("p", { "aria-live": "polite" });
  const layer = el("select", { onchange: () => draw() });
  const content = el("div", null, el("label", { class: "small" }, "Where it looked, behind", layer), words);
  const node = el("div", { hidden: true });
  let asked = null, parts = null, cell = Cursor.NOWHERE, over = Cursor.NOWHERE;

  const say = () => {
    const { sheet } = map, at = over.row < 0 ? cell : over;
    fill(words, at.row < 0 || at.col < 0 ? "Point at a cell to read its weight."
      : Sentence.of(sheet, at.row, at.col));
    map.point(over);
  };
  const map = Fitted.of({ at: () => cell, look: (to) => {
    over = to;
    say();
  }, choose: (to) => {
    cell = to;
    say();
  } });
  content.append(map.node);

  // Rows of the tokens that were chosen, of all that the decoder has read.
  const cut = ({ shape: [rows, cols], data }, n) =>
    ({ rows: n, cols, data: Float32Array.from(data.subarray((rows - n) * cols)) });
  const mean = (list) => ({ ...list[0], data: list[0].data.map((_, i) =>
    list.reduce((sum, { data }) => sum + data[i], 0) / list.length) });
  const draw = () => {
    if (!parts) return;
    const { tokens, spelt, prompt, isPair } = asked, list = [...parts.values()];
    const matrix = layer.value === ALL ? mean(list) : parts.get(layer.value), { rows, cols } = matrix;
    const seen = Uint8Array.from(matrix.data, (_, i) =>
      isPair || i % cols <= prompt.length - 1 + Math.floor(i / cols));
    const text = (token) => spelt(token).trim() || spelt(token), label = layer.value;
    map.show({ name: `${isPair ? "The source" : "What stood there"}, for each token as it was chosen`,
      title: label, label, matrix, seen, high: Scale.high([{ matrix }]), cuts: [], pointers: null,
      rows: tokens.map(text), cols: [...prompt, ...tokens].slice(0, cols).map(text), even: false });
    cell = { row: Math.min(cell.row, rows - 1), col: Math.min(cell.col, cols - 1) };
    say();
  };
  const clear = () => {
    asked = parts = null;
    node.hidden = true;
  };
  const show = async (wanted) => {
    const { model, prompt, tokens, post } = wanted, isPair = model.kind === "seq2seq";
    const names = model.attentions.map((one) => one.name || one)
      .filter((name) => name.endsWith(isPair ? "cross" : "self") && name.startsWith("decoder"));
    const mine = (asked = { ...wanted, isPair });
    node.hidden = false;
    if (!parts) fill(node, el("p", null, "Asking …"));
    const reply = await post("score", { tokens: prompt, targets: tokens, encoding_format: "base64",
      return_attention: { of: names, as: "average" } });
    if (mine !== asked) return;
    parts = null;
    if (!reply.ok) return fill(node, Prune.failed(reply.problem, () => show(wanted)));
    const { attention } = JSON.parse(reply.text());
    parts = new Map(names.map((name) => [name, cut(Tensor.of(attention[name]), tokens.length)]));
    const before = layer.value;
    fill(layer, [ALL, ...names].map((name) => el("option", null, name)));
    layer.value = parts.has(before) ? before : ALL;
    cell = { row: tokens.length - 1, col: -1 };
    fill(node, content);
    draw();
  };
  State.on(["dark"], draw);
  addEventListener("resize", draw);
  return { node, show, clear };
})();
