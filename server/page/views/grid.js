// grid: every head of every layer of a whole model, as small pictures: a row for each layer, or sorted by
// a measure of the heads.
//
// The pictures are the answer's thumbnails. With a chosen query each shows that row alone; with a key
// too, the heads can be ranked by that one weight. A click shows the head's exact weights. The choice of a
// behavior (behavior.js) sorts by its score and shows the first head; a table names the behaviors of heads.
// needs: dom format part report rove state whole heatmap slices behavior look
(() => {
  const ENOUGH = 0.5; // the score of a head that has a behavior
  const KINDS = { "encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross" };
  const kindOf = (name) => KINDS[name.replace(/\.\d+/, "")];
  const place = id("grid");

  // --- the chosen query and key in a picture, which may have fewer rows than tokens ---

  const scaled = (at, from, to) => Math.floor(at * to / from);
  const cell = (thumb, { rows, cols }, at) =>
    [scaled(at.row, rows.length, thumb.rows), scaled(at.col, cols.length, thumb.cols)];
  const chosen = () => {
    const { over, view } = State;
    return over.row < 0 ? view : over;
  };
  const strip = (thumb, words, at) => {
    if (at.row < 0 || at.row >= words.rows.length) return thumb;
    const [i] = cell(thumb, words, at);
    return { rows: 1, cols: thumb.cols, data: thumb.data.subarray(i * thumb.cols, (i + 1) * thumb.cols) };
  };

  // --- the tools ---

  const ORDERS = { entropy: "entropy (most even)", least: "entropy (most focused)", distance: "mean distance",
    weight: "weight of the chosen key", loss: "head importance (ablation)" };
  const option = ([value, text]) => el("option", { value }, text);
  const sort = el("select", { id: "grid-order", onchange: () => find() }, option(["", "layer"]),
    el("optgroup", { label: "Find a head" }, Object.entries(Behavior.NAMES).map(([name, { title }]) =>
      option([name, title]))),
    el("optgroup", { label: "Measure" }, Object.entries(ORDERS).map(option)));
  const byLoss = sort.querySelector("[value=loss]");
  const filter = el("select", { onchange: () => draw() });
  const filtering = el("label", "Attention type", filter);
  const hint = el("span.soft", { role: "status" });
  const tools = el("div.bar.small", el("label", "Sort by", sort), filtering, hint);
  const list = el("div.wide");
  const does = el("details.small", { ontoggle: () => does.open && learn() });
  Rove.in(list, "button");

  // --- what the heads do ---

  const now = () => [State.answer, State.view.item];
  const known = () => Behavior.known(...now());
  const needsAll = () => sort.value in Behavior.NAMES || ["entropy", "least", "distance"].includes(sort.value);
  const learn = async () => {
    const [answer, item] = now();
    if (!answer?.whole) return;
    const found = await Behavior.measure(answer, item, (n) =>
      fill(hint, `Measuring … ${n} of ${answer.names.length} layers`));
    if (answer.thumbs !== now()[0]?.thumbs || item !== now()[1]) return;
    fill(hint, found.problem && Report.failed(found.problem, learn));
    if (!found.problem) draw();
  };
  const find = async () => {
    if (needsAll() && !known()) await learn();
    draw();
    const [best] = tiles;
    if (known() && best?.value > 0 && sort.value in Behavior.NAMES) Whole.show(best.name, best.head);
  };
  const behaviors = ({ name, head }) => Object.entries(known()?.get(`${name} ${head}`) || {})
    .filter(([, { score }]) => score >= ENOUGH).sort(([, a], [, b]) => b.score - a.score)
    .map(([of, { score, queries }]) => ({ ...Behavior.NAMES[of], score, queries }));
  const tell = (heads) => {
    const rows = heads.flatMap((one) => behaviors(one).map(({ title, means, score, queries }) => [
      button(Part.head(one.name, one.head), () => Whole.show(one.name, one.head)),
      el("span", { title: means }, title), Format.weight(score), queries]));
    fill(does, el("summary", "What each head does"), known() && (rows.length
      ? Dom.table(`Heads with at least half of their weight on what a behavior names, of ${heads.length}`,
        ["Head", "Behavior", "Mean weight", "Queries that can have it"], rows)
      : el("p", "No head has half of its weight on what a behavior names.")));
  };

  // A key position is the same only in attentions of one kind.
  const kindNow = () => (sort.value === "weight" ? kindOf(State.view.part) : filter.value);
  const headsOf = (answer, item) => answer.heads(item)
    .filter(({ name }) => !kindNow() || kindOf(name) === kindNow());
  const valueOf = ({ name, head, thumb, words }) => {
    const at = chosen(), key = `${name} ${head}`;
    if (sort.value === "loss") return State.losses.get(key);
    if (sort.value === "weight") {
      if (at.row < 0 || at.col < 0) return 0;
      const [i, j] = cell(thumb, words, at);
      return thumb.data[i * thumb.cols + j];
    }
    const found = known().get(key);
    return sort.value === "least" ? -found.entropy : found[sort.value].score ?? found[sort.value];
  };
  const say = ([best]) => {
    if (needsAll() && !known()) return "Measuring …";
    if (sort.value === "weight" && (chosen().row < 0 || chosen().col < 0))
      return "Choose a query and a key first.";
    if (!(sort.value in Behavior.NAMES)) return "";
    const { queries, score, even } = known().get(`${best.name} ${best.head}`)[sort.value];
    const { means } = Behavior.NAMES[sort.value];
    return queries ? `Weight on ${means}, the mean of ${queries === 1 ? "the query" : `${queries} queries`} that can `
      + `have it. Highest: ${Part.head(best.name, best.head)}, ${Format.weight(score)}`
      + (score < even ? `; an even spread has ${Format.weight(even)}.` : ".")
      : `No query has ${means} among its keys.`;
  };

  // --- the pictures ---

  const tile = (one) => {
    const canvas = el("canvas", { width: 1, height: 1 }), { name, head, value } = one;
    const title = `${Part.head(name, head)} (${name})`, shown = value === undefined ? null
      : sort.value === "loss" ? Format.short(value) : Format.weight(Math.abs(value));
    const said = behaviors(one).map((each) => `${each.title} ${Format.weight(each.score)}`).join(", ");
    const button = el("button", { title: said ? `${title}: ${said}` : title,
      "aria-label": shown === null ? title : `${shown} ${Part.brief(name, head)}, ${title}`,
      "data-head": head, "data-part": name, onclick: () => Whole.show(name, head) }, canvas,
    shown === null ? null : [el("span.small", shown),
      el("small.soft", ` ${Part.brief(name, head)}`)]);
    return { ...one, button, canvas };
  };
  let tiles = [], painting = null;
  function* paint() {
    const at = chosen(), high = Look.range();
    for (const { thumb, words, canvas } of tiles) {
      if (!thumb.data.length) continue;
      const matrix = strip(thumb, words, at), seen = new Uint8Array(matrix.data.length).fill(1);
      yield* Heatmap.small(canvas, { matrix, seen, high: high({ matrix: thumb }) });
    }
  }
  const soon = () => {
    Slices.drop(painting);
    painting = paint();
    Slices.run(painting);
  };
  const mark = () => {
    const { view: { part, head }, off } = State;
    for (const { button, name, head: own } of tiles) {
      button.classList.toggle("off", off.includes(`${name} ${own}`));
      button.setAttribute("aria-pressed", name === part && own === head);
    }
    Rove.tidy(list);
  };

  // Columns are heads, rows are layers.
  const byLayer = (heads) => {
    const rows = Map.groupBy(tiles, ({ name }) => name), most = Math.max(...heads.map(({ head }) => head)) + 1;
    list.style.setProperty("--heads", most);
    list.style.setProperty("--layers", rows.size);
    return [el("div.layer.soft", { "aria-hidden": true }, el("span", "head"),
      Array.from({ length: most }, (_, head) => el("b", head))),
    ...[...rows].map(([name, own]) => el("div.layer",
      el("span.soft", { title: name }, Part.name(name).replace(" layer", "")),
      own.map(({ button }) => button)))];
  };
  const draw = () => {
    const [answer, item] = now();
    place.hidden = !answer || !answer.whole || !answer.items[item];
    if (place.hidden) return;
    const kinds = [...new Set(answer.names.map(kindOf))];
    byLoss.disabled = !State.losses;
    if (sort.value === "loss" && byLoss.disabled) sort.value = "";
    filtering.hidden = kinds.length < 2;
    Dom.options(filter, [["", "all"], ...kinds.map((kind) => [kind])], kinds.includes(filter.value) ? filter.value : "");
    const heads = headsOf(answer, item), isSorted = sort.value && (known() || !needsAll());
    if (isSorted) for (const one of heads) one.value = valueOf(one);
    if (isSorted) heads.sort((a, b) => b.value - a.value);
    tiles = heads.map(tile);
    list.className = isSorted ? "wide sorted" : "wide";
    fill(list, isSorted ? tiles.map(({ button }) => button) : byLayer(heads));
    fill(hint, say(heads));
    tell(answer.heads(item));
    mark();
    soon();
    if (!known() && (needsAll() || !Behavior.isLong(answer, item))) learn();
  };
  fill(place, tools, list, does);

  // The pictures belong to the request: an answer with another part has the same ones.
  let made = [];
  const change = () => {
    const [answer, item] = now();
    const next = [answer && answer.thumbs, item, State.dark, State.losses,
      sort.value === "weight" && `${chosen().row} ${chosen().col}`];
    const same = next.every((x, i) => x === made[i]);
    made = next;
    if (!same) return draw();
    if (place.hidden) return;
    mark();
    soon();
  };
  State.on(["answer", "view", "over", "dark", "off", "losses"], change, id("look"));
})();
