// generation: how a text goes on, a column for each token with the likeliest in its place; a click on
// one of these goes on from there. With more than one beam it is a search, whose ways are a tree; a
// click on a node makes its way the text that is looked at, and shows where it looked (alignment.js).
//
// The text is that of the request's first item. What is generated may become the request's targets,
// so that the other views look inside, and each layer's own opinion of it can be shown.
(() => {
  const { el, fill, button } = Dom;
  const TOP = 5;
  const panel = Dom.id("generation");
  const input = (value, more) => el("input", { type: "number", value, ...more });
  const most = input(20, { min: 1 }), heat = input(0, { min: 0, step: 0.1 });
  const isSearch = () => Number(ways.value) > 1; // nothing is drawn in it
  const ways = input(1, { min: 1, max: 64, onchange: () => {
    heat.disabled = isSearch();
  } });
  const words = el("p", { class: "small soft", "aria-live": "polite" });
  const tree = el("div", { class: "wide", role: "group", "aria-label": "The ways of the search" });
  const columns = el("div", { class: "wide columns" }), lens = el("div", { class: "wide",
    tabindex: 0, role: "region", "aria-label": "What each layer would say" });
  // The tokens of the text, what has come behind them, and who is asked.
  let prompt = [], line = [], model = null, under = null, ended = "";
  let nodes = null, node = null, kept = []; // of a search, the chosen one, and what it went on from
  let texts = new Map(); // of tokens

  // --- tokens as text ---

  const spelt = (token) => texts.get(token) ?? String(token);
  const post = (what, body, signal) => Net.ask("POST", Ask.path(what, model.name),
    { type: "application/json", data: JSON.stringify(body), signal });
  const learn = async (tokens) => {
    // A vocabulary may be larger than its tokenizer.
    const mine = model, { tokens: known = 0 } = model.tokenizer || {};
    const unknown = [...new Set(tokens)].filter((token) => token < known && !texts.has(token));
    if (!unknown.length) return;
    for (const token of unknown) texts.set(token, "…");
    const reply = await post("detokenize",
      { tokens: unknown.map((token) => [token]), special_tokens: true });
    if (!reply.ok || mine !== model) return;
    JSON.parse(reply.text()).text.forEach((text, i) => texts.set(unknown[i], text || `#${unknown[i]}`));
    draw();
  };
  const begin = async () => {
    const fields = Request.fields(State.get("body")) || {}, first = (value) =>
      (Array.isArray(value) && Array.isArray(value[0]) ? value[0] : value);
    if ("tokens" in fields) return { ok: true, tokens: first(fields.tokens) };
    const text = Array.isArray(fields.text) ? fields.text[0] : fields.text;
    const reply = await post("tokenize", { text });
    return reply.ok ? { ok: true, tokens: JSON.parse(reply.text()).tokens } : reply;
  };

  // --- asking ---

  const chosen = () => line.map(({ token }) => token);
  // What has been chosen is fed to a decoder behind an encoder, else it stands behind the text.
  const behind = (targets) => (model.kind === "seq2seq"
    ? { tokens: prompt, ...(targets.length && { targets }) } : { tokens: [...prompt, ...targets] });
  const stream = (left, signal) => Net.stream(Ask.path("generate", model.name),
    { type: "application/json", signal, data: JSON.stringify({ ...behind(kept), max_tokens: left,
      temperature: Number(heat.value), stream: true, return_top: TOP }) },
    (event) => !signal.aborted && take(event));
  const search = async (left, signal) => {
    const beams = Number(ways.value), reply = await post("generate", { ...behind(kept), beams,
      max_tokens: left, returns: beams, return_search: true }, signal);
    if (!reply.ok || signal.aborted) return reply;
    const found = JSON.parse(reply.text());
    nodes = Beams.tree(found);
    ended = `the best of ${found.sequences.length} that were found`;
    follow(nodes.find(({ done }) => done === 0));
    learn(nodes.map(({ token }) => token));
    return reply;
  };
  const ask = async () => {
    const mine = (under = new AbortController()), left = Number(most.value) - line.length;
    ended = "";
    [nodes, kept] = [null, chosen()];
    clear();
    if (left < 1) return end("as long as was asked for");
    halt.hidden = false;
    fill(words, isSearch() ? "Searching …" : "Generating …");
    const reply = await (isSearch() ? search : stream)(left, mine.signal);
    if (mine !== under) return;
    halt.hidden = true;
    if (reply.problem) return fill(words, Prune.failed(reply.problem, ask));
    end(reply.aborted ? "stopped" : ended);
  };
  const clear = () => {
    fill(lens);
    fill(tree);
    Alignment.clear();
  };
  // The way to a node becomes the text.
  const follow = (to) => {
    const way = [];
    node = to;
    for (let at = node; at; at = at.parent) way.unshift({ ...at, top: [] });
    line = [...line.slice(0, kept.length), ...way];
    draw();
  };
  const take = ({ token, log_probability, top = [], finish }) => {
    if (finish) ended = { end: "the model's own end", length: "as long as was asked for" }[finish] || finish;
    if (token === undefined) return;
    line.push({ token, log_probability, top });
    learn([token, ...top.map((one) => one.token)]);
    draw();
  };
  const end = (why) => {
    halt.hidden = true;
    fill(words, `${line.length} tokens: ${why}.`);
    draw();
  };
  const start = async () => {
    if (under) under.abort();
    [model, line, nodes, kept] = [Models.current(), [], null, []];
    texts = new Map();
    clear();
    const found = await begin();
    if (!found.ok) return fill(words, Prune.failed(found.problem, start));
    prompt = found.tokens;
    draw();
    ask();
  };
  const from = (at, one) => {
    if (under) under.abort();
    line = [...line.slice(0, at), { ...one, top: line[at].top }];
    draw();
    ask();
  };

  // --- what is shown ---

  const share = (log) => Math.exp(log);
  const column = ({ token, log_probability, top }, at) => {
    const others = top.filter((one) => one.token !== token).map((one) => el("button", { type: "button",
      title: "Go on from here", onclick: () => from(at, one) },
    `${spelt(one.token)} ${Format.percent(share(one.log_probability))}`));
    return el("div", { class: "column" }, el("b", null, spelt(token)),
      Prune.number(share(log_probability), share(log_probability),
        Format.percent(share(log_probability))), others);
  };
  const looked = () => Alignment.show({ model, prompt, tokens: chosen(), spelt, post });
  const open = (to) => {
    follow(to);
    looked();
  };
  const draw = () => {
    fill(columns, line.map(column));
    if (nodes) Beams.draw(tree, nodes, { spelt, choose: open, chosen: node });
    for (const one of [inside, opinions, alignment]) one.disabled = !line.length;
  };
  // The likeliest token behind each layer, the last layer on top.
  const listen = async () => {
    const reply = await post("score", { tokens: prompt, targets: chosen(), return_lens: 1 });
    if (!reply.ok) return fill(lens, Prune.failed(reply.problem, listen));
    const layers = Object.entries(JSON.parse(reply.text()).lens).reverse();
    await learn(layers.flatMap(([, list]) => list.map(([one]) => one.token)));
    const cell = ([{ token, log_probability }]) => {
      const t = share(log_probability), node = el("span", { class: "said",
        title: Format.percent(t) }, spelt(token));
      Object.assign(node.style, { background: Scale.css(t), color: Scale.ink(t) });
      return node;
    };
    fill(lens, Dom.table("What each layer would say", ["behind", ...line.map(({ token }) => spelt(token))],
      layers.map(([name, list]) => [name, ...list.map(cell)])));
  };
  const look = () => {
    const tokens = chosen(), next = { text: Request.layout({ tokens: prompt, targets: tokens }) };
    State.set({ model: model.name, body: next, labels: Labels.NONE });
    Ask.start();
  };

  const halt = button("Stop", () => under && under.abort());
  const inside = button("Look inside", look), alignment = button("Where it looked", looked);
  const opinions = button("What each layer would say", listen);
  halt.hidden = true;
  fill(panel, el("div", { class: "bar" }, button("Go on", start), halt,
    el("label", null, "tokens at most", most), el("label", null, "temperature", heat),
  el("label", null, "beams", ways), inside, alignment, opinions),
  words, tree, columns, Alignment.node, lens);
  Rove.in(tree, "button");
  fill(words, "The model goes on from the text, a token at a time.");
  draw();
})();
