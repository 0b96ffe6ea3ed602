// heads: the tab Head importance of a single attention: measures of each head, with switches that
// disable heads. It sends a request when it is opened, once for each answer and choice of gradients.
// needs: dom format report rove state terms code request whole divergence measures prune save
(() => {
  // Name; meaning; the value of a full bar, if that is not the maximum of the heads.
  const MEASURES = [
    ["confidence", "mean of each query's largest weight", 1],
    ["entropy", "mean entropy, 0 (one key) to 1 (even)", 1],
    ["distance", "mean distance from query to key"],
    ["norm", "mean norm of its part of the output"],
    ["share", "its share of all heads' norms"],
    ["delta", "output change without it (ablation)"],
    ["michel", "gradient-based importance (Michel)"],
  ];
  const panel = id("heads");
  let shown, asking, found;

  const choice = (name, onchange, texts) => {
    const options = Object.entries(texts).map(([value, text]) => el("option", { value }, text));
    return el("label", name, el("select", { onchange }, options));
  };
  const words = el("div.small.soft", { "aria-live": "polite" });
  const table = el("div.wide", { id: "measures" });
  const matrix = el("div.wide");
  Rove.in(table, "input");
  const save = Save.row(() => "measures", { csv: () => {
    const names = Object.keys(found.heads[0]);
    return [["head", ...names], ...found.heads.map((one, i) => [i, ...names.map((name) => one[name])])];
  } });
  const code = Code.button(() => ["heads", Whole.changed(Measures.asked(kind.lastChild.value))]);
  const content = el("div", Prune.tools, el("div", Prune.report, table), save, code, Prune.along,
    matrix);

  const lay = () => {
    if (!found) return;
    const { heads, ranking } = found, shows = MEASURES.filter(([name]) => name in heads[0]);
    const tops = shows.map(([name, , top]) => top || Math.max(...heads.map((head) => head[name])));
    const titles = shows.map(([name, meaning]) => [name, el("small",
      heads[0][name] === null ? "not defined for sigmoid weights" : meaning)]);
    const forms = shows.map(([name]) => Format.even(heads.map((head) => head[name])));
    const cell = (x, m) => (x === null ? "–" : Report.number(x, x / tops[m], forms[m](x)));
    const row = (i) => [Prune.toggle(i), ...shows.map(([name], m) => cell(heads[i][name], m))];
    const all = order.lastChild.value === "ranking" ? ranking : [...heads.keys()];
    fill(table, Dom.table("Measures of each head", [Terms.of("head"), ...titles], all.map(row)));
    Rove.tidy(table);
  };
  const measure = async () => {
    const mine = (asking = {});
    found = null;
    content.inert = true;
    fill(words, "Measuring …");
    const reply = await Measures.ask(kind.lastChild.value);
    if (mine !== asking) return;
    content.hidden = content.inert = Boolean(reply.problem);
    if (reply.problem) return fill(words, Report.failed(reply.problem, measure));
    found = reply;
    fill(words, `Queries with an unmasked key: ${found.rows}`);
    Prune.begin(found);
    lay();
    fill(matrix, found.divergence && Divergence.show(found.divergence));
  };
  const order = choice("Order", lay, { ranking: "least important first", index: "by index" });
  const kind = choice("Gradients", measure, { none: "none", square: "of half the squared output",
    signs: "random signs", request: "of the request" });
  const tools = el("div.bar", order, kind, words);

  const look = () => {
    const answer = State.answer;
    if (!answer || answer.tooLarge)
      return fill(panel, el("p.soft", answer ? "This response is too large to compare."
        : "Run a request to see its heads."));
    if (answer === shown) return found && Prune.change();
    shown = answer;
    const select = kind.lastChild, own = "gradients" in Request.fields(State.asked.body);
    select.lastChild.hidden = select.lastChild.disabled = !own;
    if (own !== (select.value === "request")) select.value = own ? "request" : "none";
    fill(panel, tools, content);
    measure();
  };
  State.on(["answer", "tab"], look, panel);
})();
