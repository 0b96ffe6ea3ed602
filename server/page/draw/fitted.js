// fitted: a map of a sheet (heatmap.js) that fits the available room: it neither zooms nor scrolls.
//
// Fitted.of({ look, choose, at }) -> { node, sheet, show(sheet), point(over) }. The pointer calls
// look(cell, self); a click or a key calls choose(cell); at() returns the chosen cell. show(sheet) fits
// the map to the width of its node, point(over) draws it with the chosen cell and the cell under the
// pointer. sheet.name is the title.
// needs: dom cursor heatmap shrink
const Fitted = (() => {
  const { NOWHERE } = Cursor;
  const TALL = 460, RIM = 3, PAGE = 8;

  const fit = (sheet, wide, ratio) => {
    const { rows, cols } = sheet.matrix, edge = Heatmap.box(sheet, 1, ratio);
    const wish = Math.min(((wide - RIM) * ratio - edge.left) / cols, (TALL * ratio - edge.top) / rows);
    const block = Math.max(1, Math.ceil(1 / Math.max(wish, 0.01))), drawn = Shrink.of(sheet, block);
    const cell = Cursor.clamp(Math.floor(wish), 1, Math.floor(Heatmap.LARGEST * ratio));
    const box = Heatmap.box(drawn, cell, ratio), all = drawn.matrix;
    const [width, height] = [box.left + all.cols * cell, box.top + all.rows * cell]
      .map((n) => Math.ceil(n + RIM * ratio));
    return { drawn, place: { ...box, cell, block, ratio, width, height, x: 0, y: 0 } };
  };
  const of = ({ look, choose, at }) => {
    const canvas = el("canvas"), title = el("h3");
    const frame = el("div", { tabindex: 0, role: "application" }, canvas);
    const self = { node: el("figure", title, frame), sheet: null };
    let now = null;
    const under = (event) => Cursor.at(event, canvas, now.drawn, now.place, self.sheet);
    const press = (event) => {
      const to = event.key === "Escape" ? NOWHERE
        : Cursor.to(event, at(), self.sheet.matrix, now.place.block, PAGE * now.place.block);
      if (!to || event.altKey || event.metaKey) return;
      event.preventDefault();
      look(NOWHERE, self);
      choose(to);
    };
    canvas.addEventListener("pointermove", (event) => look(under(event), self));
    canvas.addEventListener("pointerleave", () => look(NOWHERE, self));
    canvas.addEventListener("click", (event) => choose(under(event)));
    frame.addEventListener("keydown", press);

    self.show = (sheet) => {
      self.sheet = sheet;
      if (!sheet) return;
      now = fit(sheet, self.node.clientWidth, devicePixelRatio || 1);
      const { width, height, ratio } = now.place;
      Object.assign(canvas, { width, height });
      canvas.style.width = `${width / ratio}px`;
      title.textContent = sheet.name;
      frame.setAttribute("aria-label",
        `${sheet.name}. Arrow keys move from cell to cell, Escape clears the selection.`);
    };
    self.point = (over) => {
      if (!self.sheet) return;
      Heatmap.draw(canvas.getContext("2d"), now.drawn, { ...now.place,
        ...Cursor.blocks(at(), now.place), over: Cursor.blocks(over, now.place) });
    };
    return self;
  };
  return { of };
})();
