// heatmap: draws a matrix of weights on a canvas, with its labels. It uses nothing of the page except
// its colors.
//
// A sheet is the content of a drawing:
//   { title, matrix, seen, high, rows, cols, cuts, pointers, numbered, apart, across }
//     seen: from Visible.of; high: from Scale.high; rows, cols: a word for each query and key;
//     cuts: keys before which a line is drawn; pointers: a key for each query, or null; numbered:
//     the words are numbers, and some may be omitted; apart: the numbers are differences, from -high
//     to high; across: what the columns are, if not keys
// A place is its position, all in device pixels:
//   { left, top, turned, cell, ratio, width, height, x, y, row, col, over }
//     left, top, turned: from Heatmap.box; cell: the side of a cell, a whole number; ratio:
//     devicePixelRatio; width, height: of the canvas; x, y: the scroll offset; row, col: the chosen
//     query and key, or -1; over: { row, col } under the pointer, or -1
//
// Heatmap.box(sheet, cell, ratio) -> { left, top, turned }: the position of cell 0, 0 (cell i, j is at
//   left + j * cell - x, top + i * cell - y), and whether the words of keys are written upwards.
// Heatmap.draw(context, sheet, place): draws the part that is visible on the canvas.
// Heatmap.small(canvas, sheet): draws without labels, with a pixel for each cell, or for the maximum
//   of a block of cells; masked cells are transparent. A generator, to be run in slices.
// Heatmap.brief(word) -> [the word, cut to the room of a
//   label, its width in CSS pixels].
// needs: format scale
const Heatmap = (() => {
  const SMALL = 256, LARGEST = 48, HATCH = 6, TEXT = 12, WORD = 132, AXIS = 16;
  const pen = document.createElement("canvas").getContext("2d");

  // The page's colors as #rrggbb: the pen converts the notation of the style sheet.
  const theme = () => {
    const style = getComputedStyle(document.documentElement), colors = {};
    for (const name of ["back", "text", "soft", "edge", "accent"]) {
      pen.fillStyle = style.getPropertyValue(`--${name}`);
      colors[name] = pen.fillStyle;
    }
    return colors;
  };
  const solid = (word) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(word.slice(at, at + 2), 16));
    return 0xff000000 | (b << 16) | (g << 8) | r;
  };
  const font = (size, ratio) => `${Math.round(size * ratio)}px system-ui, sans-serif`;

  // Words are cut and measured once.
  const measured = new Map();
  const cut = (word) => {
    pen.font = font(TEXT, 1);
    const wide = (text) => pen.measureText(text).width, letters = [...word.slice(0, WORD)];
    if (letters.length === [...word].length && wide(word) <= WORD) return [word, wide(word)];
    let few = 0, many = letters.length;
    while (few < many) {
      const half = Math.ceil((few + many) / 2);
      if (wide(`${letters.slice(0, half).join("")}…`) <= WORD) few = half;
      else many = half - 1;
    }
    const text = `${letters.slice(0, few).join("")}…`;
    return [text, wide(text)];
  };
  const brief = (word) => {
    if (measured.size > 20000) measured.clear();
    if (!measured.has(word)) measured.set(word, cut(word));
    return measured.get(word);
  };
  const widest = (words, ratio) =>
    ratio * words.reduce((most, word) => Math.max(most, brief(word)[1]), 0);
  const box = ({ rows, cols, numbered }, cell, ratio) => {
    const wide = widest(cols, ratio);
    const turned = wide + 6 * ratio > cell && !numbered
      && cols.some((word, j) => word !== String(j));
    return { left: Math.ceil(widest(rows, ratio) + (10 + AXIS) * ratio), turned,
      top: Math.ceil((turned ? wide : TEXT * ratio) + (10 + AXIS) * ratio) };
  };

  // The first visible cell of n, and the one after the last.
  const inSight = (from, room, cell, n) =>
    [Math.floor(from / cell), Math.min(n, Math.ceil((from + room) / cell))];
  const sights = ({ matrix }, { left, top, cell, width, height, x, y }) =>
    [...inSight(y, height - top, cell, matrix.rows),
      ...inSight(x, width - left, cell, matrix.cols)];

  // The last picture of a sheet is cached: visible cells are the same while the cursor moves.
  const pictures = new WeakMap();
  const cells = (context, sheet, place, colors) => {
    const { left, top, cell, ratio, x, y } = place, { rows, cols } = sheet.matrix;
    const width = Math.min(place.width - left, cols * cell - x);
    const height = Math.min(place.height - top, rows * cell - y);
    if (width <= 0 || height <= 0) return;
    const key = [width, height, cell, ratio, x, y, colors.back].join();
    if (pictures.get(sheet)?.key !== key)
      pictures.set(sheet, { key, image: imageOf(sheet, place, colors, [width, height]) });
    context.putImageData(pictures.get(sheet).image, left, top);
  };
  const imageOf = (sheet, place, colors, [width, height]) => {
    const { cell, ratio, x: dx, y: dy } = place, { matrix, seen } = sheet;
    const image = new ImageData(width, height), out = new Uint32Array(image.data.buffer);
    const back = solid(colors.back), edge = solid(colors.edge), tint = Scale.tint(sheet);
    const stroke = Math.round(ratio), period = Math.round(HATCH * ratio);
    const gap = cell >= 12 * ratio ? stroke : 0;
    const [first, end] = inSight(dx, width, cell, matrix.cols);
    out.fill(back);
    for (let y = 0; y < height; y++) {
      const i = Math.floor((y + dy) / cell), below = y + dy >= (i + 1) * cell - gap;
      for (let j = first; j < end; j++) {
        const at = i * matrix.cols + j, weight = matrix.data[at], hidden = !seen[at];
        if (below && !hidden) continue;
        const fill = hidden && !(weight > 0) ? back : tint.words[Scale.index(tint.at(weight))];
        const stop = Math.min(width, (j + 1) * cell - (hidden ? 0 : gap) - dx);
        for (let x = Math.max(0, j * cell - dx); x < stop; x++)
          out[y * width + x] = hidden && (x + dx + y + dy) % period < stroke ? edge : fill;
      }
    }
    return image;
  };

  // The words of one side: every first, second, fifth, tenth, ..., as the room allows, and always
  // that of the current cell.
  const words = (context, list, [first, end, needed, at], cell, colors, spot) => {
    let power = 1;
    while (5 * power * cell < needed) power *= 10;
    const step = power * [1, 2, 5].find((n) => n * power * cell >= needed);
    for (let i = first; i < end; i++) {
      if (i !== at && (i % step || (at >= 0 && Math.abs(i - at) < step))) continue;
      context.save();
      context.fillStyle = i === at ? colors.accent : colors.soft;
      context.translate(...spot((i + 0.5) * cell));
      if (context.textAlign === "left") context.rotate(-Math.PI / 2);
      context.fillText(brief(list[i])[0], 0, 0);
      context.restore();
    }
  };
  const labels = (context, sheet, place, colors) => {
    const { left, top, turned, cell, ratio, width, height, x, y, over } = place;
    const row = over.row < 0 ? place.row : over.row, col = over.col < 0 ? place.col : over.col;
    const [i, iEnd, j, jEnd] = sights(sheet, place), line = TEXT * 1.2 * ratio;
    const wide = turned ? line : widest(sheet.cols, ratio) + 6 * ratio;
    context.font = font(TEXT, ratio);
    context.textAlign = "right";
    within(context, [0, top - 8 * ratio, left, height], () =>
      words(context, sheet.rows, [i, iEnd, line, row], cell, colors,
        (at) => [left - 6 * ratio, top + at - y]));
    context.textAlign = turned ? "left" : "center";
    within(context, [left - 8 * ratio, 0, width, top], () =>
      words(context, sheet.cols, [j, jEnd, wide, col], cell, colors,
        (at) => [left + at - x, top - (turned ? 5 : TEXT / 2 + 5) * ratio]));
    axes(context, sheet, place, colors);
  };
  const axes = (context, { matrix: { rows, cols }, across }, { left, top, cell, ratio, width, height }, colors) => {
    context.fillStyle = colors.soft;
    context.textAlign = "center";
    const middle = (room, n) => Math.max(24 * ratio, Math.min(room, n * cell) / 2);
    context.fillText(across || "keys", left + middle(width - left, cols), AXIS / 2 * ratio);
    context.save();
    context.translate(AXIS / 2 * ratio, top + middle(height - top, rows));
    context.rotate(-Math.PI / 2);
    context.fillText("queries", 0, 0);
    context.restore();
  };

  // Cells contain numbers, if there is room, and rings at the keys of pointers.
  const marks = (context, sheet, place) => {
    const { matrix, seen, pointers } = sheet, { left, top, cell, ratio, x, y } = place;
    const tint = Scale.tint(sheet);
    const printed = cell >= 44 * ratio;
    if (!printed && (!pointers || cell < 4 * ratio)) return;
    const [first, end, from, to] = sights(sheet, place);
    context.font = font(11, ratio);
    context.textAlign = "center";
    context.lineWidth = 1.5 * ratio;
    for (let i = first; i < end; i++)
      for (let j = from; j < to; j++) {
        const weight = matrix.data[i * matrix.cols + j];
        const spot = [left + j * cell - x, top + i * cell - y], half = cell / 2;
        context.fillStyle = tint.ink(tint.at(weight));
        context.strokeStyle = context.fillStyle;
        if (printed && seen[i * matrix.cols + j])
          context.fillText(Format.weight(weight), spot[0] + half, spot[1] + half);
        if (pointers && Number(pointers[i]) === j) ring(context, spot, cell, printed);
      }
  };
  const ring = (context, [x, y], cell, aside) => {
    const [across, down, radius] = aside ? [0.8, 0.2, 0.08] : [0.47, 0.47, 0.28];
    context.beginPath();
    context.arc(x + cell * across, y + cell * down, cell * radius, 0, 2 * Math.PI);
    context.stroke();
  };

  // Lines mark the ends of segments and the chosen query and key, thin ones those under the pointer.
  const lines = (context, { matrix: { rows, cols }, cuts }, place, colors) => {
    const { left, top, cell, ratio, x, y, row, col, over } = place, a = left - x, b = top - y;
    const shapes = cuts.filter((key) => key > 0 && key < cols)
      .map((key) => [a + key * cell, b, 0, rows * cell]);
    const around = (left, top, width, height) => shapes.push(
      [left - 2 * ratio, top - 2 * ratio, width + 4 * ratio, height + 4 * ratio]);
    const cross = (i, j) => {
      if (i >= 0) around(a, b + i * cell, cols * cell, cell);
      if (j >= 0) around(a + j * cell, b, cell, rows * cell);
    };
    cross(row, col);
    const strong = shapes.length;
    cross(over.row, over.col);
    for (const [n, shape] of shapes.entries())
      for (const [color, line] of n < strong ? [[colors.back, 4], [colors.text, 2]]
        : [[colors.back, 3], [colors.accent, 1]]) {
        context.strokeStyle = color;
        context.lineWidth = line * ratio;
        context.strokeRect(...shape);
      }
  };

  const within = (context, area, draw) => {
    context.save();
    context.beginPath();
    context.rect(...area);
    context.clip();
    draw();
    context.restore();
  };
  const draw = (context, sheet, place) => {
    const { left, top, width, height, ratio } = place, colors = theme();
    context.fillStyle = colors.back;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    cells(context, sheet, place, colors);
    within(context, [left, top, width, height], () => marks(context, sheet, place));
    within(context, [left - 4 * ratio, top - 4 * ratio, width, height],
      () => lines(context, sheet, place, colors));
    labels(context, sheet, place, colors);
  };

  function* small(canvas, { matrix: { rows, cols, data }, seen, high }) {
    const down = Math.ceil(rows / SMALL), across = Math.ceil(cols / SMALL);
    const image = new ImageData(Math.ceil(cols / across), Math.ceil(rows / down));
    const { width, height } = image, peaks = new Float32Array(width);
    const out = new Uint32Array(image.data.buffer), table = Scale.ramp().words;
    for (let y = 0; y < height; y++) {
      peaks.fill(-1);
      for (let i = y * down; i < Math.min(rows, (y + 1) * down); i++)
        for (let j = 0, at = i * cols; j < cols; j++, at++) {
          const x = Math.floor(j / across);
          if (data[at] > peaks[x] && (seen[at] || data[at] > 0)) peaks[x] = data[at];
        }
      peaks.forEach((peak, x) => {
        if (peak >= 0) out[y * width + x] = table[Scale.index(peak / high)];
      });
      yield;
    }
    Object.assign(canvas, { width, height });
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  return { LARGEST, box, brief, draw, small };
})();
