// grid: every head of every layer of a whole model, as small pictures: by layer, or sorted by a measure
// of the heads.
//
// The pictures are the answer's thumbnails. With a chosen query each shows that row alone; with a key
// too, the heads can be ranked by that one weight. A click shows the head's exact weights.
// needs: dom format rove scale state whole heatmap
(() => {
  const { el, fill, id } = Dom;
  const KINDS = { "encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross" };
  const kindOf = (name) => KINDS[name.replace(/\.\d+/, "")];
  const place = id("grid");

  // --- measures of a head by its picture; the largest value is first ---

  const mean = (rows, f) => {
    let sum = 0;
    for (let i = 0; i < rows; i++) sum += f(i);
    return rows ? sum / rows : 0;
  };
  const row = ({ cols, data }, i) => data.subarray(i * cols, (i + 1) * cols);
  const total = (cells) => cells.reduce((sum, x) => sum + x, 0) || 1;
  const part = (thumb, pick) => mean(thumb.rows, (i) => {
    const cells = row(thumb, i);
    return cells.reduce((sum, x, j) => (pick(i, j) ? sum + x : sum), 0) / total(cells);
  });
  const MEASURES = {
    entropy: ["entropy (most even)", (thumb) => mean(thumb.rows, (i) => {
      const cells = row(thumb, i), all = total(cells);
      return cells.reduce((sum, x) => (x > 0 ? sum - x / all * Math.log(x / all) : sum), 0)
        / (Math.log(thumb.cols) || 1);
    })],
    distance: ["mean distance", (thumb) => mean(thumb.rows, (i) => {
      const cells = row(thumb, i), all = total(cells);
      return cells.reduce((sum, x, j) => sum + x * Math.abs(i - j) / all, 0);
    })],
    previous: ["previous token", (thumb) => part(thumb, (i, j) => j === i - 1)],
    first: ["first token (attention sink)", (thumb) => part(thumb, (i, j) => j === 0)],
    diagonal: ["diagonal (same position)", (thumb) => part(thumb, (i, j) => i === j)],
    same: ["same token elsewhere", (thumb, { rows, cols }) =>
      part(thumb, (i, j) => i !== j && rows[i] === cols[j])],
  };

  // --- the chosen query and key in a picture, which may have fewer rows than tokens ---

  const scaled = (at, from, to) => Math.floor(at * to / from);
  const cell = (thumb, { rows, cols }, at) =>
    [scaled(at.row, rows.length, thumb.rows), scaled(at.col, cols.length, thumb.cols)];
  const chosen = () => {
    const over = State.get("over"), view = State.get("view");
    return over.row < 0 ? view : over;
  };
  const strip = (thumb, words, at) => {
    if (at.row < 0 || at.row >= words.rows.length) return thumb;
    const [i] = cell(thumb, words, at);
    return { rows: 1, cols: thumb.cols, data: row(thumb, i) };
  };

  const sort = el("select", { id: "grid-order", onchange: () => draw() },
    el("option", { value: "" }, "layer"),
    Object.entries(MEASURES).map(([name, [text]]) => el("option", { value: name }, text)),
    el("option", { value: "least" }, "entropy (most focused)"), el("option", { value: "weight" },
      "weight of the chosen key"), el("option", { value: "loss" }, "head importance (ablation)"));
  const filter = el("select", { onchange: () => draw() });
  const filtering = el("label", null, "Attention type", filter);
  const hint = el("span", { class: "soft" }, "Choose a query and a key first.");
  const tools = el("div", { class: "bar small" }, el("label", null, "Sort by", sort), filtering, hint);
  const list = el("div", { class: "wide" });
  Rove.in(list, "button");

  // A key position is the same only in attentions of one kind.
  const kindNow = () => (sort.value === "weight" ? kindOf(State.get("view").part) : filter.value);
  const headsOf = (answer, item) => answer.heads(item)
    .filter(({ name }) => !kindNow() || kindOf(name) === kindNow());
  const valueOf = ({ name, head, thumb, words }) => {
    const at = chosen();
    if (sort.value === "loss") return State.get("losses").get(`${name} ${head}`);
    if (sort.value === "weight") {
      if (at.row < 0 || at.col < 0) return 0;
      const [i, j] = cell(thumb, words, at);
      return thumb.data[i * thumb.cols + j];
    }
    return sort.value === "least" ? -MEASURES.entropy[1](thumb, words)
      : MEASURES[sort.value][1](thumb, words);
  };

  const brief = (name) => name.replace(/^(.).*\.(\d+)\.(.).*/, (_, side, layer, kind) =>
    `${side}${layer}${kind === "c" ? "×" : ""}·`);
  const tile = (one) => {
    const canvas = el("canvas", { width: 1, height: 1 });
    const title = `${one.name}, head ${one.head}`, short = brief(one.name) + one.head;
    const value = one.value === undefined ? null
      : Format.short(sort.value === "loss" ? one.value : Math.abs(one.value));
    const button = el("button", { type: "button", title, "aria-label": value === null ? title
      : `${value} ${short}, ${title}`, "data-head": one.head,
      "data-part": one.name, onclick: () => Whole.show(one.name, one.head) }, canvas,
    value === null ? null : [el("span", { class: "small" }, value),
      el("small", { class: "soft" }, ` ${short}`)]);
    return { ...one, button, canvas };
  };
  let tiles = [], frame = 0;
  const paint = () => {
    const at = chosen();
    for (const { thumb, words, canvas } of tiles) {
      if (!thumb.data.length) continue;
      const matrix = strip(thumb, words, at), seen = new Uint8Array(matrix.data.length).fill(1);
      for (const _ of Heatmap.small(canvas, { matrix, seen, high: Scale.high([{ matrix: thumb }]) }));
    }
  };
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(paint);
  };
  const mark = () => {
    const { part, head } = State.get("view"), off = State.get("off");
    for (const { button, name, head: own } of tiles)
      button.classList.toggle("off", off.includes(`${name} ${own}`));
    for (const { button, name, head: own } of tiles)
      button.setAttribute("aria-pressed", name === part && own === head);
    Rove.tidy(list);
  };

  const byLayer = (heads) => {
    const names = [...new Set(heads.map(({ name }) => name))];
    return names.map((name) => el("div", { class: "layer" }, el("span", { class: "small soft" }, name),
      tiles.filter((one) => one.name === name).map(({ button }) => button)));
  };
  const draw = () => {
    const answer = State.get("answer"), { item } = State.get("view");
    place.hidden = !answer || !answer.whole || !answer.items[item];
    if (place.hidden) return;
    const kinds = [...new Set(answer.names.map(kindOf))];
    sort.lastChild.disabled = !State.get("losses");
    if (sort.value === "loss" && sort.lastChild.disabled) sort.value = "";
    filtering.hidden = kinds.length < 2;
    const value = kinds.includes(filter.value) ? filter.value : "";
    fill(filter, ["", ...kinds].map((kind) => el("option", { value: kind }, kind || "all")));
    filter.value = value;
    hint.hidden = sort.value !== "weight" || (chosen().row >= 0 && chosen().col >= 0);
    const heads = headsOf(answer, item);
    if (sort.value) for (const one of heads) one.value = valueOf(one);
    if (sort.value) heads.sort((a, b) => b.value - a.value);
    tiles = heads.map(tile);
    list.className = sort.value ? "wide sorted" : "wide";
    fill(list, sort.value ? tiles.map(({ button }) => button) : byLayer(heads));
    mark();
    soon();
  };
  fill(place, tools, list);

  // The pictures belong to the request: an answer with another part has the same ones.
  let made = [];
  const change = () => {
    const answer = State.get("answer"), { item } = State.get("view");
    const now = [answer && answer.thumbs, item, State.get("dark"), State.get("losses"),
      sort.value === "weight" && `${chosen().row} ${chosen().col}`];
    const same = now.every((x, i) => x === made[i]);
    made = now;
    if (!same) return draw();
    if (place.hidden) return;
    mark();
    soon();
  };
  State.on(["answer", "view", "over", "dark", "off", "losses"], change);
})();
