// learn: the place Learn: one sentence, what one of its words attends to, and how that is computed. It
// shows the same state as the other places: model, text, attention block, head and query.
//
// Learn.takes(model): can the model be shown here? It must take text.
// needs: dom place rove scale state terms models net ask request whole arcs cards lesson
const Learn = (() => {
  const { el, fill, button } = Dom;
  const home = Dom.id("learn");
  const takes = (model) => Models.isWhole(model) && Boolean(model.tokenizer);

  // --- what is shown ---

  let masked = -1, wanted = ""; // a masked key; the word that was chosen last
  let linked = -1; // the number of the word in an address that was opened
  // The weights and the trace that the server computed for `key`, with a masked key if there is one.
  let found = { key: null, trace: null, weights: null };
  const now = () => {
    const answer = State.get("answer"), view = State.get("view"), item = answer && answer.items[view.item];
    if (!answer || !answer.whole || !item || !item.weights) return null;
    const { rows: words, cols } = answer.words(view.item, answer.part), model = Models.find(answer.model);
    if (!words.length || words.length !== cols.length) return null;
    const head = typeof view.head === "number" && item.weights[view.head] ? view.head : 0;
    return { answer, model, lesson: Lesson.of(model), part: answer.part, item: view.item, head, words,
      weights: item.weights[head], row: view.row < words.length ? view.row : -1 };
  };
  // The row that is shown when no one has chosen one: that of the address, of the same word as before, or of
  // the lesson's word, or else the one whose largest weight on another word is greatest.
  const firstRow = ({ words, weights, lesson }) => {
    const link = linked;
    linked = -1;
    if (link >= 0 && link < words.length) return link;
    const at = (word) => words.findIndex((one) => one.toLowerCase() === word);
    const known = [wanted, lesson ? lesson.word : "it"].map(at).find((i) => i >= 0);
    if (known !== undefined) return known;
    const away = words.map((_, i) => Math.max(0, ...Answer.row(weights, i).filter((__, j) => j !== i)));
    return away.indexOf(Math.max(...away));
  };

  // --- requests ---

  const ask = async ({ part, head, row, item, answer }) => {
    if (masked < 0) {
      const reply = await Whole.again({ return_attention: undefined, return_tokens: undefined,
        trace: { attention: part, item, head, query: row } });
      return reply.ok ? { trace: JSON.parse(reply.text()).trace } : reply;
    }
    // The block alone, with the inputs that it had, and one key masked.
    const name = `${part}.input`, inputs = await Whole.again({ return_attention: undefined,
      return_tokens: undefined, return_hidden: [name] });
    if (!inputs.ok) return inputs;
    const all = JSON.parse(inputs.text()).hidden[name], queries = answer.batched ? all[item] : all;
    const mask = queries.map(() => queries.map((_, j) => j !== masked));
    const data = JSON.stringify({ queries, mask, return_attention: true, trace: { item: 0, head, query: row } });
    const reply = await Net.ask("POST", Net.path(`layers/${part}/attention`, answer.model),
      { type: "application/json", data });
    if (!reply.ok) return reply;
    const { trace, attention_weights: weights } = JSON.parse(reply.text());
    return { trace, weights: weights[head][row] };
  };
  const explain = async (at) => {
    const key = [at.answer.thumbs, at.part, at.item, at.head, at.row, masked];
    if (found.key && key.every((one, i) => one === found.key[i])) return;
    found = { key, trace: null, weights: null };
    const reply = await ask(at);
    if (found.key !== key) return;
    if (reply.problem) return State.set({ problem: reply.problem });
    found = { key, ...reply };
    show();
  };

  // --- the sentence ---

  const text = () => {
    const { text: now } = Request.fields(State.get("body")) || {};
    return typeof now === "string" ? now : null;
  };
  const write = (value) => {
    masked = -1;
    State.set({ body: { text: Request.layout({ text: value }) } });
    if (value.trim()) Ask.send();
  };
  // Begins with the text that is there, or else with a sentence, whenever the model has not answered yet.
  let begun = "";
  const begin = (model) => {
    const answer = State.get("answer"), isAnswered = answer && answer.model === model.name;
    if (isAnswered || begun === model.name || State.get("asking")) return;
    begun = model.name;
    write(text() ?? Lesson.sentence);
  };
  const input = el("input", { id: "learn-text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-describedby": "learn-note", oninput: () => write(input.value) });
  const note = el("p", { id: "learn-note", class: "small soft", role: "status" });

  const lead = el("h2", { id: "learn-title", "aria-live": "polite" });
  const choose = (row) => {
    wanted = now().words[row].toLowerCase();
    State.view({ row, col: -1 });
  };
  const sentence = Arcs.of(choose);
  const share = (weight) => `${Math.round(100 * weight)} %`;
  const headline = ({ words, row }, weights) => {
    const [first, second] = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
    fill(lead, "“", el("span", { class: "q" }, words[row]), "” gives ", el("span", { class: "k" }, share(weights[first])),
      " of its attention to “", el("span", { class: "k" }, words[first]), "”",
      weights[second] > 0.08 ? `, ${share(weights[second])} to “${words[second]}”.` : ".");
  };
  const unknown = ({ words }) => {
    const lost = words.filter((word) => /^(<unk>|\[UNK\])$/.test(word)).length;
    return lost ? `${lost === 1 ? "One word is" : `${lost} words are`} not in the model's vocabulary: it reads <unk>.` : "";
  };

  // --- heads, and things to try ---

  const layers = el("div", { class: "row", role: "group", "aria-label": "Attention blocks" });
  const heads = el("div", { class: "heads", role: "group", "aria-label": "Heads" });
  Rove.in(layers, "button");
  Rove.in(heads, "button");
  const picture = ({ rows, cols, data }) => {
    const canvas = el("canvas", { width: cols, height: rows }), pen = canvas.getContext("2d");
    const image = pen.createImageData(cols, rows), { words } = Scale.ramp(), all = new Uint32Array(image.data.buffer);
    for (let i = 0; i < all.length; i++) all[i] = words[Scale.index(data[i])];
    pen.putImageData(image, 0, 0);
    return canvas;
  };
  const tile = ({ answer, lesson, part, item, head, row, words }, thumb, i) => {
    const { name = `Head ${i}`, does = "" } = (lesson && lesson.heads[part] || [])[i] || {}, mark = el("i");
    mark.style.top = `${100 * row / words.length}%`;
    mark.style.height = `${100 / words.length}%`;
    return el("button", { type: "button", class: "head", "aria-pressed": String(i === head),
      onclick: () => Whole.show(part, i) },
    el("span", { class: "map" }, picture(thumb), mark), el("span", null, el("b", null, name), el("small", { class: "soft" }, does)));
  };
  const layerName = (part) => part.replace(/^(\w+)\.(\d+)\.(\w+)$/, (_, side, n, kind) => `Layer ${n}${kind === "self" ? "" : `, ${kind}`}`);
  const choices = (at) => {
    const { answer, part, item, lesson } = at;
    Rove.fill(layers, answer.names.map((name) => el("button", { type: "button", "aria-pressed": String(name === part),
      title: name, onclick: () => Whole.show(name, 0) }, layerName(name))));
    Rove.fill(heads, answer.thumbs(part, item).map((thumb, i) => tile(at, thumb, i)));
    heads.classList.toggle("many", answer.thumbs(part, item).length > 3);
    told.hidden = !lesson;
    if (lesson) fill(told, el("summary", null, "How this model was trained"), el("p", null, lesson.taught), el("p", null, lesson.limits));
  };
  const tries = el("div", { class: "row" }), told = el("details", { class: "small" });
  const swapped = (lesson) => {
    const value = text() || "", words = value.split(/\b/);
    const pair = lesson && lesson.swaps.map((one) => [one, [...one].reverse()]).flat()
      .find(([from]) => words.includes(from));
    return pair && button(`“${pair[0]}” → “${pair[1]}”`, () => {
      input.value = words.map((word) => (word === pair[0] ? pair[1] : word)).join("");
      write(input.value);
    });
  };
  const offer = ({ lesson, words, row }, weights) => {
    const top = masked >= 0 ? masked : [...weights.keys()].filter((i) => i !== row)
      .sort((a, b) => weights[b] - weights[a])[0];
    const hide = top === undefined ? null : button(`${masked < 0 ? "Mask" : "Unmask"} “${words[top]}”`, () => {
      masked = masked < 0 ? top : -1;
      show();
    });
    const others = lesson && lesson.texts, next = others && others[(others.indexOf(text()) + 1) % others.length];
    fill(tries, swapped(lesson), hide, next && button("Another sentence", () => {
      input.value = next;
      write(next);
    }));
  };

  // --- what the word stands for: the answer of the model "words" ---

  let nouns = null;
  const vocabulary = async (model, count) => {
    const tokens = Array.from({ length: count + 1 }, (_, i) => [i]);
    const reply = await Net.ask("POST", Net.path("detokenize", model.name), { type: "application/json",
      data: JSON.stringify({ tokens }) });
    nouns = reply.ok ? JSON.parse(reply.text()).text : [];
    show();
  };
  const stands = ({ answer, lesson, model, part, item, words, row }) => {
    if (!lesson || masked >= 0 || part !== answer.names.at(-1) || !answer.items[item].outputs) return null;
    if (!nouns) {
      nouns = [];
      vocabulary(model, lesson.nouns);
    }
    if (!nouns.length) return null;
    const numbers = [...Answer.row(answer.items[item].outputs, row).slice(0, lesson.nouns + 1)];
    const most = Math.max(...numbers), exps = numbers.map((x) => Math.exp(x - most));
    const best = numbers.indexOf(most), sum = exps.reduce((a, b) => a + b, 0);
    return el("p", null, "The model's answer: “", el("span", { class: "q" }, words[row]), "” speaks of ",
      best ? el("b", { class: "v" }, nouns[best]) : "no noun", ` (${share(1 / sum)}).`);
  };

  // --- the whole ---

  const formula = el("p", { id: "formula" }, el("span", null, "softmax( ", el("b", { class: "q" }, "Q"), " ",
    el("b", { class: "k" }, "K"), "ᵀ / √", el("i", null, "d"), " ) ", el("b", { class: "v" }, "V")),
  el("span", { class: "small soft" }, "All of ", Terms.of("attention"), " in one line: ", el("b", { class: "q" }, "Q"), " what each word looks for, ",
    el("b", { class: "k" }, "K"), " what it offers, ", el("b", { class: "v" }, "V"), " what it hands over. ",
    el("button", { type: "button", class: "plain", onclick: () => Place.go("explore", "steps") }, "Show all numbers")));
  const empty = el("p", { class: "soft" });
  const main = el("div", null, lead, el("p", { class: "soft" }, "Attention: every word looks at all words that it may see, "
    + "and takes something from each. Click another word."),
  el("p", { class: "pick" }, el("label", { for: "learn-text" }, "Your sentence"), input), note, sentence.node, Cards.node, formula);
  const side = el("aside", null, el("h3", null, "Layers and ", Terms.of("head", "heads")),
    el("p", { class: "small soft" }, "Each head asks another question. Rows look, columns are looked at."), layers, heads,
    el("h3", null, "Try it"), tries, told);
  side.prepend(el("div", { id: "learn-tour" }));
  fill(home, empty, main, side);

  const show = () => {
    if (home.hidden) return;
    const model = Models.current(), isEmpty = text() !== null && !text().trim(), at = isEmpty ? null : now();
    if (document.activeElement !== input && text() !== null) input.value = text();
    if (takes(model)) begin(model);
    empty.textContent = !takes(model) ? "This model takes no text. Choose another model above."
      : "";
    main.hidden = !takes(model);
    side.hidden = !takes(model) || !at;
    for (const one of [sentence.node, Cards.node, formula]) one.hidden = !at;
    if (!at) return fill(lead, "Type a sentence");
    if (at.row < 0) return State.view({ row: firstRow(at) });
    explain(at);
    const weights = found.weights || [...Answer.row(at.weights, at.row)];
    headline(at, weights);
    note.textContent = unknown(at);
    sentence.show({ words: at.words, weights, row: at.row, hidden: masked });
    choices(at);
    offer(at, weights);
    const { named } = at.lesson || {};
    if (found.trace) Cards.show({ words: at.words, row: at.row, trace: found.trace, stands: stands(at),
      named: named && named.part === at.part && named.head === at.head ? named.features : null });
  };
  // An address has the sentence, the attention block, the head and the number of the word.
  Place.part("learn", {
    write: () => {
      const { part, head, row } = State.get("view");
      return { text: text(), layer: part, head: head || null, word: row >= 0 ? row : null };
    },
    read: (params) => {
      const number = (name, none) => (/^\d+$/.test(params.get(name)) ? Number(params.get(name)) : none);
      const value = params.get("text");
      if (value === null) return;
      linked = number("word", -1);
      State.view({ part: params.get("layer"), head: number("head", 0) });
      write(value);
    } });
  State.on(["models", "model", "body", "answer", "view", "dark", "asking", "place"], show);
  return { takes };
})();
