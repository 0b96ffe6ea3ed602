// compare: an answer that was pinned, the one that came behind it, and how they differ.
//
// Of the chosen head: the weights that are pinned, those of now, and the difference, with one cursor
// for the three; and the heads in which most has moved. What has moved is half the sum of a query's
// differences, the mean of all queries: of a whole model as exact as its thumbnails.
(() => {
  const { el, fill, button } = Dom;
  const MOST = 12;
  const panel = Dom.id("compare");
  const words = el("p", { "aria-live": "polite" }), readout = el("p", { id: "compare-says" });
  const list = el("div", { class: "row", role: "group", "aria-label": "Heads by what has moved" });
  let pin = null; // { answer, asked, words(item, part), parts: answers with another part's weights }

  // --- three maps ---

  const maps = [0, 1, 2].map(() => Fitted.of({ look: (over) => State.set({ over }),
    choose: (cell) => State.view(cell), at: () => State.get("view") }));
  const three = el("div", { class: "three" }, maps.map(({ node }) => node));
  let shown = []; // the sheets

  const point = () => {
    const view = State.get("view"), over = State.get("over"), at = over.row < 0 ? view : over;
    for (const one of maps) one.point(over);
    if (!shown.length) return;
    const [then, now, apart] = shown, { rows, cols } = now.matrix;
    const value = ({ matrix }) => Format.float(matrix.data[at.row * matrix.cols + at.col]);
    readout.textContent = at.row < 0 || at.col < 0 || at.row >= rows || at.col >= cols
      ? "Point at a cell to read its weights; a click chooses it."
      : Sentence.of(now, at.row, at.col)
        + (apart ? `; pinned ${value(then)}, by ${value(apart)} more now` : "");
  };

  // --- what differs ---

  const alike = (a, b) => Boolean(a && b) && a.rows === b.rows && a.cols === b.cols;
  const less = (a, b) => ({ rows: a.rows, cols: a.cols, data: a.data.map((x, i) => x - b.data[i]) });
  const moved = (a, b) => a.data.reduce((sum, x, i) => sum + Math.abs(x - b.data[i]), 0) / 2 / a.rows;
  const headsOf = (answer, item) => (answer.whole
    ? answer.names.flatMap((name) => answer.thumbs(name, item).map((matrix, head) =>
      ({ name, head, matrix })))
    : Answer.faces(answer, item).filter(({ head }) => head !== "mean"));
  const rank = (now, item) => {
    const then = new Map(headsOf(pin.answer, item).map((one) => [`${one.name} ${one.head}`, one.matrix]));
    return headsOf(now, item).map((one) => ({ ...one, was: then.get(`${one.name} ${one.head}`) }))
      .filter(({ matrix, was }) => matrix.rows && alike(matrix, was))
      .map((one) => ({ ...one, by: moved(one.matrix, one.was) })).sort((a, b) => b.by - a.by);
  };
  const logs = ({ path, raw }) => (path === "score" ? JSON.parse(raw).log_probabilities : []).flat(2);
  const far = ({ data }) => Math.sqrt(data.reduce((all, x) => all + x * x, 0));
  const sum = (numbers) => numbers.reduce((all, x) => all + x, 0);
  const outcome = (now, item) => {
    const [a, b] = [now, pin.answer].map((answer) => answer.items[item].outputs);
    const [c, d] = [now, pin.answer].map(logs);
    if (c.length && c.length === d.length)
      return `The targets' log probability was ${Format.short(sum(d))} and is ${Format.short(sum(c))}. `;
    if (!alike(a, b) || !b.data.length) return "";
    const by = far(less(a, b)) / (far(b) || 1);
    return `The outputs have moved by ${Format.percent(by)} of their length. `;
  };
  const tell = (now, item) => {
    const ranked = rank(now, item), { part, head } = State.get("view");
    fill(words, outcome(now, item), ranked.length ? "Most of their weight has moved in these heads:"
      : "No head is there with the same numbers of queries and keys: they stand side by side.");
    fill(list, ranked.slice(0, MOST).map((one) => {
      const node = button(`${one.name || "head"} ${one.head}: ${Format.percent(one.by)}`, () =>
        (one.name ? Whole.show(one.name, one.head) : State.view({ head: one.head })));
      node.setAttribute("aria-pressed", one.head === head && (one.name || null) === part);
      return node;
    }));
    Rove.tidy(list);
  };

  // --- the pinned one ---

  const wordsOf = (answer) => {
    if (answer.whole) return answer.words;
    const each = (n, word, item) => Array.from({ length: n }, (_, i) => word(item, i));
    const all = answer.items.map(({ weights }, item) => (weights && weights[0]
      ? { rows: each(weights[0].rows, Labels.row, item), cols: each(weights[0].cols, Labels.col, item) }
      : null));
    return (item) => all[item];
  };
  const take = () => {
    const answer = State.get("answer"), asked = State.get("asked");
    pin = { answer, asked, words: wordsOf(answer), parts: new Map() };
    look();
  };
  const drop = () => {
    pin = null;
    look();
  };
  // The pinned answer with the weights of the part and item that are looked at, asked for once.
  const read = async (part, item) => {
    const { answer, asked } = pin;
    const found = await Whole.weights(asked.body, Models.find(asked.model), part, item);
    return found.ok ? { answer: { ...answer, part, items: answer.items.map((one, i) =>
      ({ ...one, weights: i === item ? found.weights : null })) } } : found;
  };
  const withPart = (part, item) => {
    const { answer, parts } = pin, key = `${part} ${item}`;
    if (!answer.whole || (answer.part === part && answer.items[item].weights)) return { answer };
    if (!parts.has(key)) parts.set(key, read(part, item));
    return parts.get(key);
  };
  const again = () => {
    pin.parts.clear();
    look();
  };
  const sheets = (now, then, view) => {
    const face = Answer.faces(then, view.item).find(({ head }) => head === view.head)
      || Answer.face(then, view);
    if (!face || !face.matrix.data.length) return [];
    const { rows, cols } = pin.words(view.item, view.part), { matrix } = face;
    const high = Scale.high([{ matrix }, now]), bare = { cuts: [], pointers: null, segments: null, high };
    const seen = Look.seen(view.item, face.head, { answer: then, asked: pin.asked });
    const list = [{ ...now, ...bare, matrix, seen, rows, cols, name: "Pinned" },
      { ...now, ...bare, name: "Now" }];
    if (alike(matrix, now.matrix)) {
      const apart = less(now.matrix, matrix), wide = Scale.high([{ matrix: { ...apart,
        data: apart.data.map(Math.abs) } }]);
      list.push({ ...list[1], matrix: apart, high: wide, apart: true, seen: seen.map((x, i) =>
        x || now.seen[i]), name: `Now − pinned, −${Format.short(wide)} to ${Format.short(wide)}` });
    }
    return list;
  };

  // --- what is shown ---

  const pinned = button("Pin this answer", take), free = button("Let it go", drop);
  const bar = el("div", { class: "bar" }, pinned, free);
  const content = el("div", null, words, list, readout, three);
  const say = (...text) => {
    shown = [];
    content.hidden = true;
    fill(told, ...text);
  };
  const told = el("div", { class: "soft", "aria-live": "polite" });
  fill(panel, bar, told, content);
  Rove.in(list, "button");

  let last = null;
  const look = async () => {
    const mine = (last = {}), now = State.get("answer"), view = State.get("view"), { item } = view;
    pinned.disabled = !now || now.tooLarge;
    free.hidden = !pin;
    if (panel.hidden) return;
    if (!pin) return say("Pin an answer and ask for another one: here they stand side by side, and "
      + "what differs.");
    if (!now || State.get("asked") === pin.asked)
      return say("This answer is pinned. Change the request, or the model, and send it.");
    if (!pin.answer.items[item] || Boolean(now.whole) !== Boolean(pin.answer.whole)
      || (now.whole && !pin.answer.names.includes(view.part)))
      return say("The pinned answer has nothing that stands beside this.");
    const found = await withPart(view.part, item);
    if (mine !== last) return;
    if (found.problem) return say(Prune.failed(found.problem, again));
    const sheet = Look.sheet();
    shown = sheet ? sheets(sheet, found.answer, view) : [];
    if (!shown.length) return say("There are no weights on both sides.");
    fill(told);
    content.hidden = false;
    tell(now, item);
    maps.forEach((one, i) => one.show(shown[i] || null));
    point();
  };
  const key = ({ item, part, head }) => `${item} ${part} ${head}`;
  let before = "";
  State.on(["answer", "labels", "dark"], look);
  State.on(["view"], () => {
    if (key(State.get("view")) !== before) look();
    before = key(State.get("view"));
  });
  State.on(["view", "over"], () => panel.hidden || point());
  document.addEventListener("show", look);
  addEventListener("resize", look);
})();
