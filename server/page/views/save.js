// save: saves what a view shows as a picture (PNG, SVG) or as a table (CSV).
//
// Save.row(what, { svg, csv }, of) -> a node with a button for each form: what() names the file; svg() -> an
// SVG element, or a promise of it; csv() -> rows, an iterable of lists, or { cells, rows } of a long table, where rows
// may be an asynchronous one; null has nothing to save; `of` ends the text of the buttons.
// Save.cells(sheet, front) -> rows of a table, one for each weight, which begin with `front`; Save.COLUMNS: the
// titles after it. Save.titles(words): the titles of columns for tokens, which begin with their positions.
//
// Tables have the exact numbers of the response, and words in quotes; a word that a spreadsheet would
// take for a formula begins with a '. They are written in slices, and only if they have at most
// Save.most cells.
// needs: dom format state picture
const Save = (() => {
  const END = `${Format.CR}\n`, SLICE = 30, PART = 1e6, self = { most: 64e6 };
  const keep = (parts, type, what) => Dom.save(new Blob(parts, { type }),
    `attend-${State.asked.model}-${what}`);
  const quoted = (word) =>
    `"${(/^[=+\-@\t\r]/.test(word) ? "'" : "") + word.replaceAll('"', '""')}"`;
  const line = (row) => row.map((x) => (typeof x === "number" ? Format.float(x) : quoted(String(x ?? "")))).join();

  const write = async (table, name, say) => {
    const { cells = 0, rows = table } = table;
    if (cells > self.most) return say(`${Format.count(cells)} cells are too many for a table.`);
    const parts = [], answer = State.answer;
    let end = performance.now() + SLICE, text = "", done = 0;
    for await (const row of rows) {
      text += line(row) + END;
      done += row.length;
      if (text.length > PART) { // a Blob need not be in memory
        parts.push(new Blob([text]));
        text = "";
      }
      if (performance.now() < end) continue;
      say(cells ? `Writing … ${Math.min(99, Math.floor(100 * done / cells))} %` : "Writing …");
      await new Promise((go) => setTimeout(go));
      if (State.answer !== answer) return say("A new response arrived: nothing was saved.");
      end = performance.now() + SLICE;
    }
    say("");
    keep([...parts, text], "text/csv", name);
  };

  const COLUMNS = ["query_position", "query", "key_position", "key", "weight", "visible"];
  function* cells({ matrix, seen, rows, cols }, front = []) {
    for (let i = 0, at = 0; i < matrix.rows; i++)
      for (let j = 0; j < matrix.cols; j++, at++) yield [...front, i, rows[i], j, cols[j], matrix.data[at], seen[at] & 1];
  }
  const titles = (words) => words.map((word, i) => (word === String(i) ? word : `${i} ${word}`));

  const row = (what, { svg, csv }, of = "") => {
    const note = el("span.soft.small", { role: "status" }), say = (text) => fill(note, text);
    const saver = (kind, make, use) => make && button(of ? `${kind} of ${of}` : kind, async () => {
      say("");
      try {
        const made = await make();
        if (!made) return say("There is nothing to save.");
        await use(made, `${what()}.${kind.toLowerCase()}`);
      } catch ({ message }) {
        say(`It cannot be saved: ${message}.`);
      }
    });
    return el("div.row", { role: "group", "aria-label": `Save ${of || "view"} as` }, "Save as",
      saver("PNG", svg, async (drawn, name) => keep([await Picture.png(drawn)], "image/png", name)),
      saver("SVG", svg, (drawn, name) => keep([Picture.text(drawn)], "image/svg+xml", name)),
      saver("CSV", csv, (table, name) => write(table, name, say)), note);
  };
  return Object.assign(self, { row, cells, titles, COLUMNS });
})();
