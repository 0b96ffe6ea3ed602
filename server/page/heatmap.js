// heatmap: draws a matrix of weights on a canvas, with its labels. It knows nothing of the page
// but its colours.
//
// A sheet is what is drawn:
//   { title, matrix, seen, range, rows, cols, cuts, pointers }
//     seen: of Visible.of; range: of Scale.range; rows, cols: a word for each query and key;
//     cuts: keys before which a line stands; pointers: a key for each query, or null
// A place is where, all in device pixels:
//   { box, cell, ratio, width, height, x, y, row, col }
//     box: of Heatmap.box; cell: a whole number; ratio: of devicePixelRatio; width, height: of the
//     canvas; x, y: how far it is scrolled; row, col: the cell at hand, -1 if none
//
// Heatmap.box(sheet, cell, ratio) -> { left, top, turned }: where cell 0, 0 begins (cell i, j at
//   left + j * cell - x, top + i * cell - y), and whether the words of keys stand upright.
// Heatmap.draw(context, sheet, place): as much of it as the canvas holds.
// Heatmap.small(canvas, sheet): without labels, a pixel for a cell, or for the greatest of a block;
//   hidden ones stay clear. A generator, to be run in slices.
// Heatmap.picture(sheet) -> a canvas of its own with title, labels and legend, to be saved.
const Heatmap = (() => {
  const SMALL = 256, LARGEST = 48, HATCH = 6, TEXT = 12, LABEL = 110;
  const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
  const pixel = ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  const table = Uint32Array.from({ length: 256 }, (_, i) => pixel(Scale.bytes.subarray(3 * i, 3 * i + 3)));
  const pen = document.createElement("canvas").getContext("2d");

  // The colours of the page, as #rrggbb whatever form the sheet gives them.
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const names = ["back", "text", "soft", "edge", "accent"];
    return Object.fromEntries(names.map((name) => {
      pen.fillStyle = style.getPropertyValue(`--${name}`);
      return [name, pen.fillStyle];
    }));
  };
  const solid = (word) => pixel([1, 3, 5].map((at) => parseInt(word.slice(at, at + 2), 16)));
  const part = ([low, high], x) => Scale.index((x - low) / (high - low));
  const inkOn = (index) => (index > 112 ? "#000000" : "#ffffff");
  const font = (size, ratio) => `${Math.round(size * ratio)}px system-ui, sans-serif`;

  const widest = (words, ratio) => {
    pen.font = font(TEXT, ratio);
    const longest = words.reduce((a, b) => (b.length > a.length ? b : a), "");
    return Math.min(LABEL * ratio, pen.measureText(longest.slice(0, LABEL)).width);
  };
  const cut = (context, text, room) => {
    if (text.length < LABEL && context.measureText(text).width <= room) return text;
    const letters = [...text.slice(0, LABEL)];
    while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > room) letters.pop();
    return `${letters.join("")}…`;
  };

  const box = (sheet, cell, ratio) => {
    const wide = widest(sheet.cols, ratio);
    const turned = wide + 6 * ratio > cell && sheet.cols.some((word, j) => word !== String(j));
    const top = (turned ? wide : TEXT * ratio) + 10 * ratio;
    return { left: Math.ceil(widest(sheet.rows, ratio) + 10 * ratio), top: Math.ceil(top), turned };
  };
  // The first cell in sight and the one after the last, of n.
  const inSight = (from, room, cell, n) =>
    [Math.floor(from / cell), Math.min(n, Math.ceil((from + room) / cell))];

  const cells = (context, { matrix, seen, range }, place, colours) => {
    const { box: { left, top }, cell, ratio, x: dx, y: dy } = place;
    const width = Math.min(place.width - left, matrix.cols * cell - dx);
    const height = Math.min(place.height - top, matrix.rows * cell - dy);
    if (width <= 0 || height <= 0) return;
    const image = new ImageData(width, height), out = new Uint32Array(image.data.buffer);
    const back = solid(colours.back), edge = solid(colours.edge);
    const stroke = Math.round(ratio), period = Math.round(HATCH * ratio);
    const gap = cell >= 12 * ratio ? stroke : 0;
    const [first, end] = inSight(dx, width, cell, matrix.cols);
    out.fill(back);
    for (let y = 0; y < height; y++) {
      const i = Math.floor((y + dy) / cell), below = y + dy >= (i + 1) * cell - gap;
      for (let j = first; j < end; j++) {
        const at = i * matrix.cols + j, weight = matrix.data[at], hidden = !seen[at];
        if (below && !hidden) continue;
        const fill = hidden && !(weight > 0) ? back : table[part(range, weight)];
        const stop = Math.min(width, (j + 1) * cell - (hidden ? 0 : gap) - dx);
        for (let x = Math.max(0, j * cell - dx); x < stop; x++)
          out[y * width + x] = hidden && (x + dx + y + dy) % period < stroke ? edge : fill;
      }
    }
    context.putImageData(image, left, top);
  };

  // How many cells one label needs, as 1, 2, 5, 10, ...
  const step = (needed, cell) => {
    for (let power = 1; ; power *= 10)
      for (const n of [1, 2, 5]) if (n * power * cell >= needed) return n * power;
  };
  const word = (context, text, x, y, turned, room) => {
    context.save();
    context.translate(x, y);
    if (turned) context.rotate(-Math.PI / 2);
    context.fillText(cut(context, text, room), 0, 0);
    context.restore();
  };
  const rowWords = (context, sheet, place, colours) => {
    const { box: { left, top }, cell, ratio, y, row } = place;
    const each = step(TEXT * 1.2 * ratio, cell);
    const [first, end] = inSight(y, place.height - top, cell, sheet.matrix.rows);
    context.textAlign = "right";
    for (let i = first; i < end; i++) {
      const middle = top + (i + 0.5) * cell - y;
      if (i !== row && (i % each || (row >= 0 && Math.abs(i - row) < each) || middle < top)) continue;
      context.fillStyle = i === row ? colours.accent : colours.soft;
      word(context, sheet.rows[i], left - 6 * ratio, middle, false, left - 8 * ratio);
    }
  };
  const colWords = (context, sheet, place, colours) => {
    const { box: { left, top, turned }, cell, ratio, x, col } = place;
    const needed = turned ? TEXT * 1.2 * ratio : widest(sheet.cols, ratio) + 6 * ratio;
    const each = step(needed, cell);
    const [first, end] = inSight(x, place.width - left, cell, sheet.matrix.cols);
    context.textAlign = turned ? "left" : "center";
    for (let j = first; j < end; j++) {
      const middle = left + (j + 0.5) * cell - x;
      if (j !== col && (j % each || (col >= 0 && Math.abs(j - col) < each) || middle < left)) continue;
      context.fillStyle = j === col ? colours.accent : colours.soft;
      const y = turned ? top - 5 * ratio : top - (TEXT / 2 + 5) * ratio;
      word(context, sheet.cols[j], middle, y, turned, turned ? top - 8 * ratio : needed);
    }
  };

  // What stands in the cells themselves: numbers where they have room, rings where pointers lead.
  const marks = (context, sheet, place) => {
    const { matrix, pointers } = sheet, { box: { left, top }, cell, ratio, x, y } = place;
    const printed = cell >= 44 * ratio;
    if (!printed && (!pointers || cell < 4 * ratio)) return;
    const [first, end] = inSight(y, place.height - top, cell, matrix.rows);
    const [from, to] = inSight(x, place.width - left, cell, matrix.cols);
    context.font = font(11, ratio);
    context.textAlign = "center";
    for (let i = first; i < end; i++)
      for (let j = from; j < to; j++) {
        const at = i * matrix.cols + j, shown = sheet.seen[at] && printed;
        const pointed = pointers && Number(pointers[i]) === j;
        if (!shown && !pointed) continue;
        const spot = [left + j * cell - x, top + i * cell - y];
        context.fillStyle = context.strokeStyle = inkOn(part(sheet.range, matrix.data[at]));
        if (shown) number(context, matrix.data[at], spot, cell, ratio);
        if (pointed) ring(context, spot, cell, ratio, printed);
      }
  };
  const number = (context, weight, [x, y], cell, ratio) => {
    const texts = [Format.short(weight), String(Number(weight.toPrecision(1)))];
    const text = texts.find((one) => context.measureText(one).width < cell - 6 * ratio);
    if (text) context.fillText(text, x + cell / 2, y + cell / 2);
  };
  const ring = (context, [x, y], cell, ratio, aside) => {
    context.lineWidth = 1.5 * ratio;
    context.beginPath();
    context.arc(x + cell * (aside ? 0.8 : 0.47), y + cell * (aside ? 0.2 : 0.47), cell * (aside ? 0.08 : 0.28),
      0, 2 * Math.PI);
    context.stroke();
  };

  const cutLines = (context, sheet, place, colours) => {
    const { box: { left, top }, cell, ratio, x, y } = place;
    const height = Math.min(place.height - top, sheet.matrix.rows * cell - y);
    for (const key of sheet.cuts.filter((j) => j > 0 && j < sheet.matrix.cols)) {
      context.fillStyle = colours.back;
      context.fillRect(left + key * cell - x - 2 * ratio, top, 4 * ratio, height);
      context.fillStyle = colours.text;
      context.fillRect(left + key * cell - x - ratio, top, 2 * ratio, height);
    }
  };
  const cross = (context, { matrix: { rows, cols } }, place, colours) => {
    const { box: { left, top }, cell, ratio, x, y, row, col } = place;
    const half = Math.max(1, ratio / 2);
    const outline = (a, b, width, height) => {
      for (const [colour, line] of [[colours.back, 4 * half], [colours.text, 2 * half]]) {
        context.strokeStyle = colour;
        context.lineWidth = line;
        context.strokeRect(a - half, b - half, width + 2 * half, height + 2 * half);
      }
    };
    if (row >= 0) outline(left - x, top + row * cell - y, cols * cell, cell);
    if (col >= 0) outline(left + col * cell - x, top - y, cell, rows * cell);
  };

  const within = (context, [x, y, width, height], draw) => {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  };
  const draw = (context, sheet, place, colours = theme()) => {
    const { box: { left, top }, width, height, ratio } = place, lip = 2 * ratio;
    context.fillStyle = colours.back;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    cells(context, sheet, place, colours);
    within(context, [left, top, width, height], () => {
      marks(context, sheet, place);
      cutLines(context, sheet, place, colours);
    });
    within(context, [left - lip, top - lip, width, height], () => cross(context, sheet, place, colours));
    context.font = font(TEXT, ratio);
    within(context, [0, top - lip, left, height], () => rowWords(context, sheet, place, colours));
    within(context, [left - lip, 0, width, top], () => colWords(context, sheet, place, colours));
  };

  function* small(canvas, { matrix: { rows, cols, data }, seen, range }) {
    const down = Math.ceil(rows / SMALL), across = Math.ceil(cols / SMALL);
    const image = new ImageData(Math.ceil(cols / across), Math.ceil(rows / down));
    const out = new Uint32Array(image.data.buffer), peaks = new Float32Array(image.width);
    for (let y = 0; y < image.height; y++) {
      peaks.fill(-1);
      for (let i = y * down; i < Math.min(rows, (y + 1) * down); i++)
        for (let j = 0, at = i * cols; j < cols; j++, at++) {
          const x = across === 1 ? j : Math.floor(j / across);
          if (data[at] > peaks[x] && (seen[at] || data[at] > 0)) peaks[x] = data[at];
        }
      for (let x = 0; x < image.width; x++)
        out[y * image.width + x] = peaks[x] < 0 ? 0 : table[part(range, peaks[x])];
      yield;
    }
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  const legend = (context, sheet, x, y, ratio, colours) => {
    const bar = 160 * ratio, tall = 12 * ratio;
    for (let i = 0; i < bar; i++) {
      context.fillStyle = Scale.css(i / bar);
      context.fillRect(x + i, y, 1, tall);
    }
    context.fillStyle = colours.soft;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText(String(sheet.range[0]), x, y + tall + 3 * ratio);
    context.textAlign = "right";
    context.fillText(Format.short(sheet.range[1]), x + bar, y + tall + 3 * ratio);
  };
  const picture = (sheet) => {
    const { rows, cols } = sheet.matrix, most = Math.max(rows, cols, 1);
    const ratio = most > 1000 ? 1 : 2, edge = 16 * ratio;
    const cell = clamp(Math.floor((1000 * ratio) / most), 1, LARGEST * ratio);
    const colours = theme(), frame = box(sheet, cell, ratio);
    const width = frame.left + cols * cell, height = frame.top + rows * cell;
    const inner = document.createElement("canvas"), canvas = document.createElement("canvas");
    Object.assign(inner, { width, height });
    draw(inner.getContext("2d"), sheet,
      { box: frame, cell, ratio, width, height, x: 0, y: 0, row: -1, col: -1 }, colours);
    Object.assign(canvas, { width: Math.max(width, 320 * ratio) + 2 * edge, height: height + 6 * edge });
    const context = canvas.getContext("2d");
    context.fillStyle = colours.back;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = colours.text;
    context.font = font(14, ratio);
    context.textBaseline = "top";
    context.fillText(cut(context, sheet.title, canvas.width - 2 * edge), edge, edge);
    context.drawImage(inner, edge, 2.5 * edge);
    context.font = font(TEXT, ratio);
    legend(context, sheet, edge + frame.left, height + 3.5 * edge, ratio, colours);
    return canvas;
  };
  return { LARGEST, box, draw, small, picture };
})();
