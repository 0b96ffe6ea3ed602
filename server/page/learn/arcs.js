// arcs: a sentence, with arcs from one word to the words that it attends to, as thick as the weights.
//
// Arcs.of(choose) -> { node, show({ words, weights, row, hidden }) }: choose(i) is called with the word
// that a user clicks; `hidden` is the index of a masked word, or -1.
// needs: dom rove
const Arcs = (() => {
  const DRAWN = 0.012, WRITTEN = 0.03; // the smallest weights that have an arc, and a number

  const loop = (x, y, weight) => svg("circle", { cx: x, cy: y - 8, r: 3 + 8 * weight, fill: "none",
    "stroke-width": 1 + 6 * weight, opacity: 0.25 + 0.75 * weight });
  const arc = ([x, y], [to, low], weight) => {
    const high = Math.min(y - 14, low - 14, 26 + 0.2 * Math.abs(x - to)) * 1.33;
    return svg("path", { d: `M${x} ${y}C${x} ${y - high} ${to} ${low - high} ${to} ${low}`, fill: "none",
      "stroke-width": 1 + 15 * weight, "stroke-linecap": "round", opacity: 0.18 + 0.8 * weight });
  };
  const word = (text, i, { weights, row, hidden }, choose) => {
    const share = weights[i] >= WRITTEN ? `${Math.round(100 * weights[i])} %` : "";
    return el("button", { "aria-pressed": String(i === row), onclick: () => choose(i),
      title: i === hidden ? "masked" : null }, el(i === hidden ? "s" : "span", null, text),
    el("small", share));
  };

  const of = (choose) => {
    const lines = svg("svg", { "aria-hidden": true });
    const row = el("div.words", { role: "group", "aria-label": "Words of the sentence" });
    const inner = el("div", lines, row), node = el("div", { id: "arcs" }, inner);
    Rove.in(row, "button");
    let now = null;
    const draw = () => {
      if (!now || !inner.offsetParent) return;
      const { left, top } = inner.getBoundingClientRect();
      const ends = [...row.children].map((one) => one.getBoundingClientRect())
        .map((box) => [box.left + box.width / 2 - left, box.top - top]);
      fill(lines, [...now.weights].map((weight, i) => (weight < DRAWN ? null
        : i === now.row ? loop(...ends[i], weight) : arc(ends[now.row], ends[i], weight))));
    };
    new ResizeObserver(draw).observe(inner);
    // The places of words are known after a layout, of which one a frame is enough.
    let frame = 0;
    const show = (next) => {
      now = next;
      Rove.fill(row, now.words.map((text, i) => word(text, i, now, choose)));
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(draw);
    };
    return { node, show };
  };
  return { of };
})();
