// shrink: a smaller sheet for one (heatmap.js) that is too large to be drawn, with a cell for each
// block of its cells.
//
// Shrink.of(sheet, n) -> a sheet of blocks of n by n cells: the largest weight, or difference, of each;
// a block is unmasked if one of its cells is. With n = 1 it is the sheet itself.
// Shrink.heaviest(sheet, n, row, col) -> { row, col } of the block's cell with the largest weight.
const Shrink = (() => {
  const kept = new WeakMap();

  const make = ({ matrix: { rows, cols, data }, seen }, n) => {
    const down = Math.ceil(rows / n), across = Math.ceil(cols / n);
    const peaks = new Float32Array(down * across), any = new Uint8Array(down * across);
    for (let i = 0, at = 0; i < rows; i++) {
      const from = Math.floor(i / n) * across;
      for (let j = 0; j < cols; j++, at++) {
        const block = from + Math.floor(j / n);
        if (Math.abs(data[at]) > Math.abs(peaks[block])) peaks[block] = data[at];
        any[block] |= seen[at];
      }
    }
    return { matrix: { rows: down, cols: across, data: peaks }, seen: any };
  };
  const of = (sheet, n) => {
    if (n === 1) return sheet;
    if (kept.get(sheet)?.n !== n) {
      const first = (words) => words.filter((_, i) => i % n === 0);
      kept.set(sheet, { n, small: { ...sheet, ...make(sheet, n), rows: first(sheet.rows),
        cols: first(sheet.cols), cuts: sheet.cuts.map((key) => Math.round(key / n)),
        pointers: null, numbered: true } });
    }
    return kept.get(sheet).small;
  };
  const heaviest = ({ matrix: { rows, cols, data } }, n, row, col) => {
    let best = { row: row * n, col: col * n };
    for (let i = row * n; i < Math.min(rows, (row + 1) * n); i++)
      for (let j = col * n; j < Math.min(cols, (col + 1) * n); j++)
        if (Math.abs(data[i * cols + j]) > Math.abs(data[best.row * cols + best.col]))
          best = { row: i, col: j };
    return best;
  };
  return { of, heaviest };
})();
