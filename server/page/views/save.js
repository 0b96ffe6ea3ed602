// save: saves the chosen face as a picture (PNG, SVG) or a table (CSV), and all weights as a long table.
//
// Tables have the exact numbers of the response, and labels in quotes; a label that a spreadsheet would
// take for a formula begins with a '. They are written in slices, and only if they have at most
// Save.most cells.
// needs: dom format state answer labels picture look
const Save = (() => {
  const END = `${Format.CR}\n`, SLICE = 30, PART = 1e6, self = { most: 64e6 };
  const place = Dom.id("save"), note = Dom.el("span", { class: "soft small", role: "status" });
  const say = (text) => Dom.fill(note, text);

  const keep = (parts, type, what) => Dom.save(new Blob(parts, { type }),
    `attend-${State.get("asked").model}-${what}`.replace(/[^\w.-]/g, "_").slice(-100));
  const faceName = () => {
    const view = State.get("view"), { head } = Answer.face(State.get("answer"), view);
    return `item${view.item}-${head === "mean" ? "" : "head"}${head}`;
  };

  const keepPng = async (sheet) => {
    const name = `${faceName()}.png`, blob = await Picture.png(sheet);
    keep([blob], blob.type, name);
  };

  const quoted = (label) =>
    `"${(/^[=+\-@\t\r]/.test(label) ? "'" : "") + label.replaceAll('"', '""')}"`;
  function* wide({ matrix, rows, cols }) {
    yield [["query", ...cols].map(quoted).join(), 0];
    for (const [i, row] of rows.entries())
      yield [[quoted(row), ...Array.from(Answer.row(matrix, i), Format.float)].join(), matrix.cols];
  }
  const heads = (answer, item) =>
    Answer.faces(answer, item).filter(({ head }) => answer.average || head !== "mean");

  function* long(answer) {
    yield ["item,head,query,key,weight,visible", 0];
    for (const item of answer.items.keys())
      for (const { head, matrix } of heads(answer, item)) {
        const seen = Look.seen(item, head);
        const words = Array.from({ length: matrix.cols }, (_, j) => quoted(Labels.col(item, j)));
        for (let i = 0; i < matrix.rows; i++) {
          const front = `${item},${head},${quoted(Labels.row(item, i))}`;
          const line = (weight, j) =>
            `${front},${words[j]},${Format.float(weight)},${seen[i * matrix.cols + j] & 1}`;
          if (matrix.cols) yield [Array.from(Answer.row(matrix, i), line).join(END), matrix.cols];
        }
      }
  }
  const write = async (lines, cells, name) => {
    if (cells > self.most) return say(`${Format.count(cells)} cells are too many for a table.`);
    const parts = [], answer = State.get("answer");
    let end = performance.now() + SLICE, text = "", done = 0;
    for (const [line, count] of lines) {
      text += line + END;
      done += count;
      if (text.length > PART) { // a Blob need not be in memory
        parts.push(new Blob([text]));
        text = "";
      }
      if (performance.now() < end) continue;
      say(`Writing … ${Math.floor(100 * done / cells)} %`);
      await new Promise((go) => setTimeout(go));
      if (State.get("answer") !== answer) return say("A new response arrived: nothing was saved.");
      end = performance.now() + SLICE;
    }
    say("");
    keep([...parts, text], "text/csv", name);
  };

  const keepAll = () => {
    const answer = State.get("answer");
    const faces = [...answer.items.keys()].flatMap((item) => heads(answer, item));
    write(long(answer), faces.reduce((sum, { matrix }) => sum + matrix.data.length, 0), "all.csv");
  };

  const button = (text, use) => Dom.button(text, async () => {
    const sheet = Look.sheet(), { item } = State.get("view");
    say("");
    try {
      await use({ ...sheet, title: `${State.get("asked").model}, item ${item}, ${sheet.title}` });
    } catch {
      say("This matrix is too large for a picture.");
    }
  });
  place.append("Save as", button("PNG", keepPng), button("SVG", (sheet) =>
    keep([Picture.text(sheet)], "image/svg+xml", `${faceName()}.svg`)), button("CSV", (sheet) =>
    write(wide(sheet), sheet.matrix.data.length, `${faceName()}.csv`)),
  button("CSV of all heads", keepAll), note);
  State.on(["answer", "labels", "view"], () => {
    place.hidden = !Look.sheet();
  });
  State.on(["answer"], () => say(""));
  return self;
})();
