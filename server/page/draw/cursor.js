// cursor: the choice of a cell of a map (heatmap.js) by the pointer and the keyboard.
//
// Cursor.NOWHERE: no cell. Cursor.at(event, canvas, drawn, place, sheet) -> the cell of `sheet` under
// the pointer; if `drawn` is a smaller sheet, the cell with the largest weight of the block.
// Cursor.to(event, cell, matrix, block, page) -> the cell that a key moves to, by blocks, or by `page`
// rows; undefined for other keys. Cursor.blocks(cell, place): the cell of `drawn` that contains it.
// Cursor.same(a, b). Cursor.within(cell, matrix). Cursor.clamp(x, low, high).
// needs: shrink
const Cursor = (() => {
  const NOWHERE = { row: -1, col: -1 };
  const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
  const at = (event, canvas, drawn, place, sheet) => {
    const { left, top, cell, block, ratio, x, y } = place, rect = canvas.getBoundingClientRect();
    const across = (event.clientX - rect.left) * ratio - left;
    const down = (event.clientY - rect.top) * ratio - top;
    const row = Math.floor((down + y) / cell), col = Math.floor((across + x) / cell);
    const { rows, cols } = drawn.matrix;
    return across < 0 || down < 0 || row >= rows || col >= cols ? NOWHERE
      : block > 1 ? Shrink.heaviest(sheet, block, row, col) : { row, col };
  };
  const to = ({ key, ctrlKey }, { row, col }, { rows, cols }, block, page) => {
    const next = { ArrowUp: [row - block, col], ArrowDown: [row + block, col],
      ArrowLeft: [row, col - block], ArrowRight: [row, col + block],
      PageUp: [row - page, col], PageDown: [row + page, col],
      Home: [ctrlKey ? 0 : row, 0], End: [ctrlKey ? rows : row, cols] }[key];
    return next && { row: clamp(next[0], 0, rows - 1), col: clamp(next[1], 0, cols - 1) };
  };
  const blocks = ({ row, col }, { block }) =>
    ({ row: Math.floor(row / block), col: Math.floor(col / block) });
  const within = ({ row, col }, { rows, cols }) => row >= 0 && col >= 0 && row < rows && col < cols;
  const same = (a, b) => a.row === b.row && a.col === b.col;
  return { NOWHERE, at, to, blocks, within, same, clamp };
})();
