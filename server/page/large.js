// large: one sheet (heatmap.js) in a window that zooms and scrolls, a cursor, and its readout.
//
// Large.show(sheet, same): draws it; null: nothing. same: place and zoom stay. Large.point(): the
// cell in State.view has changed. The canvas is as large as the window and stays in it; what is
// scrolled is an empty sheet below it.
const Large = (() => {
  const { el, id } = Dom;
  const readout = el("p", { id: "readout", class: "mono" });
  const segments = el("div", { id: "segments" });
  const canvas = el("canvas", {});
  const paper = el("div", { class: "paper" }, canvas);
  const frame = el("div", { id: "frame", tabindex: 0, role: "application" }, paper);
  const context = canvas.getContext("2d");
  const zoomed = { cell: null };
  let sheet = null, place = null, pinned = false, asked = false;

  const ratio = () => devicePixelRatio || 1;
  const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

  // As wide as there is room for, but lower where not all queries would be seen and cells are big.
  const fitting = (left) => {
    const { rows, cols } = sheet.matrix;
    const across = Math.floor((frame.clientWidth * ratio() - left) / cols);
    const down = Math.floor((innerHeight * 0.6 * ratio()) / rows);
    return Math.max(Math.min(across, 16 * ratio()), Math.min(across, down));
  };
  const layout = () => {
    if (!sheet || !frame.clientWidth) return;
    const { rows, cols } = sheet.matrix, r = ratio();
    const wish = zoomed.cell ? zoomed.cell * r : fitting(Heatmap.box(sheet, 1, r).left);
    const cell = clamp(Math.round(wish), 1, Heatmap.LARGEST * r);
    const box = Heatmap.box(sheet, cell, r);
    const width = box.left + cols * cell + 2 * r, height = box.top + rows * cell + 2 * r;
    paper.style.width = `${width / r}px`;
    paper.style.height = `${height / r}px`;
    place = { box, cell, ratio: r, width: Math.min(width, Math.floor(frame.clientWidth * r)),
      height: Math.min(height, Math.floor(frame.clientHeight * r)) };
    if (canvas.width !== place.width) canvas.width = place.width;
    if (canvas.height !== place.height) canvas.height = place.height;
    canvas.style.width = `${place.width / r}px`;
    canvas.style.height = `${place.height / r}px`;
    Object.assign(canvas.dataset, { cell: cell / r, left: box.left / r, top: box.top / r });
    draw();
  };
  const draw = () => {
    if (!sheet || !place) return;
    const { row, col } = State.get("view");
    Object.assign(place, { row, col, x: Math.round(frame.scrollLeft * place.ratio),
      y: Math.round(frame.scrollTop * place.ratio) });
    Heatmap.draw(context, sheet, place);
  };
  const soon = () => {
    if (!asked) requestAnimationFrame(() => {
      asked = false;
      draw();
    });
    asked = true;
  };

  // Zooms about a point of the canvas, in CSS pixels.
  const zoom = (cell, at = [canvas.clientWidth / 2, canvas.clientHeight / 2]) => {
    if (!place) return;
    const before = place, from = [frame.scrollLeft, frame.scrollTop];
    zoomed.cell = cell;
    layout();
    const moved = (i, side) => {
      const cells = (at[i] + from[i] - before.box[side] / before.ratio) / before.cell;
      return cells * place.cell + place.box[side] / place.ratio - at[i];
    };
    frame.scrollTo(moved(0, "left"), moved(1, "top"));
    draw();
  };
  const closer = (way, at) => {
    if (!place) return;
    const { cell, ratio: r } = place;
    const next = way > 0 ? Math.max(cell + 1, Math.round(cell * 1.3))
      : Math.min(cell - 1, Math.round(cell / 1.3));
    zoom(clamp(next, 1, Heatmap.LARGEST * r) / r, at);
  };

  const cellAt = (event) => {
    const { box, cell, ratio: r, x, y } = place, rect = canvas.getBoundingClientRect();
    const across = (event.clientX - rect.left) * r - box.left;
    const down = (event.clientY - rect.top) * r - box.top;
    const row = Math.floor((down + y) / cell), col = Math.floor((across + x) / cell);
    const inside = across >= 0 && down >= 0 && row < sheet.matrix.rows && col < sheet.matrix.cols;
    return inside ? { row, col } : { row: -1, col: -1 };
  };
  const point = (cell) => {
    const { row, col } = State.get("view");
    if (cell.row !== row || cell.col !== col) State.view(cell);
  };
  let last = null;
  const follow = () => {
    if (last && !pinned && place && sheet) point(cellAt(last));
    last = null;
  };
  const hover = (event) => {
    if (!last) requestAnimationFrame(follow);
    last = event;
  };
  const leave = () => {
    last = null;
    if (!pinned) point({ row: -1, col: -1 });
  };
  const pin = (event) => {
    if (!place || !sheet) return;
    const cell = cellAt(event), { row, col } = State.get("view");
    pinned = cell.row >= 0 && !(pinned && cell.row === row && cell.col === col);
    readout.setAttribute("aria-live", "off");
    State.view(cell);
  };

  // With the keyboard: a step of the cursor, or null.
  const target = (event, row, col) => {
    const { rows, cols } = sheet.matrix, page = Math.max(1, Math.floor(place.height / place.cell) - 1);
    const all = event.ctrlKey;
    const to = { ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1], PageUp: [row - page, col], PageDown: [row + page, col],
      Home: [all ? 0 : row, 0], End: [all ? rows : row, cols] }[event.key];
    return to && { row: clamp(to[0], 0, rows - 1), col: clamp(to[1], 0, cols - 1) };
  };
  const reveal = ({ row, col }) => {
    const { box, cell, ratio: r, width, height } = place;
    const into = (from, at, room) => clamp(from, ((at + 1) * cell - room) / r, (at * cell) / r);
    frame.scrollTo(into(frame.scrollLeft, col, width - box.left),
      into(frame.scrollTop, row, height - box.top));
  };
  const press = (event) => {
    if (!place || !sheet || event.altKey || event.metaKey) return;
    const { row, col } = State.get("view");
    const way = { "+": 1, "=": 1, "-": -1 }[event.key];
    const to = target(event, row, col);
    if (event.key === "Escape") release();
    else if (way && !event.ctrlKey) closer(way);
    else if (to) {
      pinned = true;
      readout.setAttribute("aria-live", "polite");
      State.view(to);
      reveal(to);
    } else return;
    event.preventDefault();
  };
  const release = () => {
    pinned = false;
    State.view({ row: -1, col: -1 });
  };

  // The weights of segments: stretched, as they have no more than a few columns.
  const parts = () => {
    const { item, head } = State.get("view"), all = State.get("answer").items[item].segments;
    return all && all[head] ? all[head] : null;
  };
  const showParts = () => {
    const matrix = parts();
    Dom.fill(segments);
    if (!matrix || !matrix.cols) return;
    const small = el("canvas", { class: "hatched" });
    small.style.width = `${Math.min(40 * matrix.cols, 480)}px`;
    small.style.height = `${Math.min(24 * matrix.rows, 240)}px`;
    const seen = new Uint8Array(matrix.data.length).fill(1);
    for (const _ of Heatmap.small(small, { matrix, seen, range: [0, 1] }));
    segments.append(el("h3", {}, `Weights of the ${matrix.cols} segments, 0 to 1`), small);
  };
  const segmentOf = (row, col) => {
    const at = sheet.cuts.findIndex((end) => col < end), matrix = parts();
    if (at < 0) return "";
    return ` · segment ${at}${matrix ? ` ${Format.float(matrix.data[row * matrix.cols + at])}` : ""}`;
  };
  const named = (kind, words, i) =>
    words[i] === String(i) ? `${kind} ${i}` : `${kind} ${i} “${words[i]}”`;
  const read = () => {
    const { row, col } = State.get("view"), at = row * sheet.matrix.cols + col;
    if (row < 0 || col < 0 || row >= sheet.matrix.rows || col >= sheet.matrix.cols)
      return "Point at a cell to read its weight.";
    const weight = sheet.matrix.data[at], value = Format.float(weight);
    const text = sheet.seen[at] ? value : weight > 0 ? `${value} · hidden` : "hidden";
    return `${sheet.label} · ${named("query", sheet.rows, row)} · ${named("key", sheet.cols, col)} · ` +
      text + segmentOf(row, col) + (pinned ? " · pinned" : "");
  };

  const show = (next, same) => {
    sheet = next;
    if (!same) Object.assign(zoomed, { cell: null });
    if (!same) pinned = false;
    if (!sheet) return;
    frame.setAttribute("aria-label", `Weights of ${sheet.title}. Arrow keys move from cell to cell, ` +
      "plus and minus zoom, Escape lets go.");
    id("large-name").textContent = sheet.label;
    showParts();
    layout();
  };
  const listen = () => {
    for (const [name, listener] of Object.entries({ pointermove: hover, pointerleave: leave, click: pin }))
      canvas.addEventListener(name, listener);
    frame.addEventListener("keydown", press);
    frame.addEventListener("scroll", soon);
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      closer(-event.deltaY, [event.offsetX, event.offsetY]);
    }, { passive: false });
    new ResizeObserver(layout).observe(id("large"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    watch();
  };
  const watch = () =>
    matchMedia(`(resolution: ${ratio()}dppx)`).addEventListener("change", () => {
      layout();
      watch();
    }, { once: true });

  const button = (text, name, onclick) =>
    el("button", { type: "button", "aria-label": name, title: name, onclick }, text);
  id("large").append(
    el("div", { class: "bar" }, el("h3", { id: "large-name" }), el("div", { class: "row" },
      button("−", "Zoom out", () => closer(-1)), button("+", "Zoom in", () => closer(1)),
      button("Fit", "Fit to the width", () => zoom(null)))),
    readout, frame, segments);
  listen();
  return { show, point: () => {
    if (!sheet) return;
    readout.textContent = read();
    soon();
  } };
})();
