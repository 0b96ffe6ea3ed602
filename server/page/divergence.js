// divergence: how much every two heads differ, as a table of colours, with the value of the cell
// under the pointer.
//
// Divergence.show(matrix) -> nodes. Arrow keys go from cell to cell.
const Divergence = (() => {
  const { el, fill } = Dom;
  const WORDY = 16, MOST = 128;
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  const place = (node) => [node.parentNode.rowIndex - 1, node.cellIndex - 1];
  const move = (event) => {
    const { key, target, currentTarget: table } = event, step = STEPS[key];
    if (!step) return;
    event.preventDefault();
    const end = table.rows.length - 2;
    const [i, j] = place(target).map((at, axis) => Math.min(end, Math.max(0, at + step[axis])));
    const to = table.rows[i + 1].cells[j + 1];
    target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  const colour = (table, matrix, high) => {
    for (const cell of table.querySelectorAll("td")) {
      const [i, j] = place(cell), t = matrix[i][j] / high;
      cell.tabIndex = i + j ? -1 : 0;
      cell.style.background = Scale.css(t);
      cell.style.color = Scale.ink(t);
    }
  };
  const show = (matrix) => {
    const h = matrix.length;
    if (h > MOST) return [`${h} heads are too many for a matrix.`];
    const high = Math.max(...matrix.flat()) || 1, text = h <= WORDY ? Format.short : () => "";
    const table = Dom.table("Divergence of two heads", ["", ...matrix.keys()],
      matrix.map((line, i) => [i, ...line.map(text)]));
    table.setAttribute("role", "grid");
    table.className = h <= WORDY ? "" : "dense";
    colour(table, matrix, high);
    const words = el("p", { class: "small", "aria-live": "polite" }, "Point at a cell.");
    const tell = ({ target }) => {
      const [i, j] = place(target), x = matrix[i]?.[j];
      if (x >= 0) fill(words, `head ${i} and head ${j}: ${Format.float(x)} nats`);
    };
    table.addEventListener("pointerover", tell);
    table.addEventListener("focusin", tell);
    table.addEventListener("keydown", move);
    const legend = el("p", { class: "row small" }, "0", Scale.bar(), `${Format.short(high)} nats`);
    return [table, legend, words];
  };
  return { show };
})();
