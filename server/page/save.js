// save: the chosen face as a picture (PNG, SVG) or a table (CSV), and all weights as a long table.
//
// An SVG has a rectangle for each stretch of cells of one colour; with more than VECTOR cells it
// holds the PNG instead. Tables have the numbers of the answer, unrounded, and labels in quotes; a
// label that a spreadsheet would take for a formula gets a ' in front. They are written in slices,
// and not at all if they would have more than MOST cells.
(() => {
  const VECTOR = 40000, MOST = 4e6, SLICE = 30, { svg } = Dom;
  const place = Dom.id("save"), note = Dom.el("span", { class: "soft small", role: "status" });
  const say = (text) => Dom.fill(note, text);

  const keep = (parts, type, what) => Dom.save(new Blob(parts, { type }),
    `attend-${State.get("asked").model}-${what}`.replace(/[^\w.-]/g, "_").slice(-100));
  const faceName = () => {
    const view = State.get("view"), { head } = Answer.face(State.get("answer"), view);
    return `item${view.item}-${head === "mean" ? "" : "head"}${head}`;
  };

  // Characters that XML cannot hold are replaced.
  const clean = (text) =>
    text.slice(0, 200).replace(/[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  const rectangles = ({ rows, cols }, size, fillOf) => {
    const list = [];
    for (let i = 0; i < rows; i++)
      for (let j = 0, from = 0, last; j <= cols; j++) {
        const fill = j < cols ? fillOf(i * cols + j) : null;
        if (j && fill !== last) {
          if (last) list.push(svg("rect", { x: from * size, y: i * size, width: (j - from) * size,
            height: size, fill: last }));
          from = j;
        }
        last = fill;
      }
    return list;
  };
  // Weights, and hatching over hidden keys: these have weights, too, in a row that sees no key if
  // empty_rows is uniform.
  const cells = ({ matrix, seen, high }, size) => [
    ...rectangles(matrix, size, (at) => (seen[at] || matrix.data[at] > 0
      ? Scale.css(matrix.data[at] / high).replaceAll(" ", ",") : null)),
    ...rectangles(matrix, size, (at) => (seen[at] ? null : "url(#hidden)"))];
  // Lines where segments end, and rings where pointers lead.
  const marks = ({ matrix: { rows, cols, data }, high, cuts, pointers }, size) => [
    ...cuts.filter((key) => key > 0 && key < cols).map((key) =>
      svg("path", { d: `M${key * size} 0V${rows * size}`, stroke: "#000" })),
    ...(pointers || []).map((key, i) => (key < 0 ? null
      : svg("circle", { cx: (key + 0.5) * size, cy: (i + 0.5) * size, r: size / 4, fill: "none",
        stroke: Scale.ink(data[i * cols + key] / high) })))];
  const words = (list, size, put) => list.map((word, i) => (i % Math.ceil(14 / size) ? null
    : svg("text", put((i + 0.5) * size + 4), clean(word.slice(0, 24)))));
  const frame = (width, height, ...parts) =>
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif",
      "font-size": 12 }, svg("rect", { width, height, fill: "#fff" }), parts);
  const edge = (list) =>
    30 + 7 * list.reduce((most, word) => Math.max(most, Math.min(24, word.length)), 0);
  const vector = (sheet) => {
    const { rows, cols } = sheet.matrix;
    const title = `${clean(sheet.title)}, 0 to ${Format.short(sheet.high)}`;
    const size = Math.max(2, Math.min(24, Math.floor(800 / Math.max(rows, cols))));
    const left = edge(sheet.rows), top = 30 + edge(sheet.cols);
    return frame(left + Math.max(cols * size, 7 * title.length) + 20, top + rows * size + 20,
      svg("pattern", { id: "hidden", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        svg("path", { d: "M-1 1L1-1M0 6L6 0M5 7L7 5", stroke: "#888" })),
      svg("text", { x: 20, y: 26, "font-size": 14 }, title),
      svg("g", { transform: `translate(${left} ${top})` },
        svg("g", { "shape-rendering": "crispEdges" }, cells(sheet, size)),
        marks(sheet, size),
        words(sheet.rows, size, (y) => ({ x: -6, y, "text-anchor": "end" })),
        words(sheet.cols, size, (x) => ({ transform: `translate(${x} -6) rotate(-90)` }))));
  };
  const embedded = (sheet) => {
    const picture = Heatmap.picture(sheet), { width, height } = picture;
    return frame(width, height, svg("image", { width, height, href: picture.toDataURL(),
      "image-rendering": "pixelated" }));
  };
  const keepSvg = (sheet) => {
    const drawn = sheet.matrix.data.length > VECTOR ? embedded(sheet) : vector(sheet);
    keep([new XMLSerializer().serializeToString(drawn)], "image/svg+xml", `${faceName()}.svg`);
  };
  const keepPng = (sheet) => {
    const name = `${faceName()}.png`;
    Heatmap.picture(sheet).toBlob((blob) => (blob ? keep([blob], blob.type, name) : tooLarge()));
  };
  const tooLarge = () => say("This matrix is too large for a picture.");

  const quoted = (label) =>
    `"${(/^[=+\-@\t\r]/.test(label) ? "'" : "") + label.replaceAll('"', '""')}"`;
  function* wide({ matrix, rows, cols }) {
    yield ["query", ...cols].map(quoted).join();
    for (const [i, row] of rows.entries())
      yield [quoted(row), ...Array.from(Answer.row(matrix, i), Format.float)].join();
  }
  const heads = (answer, item) =>
    Answer.faces(answer, item).filter(({ head }) => answer.average || head !== "mean");
  const quotedCols = (item, n) => Array.from({ length: n }, (_, j) => quoted(Labels.col(item, j)));
  function* long(answer) {
    yield "item,head,query,key,weight,visible";
    for (const item of answer.items.keys())
      for (const { head, matrix } of heads(answer, item)) {
        const seen = Look.seen(item, head), words = quotedCols(item, matrix.cols);
        for (let i = 0; i < matrix.rows; i++) {
          const front = `${item},${head},${quoted(Labels.row(item, i))}`;
          const line = (weight, j) =>
            `${front},${words[j]},${Format.float(weight)},${seen[i * matrix.cols + j]}`;
          yield Array.from(Answer.row(matrix, i), line).join("\r\n");
        }
      }
  }
  const write = async (lines, cells, name) => {
    if (cells > MOST) return say(`${Format.count(cells)} cells are too many for a table.`);
    const parts = [], answer = State.get("answer");
    let end = performance.now() + SLICE;
    for (const line of lines) {
      parts.push(line, "\r\n");
      if (performance.now() < end) continue;
      say("Writing …");
      await new Promise((go) => setTimeout(go));
      if (State.get("answer") !== answer) return say("Another answer came: nothing was saved.");
      end = performance.now() + SLICE;
    }
    say("");
    keep(parts, "text/csv", name);
  };
  const keepTable = (sheet) => write(wide(sheet), sheet.matrix.data.length, `${faceName()}.csv`);
  const keepAll = () => {
    const answer = State.get("answer");
    const faces = [...answer.items.keys()].flatMap((item) => heads(answer, item));
    write(long(answer), faces.reduce((sum, { matrix }) => sum + matrix.data.length, 0), "all.csv");
  };

  const button = (text, use) => Dom.button(text, () => {
    const sheet = Look.sheet(), { item } = State.get("view");
    say("");
    try {
      use({ ...sheet, title: `${State.get("asked").model}, item ${item}, ${sheet.title}` });
    } catch {
      tooLarge();
    }
  });
  place.append("Save as", button("PNG", keepPng), button("SVG", keepSvg), button("CSV", keepTable),
    button("CSV of all heads", keepAll), note);
  State.on(["answer", "labels", "view"], () => {
    place.hidden = !Look.sheet();
  });
  State.on(["answer"], () => say(""));
})();
