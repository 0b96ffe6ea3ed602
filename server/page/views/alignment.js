// alignment: a map of the attention weights with which each generated token was chosen: cross attention
// to the source in a seq2seq model, self-attention to the earlier tokens in a decoder. The weights are
// averaged over the heads of one layer, or of all layers.
//
// Alignment.show({ model, body, tokens, spelt, post }) requests the weights from /score and draws the map
// into Alignment.node; body: the request, whose last targets are the tokens; post(what, body) -> a
// promise of a reply. Alignment.clear() hides the map. Alignment.draw() draws it again, for example when
// more token texts are known.
// needs: dom list part report scale state tensor visible cursor fitted picture sentence save
const Alignment = (() => {
  const ALL = "all layers";
  const words = el("p", { "aria-live": "polite" });
  const layer = el("select", { onchange: () => draw() });
  const save = Save.row(() => "alignment", { svg: () => Picture.svg({ ...map.sheet, title: `${map.sheet.name}, ${map.sheet.title}` }),
    csv: () => [["attention", ...Save.COLUMNS], ...Save.cells(map.sheet, [layer.value])] });
  const content = el("div", el("label.small", "Alignment:", layer), words);
  const node = el("div", { hidden: true });
  let last = null; // identifies the newest request
  let drawn = null, cell = Cursor.NOWHERE, over = Cursor.NOWHERE; // { parts, sees, and the arguments of show }

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
  content.append(map.node, save);

  // The last n rows: the earlier ones belong to the prompt.
  const cut = ({ shape: [rows, cols], data }, n) =>
    ({ rows: n, cols, data: Float32Array.from(data.subarray((rows - n) * cols)) });
  const mean = (list) => ({ ...list[0], data: list[0].data.map((_, i) =>
    List.sum(list, ({ data }) => data[i]) / list.length) });
  const draw = () => {
    if (!drawn || !node.offsetParent) return;
    const { parts, tokens, spelt, body, sees } = drawn, list = [...parts.values()];
    const matrix = layer.value === ALL ? mean(list) : parts.get(layer.value), { rows, cols } = matrix;
    const seen = Visible.of(sees, null, 0, rows, cols, 0);
    const text = (token) => spelt(token).trim() || spelt(token), label = layer.selectedOptions[0].text;
    map.show({ name: `Attention of each generated token to ${sees.causal ? "earlier tokens" : "the source"}`,
      title: label, label, matrix, seen, high: Scale.high([{ matrix }]), cuts: [], pointers: null,
      rows: tokens.map(text), cols: [...body.tokens, ...body.targets].slice(0, cols).map(text), even: false });
    cell = { row: Math.min(cell.row, rows - 1), col: Math.min(cell.col, cols - 1) };
    say();
  };
  const clear = () => {
    last = drawn = null;
    node.hidden = true;
  };
  const show = async (wanted) => {
    const { model, body, tokens, post } = wanted, isPair = model.kind === "seq2seq", mine = (last = {});
    const names = model.attentions.filter((name) =>
      name.startsWith("decoder") && name.endsWith(isPair ? "cross" : "self"));
    node.hidden = false;
    if (!drawn) fill(node, el("p", "Loading …"));
    const reply = await post("score", { ...body, encoding_format: "base64",
      return_attention: { of: names, as: "average" } });
    if (mine !== last) return;
    drawn = null;
    if (!reply.ok) return fill(node, Report.failed(reply.problem, () => show(wanted)));
    const { attention } = reply.json(), before = layer.value;
    const parts = new Map(names.map((name) => [name, cut(Tensor.of(attention[name]), tokens.length)]));
    // In a decoder, query row i is position cols - rows + i: causal_offset "end".
    const sees = isPair ? {} : { causal: true, causal_offset: "end", ...(model.window
      && { window: [model.window - 1, -1] }) };
    drawn = { ...wanted, parts, sees };
    Dom.options(layer, [[ALL], ...names.map((name) => [name, Part.name(name, model.kind)])], parts.has(before) ? before : ALL);
    cell = { row: tokens.length - 1, col: -1 };
    fill(node, content);
    draw();
  };
  State.on(["dark", "width", "tab"], draw, node);
  return { node, show, draw, clear };
})();
