// large: one sheet (heatmap.js) in a window that zooms and scrolls, a cursor, and its readout.
//
// Large.show(sheet, same): draws the sheet, or nothing for null. same: keeps the zoom and the cursor.
// Large.point(): draws the cursor again after a change of State.view.row and col, chosen by a click or
// by the keyboard, or of State.over, the cell under the pointer. The canvas is as large as the window
// and does not move; an empty element below it is scrolled instead. A sheet with more cells than pixels
// is drawn as a smaller one (shrink.js). The canvas has data-cell, data-left and data-top, the place of
// its cells before scrolling, in CSS pixels, and data-block, the side of a cell's block of cells.
// needs: dom format state cursor fitted heatmap sentence shrink
const Large = (() => {
  const { NOWHERE, clamp, same } = Cursor;
  const readout = el("p", { id: "readout" });
  const canvas = el("canvas");
  const paper = el("div", canvas);
  const frame = el("div", { id: "frame", tabindex: 0, role: "application" }, paper);
  let sheet = null, drawn = null, place = null, zoomed = null;

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

  // The smallest side of a cell, in device pixels, at which all cells are visible, and the side that
  // fits: the full width, or less so that all rows are visible, but at least 16 pixels. All cells are
  // visible if there is less than a pixel for each.
  const fitting = (room, ratio) => {
    const { rows, cols } = sheet.matrix, { left, top } = Heatmap.box(sheet, 1, ratio);
    const high = Math.min(innerHeight * 0.7, 760) - 4;
    const across = (room * ratio - left) / cols, down = (high * ratio - top) / rows;
    const least = Math.max(0.01, Math.min(across, down, 1));
    if (across < 1) return { least, fits: least };
    const [wide, tall] = [across, down].map(Math.floor);
    return { least, fits: Math.max(1, Math.min(wide, 16 * ratio), Math.min(wide, tall)) };
  };
  const stretch = (node, width, height, ratio) =>
    Object.assign(node.style, { width: `${width / ratio}px`, height: `${height / ratio}px` });
  const spread = (room, ratio) => {
    const { least, fits } = fitting(room, ratio);
    if (zoomed) zoomed = Math.max(zoomed, least / ratio);
    const wish = zoomed ? zoomed * ratio : fits;
    const block = wish <= least ? Math.ceil(1 / wish) : Math.round(Math.max(1, 1 / wish));
    const cell = clamp(Math.round(wish), 1, Math.floor(Heatmap.LARGEST * ratio));
    drawn = Shrink.of(sheet, block);
    const { rows, cols } = drawn.matrix, box = Heatmap.box(drawn, cell, ratio);
    const all = [box.left + cols * cell, box.top + rows * cell]
      .map((n) => Math.ceil(n + 4 * ratio));
    stretch(paper, ...all, ratio);
    return { cell, block, box, all, least: wish <= least };
  };
  const layout = () => {
    if (!sheet || !frame.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    let now = spread(frame.offsetWidth, ratio);
    // The scroll bar takes some of the room.
    if (frame.clientWidth < frame.offsetWidth) now = spread(frame.clientWidth, ratio);
    const { cell, block, box, all, least } = now, { left, top } = box;
    const [width, height] = [frame.clientWidth, frame.clientHeight].map((room, i) =>
      Math.min(all[i], Math.floor(room * ratio)));
    place = { ...box, cell, block, ratio, width, height };
    smaller.disabled = least;
    larger.disabled = cell >= Math.floor(Heatmap.LARGEST * ratio);
    fit.disabled = zoomed === null;
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    stretch(canvas, width, height, ratio);
    Object.assign(canvas.dataset,
      { cell: cell / ratio, block, left: left / ratio, top: top / ratio });
    draw();
  };
  const draw = () => {
    const { ratio } = place;
    Object.assign(place, Cursor.blocks(State.view, place),
      { over: Cursor.blocks(State.over, place),
      x: Math.round(frame.scrollLeft * ratio), y: Math.round(frame.scrollTop * ratio) });
    Heatmap.draw(canvas.getContext("2d"), drawn, place);
  };
  const soon = once(draw);

  // Zooms about a point of the canvas, in CSS pixels. A factor of null fits the sheet to the window.
  const zoom = (factor, at) => {
    const [x, y] = at || [canvas.clientWidth / 2, canvas.clientHeight / 2];
    if (!place) return;
    const { left, top, cell, block, ratio } = place, side = cell / block;
    const across = (frame.scrollLeft + x - left / ratio) / side;
    const down = (frame.scrollTop + y - top / ratio) / side;
    zoomed = factor && Math.min((zoomed || side / ratio) * factor, Heatmap.LARGEST);
    layout();
    const now = place.cell / place.block;
    frame.scrollTo(across * now + place.left / ratio - x, down * now + place.top / ratio - y);
  };

  const cellAt = (event) => Cursor.at(event, canvas, drawn, place, sheet);
  const go = (cell, voice = "off") => {
    readout.setAttribute("aria-live", voice);
    State.show(cell);
  };
  const hover = once((event) => {
    const over = event.type === "pointerleave" ? NOWHERE : cellAt(event);
    if (same(over, State.over)) return;
    readout.setAttribute("aria-live", "off");
    State.set({ over });
  });
  const click = (event) => {
    const cell = cellAt(event);
    go(same(cell, State.view) ? NOWHERE : cell);
  };

  const reveal = ({ row, col }) => {
    const { left, top, cell, block, ratio, width, height } = place;
    const into = (from, i, room) => {
      const at = Math.floor(i / block) * cell;
      return clamp(from, (at + cell - room) / ratio, at / ratio);
    };
    frame.scrollTo(into(frame.scrollLeft, col, width - left),
      into(frame.scrollTop, row, height - top));
  };
  const press = (event) => {
    if (!place || event.altKey || event.metaKey) return;
    const factor = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
    const { block, height, cell } = place;
    const page = Math.max(1, Math.floor(height / cell) - 1) * block;
    const to = Cursor.to(event, State.view, sheet.matrix, block, page);
    if (event.key === "Escape") go(NOWHERE);
    else if (factor && !event.ctrlKey) zoom(factor);
    else if (to) {
      State.set({ over: NOWHERE });
      go(to, "polite");
      reveal(to);
    } else return;
    event.preventDefault();
  };
  const wheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(clamp(-event.deltaY, -100, 100) / 250), [event.offsetX, event.offsetY]);
  };

  // The weights of segments, a column for each, with a cursor of their own.
  let part = NOWHERE, onPart = NOWHERE;
  const pointPart = () => {
    const { row, col } = onPart.row < 0 ? part : onPart, { matrix } = segments.sheet;
    segments.point(onPart);
    partSays.textContent = row < 0 || col < 0 ? "Point at a cell to read its weight."
      : `${Sentence.query(sheet, row).replace("query", "Query")} gives segment ${col} the weight `
        + `${Format.float(matrix.data[row * matrix.cols + col])} (${sheet.label})`;
  };
  const segments = Fitted.of({ at: () => part, look: (over) => {
    onPart = over;
    pointPart();
  }, choose: (cell) => {
    part = same(cell, part) ? NOWHERE : cell;
    pointPart();
  } });
  const partSays = el("p", { "aria-live": "polite" });
  const parts = () => {
    const matrix = sheet.segments;
    if (!matrix || !matrix.cols) return below.remove();
    id("large").append(below);
    part = onPart = NOWHERE;
    segments.show({ ...sheet, matrix, name: `Weights of the ${matrix.cols} segments, 0 to 1`, high: 1, cuts: [],
      seen: new Uint8Array(matrix.data.length).fill(1), pointers: null, across: "segments",
      cols: Array.from({ length: matrix.cols }, (_, i) => `segment ${i}`) });
    pointPart();
  };
  const read = () => {
    const over = State.over, { row, col } = over.row < 0 ? State.view : over;
    const { rows, cols } = sheet.matrix;
    return row < 0 || col < 0 || row >= rows || col >= cols
      ? "Point at a cell to read its weight; click to select it." : Sentence.of(sheet, row, col);
  };
  const point = () => {
    if (!sheet) return;
    // The sentence is the headline, the exact weight a note below it.
    const text = read(), end = text.lastIndexOf(": ") + 1;
    fill(readout, end ? el("strong", text.slice(0, end)) : null, text.slice(end));
    if (place) draw();
  };

  const show = (next, same) => {
    sheet = next;
    if (!same) zoomed = place = null;
    if (!sheet) return;
    frame.setAttribute("aria-label", `Weights of ${sheet.title}. Arrow keys move from cell to ` +
      "cell, plus and minus zoom, Escape clears the selection.");
    name.textContent = sheet.label;
    parts();
    // The width is that of its largest cells, so that there is room for the table of rows beside it.
    const wide = Heatmap.box(sheet, Heatmap.LARGEST, 1).left + Heatmap.LARGEST * sheet.matrix.cols;
    id("large").style.flexBasis = `${Math.min(9999, wide + 4)}px`;
    layout();
  };
  const zoomer = (text, title, factor) =>
    el("button", { "aria-label": title, title, onclick: () => zoom(factor) }, text);
  const name = el("h3"), below = el("div", { id: "segments" }, segments.node, partSays);
  const smaller = zoomer("−", "Zoom out", 1 / 1.5), larger = zoomer("+", "Zoom in", 1.5);
  const fit = zoomer("Fit", "Fit to the window", null);
  id("large").append(
    el("div.bar", name, el("div.row", smaller, larger, fit)),
    readout, frame);
  for (const type of ["pointermove", "pointerleave"]) canvas.addEventListener(type, hover);
  canvas.addEventListener("click", click);
  frame.addEventListener("keydown", press);
  frame.addEventListener("scroll", soon);
  frame.addEventListener("wheel", wheel, { passive: false });
  new ResizeObserver(layout).observe(id("large"));
  State.on(["dark", "width"], layout, id("look"));
  return { show, point };
})();
