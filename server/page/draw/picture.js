// picture: a sheet (heatmap.js) as a picture to be saved, on paper: with its title, the names of
// its axes, labels and the colors' legend.
//
// Picture.svg(sheet) -> an SVG element. More than VECTOR cells become an image in it, with a pixel for each;
// sheet.down names the rows, if they are no queries; sheet.texts: the texts of the cells in place of their numbers.
// Picture.table({ title, rows, cols, data, high, ... }) -> one of a table of numbers, row by row, none of them masked.
// Picture.beside(title, drawn) -> an SVG element with some such elements in a row. Picture.heads(title, list, isShared) -> an SVG element of many heads,
// { row, head, matrix, seen, high }: a line of pictures for each row. Picture.frame(title, width, height,
// ...nodes) -> an SVG element with a title and the nodes on white. Picture.text(drawn): the text of its file.
// Picture.png(drawn) -> a promise of a Blob: the same in pixels; it rejects if the browser cannot draw it.
// needs: dom format scale heatmap shrink
const Picture = (() => {
  const VECTOR = 40000, SIDE = 800, LARGEST = 48, PRINTED = 44, LEGEND = 160, FOOT = 64;
  const TILE = 64, STEP = 72; // a head among others
  const PIXELS = 4096;
  // SVG's colors have commas.
  const tintOf = (sheet) => {
    const tint = Scale.tint(sheet, true), css = (t) => tint.css(t).replaceAll(" ", ",");
    return { ...tint, css, of: (weight) => css(tint.at(weight)), inkOf: (weight) => tint.ink(tint.at(weight)) };
  };

  // Characters that XML cannot hold are replaced.
  const clean = (text) =>
    text.slice(0, 200).replace(/[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  const text = (place, words) => svg("text", { fill: "#333", ...place }, clean(words));

  // A rectangle for each run of cells of one color; none for cells without a color.
  const stretches = ({ rows, cols }, size, fillOf) => {
    const list = [];
    for (let i = 0; i < rows; i++)
      for (let j = 0, from = 0, last; j <= cols; j++) {
        const fill = j < cols ? fillOf(i * cols + j) : undefined;
        if (fill === last) continue;
        if (last)
          list.push(svg("rect", { x: from * size, y: i * size, width: (j - from) * size,
            height: size, fill: last }));
        [from, last] = [j, fill];
      }
    return list;
  };
  const weighs = ({ matrix, seen }, at) => seen[at] || matrix.data[at] > 0;
  const vector = (sheet, size) => {
    const { matrix, seen } = sheet, tint = tintOf(sheet), zero = tint.of(0);
    return [...stretches(matrix, size, (at) => {
      const fill = weighs(sheet, at) ? tint.of(matrix.data[at]) : null;
      return fill === zero ? null : fill;
    }), ...stretches(matrix, size, (at) => (seen[at] ? null : "url(#hidden)"))];
  };
  const pixels = (sheet) => {
    const most = Math.max(sheet.matrix.rows, sheet.matrix.cols);
    const small = Shrink.of(sheet, Math.ceil(most / PIXELS));
    const { matrix: { rows, cols, data } } = small, image = new ImageData(cols, rows);
    const canvas = el("canvas", { width: cols, height: rows });
    const out = new Uint32Array(image.data.buffer), { words, at: t } = tintOf(small);
    for (let at = 0; at < out.length; at++)
      out[at] = weighs(small, at) ? words[Scale.index(t(data[at]))]
        : (at % cols + Math.floor(at / cols)) % 4 ? 0xffffffff : 0xff999999;
    canvas.getContext("2d").putImageData(image, 0, 0);
    return { href: canvas.toDataURL(), "image-rendering": "pixelated", preserveAspectRatio: "none" };
  };
  const raster = (sheet, size) => [svg("image", { width: sheet.matrix.cols * size,
    height: sheet.matrix.rows * size, ...pixels(sheet) })];

  // Numbers, if there is room, lines at the ends of segments, and rings at the keys of pointers.
  const numbers = ({ texts, ...sheet }, size) => {
    const { matrix: { cols, data }, seen } = sheet, { inkOf } = tintOf(sheet);
    return Array.from(data, (weight, at) => (seen[at] ? text({ x: (at % cols + 0.5) * size, "font-size": 11,
      "text-anchor": "middle", y: (Math.floor(at / cols) + 0.5) * size + 4, fill: inkOf(weight) },
    texts ? texts[at].slice(0, 7) : Format.weight(weight)) : null));
  };
  const marks = ({ matrix: { rows, cols, data }, high, cuts, pointers }, size) => [
    ...cuts.filter((key) => key > 0 && key < cols).map((key) =>
      svg("path", { d: `M${key * size} 0V${rows * size}`, stroke: "#000" })),
    ...(pointers || []).map((key, i) => (key < 0 ? null
      : svg("circle", { cx: (key + 0.5) * size, cy: (i + 0.5) * size, r: size / 4, fill: "none",
        stroke: Scale.paper().ink(data[i * cols + key] / high) })))];
  const words = (list, size, put) => list.map((word, i) =>
    (i % Math.ceil(14 / size) ? null : text(put((i + 0.5) * size + 4), Heatmap.brief(word)[0])));
  const edge = (list) =>
    44 + 1.1 * list.reduce((most, word) => Math.max(most, Heatmap.brief(word)[1]), 0);
  const least = ({ high, apart }) => (apart ? Format.short(-high) : "0");
  const legend = (sheet, y, end = Format.short(sheet.high), id = sheet.apart ? "differences" : "weights") => [
    svg("linearGradient", { id }, Array.from({ length: 17 }, (_, i) =>
      svg("stop", { offset: i / 16, "stop-color": tintOf(sheet).css(i / 16) }))),
    svg("rect", { y, width: LEGEND, height: 12, fill: `url(#${id})`, stroke: "#bbb" }),
    text({ y: y + 28 }, least(sheet)),
    text({ x: LEGEND, y: y + 28, "text-anchor": "end" }, end),
    svg("rect", { x: LEGEND + 24, y, width: 22, height: 12, fill: "url(#hidden)", stroke: "#bbb" }),
    text({ x: LEGEND + 54, y: y + 11 }, "masked")];

  const hatch = () => svg("pattern", { id: "hidden", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    svg("path", { d: "M-1 1L1-1M0 6L6 0M5 7L7 5", stroke: "#888" }));
  const frame = (title, width, height, ...nodes) => svg("svg", { width, height, "font-size": 12,
    viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" }, svg("rect", { width, height, fill: "#fff" }),
  text({ x: 20, y: 26, "font-size": 14 }, title), ...nodes);
  const draw = (sheet) => {
    const { matrix, rows, cols, high, texts } = sheet, isLarge = matrix.data.length > VECTOR;
    const room = SIDE / Math.max(matrix.rows, matrix.cols);
    const size = isLarge ? Math.max(0.25, room) : Math.max(texts ? LARGEST : 2, Math.min(LARGEST, Math.floor(room)));
    const left = edge(rows), top = 30 + edge(cols);
    const wide = matrix.cols * size, tall = matrix.rows * size;
    const title = `${sheet.title}, ${least(sheet)} to ${Format.short(high)}`;
    const width = left + Math.max(wide, LEGEND + 110, 7.5 * title.length - left + 40) + 20;
    const height = top + tall + FOOT;
    return frame(title, width, height, hatch(), svg("g", { transform: `translate(${left} ${top})` },
      svg("g", { "shape-rendering": "crispEdges" }, (isLarge ? raster : vector)(sheet, size)),
      svg("rect", { width: wide, height: tall, fill: "none", stroke: "#bbb" }),
      size >= PRINTED ? numbers(sheet, size) : null, marks(sheet, size),
      words(rows, size, (y) => ({ x: -6, y, "text-anchor": "end" })),
      words(cols, size, (x) => ({ transform: `translate(${x} -6) rotate(-90)` })),
      text({ x: wide / 2, y: 46 - top, "text-anchor": "middle" }, sheet.across || "keys"),
      text({ transform: `translate(${18 - left} ${tall / 2}) rotate(-90)`,
        "text-anchor": "middle" }, sheet.down || "queries"), legend(sheet, tall + 16)));
  };
  const table = (sheet) => draw({ ...sheet, rows: sheet.rows.map(String), seen: sheet.data.map(() => 1), cuts: [], pointers: null,
    matrix: { rows: sheet.rows.length, cols: sheet.cols.length, data: Float32Array.from(sheet.data) } });
  const beside = (title, drawn) => {
    let width = 0, height = 0;
    for (const one of drawn) {
      one.setAttribute("x", width);
      one.setAttribute("y", 32);
      width += Number(one.getAttribute("width"));
      height = Math.max(height, Number(one.getAttribute("height")));
    }
    return frame(title, width, height + 32, drawn);
  };
  const heads = (title, list, isShared) => {
    const rows = Map.groupBy(list, ({ row }) => row), most = Math.max(...list.map(({ head }) => head || 0)) + 1;
    const wide = (i) => 150 + i * STEP, tall = (i) => 66 + i * STEP, under = tall(rows.size);
    return frame(title, Math.max(wide(most) + 14, 20 + 7.5 * title.length), under + FOOT, hatch(),
      Array.from({ length: most }, (_, head) => text({ x: wide(head) + TILE / 2, y: 58, "text-anchor": "middle" }, `head ${head}`)),
      [...rows].map(([name, own], i) => [text({ x: 20, y: tall(i) + TILE / 2 + 4 }, name), own.map((one) =>
        svg("g", { transform: `translate(${wide(one.head || 0)} ${tall(i)})` },
          svg("image", { width: TILE, height: TILE, ...pixels(one) }),
          svg("rect", { width: TILE, height: TILE, fill: "none", stroke: "#bbb" })))]).flat(2),
      svg("g", { transform: "translate(150 0)" }, legend(list[0], under + 8,
        isShared ? undefined : "the largest weight of each head")));
  };

  const FINE = 2, MOST = 32000;
  const spelt = (drawn) => new XMLSerializer().serializeToString(drawn);
  const png = async (drawn) => {
    const file = new Blob([spelt(drawn)], { type: "image/svg+xml" });
    const [width, height] = ["width", "height"].map((name) => Number(drawn.getAttribute(name)));
    const image = new Image(width, height), fine = Math.max(width, height) * FINE > MOST ? 1 : FINE;
    const free = Dom.show(image, file);
    await image.decode();
    const canvas = el("canvas", { width: fine * width, height: fine * height });
    const context = canvas.getContext("2d");
    context.scale(fine, fine);
    context.drawImage(image, 0, 0, width, height);
    free();
    const blob = await new Promise((done) => canvas.toBlob(done));
    if (!blob) throw new Error("the browser has no room for it");
    return blob;
  };
  return { svg: draw, table, beside, heads, frame, text: spelt, png };
})();
