// look: the heads as small multiples and one of them large.
//
// Look.sheet() -> what is seen large, as heatmap.js draws it, or null; for saving it.
// Look.seen(item, head) -> which keys may be seen (visible.js), kept for each answer.
// The large canvas says where its cells are: data-cell, data-left and data-top, in CSS pixels.
const Look = (() => {
  const { el, fill, id } = Dom;
  const SLICE = 8;
  const kept = new WeakMap();
  const fields = () => Request.fields(State.get("asked").body) || {};

  const seen = (item, head) => {
    const answer = State.get("answer"), { rows, cols } = Answer.faces(answer, item)[0].matrix;
    if (!kept.has(answer)) kept.set(answer, new Map());
    const all = kept.get(answer), name = `${item} ${fields().bias ? head : ""}`;
    const model = Models.find(State.get("asked").model);
    if (!all.has(name)) all.set(name, Visible.of(fields(), model, item, rows, cols, head));
    return all.get(name);
  };
  const cuts = (item) => {
    const { segments } = fields();
    const own = segments && Tensor.of(Request.batched(fields()) ? Tensor.part(segments, item) : segments);
    let at = 0;
    return own ? Array.from(own.data, (n) => (at += n)) : [];
  };
  const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;
  const shape = ({ rows, cols }) =>
    `${plural(rows, "query", "queries")} × ${plural(cols, "key", "keys")}`;
  const sheetOf = (faces, { head, label, matrix }) => {
    const { item, range } = State.get("view"), { pointers } = State.get("answer").items[item];
    const words = (n, word) => Array.from({ length: n }, (_, i) => String(word(item, i)));
    return { title: `${label}, ${shape(matrix)}`, label, matrix, seen: seen(item, head),
      range: Scale.range(faces, { matrix }, range === "shared"), rows: words(matrix.rows, Labels.row),
      cols: words(matrix.cols, Labels.col), cuts: cuts(item), pointers: (pointers && pointers[head]) || null };
  };

  // Small multiples are drawn when they come into sight, a few milliseconds at a time.
  const waiting = [];
  const work = () => {
    const end = performance.now() + SLICE;
    while (waiting.length && performance.now() < end) if (waiting[0].next().done) waiting.shift();
    if (waiting.length) requestAnimationFrame(work);
  };
  function* paint(tile) {
    const { faces, one } = tile;
    const range = Scale.range(faces, one, State.get("view").range === "shared");
    yield;
    const hidden = seen(State.get("view").item, one.head);
    yield* Heatmap.small(tile.canvas, { matrix: one.matrix, seen: hidden, range });
  }
  let tiles = [];
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      if (waiting.push(paint(tiles.find((tile) => tile.button === target))) === 1)
        requestAnimationFrame(work);
    }
  }, { root: id("multiples"), rootMargin: "200px" });

  const tileOf = (faces, one) => {
    const canvas = el("canvas", { class: "hatched", width: 1, height: 1 });
    const { rows, cols } = one.matrix;
    canvas.style.aspectRatio = Math.max(0.6, Math.min(3, cols / rows));
    const button = el("button", { type: "button", onclick: () => State.view({ head: one.head }) },
      canvas, one.head === "mean" ? "mean" : one.label, " ",
      el("span", { class: "soft", title: "greatest weight" }, Format.short(Scale.range(faces, one)[1])));
    return { button, canvas, faces, one };
  };
  const multiples = (faces, fresh) => {
    const box = id("multiples");
    box.hidden = faces.length < 2;
    if (fresh) {
      tiles = box.hidden ? [] : faces.map((one) => tileOf(faces, one));
      fill(box, tiles.map((tile) => tile.button));
      box.scrollTop = 0;
    }
    watcher.disconnect();
    waiting.length = 0;
    for (const { button } of tiles) watcher.observe(button);
  };
  const choose = (head) => {
    for (const { button, one } of tiles) button.setAttribute("aria-pressed", one.head === head);
  };

  // The tools: which item, which colours, what they mean.
  const items = (answer, item, matrix) => {
    const n = answer.items.length;
    const go = (to, text, name) => el("button", { type: "button", "aria-label": name,
      disabled: to < 0 || to >= n, onclick: () => State.view({ item: to, row: -1, col: -1 }) }, text);
    const text = el("span", { id: "item", "aria-live": "polite" },
      n > 1 ? `item ${item + 1} of ${n} · ` : "", matrix ? shape(matrix) : "");
    return el("div", { class: "row" }, n > 1 ? [go(item - 1, "‹", "Previous item"), text,
      go(item + 1, "›", "Next item")] : text);
  };
  const legend = ([low, high]) => {
    const bar = el("span", { class: "scale" });
    const stops = Array.from({ length: 17 }, (_, i) => Scale.css(i / 16));
    bar.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    return el("div", { class: "row small soft", id: "legend" }, String(low), bar, Format.short(high),
      el("span", { class: "hatched swatch" }), "hidden");
  };
  const ranges = (range) => {
    const box = el("input", { type: "checkbox", checked: range === "shared",
      onchange: () => State.view({ range: box.checked ? "shared" : "head" }) });
    return el("label", { class: "small" }, box, "One colour range for all heads");
  };
  const tools = (answer, faces, sheet) => {
    const { item, range } = State.get("view"), box = id("look-tools");
    const focus = [...box.querySelectorAll("button, input")].indexOf(document.activeElement);
    fill(box, items(answer, item, sheet && sheet.matrix), faces.length > 1 ? ranges(range) : null,
      sheet ? legend(sheet.range) : null);
    const again = box.querySelectorAll("button, input")[focus];
    if (again) again.focus();
  };

  const reason = (answer, item, face) => {
    if (!answer) return "Send a request to see its weights.";
    if (answer.tooLarge) return "This answer is too large to draw. The Answer tab offers it as a download.";
    if (answer.items.length === 0) return "The batch is empty: there is nothing to draw.";
    if (!answer.items[item].weights)
      return "This answer has no weights. Switch on return_attention and send again.";
    const empty = face && (face.matrix.rows === 0 ? "queries" : face.matrix.cols === 0 ? "keys" : null);
    return empty ? `This item has no ${empty}: there is nothing to draw.` : null;
  };

  let shown = [], sheet = null;
  const change = () => {
    const answer = State.get("answer"), { item, head, range } = State.get("view");
    const now = [answer, item, head, State.get("labels"), range];
    const same = now.map((value, i) => value === shown[i]);
    shown = now;
    if (same.includes(false)) renew(answer, item, same);
    Large.point();
  };
  const renew = (answer, item, same) => {
    const faces = answer && !answer.tooLarge ? Answer.faces(answer, item) : [];
    const face = Answer.face(faces.length ? answer : null, State.get("view"));
    const why = reason(answer, item, face);
    id("empty").hidden = !why;
    fill(id("empty"), why);
    sheet = why ? null : sheetOf(faces, face);
    id("look-tools").hidden = why && !(answer && answer.items && answer.items.length > 1);
    id("large").hidden = Boolean(why);
    if (!id("look-tools").hidden) tools(answer, faces, sheet);
    if (!same[0] || !same[1] || !same[4]) multiples(sheet ? faces : [], !same[0] || !same[1]);
    if (sheet) choose(face.head);
    Large.show(sheet, same[0] && same[1]);
  };
  State.on(["answer", "view", "labels"], change);
  return { sheet: () => sheet, seen };
})();
