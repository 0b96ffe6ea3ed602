// divergence: how much every two heads differ, as a table of colors, with the value of the cell under
// the pointer.
//
// Divergence.show(matrix) -> nodes. Arrow keys move from cell to cell.
// needs: dom format rove scale
const Divergence = (() => {
  const WORDY = 16, MOST = 128;

  const place = (node) => [node.parentNode.rowIndex - 1, node.cellIndex - 1];

  const show = (matrix) => {
    const h = matrix.length;
    if (h > MOST) return [`${h} heads: too many for a matrix.`];
    const others = matrix.flatMap((line, i) => line.filter((_, j) => i !== j));
    const high = Math.max(0, ...others) || 1, text = h <= WORDY ? Format.even(others) : () => "";
    const table = Dom.table("Divergence between heads", ["head", ...matrix.keys()],
      matrix.map((line, i) => [i, ...line.map((x, j) => (i === j ? "" : text(x)))]));
    table.setAttribute("role", "grid");
    table.className = h <= WORDY ? "" : "dense";
    for (const cell of table.querySelectorAll("td")) {
      const [i, j] = place(cell), t = matrix[i][j] / high;
      if (i === j) continue; // no head differs from itself
      Object.assign(cell.style, { background: Scale.css(t), color: Scale.ink(t) });
    }
    Rove.in(table, "td");
    const words = el("p.small", { "aria-live": "polite" }, "Point at a cell.");
    const tell = ({ target }) => {
      const [i, j] = place(target), x = matrix[i]?.[j];
      if (x >= 0) fill(words, `head ${i} and head ${j}: ${Format.float(x)} nats`);
    };
    table.addEventListener("pointerover", tell);
    table.addEventListener("focusin", tell);
    const legend = el("p.row.small", "0", Scale.bar(), `${Format.short(high)} nats`);
    return [table, legend, words];
  };
  return { show };
})();
