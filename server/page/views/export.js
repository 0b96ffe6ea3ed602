// export: what the tab Attention saves: the chosen head, all heads, and the request as a cell of a notebook.
//
// All heads of a single layer are those of all items; all heads of a whole model are those of the item that is
// shown, in all layers, whose exact weights are requested one after another.
// needs: dom list part state models answer code visible whole picture look save
(() => {
  const place = id("save");
  const titled = (sheet) =>
    ({ ...sheet, title: `${State.asked.model}, item ${State.view.item}, ${sheet.title}` });
  const faceName = () => {
    const view = State.view, { head } = Answer.face(State.answer, view);
    const name = `item${view.item}-${head === "mean" ? "" : "head"}${head}`;
    return view.part ? `${State.answer.part}-${name}` : name;
  };
  function* wide({ matrix, rows, cols }) {
    yield ["query_position", "query", ...Save.titles(cols)];
    for (const [i, row] of rows.entries()) yield [i, row, ...Answer.row(matrix, i)];
  }
  const heads = (answer, item) =>
    Answer.faces(answer, item).filter(({ head }) => answer.average || head !== "mean");

  const COLUMNS = ["item", "head", ...Save.COLUMNS];
  function* long(answer) {
    yield COLUMNS;
    for (const item of answer.items.keys())
      for (const { head, matrix } of heads(answer, item))
        yield* Save.cells({ matrix, seen: Look.seen(item, head), ...Labels.named(item, matrix) }, [item, head]);
  }
  async function* layers(answer, item) {
    const { body, model } = State.asked;
    yield ["attention", ...COLUMNS];
    for (const name of answer.names) {
      const tokens = answer.words(item, name), { rows, cols } = tokens;
      const found = await Whole.weights(body, Models.find(model), name, item, tokens);
      if (found.problem) throw new Error(found.problem.title);
      const seen = Visible.of(answer.sees[name], null, item, rows.length, cols.length, 0);
      for (const [head, matrix] of found.weights.entries())
        yield* Save.cells({ matrix, seen, rows, cols }, [name, item, head]);
    }
  }
  const all = () => {
    const { answer, view: { item } } = State;
    if (answer.whole) return { rows: layers(answer, item), cells: 9 * List.sum(answer.heads(item).map((one) =>
      one.words.rows.length * one.words.cols.length)) };
    return { rows: long(answer), cells: 8 * List.sum([...answer.items.keys()].flatMap((i) =>
      heads(answer, i).map(({ matrix }) => matrix.data.length))) };
  };
  // A row for each layer: thumbnails of a whole model, else the exact weights of the item.
  const figure = () => {
    const { answer, view: { item } } = State, high = Look.range();
    const faces = answer.whole ? answer.heads(item).map(({ name, head, thumb }) => ({ row: Part.name(name), head, matrix: thumb,
      seen: new Uint8Array(thumb.data.length).fill(1) }))
      : heads(answer, item).map(({ head, matrix }) => ({ row: "", head, matrix, seen: Look.seen(item, head) }));
    return Picture.heads(`${State.asked.model}, item ${item}, all heads`, faces.map((one) =>
      ({ ...one, high: high(one) })), State.view.range === "shared");
  };
  fill(place, Save.row(faceName, { svg: () => Picture.svg(titled(Look.sheet())), csv: () => {
    const sheet = Look.sheet();
    return { rows: wide(sheet), cells: sheet.rows.length * (sheet.cols.length + 2) };
  } }), Save.row(() => "all", { svg: figure, csv: all }, "all heads"), Code.offer("Copy notebook cell", Code.cell));
  State.on(["answer", "labels", "view"], () => {
    place.hidden = !Look.sheet();
  }, id("look"));
})();
