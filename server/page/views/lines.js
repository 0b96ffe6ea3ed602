// lines: the tab Head view: queries left, keys right, and a line for each weight, as thick and as opaque
// as it is large. It shows the chosen head, and others beside it, each in its color: that of its button.
//
// The lines are those of one query, of one key, or of all (State.view.row is -1). A query is chosen by
// the pointer, by arrow keys, or by its name; a key is shown while the pointer is on it. Bars behind the
// words of the other side are as long as their weights. The picture is a canvas; a text below describes
// the chosen head. Only the MOST largest weights get a line, and fewer still for many queries, whose
// lines would be one surface.
// needs: dom format rove scale state answer heatmap picture look save
(() => {
  const MOST = 4000, MOST_OF_ALL = 400, FEW = 64, STEP = 22, TALL = 3000;
  const NOTHING = { row: -1, col: -1 };
  const panel = id("lines"), text = el("p", { "aria-live": "polite", id: "lines-text" });
  const canvas = el("canvas", { role: "img", "aria-labelledby": "lines-text" });
  const scroller = el("div", { tabindex: 0, role: "group",
    "aria-label": "Head view; the arrow keys choose a query" }, canvas);
  const head = el("select", { onchange: () =>
    State.show({ head: head.value === "mean" ? "mean" : Number(head.value) }) });
  const query = el("select", { onchange: () => State.show({ row: Number(query.value) }) });
  const also = el("div", { id: "lines-also", role: "group", "aria-label": "Other heads to show" });
  const tools = el("div.bar", el("label", "Head", head),
    el("label", "Query", query), also);
  const beside = new Set();
  let made = null, off = null, hover = NOTHING, height = 0;

  // The cells that get a line, light ones first, and the number of the others.
  const picked = new WeakMap();
  const pick = (matrix, { row, col }) => {
    const { data, rows, cols } = matrix, isAll = row < 0 && col < 0, cells = [];
    if (isAll && picked.has(matrix)) return picked.get(matrix);
    const from = row < 0 ? Math.max(0, col) : row * cols, step = col < 0 ? 1 : cols;
    const end = row < 0 ? data.length : (row + 1) * cols;
    for (let at = from; at < end; at += step) if (data[at] > 0) cells.push(at);
    const most = isAll && rows > FEW ? MOST_OF_ALL : MOST;
    const least = Float32Array.from(cells, (at) => data[at]).sort().at(-most) || 0;
    const heavy = cells.filter((at) => data[at] >= least).sort((a, b) => data[a] - data[b])
      .slice(-most);
    const lines = { heavy, left: cells.length - heavy.length, least, top: heavy.slice(-5).reverse() };
    if (isAll) picked.set(matrix, lines);
    return lines;
  };
  const say = ({ rows, cols, matrix }, { row, col }, { heavy, left, least, top }) => {
    const drawn = `lines: ${heavy.length}${left ? `, ${Format.whole(left)} weights below the threshold ${Format.weight(least)}` : ""}`;
    if (row < 0 && col < 0) return `queries: ${rows.length}, keys: ${cols.length}, ${drawn}`;
    const named = (words, i) => (words[i] === String(i) ? "" : ` “${words[i]}”`);
    const ends = top.map((at) => {
      const word = row < 0 ? rows[Math.floor(at / cols.length)] : cols[at % cols.length];
      return `“${word}” ${Format.weight(matrix.data[at])}`;
    }).join(", ") || "nothing";
    return row < 0 ? `key ${col}${named(cols, col)} ← ${ends}; ${drawn}`
      : `query ${row}${named(rows, row)} → ${ends}; ${drawn}`;
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
  const layers = (sheet) => {
    const faces = Answer.faces(State.answer, State.view.item);
    const { head: own } = Answer.face(State.answer, State.view);
    return [{ matrix: sheet.matrix, color: faces.length > 1 && own !== "mean" ? Scale.hue(own) : null }, ...faces.filter((face) => beside.has(face.head)
      && face.matrix !== sheet.matrix).map((face) => ({ ...face, color: Scale.hue(face.head) }))];
  };
  const paint = (sheet, at, all) => {
    const { rows, cols, high, seen } = sheet, style = getComputedStyle(panel), { row, col } = at;
    const width = Math.min(760, scroller.clientWidth), fine = Math.min(2, devicePixelRatio);
    Object.assign(canvas, { width: width * fine, height: height * fine });
    canvas.style.width = `${width}px`;
    const ink = canvas.getContext("2d"), color = (name) => style.getPropertyValue(`--${name}`);
    const room = (names) =>
      Math.min(0.3 * width, 16 + 1.1 * Math.max(0, ...names.map((name) => Heatmap.brief(name)[1])));
    const left = room(rows), right = width - room(cols), n = cols.length, one = row >= 0 || col >= 0;
    const thick = Math.min(6, 0.8 * height / Math.max(rows.length, one ? 1 : n));
    ink.scale(fine, fine);
    Object.assign(ink, { font: `13px ${style.fontFamily}`, textBaseline: "middle",
      text: color("text"), soft: color("soft") });
    for (const [k, { lines, matrix: { data }, color: own }] of all.entries()) {
      ink.strokeStyle = ink.fillStyle = own || color("accent");
      for (const cell of lines.heavy) {
        const share = Math.min(1, data[cell] / (lines.left ? 1 : high)), from = y(Math.floor(cell / n), rows.length);
        const to = y(cell % n, n), tall = Math.min(18, height / (row < 0 ? rows.length : n)) / all.length;
        ink.globalAlpha = 0.15 + 0.85 * share;
        ink.lineWidth = 0.5 + thick * share;
        ink.beginPath();
        ink.moveTo(left, from);
        ink.lineTo(right, to);
        ink.stroke();
        if (!one) continue;
        ink.globalAlpha = 0.3;
        const top = (row < 0 ? from : to) + (k - all.length / 2) * tall;
        const long = share * (row < 0 ? left : width - right);
        ink.fillRect(row < 0 ? left - long : right, top, long, tall);
      }
    }
    const top = all[0].lines.top, ends = one ? top.map((cell) =>
      (row < 0 ? Math.floor(cell / n) : cell % n)) : [];
    side(ink, rows, left, 0, row < 0 ? ends : [row], () => false);
    side(ink, cols, right, width, col < 0 ? ends : [col], (j) => row >= 0 && !seen[row * n + j]);
  };

  // figure: the lines of the canvas, to be saved, on white, without bars.
  const figure = () => {
    const sheet = Look.sheet(), { row } = State.view, WIDE = 760, TOP = 44, EDGE = 160;
    if (!sheet) return null;
    const { rows, cols, high, title } = sheet, at = { row, col: -1 };
    const word = (names, x, anchor) => names.map((name, i) => svg("text", { x, y: TOP + y(i, names.length) + 4,
      "text-anchor": anchor }, Heatmap.brief(name)[0]));
    const every = (names, nodes) => nodes.filter((_, i) => i % Math.ceil(14 * names.length / height) === 0);
    return Picture.frame(title, WIDE, height + TOP + 16, layers(sheet).flatMap(({ matrix, color }) => {
      const { heavy, left } = pick(matrix, at);
      return heavy.map((cell) => {
        const share = Math.min(1, matrix.data[cell] / (left ? 1 : high));
        return svg("line", { x1: EDGE, x2: WIDE - EDGE, y1: TOP + y(Math.floor(cell / cols.length), rows.length),
          y2: TOP + y(cell % cols.length, cols.length), stroke: color || "#1f5a8c",
          "stroke-opacity": 0.15 + 0.85 * share, "stroke-width": 0.5 + 6 * share });
      });
    }), every(rows, word(rows, EDGE - 6, "end")), every(cols, word(cols, WIDE - EDGE + 6, "start")));
  };
  // table: a row for each line.
  function* table(sheet, row) {
    yield ["head", ...Save.COLUMNS.slice(0, 5)];
    const { rows, cols } = sheet, { head } = Answer.face(State.answer, State.view);
    for (const { matrix, head: own = head } of layers(sheet))
      for (const cell of pick(matrix, { row, col: -1 }).heavy.toReversed()) {
        const i = Math.floor(cell / cols.length), j = cell % cols.length;
        yield [own, i, rows[i], j, cols[j], matrix.data[cell]];
      }
  }
  const make = (sheet) => {
    const { answer, view } = State;
    off = State.off;
    Dom.options(head, Answer.faces(answer, view.item).map((face) =>
      [face.head, face.label + (off.includes(face.head) ? " (disabled)" : "")]),
      Answer.face(answer, view).head);
    Dom.options(query, [[-1, "all"], ...sheet.rows.map((word, i) => [i, word.slice(0, 60)])]);
    hover = NOTHING;
    height = Math.max(160, Math.min(TALL, STEP * Math.max(sheet.rows.length, sheet.cols.length)));
    const faces = Answer.faces(answer, view.item).filter((face) => face.head !== "mean");
    also.hidden = faces.length < 2;
    fill(also, faces.map((face) => {
      const isShown = face.head === Answer.face(answer, view).head;
      const box = el("button", { disabled: isShown, "aria-label": face.label,
        title: isShown ? `${face.label} is shown` : `Also show ${face.label}`,
        "aria-pressed": String(isShown || beside.has(face.head)), onclick: () => toggle(face.head, box) },
      String(face.head));
      box.style.setProperty("--hue", Scale.hue(face.head));
      return box;
    }));
    Rove.tidy(also);
  };
  const toggle = (one, box) => {
    if (!beside.delete(one)) beside.add(one);
    box.ariaPressed = beside.has(one);
    draw();
  };
  Rove.in(also, "button");
  const draw = () => {
    if (panel.hidden) return;
    const sheet = Look.sheet(), { row } = State.view;
    tools.hidden = scroller.hidden = save.hidden = !sheet;
    if (sheet && (sheet !== made || off !== State.off)) make(sheet);
    made = sheet;
    if (!sheet) return fill(text, "There are no weights to draw.");
    query.value = row;
    const at = hover === NOTHING ? { row, col: -1 } : hover;
    const all = layers(sheet).map((one) => ({ ...one, lines: pick(one.matrix, at) }));
    fill(text, say(sheet, at, all[0].lines));
    paint(sheet, at, all);
  };

  const point = (to) => {
    if (to.row === hover.row && to.col === hover.col) return;
    hover = to;
    draw();
  };
  const under = ({ offsetX, offsetY }) => {
    const part = offsetX / canvas.clientWidth, place = (n) =>
      Math.max(0, Math.min(n - 1, Math.floor(offsetY / height * n)));
    if (part < 0.5) return { row: place(made.rows.length), col: -1 };
    return part < 0.7 ? NOTHING : { row: -1, col: place(made.cols.length) };
  };
  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => point(NOTHING));
  canvas.addEventListener("click", (event) => State.show({ row: under(event).row }));
  scroller.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], n = made.rows.length;
    if (!step) return;
    event.preventDefault();
    const row = Math.max(-1, Math.min(n - 1, State.view.row + step));
    State.show({ row });
    scroller.scrollTop = y(row, n) - scroller.clientHeight / 2;
  });

  const save = Save.row(() => "lines", { svg: figure, csv: () => Look.sheet() && table(Look.sheet(), State.view.row) });
  panel.append(tools, scroller, text, save);
  State.on(["answer", "labels", "body", "dark", "off", "view"], draw, panel);
  new ResizeObserver(draw).observe(scroller);
})();
