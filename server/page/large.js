// large: one sheet (heatmap.js) in a window that zooms and scrolls, a cursor, and its readout.
//
// Large.show(sheet, same): draws the sheet; null: nothing. same: zoom and cursor stay.
// Large.point(): the cell in State.view has changed. The canvas is as large as the window and does
// not move; an empty element below it is scrolled instead. The canvas has data-cell, data-left and
// data-top: the place of its cells before scrolling, in CSS pixels.
const Large = (() => {
  const { el, id } = Dom;
  const NOWHERE = { row: -1, col: -1 };
  const readout = el("p", { id: "readout", class: "mono" });
  const segments = el("div", { id: "segments" });
  const canvas = el("canvas", {});
  const paper = el("div", {}, canvas);
  const frame = el("div", { id: "frame", tabindex: 0, role: "application" }, paper);
  let sheet = null, place = null, zoomed = null, pinned = false;

  const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
  const once = (f) => {
    let asked = null;
    return (event) => {
      if (!asked) requestAnimationFrame(() => {
        const last = asked;
        asked = null;
        if (sheet && place) f(last);
      });
      asked = event || true;
    };
  };

  // Cells as wide as there is room for; smaller if not all rows would be visible, but not below 16
  // pixels.
  const fitting = (room, ratio) => {
    const { rows, cols } = sheet.matrix, { left, top } = Heatmap.box(sheet, 1, ratio);
    const high = Math.min(innerHeight * 0.7, 760) - 4;
    const across = Math.floor((room * ratio - left) / cols);
    const down = Math.floor((high * ratio - top) / rows);
    return Math.max(Math.min(across, 16 * ratio), Math.min(across, down));
  };
  const stretch = (node, width, height, ratio) =>
    Object.assign(node.style, { width: `${width / ratio}px`, height: `${height / ratio}px` });
  const spread = (room, ratio) => {
    const { rows, cols } = sheet.matrix, wish = zoomed ? zoomed * ratio : fitting(room, ratio);
    const cell = clamp(Math.round(wish), 1, Math.floor(Heatmap.LARGEST * ratio));
    const box = Heatmap.box(sheet, cell, ratio);
    const all = [box.left + cols * cell, box.top + rows * cell]
      .map((n) => Math.ceil(n + 4 * ratio));
    stretch(paper, ...all, ratio);
    return { cell, box, all };
  };
  const layout = () => {
    if (!sheet || !frame.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    let now = spread(frame.offsetWidth, ratio);
    // The scroll bar has taken some of the room.
    if (frame.clientWidth < frame.offsetWidth) now = spread(frame.clientWidth, ratio);
    const { cell, box, all } = now, { left, top } = box;
    const [width, height] = [frame.clientWidth, frame.clientHeight].map((room, i) =>
      Math.min(all[i], Math.floor(room * ratio)));
    place = { ...box, cell, ratio, width, height };
    smaller.disabled = cell <= 1;
    larger.disabled = cell >= Math.floor(Heatmap.LARGEST * ratio);
    fit.disabled = zoomed === null;
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    stretch(canvas, width, height, ratio);
    Object.assign(canvas.dataset, { cell: cell / ratio, left: left / ratio, top: top / ratio });
    draw();
  };
  const draw = () => {
    const { row, col } = State.get("view"), { ratio } = place;
    Object.assign(place, { row, col, x: Math.round(frame.scrollLeft * ratio),
      y: Math.round(frame.scrollTop * ratio) });
    Heatmap.draw(canvas.getContext("2d"), sheet, place);
  };
  const soon = once(draw);

  // Zooms about a point of the canvas, in CSS pixels. null: fits the sheet to the window.
  const zoom = (factor, [x, y] = [canvas.clientWidth / 2, canvas.clientHeight / 2]) => {
    if (!place) return;
    const { left, top, cell, ratio } = place;
    const across = (frame.scrollLeft + x - left / ratio) / cell;
    const down = (frame.scrollTop + y - top / ratio) / cell;
    zoomed = factor && clamp((zoomed || cell / ratio) * factor, 1 / ratio, Heatmap.LARGEST);
    layout();
    frame.scrollTo(across * place.cell + place.left / ratio - x,
      down * place.cell + place.top / ratio - y);
  };

  const cellAt = (event) => {
    const { left, top, cell, ratio, x, y } = place, rect = canvas.getBoundingClientRect();
    const across = (event.clientX - rect.left) * ratio - left;
    const down = (event.clientY - rect.top) * ratio - top;
    const row = Math.floor((down + y) / cell), col = Math.floor((across + x) / cell);
    const { rows, cols } = sheet.matrix;
    return across >= 0 && down >= 0 && row < rows && col < cols ? { row, col } : NOWHERE;
  };
  const at = ({ row, col }) => row === State.get("view").row && col === State.get("view").col;
  const go = (cell, pin, voice = "off") => {
    pinned = pin;
    readout.setAttribute("aria-live", voice);
    State.view(cell);
  };
  const hover = once((event) => {
    const cell = event.type === "pointerleave" ? NOWHERE : cellAt(event);
    if (!pinned && !at(cell)) go(cell, false);
  });
  const click = (event) => {
    const cell = cellAt(event);
    go(cell, cell.row >= 0 && !(pinned && at(cell)));
  };

  // The cell that a key of the keyboard moves the cursor to.
  const target = ({ key, ctrlKey }, { row, col }) => {
    const { rows, cols } = sheet.matrix;
    const page = Math.max(1, Math.floor(place.height / place.cell) - 1);
    const to = { ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1], PageUp: [row - page, col], PageDown: [row + page, col],
      Home: [ctrlKey ? 0 : row, 0], End: [ctrlKey ? rows : row, cols] }[key];
    return to && { row: clamp(to[0], 0, rows - 1), col: clamp(to[1], 0, cols - 1) };
  };
  const reveal = ({ row, col }) => {
    const { left, top, cell, ratio, width, height } = place;
    const into = (from, i, room) =>
      clamp(from, ((i + 1) * cell - room) / ratio, (i * cell) / ratio);
    frame.scrollTo(into(frame.scrollLeft, col, width - left),
      into(frame.scrollTop, row, height - top));
  };
  const press = (event) => {
    if (!place || event.altKey || event.metaKey) return;
    const factor = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
    const to = target(event, State.get("view"));
    if (event.key === "Escape") go(NOWHERE, false);
    else if (factor && !event.ctrlKey) zoom(factor);
    else if (to) {
      go(to, true, "polite");
      reveal(to);
    } else return;
    event.preventDefault();
  };
  const wheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(clamp(-event.deltaY, -100, 100) / 250), [event.offsetX, event.offsetY]);
  };

  // The weights of segments, one wide column for each.
  const parts = () => {
    const matrix = sheet.segments;
    Dom.fill(segments);
    if (!matrix || !matrix.cols) return;
    const small = el("canvas", {}), seen = new Uint8Array(matrix.data.length).fill(1);
    stretch(small, Math.min(40 * matrix.cols, 480), Math.min(24 * matrix.rows, 240), 1);
    for (const _ of Heatmap.small(small, { matrix, seen, high: 1 }));
    segments.append(el("h3", {}, `Weights of the ${matrix.cols} segments, 0 to 1`), small);
  };
  const segmentOf = (row, col) => {
    const i = sheet.cuts.findIndex((end) => col < end), matrix = sheet.segments;
    return i < 0 ? null
      : `segment ${i}${matrix ? ` ${Format.float(matrix.data[row * matrix.cols + i])}` : ""}`;
  };
  const named = (kind, words, i) =>
    `${kind} ${i}${words[i] === String(i) ? "" : ` “${words[i].slice(0, 60)}”`}`;
  const read = () => {
    const { row, col } = State.get("view"), { matrix: { rows, cols, data }, seen } = sheet;
    if (row < 0 || col < 0 || row >= rows || col >= cols)
      return "Point at a cell to read its weight.";
    const i = row * cols + col;
    return [sheet.label, named("query", sheet.rows, row), named("key", sheet.cols, col),
      seen[i] || data[i] > 0 ? Format.float(data[i]) : null, seen[i] ? null : "hidden",
      segmentOf(row, col), pinned ? "pinned" : null].filter(Boolean).join(" · ");
  };
  const point = () => {
    if (!sheet) return;
    readout.textContent = read();
    if (place) draw();
  };

  const show = (next, same) => {
    sheet = next;
    if (!same) zoomed = place = null;
    if (!same) pinned = false;
    if (!sheet) return;
    frame.setAttribute("aria-label", `Weights of ${sheet.title}. Arrow keys move from cell to ` +
      "cell, plus and minus zoom, Escape lets go.");
    name.textContent = sheet.label;
    parts();
    layout();
  };
  const button = (text, title, factor) =>
    el("button", { type: "button", "aria-label": title, title, onclick: () => zoom(factor) }, text);
  const name = el("h3", {});
  const smaller = button("−", "Zoom out", 1 / 1.5), larger = button("+", "Zoom in", 1.5);
  const fit = button("Fit", "Fit to the width", null);
  id("large").append(
    el("div", { class: "bar" }, name, el("div", { class: "row" }, smaller, larger, fit)),
    readout, frame, segments);
  for (const type of ["pointermove", "pointerleave"]) canvas.addEventListener(type, hover);
  canvas.addEventListener("click", click);
  frame.addEventListener("keydown", press);
  frame.addEventListener("scroll", soon);
  frame.addEventListener("wheel", wheel, { passive: false });
  new ResizeObserver(layout).observe(id("large"));
  addEventListener("resize", layout);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  return { show, point };
})();
