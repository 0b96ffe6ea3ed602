// tasks: the tab Tasks: what the heads of a model give for the text: its entities, the labels of its tokens, the most
// likely tokens of its masks, the largest weights of its sparse embedding.
//
// ROWS is the table of them: a task; a title; read; fields of the request, and the end of its path, if that is not the
// task. read(found, words, text) -> { csv, nodes }; found: the item's part of the response; words: its tokens.
// needs: dom format report scale state models request whole save
(() => {
  const { el, fill } = Dom, BARS = 30;
  const panel = Dom.id("tasks");
  let shown = null; // { thumbs, labels, parts: [{ row, place, said }] }

  // B-X and I-X have the color of the entity X.
  const bare = (label) => label.replace(/^[BI]-/, "");
  const entities = (all, _, text) => {
    const kinds = [...new Set(shown.labels.map(bare))], points = [...text];
    let at = 0;
    return { csv: [Object.keys(all[0] || {}), ...all.map(Object.values)], nodes: [...all.flatMap(({ label, score, start, end }) => {
      const mark = el("mark", { title: Format.percent(score) }, points.slice(start, end), el("small", ` ${label}`));
      mark.style.borderColor = Scale.hue(kinds.indexOf(bare(label)));
      const before = points.slice(at, start);
      at = end;
      return [...before, mark];
    }), ...points.slice(at)] };
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
    const order = [...values.keys()].sort((i, j) => values[j] - values[i]).slice(0, BARS);
    return bars(order.map((i) => [`The largest of ${values.length} weights`, named(strings[i], indices[i]), values[i]]), Format.short);
  };
  const ROWS = [
    ["classify_tokens", "Entities", entities, () => ({ group: "simple" })],
    ["classify_tokens", "Labels of tokens", labels],
    ["fill", "Masked tokens", masks],
    ["sparse", "Sparse embedding", sparse, ({ text }) => ({ pool: "sparse", return_tokens: Boolean(text) }), "encode"],
  ];

  const draw = ({ row: [task, title, read], place, said }) => {
    const { answer: { items, batched, names, words }, view: { item } } = State;
    if (!said || !items[item]) return;
    const { text } = Request.fields(State.asked.body), of = (list) => (batched && list ? list[item] : list);
    const { csv, nodes } = read(of(said.entities || said.outputs || said.masks || said.sparse), words(item, names[0]).rows, of(text));
    fill(place, el("div.wide", { tabindex: 0, role: "region", "aria-label": title }, nodes),
      Save.row(() => task, { csv: () => ({ cells: 0, rows: csv }) }));
  };
  const ask = async (part) => {
    const mine = shown, { row: [task, , , sent = () => null, path = task], place } = part;
    fill(place, "Loading …");
    const reply = await Whole.again({ targets: undefined, pool: undefined, ...sent(Request.fields(State.asked.body)) }, path);
    if (mine !== shown) return;
    if (!reply.ok) return fill(place, Report.failed(reply.problem, () => ask(part)));
    part.said = reply.json();
    draw(part);
  };
  const look = () => {
    const answer = State.answer;
    if (!answer?.whole) return;
    if (shown?.thumbs === answer.thumbs) return shown.parts.forEach(draw);
    const { tasks = [], labels: all } = Models.find(answer.model) || {};
    const { text } = Request.fields(State.asked.body); // token IDs have no entities
    const parts = ROWS.filter(([task, , read]) => tasks.includes(task) && (text || read !== entities)).map((row) => ({ row, place: el("div") }));
    shown = { thumbs: answer.thumbs, labels: all, parts };
    fill(panel, parts.flatMap(({ row, place }) => [el("h3", row[1]), place]));
    parts.forEach(ask);
  };
  State.on(["answer", "view", "dark"], look, panel);
})();
