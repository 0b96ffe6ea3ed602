// generation: generated tokens, a column for each, with the most likely alternatives; a click on an
// alternative continues from it. With more than one beam it is a beam search, drawn as a tree; a click
// on a node selects its hypothesis and shows its alignment (alignment.js).
//
// The prompt is the request's first item, followed by its targets, with its head_mask. The generated
// tokens may become the request's targets, so that the other views show them: a click on a token shows the
// attention with which it was chosen. The logit lens shows the most likely token after each layer.
//
// Generation.node: all of it, which the chat (chat.js) shows, too. Generation.start(read, hear): generates after
// another prompt; read(signal) -> a promise of { tokens, seed }, or of a reply with its problem; hear(text) is called with
// the text as it grows. Generation.clear(): ends it, and forgets its tokens.
// needs: dom format place report rove scale state tensor models net ask code labels request picture alignment beams save
const Generation = (() => {
  const TOP = 5;
  const input = (value, more) => el("input", { type: "number", value, ...more });
  const most = input(20, { min: 1 }), heat = input(0, { min: 0, step: 0.1 });
  const isSearch = () => Number(ways.value) > 1; // without sampling
  const ways = input(1, { min: 1, max: 64, onchange: () => {
    heat.disabled = isSearch();
  } });
  const words = el("p.small.soft", { "aria-live": "polite" });
  const old = el("p.small.bad", { hidden: true }, "This belongs to an earlier request.");
  const key = el("p.small.soft", "Each column is a step; boxes show a hypothesis' last token "
    + "and its probability. Dashed boxes are finished hypotheses with their scores.");
  const tree = el("div.wide", { role: "group", "aria-label": "Beam search tree" });
  const columns = el("div.wide.columns"), lens = el("div.wide", {
    tabindex: 0, role: "region", "aria-label": "Logit lens" });
  // The model and request of the newest run; its text or tokens; prompt, targets and head mask.
  let model = null, begun = null, source = {}, seed = 0, prompt = [], fed = [], mask = {};
  // The generated tokens; for a search also the tree, its chosen node, and the tokens before the tree;
  // the most likely tokens of the logit lens, by layer.
  let line = [], nodes = null, node = null, kept = [], opinion = null;
  let under = null, ended = "", sent = null, hear = null; // sent: the fields of the last request

  // --- tokens as text ---

  const HIDDEN = "…";
  let texts = new Map(), unknown = new Set(), learning = null;
  const spelt = (token) => texts.get(token) ?? String(token);
  const post = (what, body, signal) => Net.post(what, model.name, body, signal);
  // Requests the texts of unknown tokens, one batch at a time. Token ids beyond the tokenizer have none.
  const learn = async (tokens) => {
    const mine = texts, { tokens: known = 0 } = model.tokenizer || {};
    for (const token of tokens) {
      if (token >= known || texts.has(token)) continue;
      unknown.add(token);
      texts.set(token, HIDDEN);
    }
    if (learning === mine) return;
    learning = mine;
    while (unknown.size && mine === texts) {
      const list = [...unknown];
      unknown.clear();
      const reply = await post("detokenize",
        { tokens: list.map((token) => [token]), special_tokens: true });
      if (mine !== texts) return;
      const said = reply.ok ? reply.json().text : [];
      list.forEach((token, i) => texts.set(token, said[i] || `#${token}`));
      fresh = true;
      draw();
      Alignment.draw();
    }
    learning = null;
  };

  // --- requests ---

  const first = (value) => {
    const tensor = Tensor.of(value);
    return tensor ? [...tensor.data.slice(0, tensor.shape.at(-1))] : (value && value[0]) || [];
  };
  const begin = async () => {
    const fields = Request.fields(begun) || {}, { text, head_mask } = fields;
    fed = first(fields.targets);
    mask = head_mask ? { head_mask } : {};
    source = "tokens" in fields ? { tokens: first(fields.tokens) }
      : { text: Array.isArray(text) ? text[0] : text };
    if (source.tokens) return source;
    const reply = await post("tokenize", source);
    return reply.ok ? reply.json() : reply;
  };
  const chosen = () => line.map(({ token }) => token);
  // A seq2seq model takes the chosen tokens as targets, a decoder as part of its prompt.
  const asked = () => {
    const targets = [...fed, ...kept];
    return model.kind === "seq2seq" ? { ...mask, tokens: prompt, ...(targets.length && { targets }) }
      : { ...mask, tokens: [...prompt, ...targets] };
  };
  const scored = () => ({ ...mask, tokens: prompt, targets: [...fed, ...chosen()] });
  // An answer ends at the token that ends a message, too.
  const spoken = () => ({ return_text: true, seed, ...(model.tokens.chat_end >= 0 && { stop_tokens: [model.tokens.chat_end] }) });
  const wanted = (max_tokens) => ({ ...asked(), max_tokens, ...(isSearch()
    ? { beams: Number(ways.value), returns: Number(ways.value), return_search: true }
    : { temperature: Number(heat.value), return_top: TOP, ...(hear && spoken()) }) });
  const stream = async (signal) => {
    const reply = await Net.stream(Net.path("generate", model.name), { type: "application/json", signal,
      data: JSON.stringify({ ...sent, stream: true }) }, (event) => !signal.aborted && take(event));
    return reply.ok && !ended ? Net.failed("The response ended early") : reply;
  };
  const search = async (signal) => {
    const reply = await post("generate", sent, signal);
    if (!reply.ok || signal.aborted) return reply;
    const found = reply.json();
    [nodes, fresh] = [Beams.tree(found), true];
    ended = `the best of ${found.sequences.length} hypotheses`;
    follow(nodes.find(({ done }) => done === 0));
    learn(nodes.map(({ token }) => token));
    return reply;
  };
  // The number of tokens that the context of a decoder leaves.
  const room = () => (model.kind === "decoder" && model.positions ? model.positions - asked().tokens.length + 1 : Infinity);
  const ask = async () => {
    if (under) under.abort();
    const mine = (under = new AbortController()), wish = Number(most.value) - line.length;
    tidy();
    kept = chosen();
    const left = most.value === most.defaultValue ? Math.min(wish, room()) : wish;
    if (left < 1) return end(wish < 1 ? "token limit reached" : "context length reached");
    sent = wanted(left);
    halt.hidden = false;
    fill(words, isSearch() ? "Searching …" : "Generating …");
    const reply = await (isSearch() ? search : stream)(mine.signal);
    if (mine !== under) return;
    halt.hidden = true;
    if (reply.problem) return fill(words, Report.failed(reply.problem, ask));
    end(reply.aborted ? "stopped" : ended);
  };
  const tidy = () => {
    [nodes, node, opinion, ended] = [null, null, null, ""];
    Alignment.clear();
    draw();
  };
  const take = ({ token, log_probability, top = [], finish, text }) => {
    if (finish) ended = { end: "end-of-sequence token", length: "token limit reached", stop: "end of the message" }[finish] || finish;
    if (token === undefined) return;
    line.push({ token, log_probability, top, text });
    learn([token, ...top.map((one) => one.token)]);
    hear?.(line.map((one) => one.text ?? spelt(one.token)).join(""));
    draw();
  };
  const end = (why) => {
    halt.hidden = true;
    fill(words, `${Format.many(line.length, "token")}: ${why}.`);
    draw();
    if (hear) spell();
  };
  // The text of a token depends on those before it.
  const spell = async () => {
    const mine = line, reply = await post("detokenize", { tokens: [prompt, [...prompt, ...chosen()]] });
    if (mine !== line || !reply.ok) return;
    const [before, all] = reply.json().text;
    hear(all.slice(before.length));
  };
  const clear = () => {
    if (under) under.abort();
    [under, line, texts] = [null, [], new Map()];
    unknown.clear();
    fill(words);
    halt.hidden = true;
    tidy();
  };
  const start = async (read = begin, listener = null) => {
    clear();
    const mine = (under = new AbortController());
    [model, begun, hear, fed, mask] = [Models.current(), listener ? null : State.body, listener, [], {}];
    age();
    const found = await read(mine.signal);
    if (mine !== under) return;
    if (found.problem) return fill(words, Report.failed(found.problem, () => start(read, listener)));
    if (listener) ({ seed, ...source } = found);
    prompt = found.tokens;
    if (!prompt.length) return fill(words, "The prompt has no tokens.");
    ask();
  };
  const from = (entry, one) => {
    const at = line.indexOf(entry);
    line = [...line.slice(0, at), { ...one, top: entry.top }];
    focus = at;
    ask();
  };
  // Makes the hypothesis of a node the generated tokens.
  const follow = (to) => {
    const way = [];
    node = to;
    opinion = null;
    for (let at = node; at; at = at.parent) way.unshift({ ...at, top: [] });
    line = [...line.slice(0, kept.length), ...way];
    draw();
  };
  const open = (to) => {
    follow(to);
    end(to.done === null ? "an unfinished hypothesis" : `finished hypothesis ${to.done + 1}`);
    looked();
  };
  const looked = () => {
    learn(prompt);
    Alignment.show({ model, body: scored(), tokens: chosen(), spelt, post });
  };
  const listen = async () => {
    const mine = line, reply = await post("score", { ...scored(), return_lens: 1 });
    if (mine !== line) return;
    if (!reply.ok) return fill(lens, Report.failed(reply.problem, listen));
    const layers = Object.entries(reply.json().lens);
    opinion = layers.map(([name, list]) => ({ name, best: list.slice(-line.length).map(([one]) => one) }));
    learn(opinion.flatMap(({ best }) => best.map(({ token }) => token)));
    draw();
  };
  // Shows the tokens in the other views, and of one token the query that chose it.
  const look = async (entry) => {
    const at = line.indexOf(entry), first = (model.kind === "seq2seq" ? 0 : prompt.length - 1) + fed.length;
    const body = { text: Request.layout({ ...source, targets: [...fed, ...chosen()], ...mask }) };
    begun &&= body;
    State.set({ model: model.name, body, labels: Labels.NONE });
    if (at >= 0) Place.go("explore", "look");
    await Ask.start();
    if (at >= 0 && State.asked?.body === body) State.show({ row: first + at });
  };

  // --- the tab ---

  const share = ({ log_probability: log }) => Math.exp(log);
  const made = new WeakMap(); // columns whose texts are all known
  const column = (entry) => {
    const { token, top } = entry, others = top.filter((one) => one.token !== token);
    if (made.has(entry)) return made.get(entry);
    const column = el("div.column", el("b", el("button.plain", { title: "Look inside", onclick: () => look(entry) }, spelt(token))),
      Report.number(share(entry), share(entry), Format.percent(share(entry))),
      others.map((one) => el("button.way", { title: "Continue from here",
        onclick: () => from(entry, one) }, el("span", spelt(one.token)), " ",
      el("small", Format.percent(share(one))))));
    if (![entry, ...others].some((one) => texts.get(one.token) === HIDDEN)) made.set(entry, column);
    return column;
  };
  const heard = () => {
    const cell = (one) => Scale.cell(share(one), spelt(one.token), Format.percent(share(one)));
    fill(lens, opinion && [Dom.table("Logit lens", ["after", ...chosen().map(spelt)],
      opinion.map(({ best }, at) => [layerName(at), ...best.map(cell)]).reverse()), lensSave]);
  };
  const layerName = (at) => (at ? `layer ${at - 1}` : "embeddings");
  const lensSave = Save.row(() => "lens", { svg: () => {
    const all = opinion.toReversed().flatMap(({ best }) => best), cols = chosen().map(spelt);
    return Picture.table({ title: `${model.name}, logit lens, probability`, high: 1, cols, data: all.map(share),
      texts: all.map(({ token }) => spelt(token)), rows: opinion.map((_, at) => layerName(at)).reverse(),
      across: "generated tokens", down: "after" });
  }, csv: () => [["after", "step", "generated_token", "generated_text", "token", "text", "probability"],
    ...opinion.flatMap(({ name, best }) => best.map((one, i) => [name, i + 1, line[i].token, spelt(line[i].token),
      one.token, spelt(one.token), share(one)]))] });
  let fresh = false, focus = -1, frame = 0; // fresh: the tree must be drawn again
  const paint = () => {
    line.map(column).forEach((one, i) => {
      const there = columns.children[i];
      if (there !== one) columns.replaceChild(one, there || columns.appendChild(el("i")));
    });
    while (columns.children.length > line.length) columns.lastChild.remove();
    if (focus >= 0 && columns.children[focus]) columns.children[focus].querySelector(".way")?.focus();
    focus = -1;
    key.hidden = save.hidden = !nodes;
    if (!nodes) fill(tree);
    else if (fresh) Beams.draw(tree, nodes, { spelt, choose: open });
    fresh = false;
    if (nodes) Beams.choose(tree, nodes.indexOf(node));
    heard();
    for (const one of [inside, opinions, alignment, code.firstChild]) one.disabled = !line.length;
  };
  const draw = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(paint);
  };
  // The chat has no body, more tokens, and buttons of its own.
  const age = () => {
    const isChat = State.tab === "chat";
    run.hidden = code.hidden = isChat;
    if (most.value === most.defaultValue) most.value = most.defaultValue = isChat ? 200 : 20;
    old.hidden = !line.length || (begun === (isChat ? null : State.body) && State.model === model.name);
  };
  State.on(["body", "model", "tab"], age);
  State.on(["body"], () => {
    const { beams } = State.body || {};
    if (!beams) return;
    ways.value = beams;
    heat.disabled = true;
  });

  const save = Save.row(() => "beams", { svg: () => Beams.figure(nodes, spelt),
    csv: () => Beams.table(nodes, spelt) });
  const halt = button("Stop", () => under && under.abort());
  const inside = button("Inspect as targets", look), alignment = button("Alignment", looked);
  const opinions = button("Logit lens", listen);
  const code = Code.button(() => ["generate", { text: Request.layout(sent) }, model.name]);
  halt.hidden = true;
  const run = el("button.primary", { onclick: () => start() }, "Generate");
  const home = el("div.generation", el("div.bar", run, halt,
    el("label", "max tokens", most), el("label", "temperature", heat),
    el("label", "beams", ways), inside, alignment, opinions, code),
  old, words, key, tree, save, columns, Alignment.node, lens);
  Rove.in(tree, "button");
  fill(words, "The model generates one token at a time after the prompt.");
  id("generation").append(home);
  draw();
  return { node: home, start, clear };
})();
