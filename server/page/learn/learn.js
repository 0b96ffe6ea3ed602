// learn: the place Learn: one sentence, what one of its words attends to, and how that is computed. It
// shows the same state as the other places: model, text, attention block, head and query.
//
// needs: dom list own part place report rove state terms models net ask examples request samples whole heatmap arcs cards lesson
(() => {
  const home = id("learn");

  // --- what is shown ---

  let wanted = ""; // the word that was chosen last
  let linked = null; // the numbers of the word and of the masked one in an address that was opened
  // The weights and the trace that the server computed for `key`, with a masked key if there is one.
  let found = { key: null, trace: null, weights: null };
  // An older response of the same model stays while the next one is on its way.
  const now = () => {
    const { answer, view } = State, item = answer && answer.items[view.item];
    const isOld = answer && State.asked.body !== State.body && !State.asking;
    if (!answer || !answer.whole || Ask.isOther() || isOld || !item || !item.weights) return null;
    const { rows: words } = answer.words(view.item, answer.part), model = Models.find(answer.model);
    if (!model || !words.length || !answer.part.endsWith("self")) return null;
    const head = typeof view.head === "number" && item.weights[view.head] ? view.head : 0;
    return { answer, model, lesson: Lesson.of(model), part: answer.part, item: view.item, head, words,
      weights: item.weights[head], masked: view.masked, row: view.row < words.length ? view.row : -1 };
  };
  // The row that is shown when no one has chosen one: that of the same word as before, or of a word of
  // the lesson, or else the one whose largest weight on another word is greatest.
  const firstRow = ({ words, weights, lesson }) => {
    const at = (word) => words.findIndex((one) => one.toLowerCase() === word);
    const known = [wanted, ...(lesson ? lesson.first : ["it"])].map(at).find((i) => i >= 0);
    if (known !== undefined) return known;
    const away = words.map((_, i) => Math.max(0, ...Answer.row(weights, i).filter((__, j) => j !== i)));
    return away.indexOf(Math.max(...away));
  };

  const same = (key, old) => key.every((one, i) => one === old[i]);

  // --- requests ---

  const ask = async ({ part, head, row, item, answer, masked }) => {
    if (masked < 0) {
      const reply = await Whole.again({ trace: { attention: part, item, head, query: row } });
      return reply.ok ? { trace: reply.json().trace } : reply;
    }
    // The block alone, with the inputs that it had, and one key masked.
    const name = `${part}.input`, inputs = await Whole.again({ return_hidden: [name] });
    if (!inputs.ok) return inputs;
    const all = inputs.json().hidden[name], queries = answer.batched ? all[item] : all;
    const mask = queries.map(() => queries.map((_, j) => j !== masked));
    const reply = await Net.post(`layers/${part}/attention`, answer.model,
      { queries, mask, return_attention: true, trace: { item: 0, head, query: row } });
    if (!reply.ok) return reply;
    const { trace, attention_weights: weights } = reply.json();
    return { trace, weights: weights[head][row] };
  };
  const explain = async (at) => {
    const key = [at.answer.thumbs, at.part, at.item, at.head, at.row, at.masked];
    if (found.key && same(key, found.key)) return;
    found = { key, trace: null, weights: null };
    const reply = await ask(at);
    if (found.key !== key) return;
    found = { key, trace: null, weights: null, ...reply };
    show();
  };

  // --- the sentence ---

  const text = () => {
    const { text: now } = Request.fields(State.body) || {};
    return typeof now === "string" ? now : null;
  };
  // A sentence of the page's own is not kept as the user's. A large model waits for the Enter key.
  const write = (value, isOwn = false) => {
    const body = { text: Request.layout({ text: value }) }, model = Models.current();
    if (!isOwn) wanted = "";
    State.set({ body: isOwn ? body : Own.made(body) });
    if (value.trim() && Models.hasText(model) && Models.isSmall(model)) Ask.send();
  };
  // Begins with the text that is there, or else with a sentence, whenever the model has not answered yet.
  let begun = "";
  const begin = (model) => {
    if ((State.answer && !Ask.isOther()) || begun === model.name || State.asking) return;
    begun = model.name;
    if (text() === null) write(Lesson.sentence);
    else if (Models.isSmall(model)) Ask.send();
  };
  const input = el("input", { id: "learn-text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-describedby": "learn-note", oninput: () => write(input.value, true),
    onkeydown: ({ key }) => key === "Enter" && Ask.send() });
  const note = el("p.small.soft", { id: "learn-note", role: "status" });

  const lead = el("h2", { id: "learn-title", "aria-live": "polite" });
  const choose = (row) => {
    wanted = now().words[row].toLowerCase();
    State.show({ row, col: -1 });
  };
  const sentence = Arcs.of(choose);
  const share = (weight) => `${Math.round(100 * weight)} %`;
  const headline = ({ words, row }, weights) => {
    const [first, second] = List.order(weights);
    fill(lead, "“", el("span.q", words[row]), "” gives ", el("span.k", share(weights[first])),
      " of its attention to “", el("span.k", words[first]), "”",
      weights[second] > 0.08 ? `, ${share(weights[second])} to “${words[second]}”.` : ".");
  };
  const told = ({ words, answer, item }) => {
    const lost = words.filter((word) => / [<[]unk[>\]]$/i.test(word));
    return [text() === null ? `The request has ${answer.batched ? `several items: this is item ${item}.` : "no text."}` : "",
      lost.length ? `${lost.length === 1 ? "One word is" : `${lost.length} words are`} not in the model's vocabulary: `
        + `it reads ${lost[0].split(" ").at(-1)}.` : ""].join(" ");
  };

  // --- heads, and things to try ---

  const layers = el("div.row", { role: "group", "aria-label": "Attention blocks" });
  const heads = el("div.heads", { role: "group", "aria-label": "Heads" });
  Rove.in(layers, "button");
  Rove.in(heads, "button");
  const picture = (thumb) => {
    const canvas = el("canvas"), drawn = Heatmap.small(canvas, { matrix: thumb, seen: thumb.data.map(() => 1), high: 1 });
    while (!drawn.next().done);
    return canvas;
  };
  const tile = ({ answer, lesson, part, item, head, row, words }, thumb, i) => {
    const { name = `Head ${i}`, does = "" } = (lesson && lesson.heads[part] || [])[i] || {}, mark = el("i");
    mark.style.top = `${100 * row / words.length}%`;
    mark.style.height = `${100 / words.length}%`;
    return el("button.head", { "aria-pressed": String(i === head),
      onclick: () => Whole.show(part, i) },
    el("span.map", picture(thumb), mark), el("span", el("b", name), el("small.soft", does)));
  };
  // The pictures are drawn anew only when they change.
  let pictured = [];
  const choices = (at) => {
    const { answer, part, item, head, row, lesson } = at, key = [answer.thumbs, part, item, head, row, State.dark];
    if (same(key, pictured)) return;
    pictured = key;
    Rove.fill(layers, selves(answer).map((name) => el("button", { "aria-pressed": String(name === part),
      title: name, onclick: () => Whole.show(name, 0) }, Part.name(name))));
    Rove.fill(heads, answer.thumbs(part, item).map((thumb, i) => tile(at, thumb, i)));
    heads.classList.toggle("many", answer.thumbs(part, item).length > 3);
    training.hidden = !lesson;
    if (lesson) fill(training, el("summary", "How this model was trained"), el("p", lesson.taught), el("p", lesson.limits));
  };
  const tries = el("div.row"), training = el("details.small");
  const chapter = el("details.small"), show11 = ({ name, title }) => button(title, () => {
    Place.go("explore", "look");
    Examples.choose(name);
  });
  State.on(["models"], () => {
    const list = Samples.chapter();
    chapter.hidden = !list.length;
    fill(chapter, el("summary", "Dive into Deep Learning, chapter 11"), el("div.row", list.map(show11)));
  });
  const selves = ({ names }) => names.filter((name) => name.endsWith("self"));
  const swapped = (lesson) => {
    const value = (text() || "").replace(/\s*\.$/, "");
    const pair = lesson && lesson.swaps.flatMap(([from, to]) => [[from, to], [to, from]]).find(([from, to]) =>
      lesson.texts.some((one) => one === value || one === value.replace(from, to)) && value.endsWith(from));
    return pair && button(`“${pair[0]}” → “${pair[1]}”`, () => write(value.replace(pair[0], pair[1])));
  };
  const offer = ({ lesson, words, row, masked }, weights) => {
    const top = masked >= 0 ? masked : List.order(weights).find((i) => i !== row);
    const hide = top === undefined ? null : button(`${masked < 0 ? "Mask" : "Unmask"} “${words[top]}”`, () =>
      State.show({ masked: masked < 0 ? top : -1 }));
    const { texts } = lesson || { texts: [Lesson.sentence] }, next = texts[(texts.indexOf(text()) + 1) % texts.length];
    fill(tries, swapped(lesson), hide, next === text() ? null : button("Another sentence", () => write(next)));
  };

  // --- what the word stands for: the answer of the model "words" ---

  let nouns = null;
  const vocabulary = async (model, count) => {
    const tokens = Array.from({ length: count + 1 }, (_, i) => [i]);
    const reply = await Net.post("detokenize", model.name, { tokens });
    nouns = reply.ok ? reply.json().text : [];
    show();
  };
  const stands = ({ answer, lesson, model, part, head, item, words, row, masked }) => {
    if (!lesson || masked >= 0 || part !== lesson.named.part || head !== lesson.named.head || !answer.items[item].outputs) return null;
    if (!nouns) {
      nouns = [];
      vocabulary(model, lesson.nouns);
    }
    if (!nouns.length) return null;
    const numbers = [...Answer.row(answer.items[item].outputs, row).slice(0, lesson.nouns + 1)];
    const most = Math.max(...numbers), exps = numbers.map((x) => Math.exp(x - most));
    const best = numbers.indexOf(most), sum = List.sum(exps);
    return el("p", "The model's answer: “", el("span.q", words[row]), "” speaks of ",
      best ? el("b.v", nouns[best]) : "no noun", ` (${share(1 / sum)}).`);
  };

  // --- the whole ---

  const formula = el("p", { id: "formula" }, el("span", "softmax( ", el("b.q", "Q"), " ",
    el("b.k", "K"), "ᵀ / √", el("i", "d"), " ) ", el("b.v", "V")),
  el("span.small.soft", "All of ", Terms.of("attention"), " in one line: ", el("b.q", "Q"), " what each word looks for, ",
    el("b.k", "K"), " what it offers, ", el("b.v", "V"), " what it hands over. ",
    el("button.plain", { onclick: () => Place.go("explore", "steps") }, "Show all numbers")));
  const wrong = el("div");
  const main = el("div", el("div", { id: "learn-tour" }), lead, el("p.soft", "Attention: every word looks at all words that it may see, "
    + "and takes something from each. Click another word."),
  el("p.pick", el("label", { for: "learn-text" }, "Your sentence"), input), note, wrong, sentence.node, Cards.node, formula);
  const side = el("aside", el("h3", "Layers and ", Terms.of("head", "heads")),
    el("p.small.soft", "Each head asks another question. Rows look, columns are looked at."), layers, heads,
    el("h3", "Try it"), tries, training, chapter);
  fill(home, main, side);

  let drawn = [];
  const show = () => {
    if (home.hidden) return;
    const model = Models.current(), { answer, problem } = State;
    main.hidden = side.hidden = !Models.hasText(model);
    if (main.hidden) return;
    if (document.activeElement !== input && input.value !== (text() ?? "")) input.value = text() ?? "";
    input.disabled = text() === null && State.body !== null;
    begin(model);
    const last = answer && answer.whole && !Ask.isOther() && selves(answer).at(-1);
    if (last && !State.view.part?.endsWith("self")) return Whole.show(last, 0);
    const at = text()?.trim() === "" ? null : now();
    side.hidden = !at;
    for (const one of [sentence.node, Cards.node, formula]) one.hidden = !at;
    const failed = (at && found.problem) || (problem && !State.asking && !at && problem);
    fill(wrong, failed && Report.failed(failed, () => {
      found = { key: null };
      Ask.send();
    }));
    if (!at) {
      drawn = [];
      note.textContent = Models.isSmall(model) ? "" : "Press Enter to run this model.";
      return fill(lead, failed ? "No response" : State.asking ? "…" : "Type a sentence");
    }
    if (at.row < 0) {
      const { row = -1, masked = -1 } = linked || {}, known = (i) => (i < at.words.length ? i : -1);
      linked = null;
      return State.show({ row: known(row) < 0 ? firstRow(at) : row, masked: known(masked) });
    }
    explain(at);
    const weights = found.weights || [...Answer.row(at.weights, at.row)];
    note.textContent = told(at);
    choices(at);
    offer(at, weights);
    // A frame that draws the same once more would hold up the request of a typed letter.
    const key = [at.answer, at.part, at.item, at.head, at.row, at.masked, found.trace, found.weights, nouns];
    if (same(key, drawn)) return;
    drawn = key;
    headline(at, weights);
    sentence.show({ words: at.words, weights, row: at.row, hidden: at.masked });
    const { named } = at.lesson || {};
    Cards.node.ariaBusy = !found.trace;
    if (found.trace) Cards.show({ words: at.words, row: at.row, trace: found.trace, stands: stands(at),
      named: named && named.part === at.part && named.head === at.head ? named.features : null });
  };
  // An address has the sentence, the attention block, the head and the number of the word.
  Place.part("learn", {
    write: () => {
      const { part, head, row, masked } = State.view;
      return { text: text(), layer: part, head: head || null, word: row >= 0 ? row : null,
        mask: masked >= 0 ? masked : null };
    },
    read: (params) => {
      const number = (name, none) => (/^\d+$/.test(params.get(name)) ? Number(params.get(name)) : none);
      const value = params.get("text"), model = params.get("model");
      if (value === null || (model !== null && !Models.find(model))) return; // link.js tells of a missing model
      linked = { row: number("word", -1), masked: number("mask", -1) };
      State.show({ part: params.get("layer"), head: number("head", 0) });
      write(value);
    } });
  State.on(["models", "model", "body", "answer", "view", "dark", "asking", "place", "problem"], show);
})();
