// divergence: how unlike two heads look, as a table of colours with the value under the pointer.
//
// Divergence.show(matrix) -> nodes. Arrow keys go from cell to cell.
const Divergence = (() => {
  const { el, fill } = Dom;
  const WORDY = 16, MOST = 128;
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  const cell = (x, t, wordy) => {
    const node = el("td", { tabindex: -1 }, wordy ? Format.short(x) : null);
    node.style.background = Scale.css(t);
    node.style.color = t > 0.47 ? "#000" : "#fff";
    return node;
  };
  const place = (node) => [node.parentNode.rowIndex, node.cellIndex];
  const move = (event) => {
    const { key, target, currentTarget: table } = event, step = STEPS[key];
    if (!step) return;
    event.preventDefault();
    const end = table.rows.length - 1;
    const [i, j] = place(target).map((at, axis) => Math.min(end, Math.max(1, at + step[axis])));
    const to = table.rows[i].cells[j];
    target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  const grid = (matrix, high) => {
    const wordy = matrix.length <= WORDY, head = (scope, i) => el("th", { scope }, i);
    const rows = matrix.map((line, i) => el("tr", null, head("row", i),
      line.map((x) => cell(x, x / high, wordy))));
    rows[0].cells[1].tabIndex = 0;
    return el("table", { role: "grid", "aria-label": "Divergence", class: wordy ? null : "dense",
      onkeydown: move }, el("tr", null, el("td"), matrix.map((_, j) => head("col", j))), rows);
  };
  const show = (matrix) => {
    if (matrix.length > MOST) return [`${matrix.length} heads are too many for a matrix.`];
    const high = Math.max(...matrix.flat()) || 1, table = grid(matrix, high);
    const words = el("p", { class: "small", "aria-live": "polite" }, "Point at a cell.");
    const tell = ({ target }) => {
      const [i, j] = place(target), x = (matrix[i - 1] || [])[j - 1];
      if (x >= 0) fill(words, `head ${i - 1} and head ${j - 1}: ${Format.float(x)} nats`);
    };
    table.addEventListener("pointerover", tell);
    table.addEventListener("focusin", tell);
    const ramp = el("span");
    ramp.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(Scale.css)})`;
    return [el("h3", null, "Divergence of two heads"),
      el("p", { class: "row small soft ramp" }, "0", ramp, `${Format.short(high)} nats`),
      el("div", { class: "wide" }, table), words];
  };
  return { show };
})();
