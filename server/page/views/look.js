// look: the tab Attention: the heads as small multiples and one of them large.
//
// Look.sheet() -> the large one, as a sheet of heatmap.js, or null. Look.seen(item, head, { answer,
// asked }) -> the keys that each query may attend to (visible.js), cached for each answer; by default
// for the answer that is shown. Look.range() -> a function of a face: the weight at the end of its colors.
// needs: dom format part rove scale state tensor terms models answer labels request visible heatmap large slices
const Look = (() => {
  const kept = new WeakMap();
  const now = () => ({ answer: State.answer, asked: State.asked });
  const fields = ({ answer: { whole, part, sees }, asked } = now()) => (whole
    ? sees[part] : Request.fields(asked.body) || {});

  const seen = (item, head, of = now()) => {
    const { answer, asked } = of, { rows, cols } = Answer.faces(answer, item)[0].matrix;
    if (!kept.has(answer)) kept.set(answer, new Map());
    const all = kept.get(answer), name = `${item} ${fields(of).bias ? head : ""}`;
    if (!all.has(name))
      all.set(name, Visible.of(fields(of), Models.find(asked.model), item, rows, cols, head));
    return all.get(name);
  };
  const cuts = (item) => {
    const { segments } = fields();
    const own = segments && Request.batched(fields()) ? Tensor.part(segments, item) : segments;
    const lengths = Tensor.of(own);
    let at = 0;
    return lengths ? Array.from(lengths.data, (n) => (at += n)) : [];
  };
  const shape = ({ rows, cols }) =>
    `${Format.many(rows, "query", "queries")} × ${Format.many(cols, "key")}`;
  // The faces with one color scale: all heads of all layers, by their thumbnails, or those of the item.
  const common = () => {
    const { answer, view: { item, range } } = State;
    return answer.whole && range === "shared" ? answer.heads(item).map(({ thumb }) => ({ matrix: thumb }))
      : Answer.faces(answer, item);
  };
  const isStrong = () => State.view.strong ?? Scale.strong(common());
  const range = () => {
    const isLit = isStrong(), high = Scale.high(common(), isLit);
    return State.view.range === "shared" ? () => high : (one) => Scale.high([one], isLit);
  };
  const isEven = () => {
    const model = Models.find(State.asked.model);
    return model !== null && model.weighting === "sigmoid";
  };
  const sheetOf = ({ head, label: plain, matrix }) => {
    const { view: { item }, answer: { part } } = State;
    const label = part ? `${Part.name(part)} · ${plain}` : plain;
    const { pointers, segments } = State.answer.items[item];
    return { title: `${label}, ${shape(matrix)}`, label, matrix, seen: seen(item, head),
      even: isEven(), high: range()({ matrix }), ...Labels.named(item, matrix), cuts: cuts(item),
      pointers: pointers && pointers[head], segments: segments && segments[head] };
  };

  // Small multiples are drawn when they become visible.
  let tiles = [], waiting = [];
  function* paint({ canvas, one }) {
    const hidden = seen(State.view.item, one.head);
    yield;
    yield* Heatmap.small(canvas, { matrix: one.matrix, seen: hidden, high: range()(one) });
    canvas.className = "hatched"; // a tile that is not drawn yet shows no masked keys
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      watcher.unobserve(target);
      waiting.push(paint(tiles.find((tile) => tile.button === target)));
      Slices.run(waiting.at(-1));
    }
  }, { root: id("multiples"), rootMargin: "200px" });

  Rove.in(id("multiples"), "button");
  const tileOf = (one) => {
    const canvas = el("canvas", { width: 1, height: 1 }), mark = el("i", { hidden: true });
    canvas.style.aspectRatio = Math.max(0.6, Math.min(3, one.matrix.cols / one.matrix.rows));
    const button = el("button", { onclick: () => State.show({ head: one.head }) },
      el("span.sheet", canvas, mark), one.head === "mean" ? "mean" : one.label, " ",
      el("span.soft", { title: "largest weight" },
        Format.weight(Scale.high([one]))));
    return { button, canvas, mark, one };
  };
  const multiples = (faces, fresh) => {
    if (fresh) {
      tiles = faces.length > 1 && !State.answer.whole ? faces.map(tileOf) : [];
      fill(id("multiples"), tiles.map((tile) => tile.button)).hidden = !tiles.length;
      Rove.tidy(id("multiples"));
    }
    watcher.disconnect();
    waiting.forEach(Slices.drop);
    waiting = [];
    for (const { button } of tiles) watcher.observe(button);
  };
  // Marks the chosen query in each tile, and strikes disabled heads out.
  const light = (rows) => {
    const { view: { row }, off } = State;
    for (const { button, mark, one } of tiles) {
      mark.hidden = row < 0 || row >= rows;
      mark.style.top = `${100 * row / rows}%`;
      mark.style.height = `${100 / rows}%`;
      button.classList.toggle("off", off.includes(one.head));
    }
  };

  // The tools are the item (for all tabs except the heads), the range of colors, and their legend.
  const go = (item) => State.show({ item, row: -1, col: -1 });
  const step = (by, text, name) => el("button", { "aria-label": name,
    onclick: () => go(State.view.item + by) }, text);
  const before = step(-1, "‹", "Previous item"), after = step(1, "›", "Next item");
  const jump = () => {
    const n = State.answer.items.length, to = Number(which.value);
    if (which.value !== "" && Number.isInteger(to)) go(Math.max(0, Math.min(n - 1, to)));
    which.value = State.view.item;
  };
  const which = el("input", { type: "number", min: 0, onchange: jump });
  const choice = el("label", "item", which);
  const where = el("span", { id: "item", "aria-live": "polite" });
  const tick = (text, title, change) => {
    const box = el("input", { type: "checkbox", onchange: () => State.show(change(box.checked)) });
    return [box, el("label.small", { title }, box, text)];
  };
  const [shared, sharing] = tick("One color scale for all heads", null,
    (on) => ({ range: on ? "shared" : "head" }));
  const [strong, contrast] = tick("Contrast", "The color scale ends at the 99th percentile.", (on) => ({ strong: on }));
  const high = el("span");
  const legend = el("div.row.small.soft", { id: "legend" }, Terms.of("weight"), "0", Scale.bar(), high,
    el("span.hatched.swatch"), Terms.of("masked"));
  id("items").append(before, choice, after, where);
  id("look-tools").append(sharing, contrast, legend);
  const tools = (answer, item, faces) => {
    const n = answer ? answer.items.length : 0;
    id("look-tools").hidden = !sheet;
    before.hidden = after.hidden = choice.hidden = n < 2;
    before.disabled = item < 1;
    after.disabled = item >= n - 1;
    Object.assign(which, { value: item, max: n - 1 });
    where.textContent = [n > 1 && `of ${n}`, sheet && shape(sheet.matrix)].filter(Boolean)
      .join(" · ");
    shared.checked = State.view.range === "shared";
    sharing.hidden = !sheet || (answer.whole ? answer.heads(item) : faces).length < 2;
    legend.hidden = !sheet;
    strong.checked = Boolean(sheet) && isStrong();
    if (sheet) high.textContent = (strong.checked ? "≥ " : "") + Format.short(sheet.high);
  };

  const reason = (answer, item, face) => {
    if (!answer) return "Run a request to see its attention weights.";
    if (answer.tooLarge)
      return "This response is too large to draw. Download it in the Response tab.";
    if (!answer.items.length) return "The batch is empty: there is nothing to draw.";
    if (!answer.items[item].weights && answer.whole) return "Loading the weights …";
    if (!answer.items[item].weights)
      return "This response has no weights. Set return_attention and run again.";
    const lacks = !face || !face.matrix.rows ? "queries" : !face.matrix.cols ? "keys" : null;
    return lacks && `This item has no ${lacks}: there is nothing to draw.`;
  };

  let shown = [], sheet = null;
  const change = () => {
    const { answer, view: { item, head, range, strong: lit } } = State;
    const now = [answer, item, head, `${range} ${lit} ${State.dark}`, Labels.now()];
    const same = now.map((value, i) => value === shown[i]);
    shown = now;
    if (same.includes(false)) renew(answer, item, same);
    light(sheet ? sheet.matrix.rows : 0);
    Large.point();
  };
  const renew = (answer, item, [sameAnswer, sameItem, , sameRange]) => {
    const face = Answer.face(answer, State.view);
    const why = reason(answer, item, face), faces = why ? [] : Answer.faces(answer, item);
    sheet = why ? null : sheetOf(face);
    fill(id("empty"), why).hidden = !why;
    id("large").hidden = Boolean(why);
    tools(answer, item, faces);
    const fresh = !sameAnswer || !sameItem;
    if (fresh || !sameRange) multiples(faces, fresh);
    for (const { button, one } of tiles)
      button.setAttribute("aria-pressed", one.head === face.head);
    Large.show(sheet, !fresh);
  };
  State.on(["answer", "view", "over", "off", "labels", "body", "dark"], change, id("answer-side"));
  change();
  return { sheet: () => sheet, seen, range };
})();
