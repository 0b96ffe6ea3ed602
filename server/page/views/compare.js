// compare: the tab that shows a pinned response beside the current one, and their difference.
//
// Three maps of the chosen head share one cursor: pinned weights, current weights, difference. A list
// ranks the heads by the share of weight that moved to other keys, averaged over queries. The ranking
// of a whole model uses thumbnails.
// needs: dom format list part report rove scale state models net answer labels whole cursor fitted picture sentence look save
(() => {
  const MOST = 12, LEAST = 0.0005; // the longest list of heads; a smaller share counts as unmoved
  const EXACT = 64; // up to this many tokens a thumbnail has one pixel for each weight
  const panel = id("compare");
  const words = el("p", { "aria-live": "polite" }), readout = el("p", { id: "compare-says" });
  const list = el("div.row", { role: "group", "aria-label": "Heads by what has moved" });
  // { answer, asked, model, words(item, part), part, found }: `found` is the promise of the pinned
  // weights of `part`, the newest part that was requested.
  let pin = null;

  // --- three maps ---

  let shown = [], under = null; // their sheets; the map under the pointer
  const maps = [0, 1, 2].map(() => Fitted.of({ at: () => State.view, look: (over, map) => {
    under = map;
    State.set({ over });
  }, choose: (cell) => {
    if (cell.row < 0 || Cursor.within(cell, shown[1].matrix)) State.show(cell);
  } }));
  const three = el("div.three", maps.map(({ node }) => node));
  const fit = () => {
    maps.forEach(({ node }, i) => { node.hidden = !shown[i]; });
    maps.forEach((map, i) => map.show(shown[i] || null));
    point();
  };
  const value = ({ matrix }, { row, col }) => Format.float(matrix.data[row * matrix.cols + col]);
  const change = ({ matrix }, { row, col }) => {
    const by = matrix.data[row * matrix.cols + col];
    return by ? `${Format.short(Math.abs(by))} ${by > 0 ? "more" : "less"}` : "the same";
  };
  const say = (at) => {
    const [then, now, apart] = shown, sheet = apart || !under ? now : under.sheet || now;
    if (!Cursor.within(at, sheet.matrix))
      return "Point at a cell to read its weights; click to select it.";
    return (sheet === then ? "Pinned: " : "") + Sentence.of(sheet, at.row, at.col)
      + (apart ? `; pinned ${value(then, at)}, ${change(apart, at)} now` : "");
  };
  const point = () => {
    if (!shown.length) return;
    const { view, over } = State;
    for (const map of maps) map.point(over);
    readout.textContent = say(over.row < 0 ? view : over);
  };

  // --- the difference ---

  const far = ({ data }) => Math.sqrt(List.sum(data, (x) => x * x));
  const alike = (a, b) => Boolean(a && b) && a.rows === b.rows && a.cols === b.cols;
  const less = (a, b) => ({ rows: a.rows, cols: a.cols, data: a.data.map((x, i) => x - b.data[i]) });
  const moved = (a, b) => {
    let all = 0;
    for (let i = 0; i < a.rows; i++) {
      const [x, y] = [a, b].map((one) => Answer.row(one, i)), [p, q] = [x, y].map((row) => List.sum(row) || 1);
      all += x.reduce((by, w, j) => by + Math.abs(w / p - y[j] / q), 0) / 2;
    }
    return all / a.rows;
  };
  // rows and cols count the queries and keys; the thumbnail of a long text is smaller.
  const headsOf = (answer, item) => (answer.whole
    ? answer.heads(item).map(({ name, head, thumb, words: { rows, cols } }) =>
      ({ name, head, matrix: thumb, rows: rows.length, cols: cols.length }))
    : Answer.faces(answer, item).filter(({ head }) => answer.average || head !== "mean")
      .map(({ head, matrix }) => ({ head, matrix, rows: matrix.rows, cols: matrix.cols })));
  const ranked = (now, item) => {
    const then = new Map(headsOf(pin.answer, item).map((one) => [`${one.name} ${one.head}`, one]));
    return headsOf(now, item).map((one) => ({ ...one, was: then.get(`${one.name} ${one.head}`) }))
      .filter((one) => one.rows && alike(one, one.was))
      .map((one) => ({ ...one, by: moved(one.matrix, one.was.matrix) })).sort((a, b) => b.by - a.by);
  };
  const logs = ({ path, raw, batched }, item) => {
    const all = path === "score" ? JSON.parse(raw).log_probabilities : [];
    return batched ? all[item] || [] : all;
  };
  const outcome = (now, item) => {
    const [a, b] = [now, pin.answer].map((answer) => answer.items[item].outputs);
    const [c, d] = [now, pin.answer].map((answer) => logs(answer, item));
    if (c.length && c.length === d.length)
      return `The targets' log probability was ${Format.short(List.sum(d))} and is ${Format.short(List.sum(c))}. `;
    if (!alike(a, b) || !b.data.length) return "";
    return `The outputs changed by ${Format.percent(far(less(a, b)) / (far(b) || 1))} of their norm. `;
  };
  // Cached per answer and item: both answers may be large.
  let told = {};
  const compared = (now, item) => {
    const key = now.thumbs || now;
    if (told.key !== key || told.pin !== pin || told.item !== item)
      told = { key, pin, item, heads: ranked(now, item), outcome: outcome(now, item) };
    return told;
  };
  const tell = (now, item) => {
    const { heads, outcome: first } = compared(now, item), { part, head } = State.view;
    const about = heads.some(({ name, rows, cols }) => name && Math.max(rows, cols) > EXACT)
      ? " (estimated from thumbnails)" : "";
    const most = heads.filter(({ by }) => by > LEAST).slice(0, MOST);
    fill(words, first, most.length ? `Heads whose weights changed most${about}:`
      : heads.length ? "No weights changed."
        : "No head has the same numbers of queries and keys.");
    Rove.fill(list, most.map((one) => {
      const node = button(`${one.name ? Part.head(one.name, one.head) : `head ${one.head}`}: ${Format.percent(one.by)}`, () =>
        (one.name ? Whole.show(one.name, one.head) : State.show({ head: one.head })));
      node.setAttribute("aria-pressed", one.head === head && (one.name || null) === part);
      return node;
    }));
  };

  // --- the pinned response ---

  const wordsOf = (answer) => {
    if (answer.whole) return answer.words;
    const all = answer.items.map(({ weights }, item) => (weights && weights[0]
      ? Labels.named(item, weights[0]) : null));
    return (item) => all[item];
  };
  const gone = Net.failed("The pinned model is no longer served", "Its other weights cannot be read.");
  const read = async (part, item) => {
    const { answer, asked, model } = pin, same = model && Models.find(model.name);
    if (!same || same.digest !== model.digest) return gone;
    const found = await Whole.weights(asked.body, model, part, item, answer.words(item, part));
    return found.ok ? { answer: { ...answer, part, items: answer.items.map((one, i) =>
      ({ ...one, weights: i === item ? found.weights : null })) } } : found;
  };
  // The pinned answer with the exact weights of one part and item.
  const withPart = (part, item) => {
    const { answer } = pin, key = `${part} ${item}`;
    if (!answer.whole || (answer.part === part && answer.items[item].weights)) return { answer };
    if (pin.part !== key) Object.assign(pin, { part: key, found: read(part, item) });
    return pin.found;
  };
  const sheets = (now, then, view, head) => {
    const face = Answer.faces(then, view.item).find((one) => one.head === head);
    if (!face || !face.matrix.data.length) return [];
    const { rows, cols } = pin.words(view.item, view.part), { matrix } = face;
    const high = Scale.high([{ matrix }, now]), bare = { cuts: [], pointers: null, segments: null, high };
    const seen = Look.seen(view.item, face.head, { answer: then, asked: pin.asked });
    const { model } = pin.asked, name = `Pinned${model === State.asked.model ? "" : `: ${model}`}`;
    const both = [{ ...now, ...bare, matrix, seen, rows, cols, name }, { ...now, ...bare, name: "Now" }];
    if (!alike(matrix, now.matrix)) return both;
    const apart = less(now.matrix, matrix), most = List.far(apart.data);
    const how = most ? `red is less, blue is more, up to ${Format.short(most)}` : "no difference";
    return [...both, { ...both[1], matrix: apart, high: most || 1, apart: true,
      seen: seen.map((x, i) => x || now.seen[i]), name: `Now − pinned: ${how}` }];
  };

  // --- the tab ---

  const pinned = button("Pin this response", () => {
    const { answer, asked } = State;
    pin = { answer, asked, model: Models.find(asked.model), words: wordsOf(answer) };
    look();
  });
  const free = button("Unpin", () => {
    pin = null;
    look();
  });
  const bar = el("div.bar", pinned, free);
  function* table() {
    yield ["response", ...Save.COLUMNS];
    for (const [i, sheet] of shown.entries()) yield* Save.cells(sheet, [["pinned", "now", "difference"][i]]);
  }
  const save = Save.row(() => "compare", { svg: () => Picture.beside(`${State.asked.model}, item ${State.view.item}, `
    + shown[1].label, shown.map((sheet) => Picture.svg({ ...sheet, title: sheet.name }))),
  csv: () => ({ rows: table(), cells: 7 * List.sum(shown.map(({ matrix }) => matrix.data.length)) }) });
  const content = el("div", words, list, readout, three, save);
  const note = el("div.soft", { "aria-live": "polite" });
  const only = (...text) => {
    shown = [];
    content.hidden = true;
    fill(note, ...text);
  };
  fill(panel, bar, note, content);
  Rove.in(list, "button");

  let last = null;
  const look = async () => {
    const mine = (last = {}), now = State.answer, view = State.view, { item } = view;
    pinned.disabled = !now || now.tooLarge;
    free.hidden = !pin;
    if (!pin) return only("Pin a response, then run another request to compare them.");
    if (State.asked === pin.asked)
      return only("This response is pinned. Change the request or the model, then run it.");
    if (!now.items[item] || !pin.answer.items[item] || Boolean(now.whole) !== Boolean(pin.answer.whole)
      || (now.whole && !pin.answer.names.includes(view.part)))
      return only("The pinned response has nothing to compare with this.");
    const found = await withPart(view.part, item);
    if (mine !== last) return;
    if (found.problem) return only(Report.failed(found.problem, () => {
      pin.part = null;
      look();
    }));
    const sheet = Look.sheet(), face = Answer.face(now, view);
    shown = sheet ? sheets(sheet, found.answer, view, face.head) : [];
    if (!shown.length) return only(sheet ? "The pinned response does not have this head or its weights."
      : "This response has no weights to compare.");
    fill(note);
    content.hidden = false;
    tell(now, item);
    fit();
  };
  const key = ({ item, part, head }) => `${item} ${part} ${head}`;
  let before = "";
  State.on(["answer", "labels", "dark", "width", "tab"], look, panel);
  State.on(["view"], () => {
    if (key(State.view) !== before) look();
    before = key(State.view);
  }, panel);
  State.on(["view", "over"], point, panel);
})();
