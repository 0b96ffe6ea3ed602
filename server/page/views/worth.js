// worth: the tab Head importance of a whole model: the server measures the loss without each head
// (ablation); switches disable heads, by hand or along the ranking.
//
// The loss is the decrease of the targets' log probability, or the change of the outputs if there are no
// targets. The tab of a model that generates also shows whether its greedy continuation changes.
// Disabled heads are in State.off, as "ATTENTION HEAD", and the losses in State.losses, for the grid.
// needs: dom format list part report rove scale state models net ask code request whole curve save
(() => {
  const TOKENS = 16;
  const panel = id("worth"), words = el("p.small.soft", { "aria-live": "polite" });
  const grid = el("div.wide"), report = el("div", { "aria-live": "polite" });
  const along = el("div.wide.along", { "aria-live": "polite" });
  const off = new Set();
  let shown = null, under = null, found = null, last = null;

  const key = (name, head) => `${name} ${head}`;
  // A decoder without targets is measured by the next tokens of its own text.
  const path = () => (State.answer.next ? "score" : State.answer.path);
  const measure = (lost = 1) => (path() !== "score" ? "the outputs change by"
    : `the targets' log probability ${lost < 0 ? "rises" : "falls"} by`);

  // --- the masks ---

  // Does a mask name, which may have * or a negative layer, match this attention?
  const means = (said, name, names) => {
    const [side, layer, kind] = said.split("."), [own, at, what] = name.split(".");
    const n = names.filter((one) => one.startsWith(own) && one.endsWith(what)).length;
    return side === own && (kind || what) === what
      && ["*", at, String(Number(at) - n)].includes(layer);
  };
  // The request's own mask, with these heads disabled too, for each attention.
  const masked = (keys) => {
    const { asked: { body }, answer: { thumbs, names } } = State;
    const own = Object.entries((Request.fields(body) || {}).head_mask || {}), all = {};
    for (const name of names) {
      const mask = own.find(([said]) => means(said, name, names));
      const now = thumbs(name, 0).map((_, head) => (keys.includes(key(name, head)) ? 0
        : mask ? mask[1][head] : 1));
      if (mask || now.includes(0)) all[name] = now;
    }
    return all;
  };
  // The numbers that are compared: log probabilities, or all outputs.
  const ask = async (head_mask) => {
    const reply = await Whole.again({ ...State.answer.next, head_mask }, path());
    if (!reply.ok) return reply;
    const { log_probabilities, outputs } = reply.json();
    return { ok: true, numbers: (log_probabilities || outputs).flat(Infinity) };
  };
  // The results of f with all heads and without these. The first is requested once for each answer.
  const whole = new WeakMap();
  const both = async (f, keys) => {
    const { thumbs } = State.answer, some = masked(keys);
    if (!whole.has(thumbs)) whole.set(thumbs, new Map());
    const kept = whole.get(thumbs), before = kept.get(f) || await f(masked([]));
    if (!before.ok) return { bad: before };
    kept.set(f, before);
    const after = await f(some);
    return { before, after, bad: after.ok ? null : after };
  };
  const lose = async (keys) => {
    const { before, after, bad } = await both(ask, keys);
    if (bad) return bad;
    const by = List.sum(before.numbers, (x, i) => (x - after.numbers[i]) ** 2);
    return { ok: true, lost: path() === "score"
      ? List.sum(before.numbers, (x, i) => x - after.numbers[i])
      : Math.sqrt(by / (List.sum(before.numbers, (x) => x * x) || 1)) };
  };

  // The greedy continuations of the texts.
  const READ = ["tokens", "text", "embeddings", "valid_lens", "special_tokens", "truncate"];
  const written = async (head_mask) => {
    const { body, model } = State.asked, fields = Request.fields(body) || {};
    const read = Object.entries(fields).filter(([name]) => READ.includes(name));
    // No more than the context of a decoder leaves.
    const { kind, positions } = Models.find(model) || {}, { places } = State.answer;
    const tokens = kind === "decoder" && positions
      ? Math.max(1, Math.min(TOKENS, positions - Math.max(...places.map(({ decoder }) => decoder.length)) + 1)) : TOKENS;
    const reply = await Net.post("generate", model, { ...Object.fromEntries(read), max_tokens: tokens, temperature: 0,
      beams: 1, head_mask });
    if (!reply.ok) return reply;
    const { sequences } = reply.json();
    return { ok: true, texts: sequences.flat().map(({ text, tokens }) => text ?? tokens.join(" ")) };
  };
  const writes = () => /decoder|seq2seq/.test(Models.find(State.asked.model)?.kind);
  const quoted = (text) => (text.trim() ? `“${text.trim()}”` : "nothing");
  const rewrite = async (keys) => {
    const { before, after, bad } = await both(written, keys);
    if (bad) return `The greedy continuation is unknown: ${bad.problem.detail || bad.problem.title}`;
    const changed = before.texts.flatMap((text, i) => (text === after.texts[i] ? [] : [i]));
    if (!changed.length)
      return `The greedy continuation is unchanged: ${quoted(before.texts[0] || "")}.`;
    const [i] = changed, many = before.texts.length > 1
      ? ` in ${changed.length} of ${before.texts.length} items, in item ${i}` : "";
    return `The greedy continuation changes${many}: ${quoted(after.texts[i])}, not ${quoted(before.texts[i])}.`;
  };

  // --- the grid of losses ---

  const cells = new Map();
  const paint = () => {
    const values = [...cells.values()].map(({ loss }) => loss).filter((x) => x !== null);
    const high = Math.max(0, ...values.map(Math.abs)) || 1, form = Format.even(values);
    const isApart = values.some((x) => x < 0), ramp = isApart ? Scale.apart() : Scale.ramp();
    for (const [name, { node, loss }] of cells) {
      node.classList.toggle("off", off.has(name));
      node.setAttribute("aria-pressed", off.has(name));
      if (loss === null) continue;
      const t = isApart ? (1 + loss / high) / 2 : loss / high;
      Object.assign(node.style, { background: ramp.css(t), color: ramp.ink(t) });
      node.textContent = form(loss);
    }
  };
  const toggle = (name) => {
    if (!off.delete(name)) off.add(name);
    mark();
    change();
  };
  const mark = () => {
    State.set({ off: [...off] });
    taken.disabled = allOn.disabled = !off.size;
    paint();
  };
  const lay = () => {
    const { names, thumbs } = State.answer;
    cells.clear();
    const row = (name) => thumbs(name, 0).map((_, head) => {
      const node = el("button", { title: `${Part.head(name, head)} (${name}): enable or disable`,
        onclick: () => toggle(key(name, head)) }, "·");
      cells.set(key(name, head), { node, loss: null });
      return node;
    });
    const most = Math.max(...names.map((name) => thumbs(name, 0).length));
    fill(grid, Dom.table("Head importance (ablation)", ["head", ...Array(most).keys()],
      names.map((name) => [Part.name(name), ...row(name)])));
    paint();
    Rove.tidy(grid);
  };

  // --- the measurement ---

  const told = () => [...cells.values()].filter(({ loss }) => loss !== null).length;
  const take = (event) => {
    if (event.ranking) found = event;
    else if (cells.has(key(event.attention, event.head)))
      cells.get(key(event.attention, event.head)).loss = event.loss;
    fill(words, found ? `Ablation: without a head, ${measure()} the number shown. Least important first: `
      + found.ranking.slice(0, 5).map((one) => Part.head(...one)).join(", ")
      : `${told()} of ${cells.size} heads are measured.`);
    paint();
    followed.disabled = !found;
    if (found) State.set({ losses: new Map([...cells].map(([name, { loss }]) => [name, loss])) });
  };
  const begin = async () => {
    if (under) under.abort();
    const { body, model } = State.asked, mine = (under = new AbortController());
    found = null;
    for (const cell of cells.values()) cell.loss = null;
    lay();
    stop.hidden = false;
    fill(words, "Measuring …");
    const sent = Whole.changed({ ...State.answer.next, stream: true });
    const reply = await Net.stream(Net.path("heads", model),
      { ...Request.wire(sent), signal: mine.signal }, (event) => mine === under && take(event));
    if (mine !== under) return;
    stop.hidden = true;
    if (reply.ok && !found) Object.assign(reply, Net.failed("The response ended early"));
    if (reply.problem) fill(words, Report.failed(reply.problem, begin));
    else if (reply.aborted) fill(words, `Stopped: ${told()} of ${cells.size} heads are measured.`);
  };

  // --- without some heads ---

  const change = async () => {
    const mine = (last = {}), answer = State.answer;
    if (!off.size) return fill(report, el("p.soft", "Disable heads in the table to see "
      + "what is lost without them."));
    fill(report, el("p.soft", "Measuring …"));
    const { ok, lost, problem } = await lose([...off]);
    if (mine !== last || answer.thumbs !== State.answer.thumbs) return;
    const count = off.size === 1 ? "this head" : `these ${off.size} heads`;
    if (!ok) return fill(report, Report.failed(problem, change));
    fill(report, el("p", `Without ${count}, ${measure(lost)} `,
      el("b", Format.short(Math.abs(lost))), "."));
    if (!writes()) return;
    const told = await rewrite([...off]);
    if (mine === last && answer.thumbs === State.answer.thumbs) report.append(el("p", told));
  };
  const follow = () => {
    const { thumbs } = State.answer, names = found.ranking.map((one) => key(...one));
    Curve.follow(along, path() === "score" ? "Lost log probability of the targets" : "Output change",
      names, (n) => lose(names.slice(0, n)),
      () => thumbs === State.answer.thumbs && !panel.hidden, (name) => Part.head(...name.split(" ")));
  };

  const taken = button("Copy to request", () => Ask.change({ head_mask: masked([...off]) }));
  const allOn = button("Enable all heads", () => {
    off.clear();
    mark();
    change();
  });
  const stop = button("Stop", () => under && under.abort());
  const followed = button("Ablation curve", follow);
  stop.hidden = true;
  Rove.in(grid, "td button");
  const every = button("Measure every head", begin);
  const save = Save.row(() => "importance", { csv: () => told() && [["attention", "head", "loss"],
    ...[...cells].map(([name, { loss }]) => [...name.split(" "), loss])] });
  const content = [el("div.bar", every, stop, followed, allOn,
    taken), words, report, grid, save,
    Code.button(() => ["heads", Whole.changed(State.answer.next)]), along];

  // A measurement belongs to one answer: a new answer ends it.
  const expire = () => {
    if (!under || State.answer?.thumbs === shown) return;
    under.abort();
    under = null;
  };
  const look = () => {
    const answer = State.answer;
    if (!answer?.whole) return;
    if (!answer.items.length) return fill(panel, el("p.soft", "The batch is empty."));
    if (answer.thumbs === shown) return;
    [shown, under, found] = [answer.thumbs, null, null];
    stop.hidden = followed.disabled = true;
    off.clear();
    fill(panel, content);
    const lacks = answer.kind !== "encoder" && path() !== "score";
    every.disabled = lacks;
    fill(words, lacks ? "Enter targets: head importance is the log probability that they lose."
      : "Each head is removed once (ablation), and the exact loss is measured."
        + (answer.next ? " The targets are the next tokens of the text itself." : ""));
    fill(along);
    lay();
    mark();
    change();
  };
  State.on(["answer"], expire);
  State.on(["answer"], look, panel);
  State.on(["dark"], paint, panel);
})();
