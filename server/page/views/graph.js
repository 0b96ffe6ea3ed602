// graph: the tab that shows the parts of a whole model in the order of the data: shape, parameters and
// share of the compute time. A click on an attention opens its weights.
//
// The server lists the parts. It measures the compute time as a whole; the page divides it in
// proportion to the multiply-adds of each part.
// needs: dom format list report state models net request whole
(() => {
  const panel = id("graph"), kept = new Map(); // the parts of models, by name and digest
  const words = el("p.small.soft"), sides = el("div.sides");

  // --- the multiply-adds of each part for the answer ---

  const runs = ({ kind, side }, { path, names }) => {
    if (kind === "output") return path === "score";
    if (kind !== "pooler") return kind !== "classifier" && names.some((name) => name.startsWith(side));
    const { body, model } = State.asked;
    return (Request.fields(body).pool ?? (Models.find(model) || {}).pool) === "pooler";
  };
  // The number of query-key pairs that an attention computes under its causal mask and window.
  const seen = ({ causal, window }, rows, keys) => (causal
    ? List.sum([...Array(rows).keys()], (i) => Math.min(i, window ? window[0] : i) + 1) : rows * keys);
  const work = (piece, answer) => {
    const { name, kind, side, multiply_adds: { token, pair = 0, key = 0 } } = piece;
    if (!runs(piece, answer)) return 0;
    // The output layer has a row for each target.
    if (kind === "output") return token * JSON.parse(answer.raw).log_probabilities.flat().length;
    if (kind === "pooler") return token * answer.items.length;
    return List.sum(answer.places, (place) => {
      const rows = place[side].length, source = (place.encoder || []).length;
      const keys = name.endsWith("cross") ? source : rows;
      return token * rows + key * source + (pair && pair * seen(answer.sees[name], rows, keys));
    });
  };

  // --- the tab ---

  const open = (name) => {
    Whole.show(name, State.view.head);
    id("tab-look").click();
  };

  const box = (piece, answer, all, ms) => {
    const { name, kind, side, layer, shape, parameters, tied } = piece, part = work(piece, answer) / all;
    const isOpen = kind === "attention" && runs(piece, answer);
    const title = el("b", name.replace(`${side}.`, "").replace(`${layer}.`, "").replace("_", "-").replace(/^(self|cross)$/, "$1-attention"),
    name.endsWith("cross") ? " ← encoder" : null);
    const count = tied ? `${parameters ? `${Format.count(parameters)} and ` : ""}shared parameters`
      : `${Format.count(parameters)} parameters`;
    return el(isOpen ? "button.card" : "div.card", { "data-piece": name, title: isOpen
      ? "See its weights" : null, onclick: isOpen && (() => open(name)) }, title,
    el("span.mono", kind === "attention" // input → heads × head size → output
      ? `${shape[0]} → ${shape[1]} × ${shape[2]} → ${shape[3]}` : shape.join(" → ")), el("span", { title: parameters }, count),
    layer === undefined ? null : el("i.residual", { "aria-hidden": true }),
    runs(piece, answer) ? Report.number(part * ms, part, Number.isFinite(ms) ? `${Format.ms(part * ms)}, `
      + Format.percent(part) : Format.percent(part)) : el("span.soft", "did not run"));
  };
  const column = (side, pieces, draw) => {
    const rows = new Map(); // the parts of a layer are side by side
    for (const piece of pieces) {
      const key = piece.layer ?? piece.name;
      rows.set(key, [...(rows.get(key) || []), piece]);
    }
    return el("section", { "aria-label": side }, el("h3", side), [...rows].map(([key, list]) =>
      el("div.stage", Number.isInteger(key) ? el("span.small.soft",
        `layer ${key}`) : null, list.map(draw))));
  };
  const show = (pieces, answer) => {
    const all = List.sum(pieces, (piece) => work(piece, answer)) || 1;
    const { ms } = answer.timing.find(({ name }) => name === "compute") || {};
    fill(words, `${Format.count(List.sum(pieces, ({ parameters }) => parameters))} parameters. `,
      "Compute times are estimated from multiply-adds. Attention blocks show heads × head size; "
      + "click one to see its weights. Lines above blocks are residual connections.");
    fill(sides, [...new Set(pieces.map(({ side }) => side))].map((side) => column(side,
      pieces.filter((piece) => piece.side === side), (piece) => box(piece, answer, all, ms))));
    fill(panel, words, sides);
  };
  const learn = async (model) => {
    if (!model) return Net.failed("The model is no longer served");
    const key = `${model.name} ${model.digest}`;
    if (!kept.has(key)) {
      const reply = await Net.ask("GET", `v1/models/${encodeURIComponent(model.name)}`);
      if (!reply.ok) return reply;
      const { pieces } = reply.json();
      if (!Array.isArray(pieces)) return Net.failed("The server does not list the parts of this model");
      kept.set(key, pieces);
    }
    return { pieces: kept.get(key) };
  };
  let shown = null;
  const look = async () => {
    const answer = State.answer;
    if (!answer?.whole || shown === answer.thumbs) return;
    shown = answer.thumbs;
    if (!answer.items.length) return fill(panel, el("p.soft", "The batch is empty."));
    const found = await learn(Models.find(State.asked.model));
    if (State.answer?.thumbs !== answer.thumbs) return;
    if (found.pieces) return show(found.pieces, answer);
    shown = null;
    fill(panel, Report.failed(found.problem, look));
  };
  State.on(["answer"], look, panel);
})();
