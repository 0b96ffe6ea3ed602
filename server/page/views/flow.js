// flow: the tab Rollout: attention rollout, the tokens from which the vector of a token can come after
// each layer. It is the product of the layers' weights, averaged over heads, with the residual
// connection or without.
//
// The token is State.view.row, or the last one if that is -1. Each row of the table is one layer.
// needs: dom format list part report scale state terms code whole picture save
const Flow = (() => {
  const LONGEST = 64;
  const panel = id("flow"), table = el("div.wide", { tabindex: 0, role: "region",
    "aria-label": "Rollout, layer by layer" });
  const residual = el("input", { type: "checkbox", checked: true, onchange: () => draw() });
  const place = el("select", { onchange: () => State.show({ row: Number(place.value) }) });
  const words = el("div", { "aria-live": "polite" });
  const content = [el("div.bar", el("label", "Token", place),
    el("label", residual, "with the residual connection (half of each layer)")), words, table,
  el("p.soft.small", Terms.of("attention", "Attention"), " rollout ignores values, signs and "
    + "everything between attention layers: it shows where information can come from, not why.")];
  let layers = null, shown = null, names = [], kept = null; // kept: { tokens, at, rolled }
  const save = Save.row(() => "rollout", { svg: () => Picture.table({ title: `Rollout of token ${kept.at}, “${kept.tokens[kept.at]}”`,
    data: kept.rolled.flat(), high: 1, rows: names.map((name) => Part.name(name)), cols: kept.tokens,
    across: "tokens", down: "after layer" }),
  csv: () => [["after", ...Save.titles(kept.tokens)], ...kept.rolled.map((row, l) => [names[l], ...row])] });

  const asked = () => ({ return_attention: { of: names, as: "average" } });
  const code = Code.button(() => [State.answer.path, Whole.changed(asked())]);

  // R of a layer is A times R of the layer before; with the residual, A is half weights, half identity.
  const roll = (list, isHalf) => {
    const n = list.length ? list[0].length : 0;
    const every = (f) => Array.from({ length: n }, (_, i) => f(i));
    let before = every((i) => every((j) => Number(i === j)));
    return list.map((weights) => {
      before = weights.map((row, i) => before[i].map((stays, j) => {
        const comes = row.reduce((sum, x, k) => sum + x * before[k][j], 0);
        return isHalf ? (comes + stays) / 2 : comes;
      }));
      return before;
    });
  };

  const draw = () => {
    if (!layers) return;
    const { row, item } = State.view, n = layers[0].length;
    const at = row < 0 || row >= n ? n - 1 : row;
    const tokens = State.answer.words(item, names[0]).rows;
    Dom.options(place, tokens.map((word, i) => [i, `${i} ${word}`]), at);
    const rolled = roll(layers, residual.checked).map((all) => all[at]);
    kept = { tokens, at, rolled };
    const cell = (x) => Scale.cell(x, Format.percent(x), Format.float(x));
    fill(table, Dom.table(`Token ${at}, “${tokens[at]}”, after each layer`, ["after", ...tokens],
      rolled.map((one, l) => [Part.name(names[l]), ...one.map(cell)]).reverse()));
    const last = rolled.at(-1), most = List.order(last).slice(0, 3);
    const from = most.map((j) => `“${tokens[j]}” (${Format.percent(last[j])})`).join(", ");
    fill(words, `After the last layer, most can come from ${from}.`);
  };
  const look = async () => {
    const { answer, view: { item } } = State;
    if (!answer?.whole) return;
    if (shown && shown.thumbs === answer.thumbs && shown.item === item) return draw();
    shown = { thumbs: answer.thumbs, item };
    layers = null;
    const side = answer.part.split(".")[0];
    names = answer.names.filter((name) => name.startsWith(side) && name.endsWith("self"));
    const n = answer.items[item] ? answer.words(item, names[0]).rows.length : 0;
    if (!n || n > LONGEST) return fill(panel, el("p.soft", n
      ? `Rollout supports up to ${LONGEST} tokens; these are ${n}.` : "There are no tokens."));
    fill(panel, content, save, code);
    fill(words, "Loading …");
    fill(table);
    const mine = shown, reply = await Whole.again(asked());
    if (mine !== shown) return;
    if (!reply.ok) return fill(words, Report.failed(reply.problem, () => {
      shown = null;
      look();
    }));
    const { attention } = reply.json();
    layers = names.map((name) => (answer.batched ? attention[name][item] : attention[name]));
    draw();
  };
  State.on(["answer", "view", "dark"], look, panel);
  return { roll };
})();
