// tasks: the tab Tasks: what the heads of a model give for the text: its entities, the labels of its tokens, the most
// likely tokens of its masks, the answers to a question, the largest weights of its sparse embedding, the number of the
// vectors of its multi-vector embedding.
//
// ROWS is the table of them: a task; a title; read; send(fields) -> a promise of a reply, for the fields of the request.
// read(found, words, text) -> { csv, nodes }; found: the item's part of the response; words: its tokens.
// needs: dom format list report scale state models net request whole save
(() => {
  const BARS = 30, ANSWERS = 5;
  const panel = id("tasks");
  let shown = null; // { thumbs, labels, parts: [{ row, place, said }] }

  // The text with its spans marked, which are in their order: { start, end, title, label, kind }.
  const marked = (spans, text) => {
    const points = [...text];
    let at = 0;
    return [...spans.flatMap(({ start, end, title, label, kind }) => {
      const mark = el("mark", { title }, points.slice(start, end), el("small", ` ${label}`));
      mark.style.borderColor = Scale.hue(kind);
      const before = points.slice(at, start);
      at = end;
      return [...before, mark];
    }), ...points.slice(at)];
  };
  // B-X and I-X have the color of the entity X.
  const bare = (label) => label.replace(/^[BI]-/, "");
  const entities = (all, _, text) => {
    const kinds = [...new Set(shown.labels.map(bare))];
    return { csv: [Object.keys(all[0] || {}), ...all.map(Object.values)], nodes: marked(all.map((one) =>
      ({ ...one, title: Format.percent(one.score), kind: kinds.indexOf(bare(one.label)) })), text) };
  };
  const cell = (x) => Scale.cell(x, Format.percent(x), Format.float(x));
  const labels = (found, words) => {
    const rows = words.map((word, i) => [word, ...found[i]]), titles = ["token", ...shown.labels];
    return { csv: [titles, ...rows], nodes: Dom.table("Probabilities", titles, rows.map(([word, ...row]) =>
      [word, ...row.map(cell)])) };
  };
  // A list of [what the bar is for, token, number].
  const bars = (list, form) => ({ csv: [["for", "token", "value"], ...list], nodes: list.flatMap(([of, token, x], i) =>
    [i && of === list[i - 1][0] ? "" : el("p", of), Report.bar(token, x / Math.max(1, list[0][2]), form(x))]) });
  const named = (string, token) => string ?? `#${token}`;
  const masks = (found, words) => bars(found.flatMap(({ position, top }) => top.map(({ string, token, probability }) =>
    [`Token ${position}, “${words[position]}”`, named(string, token), probability])), Format.percent);
  const sparse = ({ indices, values, strings = [] }) => {
    const order = List.order(values).slice(0, BARS);
    return bars(order.map((i) => [`The largest of ${values.length} weights`, named(strings[i], indices[i]), values[i]]), Format.short);
  };
  const several = (found) => ({ csv: found, nodes: `${found.length} vectors of ${found[0]?.length ?? 0} numbers` });
  // The text has the most likely one of answers that overlap marked.
  const answers = (all, _, text) => {
    const apart = all.filter((one, i) => !all.slice(0, i).some(({ start, end }) => one.start < end && start < one.end));
    const { csv, nodes } = bars(all.map((one) => ["Answers", one.text || "no answer", one.score]), Format.percent);
    return { csv, nodes: [el("p", marked(apart.filter(({ text }) => text).sort((a, b) => a.start - b.start).map((one) =>
      ({ ...one, label: Format.percent(one.score), kind: all.indexOf(one) })), text)), ...nodes] };
  };
  const question = el("input", { placeholder: "Type a question" }), context = el("textarea", { rows: 3 });
  const form = [el("label.pick", "Question", question), el("label.pick", "Context", context)];
  const again = (changes, path) => Whole.again({ targets: undefined, pool: undefined, ...changes }, path);
  const ROWS = [
    ["question", "Answers to a question", answers, () => Net.post("question", State.asked.model,
      { question: question.value, context: context.value, return_top: ANSWERS })],
    ["classify_tokens", "Entities", entities, () => again({ group: "simple" }, "classify_tokens")],
    ["classify_tokens", "Labels of tokens", labels, () => again({}, "classify_tokens")],
    ["fill", "Masked tokens", masks, () => again({}, "fill")],
    ["sparse", "Sparse embedding", sparse, ({ text }) => again({ pool: "sparse", return_tokens: Boolean(text) }, "encode")],
    ["multi_vector", "Multi-vector embedding", several, () => again({ pool: "multi_vector" }, "encode")],
  ];

  const draw = ({ row: [task, title, read], place, said }) => {
    const { answer: { items, batched, names, words }, view: { item } } = State;
    if (!said || !items[item]) return;
    const { text } = Request.fields(State.asked.body), of = (list) => (batched && list ? list[item] : list);
    const { csv, nodes } = said.answers ? read(said.answers, null, said.context)
      : read(of(said.entities || said.outputs || said.masks || said.sparse), words(item, names[0]).rows, of(text));
    fill(place, el("div.wide", { tabindex: 0, role: "region", "aria-label": title }, nodes),
      Save.row(() => task, { csv: () => csv }));
  };
  const ask = async (part) => {
    const mine = (part.mine = {}), { row: [, , read, send], place } = part, { value } = context;
    if (read === answers && !(question.value.trim() && value.trim())) return fill(place);
    fill(place, "Loading …");
    const reply = await send(Request.fields(State.asked.body));
    if (mine !== part.mine || !shown.parts.includes(part)) return;
    if (!reply.ok) return fill(place, Report.failed(reply.problem, () => ask(part)));
    part.said = { ...reply.json(), context: value };
    draw(part);
  };
  const look = () => {
    const { answer } = State;
    if (!answer?.whole) return;
    if (shown?.thumbs === answer.thumbs) return shown.parts.forEach(draw);
    const { tasks = [], labels: all } = Models.find(answer.model) || {};
    const { text } = Request.fields(State.asked.body); // token IDs have no entities
    const parts = ROWS.filter(([task, , read]) => tasks.includes(task) && (text || read !== entities)).map((row) => ({ row, place: el("div") }));
    shown = { thumbs: answer.thumbs, labels: all, parts };
    // A pair of texts is a question and its context.
    const [first = "", second] = [answer.batched && text ? text[State.view.item] : text].flat();
    [question.value, context.value] = second === undefined ? ["", first] : [first, second];
    for (const field of [question, context]) field.onchange = () => ask(parts[0]);
    fill(panel, parts.flatMap(({ row, place }) => [el("h3", row[1]), ...(row[2] === answers ? form : []), place]));
    parts.forEach(ask);
  };
  State.on(["answer", "view", "dark"], look, panel);
})();
