// lines: queries left, keys right, and a line for each weight, as thick and as dense as it is
// heavy.
//
// The lines of one query are drawn, or of all (State.view.row is -1). The query is chosen by
// pointing at it, by arrow keys, or by its name. The picture is a canvas; a text below says what it
// shows. Of more than MOST weights only the heaviest get a line, and fewer still of many queries,
// whose lines would be one surface.
(() => {
  const MOST = 4000, MOST_OF_ALL = 400, FEW = 64, STEP = 22, TALL = 3000;
  const panel = Dom.id("lines"), text = Dom.el("p", { "aria-live": "polite", id: "lines-text" });
  const canvas = Dom.el("canvas", { role: "img", "aria-labelledby": "lines-text" });
  const scroller = Dom.el("div", { tabindex: 0, role: "group",
    "aria-label": "Lines; the arrow keys choose a query" }, canvas);
  const head = Dom.el("select", { onchange: () =>
    State.view({ head: head.value === "mean" ? "mean" : Number(head.value) }) });
  const query = Dom.el("select", { onchange: () => State.view({ row: Number(query.value) }) });
  const tools = Dom.el("div", { class: "bar" }, Dom.el("label", {}, "Head", head),
    Dom.el("label", {}, "Query", query));
  let made = null, off = null, hover = -1, height = 0;

  // The cells that get a line, light ones first, and how many others there are.
  const picked = new WeakMap();
  const pick = (sheet, row) => {
    if (row < 0 && picked.has(sheet)) return picked.get(sheet);
    const { data, cols } = sheet.matrix, cells = [];
    const end = row < 0 ? data.length : (row + 1) * cols;
    for (let at = row < 0 ? 0 : row * cols; at < end; at++) if (data[at] > 0) cells.push(at);
    const most = row < 0 && sheet.rows.length > FEW ? MOST_OF_ALL : MOST;
    const least = Float32Array.from(cells, (at) => data[at]).sort().at(-most) || 0;
    const heavy = cells.filter((at) => data[at] >= least).sort((a, b) => data[a] - data[b])
      .slice(-most);
    const lines = { heavy, left: cells.length - heavy.length, top: heavy.slice(-5).reverse() };
    if (row < 0) picked.set(sheet, lines);
    return lines;
  };
  const say = ({ rows, cols, matrix }, row, { heavy, left, top }) => {
    const drawn = `lines: ${heavy.length}${left ? `, too light for one: ${left}` : ""}`;
    if (row < 0) return `queries: ${rows.length}, keys: ${cols.length}, ${drawn}`;
    const name = rows[row] === String(row) ? "" : ` “${rows[row]}”`;
    const keys = top.map((at) => `“${cols[at % cols.length]}” ${Format.short(matrix.data[at])}`);
    return `query ${row}${name} → ${keys.join(", ") || "nothing"}; ${drawn}`;
  };

  const y = (i, n) => (i + 0.5) * height / n;
  const side = (ink, names, x, out, first, hidden) => {
    const n = names.length, every = Math.ceil(14 * n / height);
    ink.textAlign = out > x ? "left" : "right";
    for (let i = 0; i < n; i++) {
      const chosen = first.includes(i);
      if (!chosen && (i % every || first.some((one) => Math.abs(one - i) < every))) continue;
      ink.fillStyle = chosen ? ink.text : ink.soft;
      ink.globalAlpha = hidden(i) ? 0.4 : 1;
      const gap = out > x ? 6 : -6;
      ink.fillText(Heatmap.brief(names[i])[0], x + gap, y(i, n), Math.abs(out - x - gap));
    }
  };
  const paint = (sheet, row, { heavy, top }) => {
    const { rows, cols, matrix: { data }, high, seen } = sheet, style = getComputedStyle(panel);
    const width = Math.min(760, scroller.clientWidth), fine = Math.min(2, devicePixelRatio);
    Object.assign(canvas, { width: width * fine, height: height * fine });
    canvas.style.width = `${width}px`;
    const ink = canvas.getContext("2d"), colour = (name) => style.getPropertyValue(`--${name}`);
    const room = (names) =>
      Math.min(0.3 * width, 16 + 1.1 * Math.max(0, ...names.map((name) => Heatmap.brief(name)[1])));
    const left = room(rows), right = width - room(cols), n = cols.length;
    const thick = Math.min(6, 0.8 * height / Math.max(rows.length, row < 0 ? n : 1));
    ink.scale(fine, fine);
    Object.assign(ink, { font: `13px ${style.fontFamily}`, textBaseline: "middle",
      strokeStyle: colour("accent"), text: colour("text"), soft: colour("soft") });
    for (const at of heavy) {
      const share = Math.min(1, data[at] / high);
      ink.globalAlpha = 0.15 + 0.85 * share;
      ink.lineWidth = 0.5 + thick * share;
      ink.beginPath();
      ink.moveTo(left, y(Math.floor(at / n), rows.length));
      ink.lineTo(right, y(at % n, n));
      ink.stroke();
    }
    const one = row >= 0;
    side(ink, rows, left, 0, one ? [row] : [], () => false);
    side(ink, cols, right, width, one ? top.map((at) => at % n) : [],
      (j) => one && !seen[row * n + j]);
  };

  const options = (select, list, value) => {
    Dom.fill(select, list.map(([name, label]) =>
      Dom.el("option", { value: name }, label.slice(0, 60))));
    select.value = value;
  };
  const make = (sheet) => {
    const answer = State.get("answer"), view = State.get("view");
    off = State.get("off");
    options(head, Answer.faces(answer, view.item).map((face) =>
      [face.head, face.label + (off.includes(face.head) ? " (off)" : "")]),
      Answer.face(answer, view).head);
    options(query, [[-1, "all"], ...sheet.rows.entries()]);
    hover = -1;
    height = Math.max(160, Math.min(TALL, STEP * Math.max(sheet.rows.length, sheet.cols.length)));
  };
  const draw = () => {
    if (panel.hidden) return;
    const sheet = Look.sheet(), { row } = State.get("view");
    tools.hidden = scroller.hidden = !sheet;
    if (sheet && (sheet !== made || off !== State.get("off"))) make(sheet);
    made = sheet;
    if (!sheet) return Dom.fill(text, "There are no weights to draw.");
    query.value = row;
    const shown = hover < 0 ? row : hover, lines = pick(sheet, shown);
    Dom.fill(text, say(sheet, shown, lines));
    paint(sheet, shown, lines);
  };

  const point = (to) => {
    if (to === hover) return;
    hover = to;
    draw();
  };
  const under = ({ offsetX, offsetY }) => {
    const n = made.rows.length, i = Math.floor(offsetY / height * n);
    return offsetX < canvas.clientWidth / 2 ? Math.max(0, Math.min(n - 1, i)) : -1;
  };
  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (event) => State.view({ row: under(event) }));
  scroller.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], n = made.rows.length;
    if (!step) return;
    event.preventDefault();
    const row = Math.max(-1, Math.min(n - 1, State.get("view").row + step));
    State.view({ row });
    scroller.scrollTop = y(row, n) - scroller.clientHeight / 2;
  });

  panel.append(tools, scroller, text);
  State.on(["answer", "labels", "body", "dark", "off", "view"], draw);
  document.addEventListener("show", draw);
  new ResizeObserver(draw).observe(scroller);
})();
