// export: what the tab Attention saves: the chosen head, all heads, and the request as a cell of a notebook.
//
// All heads of a single layer are those of all items; all heads of a whole model are those of the item that is
// shown, in all layers, whose exact weights are requested one after another.
// needs: dom part state models answer code labels visible whole picture look save
(() => {
  const place = Dom.id("save");
  const titled = (sheet) =>
    ({ ...sheet, title: `${State.get("asked").model}, item ${State.get("view").item}, ${sheet.title}` });
  const faceName = () => {
    const view = State.get("view"), { head } = Answer.face(State.get("answer"), view);
    const name = `item${view.item}-${head === "mean" ? "" : "head"}${head}`;
    return view.part ? `${State.get("answer").part}-${name}` : name;
  };
  function* wide({ matrix, rows, cols }) {
    yield ["query", ...cols];
    for (const [i, row] of rows.entries()) yield [row, ...Answer.row(matrix, i)];
  }
  const heads = (answer, item) =>
    Answer.faces(answer, item).filter(({ head }) => answer.average || head !== "mean");

  const COLUMNS = ["item", "head", "query", "key", "weight", "visible"];
  function* cells(front, matrix, seen, rowOf, colOf) {
    for (let i = 0, at = 0; i < matrix.rows; i++)
      for (let j = 0; j < matrix.cols; j++, at++)
        yield [...front, rowOf(i), colOf(j), matrix.data[at], seen[at] & 1];
  }
  function* long(answer) {
    yield COLUMNS;
    for (const item of answer.items.keys())
      for (const { head, matrix } of heads(answer, item))
        yield* cells([item, head], matrix, Look.seen(item, head), (i) => Labels.row(item, i), (j) => Labels.col(item, j));
  }
  async function* layers(answer, item) {
    const { body, model } = State.get("asked");
    yield ["attention", ...COLUMNS];
    for (const name of answer.names) {
      const words = answer.words(item, name), { rows, cols } = words;
      const found = await Whole.weights(body, Models.find(model), name, item, words);
      if (found.problem) throw new Error(found.problem.title);
      const seen = Visible.of(answer.sees[name], null, item, rows.length, cols.length, 0);
      for (const [head, matrix] of found.weights.entries())
        yield* cells([name, item, head], matrix, seen, (i) => rows[i], (j) => cols[j]);
    }
  }
  const size = (list) => list.reduce((sum, n) => sum + n, 0);
  const all = () => {
    const answer = State.get("answer"), { item } = State.get("view");
    if (answer.whole) return { rows: layers(answer, item), cells: 7 * size(answer.heads(item).map(({ words }) =>
      words.rows.length * words.cols.length)) };
    return { rows: long(answer), cells: size([...answer.items.keys()].flatMap((i) =>
      heads(answer, i).map(({ matrix }) => matrix.data.length))) };
  };
  // A row for each layer: thumbnails of a whole model, else the exact weights of the item.
  const figure = () => {
    const answer = State.get("answer"), { item } = State.get("view"), high = Look.range();
    const faces = answer.whole ? answer.heads(item).map(({ name, head, thumb }) => ({ row: Part.name(name), head, matrix: thumb,
      seen: new Uint8Array(thumb.data.length).fill(1) }))
      : heads(answer, item).map(({ head, matrix }) => ({ row: "", head, matrix, seen: Look.seen(item, head) }));
    return Picture.heads(`${State.get("asked").model}, item ${item}, all heads`, faces.map((one) =>
      ({ ...one, high: high(one) })), State.get("view").range === "shared");
  };
  const cell = async (say) => {
    try {
      await Dom.copy(Code.cell());
      say("Copied: paste it into a cell of a notebook.");
    } catch {
      say("The browser does not let the page copy: Code has the same cell.");
    }
  };
  Dom.fill(place, Save.row(faceName, { svg: () => Picture.svg(titled(Look.sheet())), csv: () => {
    const sheet = Look.sheet();
    return { rows: wide(sheet), cells: sheet.matrix.data.length };
  } }), Save.row(() => "all", { svg: figure, csv: all }, "all heads"), Save.offer("Copy notebook cell", cell));
  State.on(["answer", "labels", "view"], () => {
    place.hidden = !Look.sheet();
  });
})();
