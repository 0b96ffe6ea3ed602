// examples: requests to start from, adapted to the chosen model.
//
// Examples.list: of { name, title, ... }. The choice of an example sends it. While its text is
// unchanged, it is made again for each model that is chosen. The user's own requests can be chosen,
// too. An example that needs another model selects it, and the next one restores the model before.
//
// Examples.begin() -> a promise, or null: the request of the tab before the reload, or the first example, unless there is a
// request. Examples.choose(name, send): the example `name`, which its body has as `example`.
// Examples.offered(model) -> those for a model. Examples.labels(name): its labels.
// needs: dom own state models ask labels random request
const Examples = (() => {
  const twice = (item) => [item, item];
  // A bias that adds numbers to some scores: the other scores are small in a `calm` example.
  const biased = (q, k, pairs) => {
    const rows = Array.from({ length: q }, () => Array(k).fill(0));
    for (const [i, j, by] of pairs) rows[i][j] = by;
    return [rows];
  };
  const diagonal = (n, by) => Array.from({ length: n }, (_, i) => [i, i, by]);
  const list = [
    { name: "pronoun", title: "A pronoun and its noun", items: [{ q: 11 }], calm: true,
      words: [["The animal did not cross the street because it was tired"]],
      fields: { bias: biased(11, 11, [[1, 0, 2], [4, 1, 3], [4, 6, 2], [6, 5, 3], [8, 1, 5],
        [8, 6, 3.5], [10, 8, 3], [10, 1, 4]]) },
      note: "“it” attends to “animal”, and less to “street”, because the request adds a bias to their scores." },
    { name: "previous", title: "Previous token", items: [{ q: 8 }], calm: true,
      words: [["Once upon a time there was a king"]], fields: { window: [0, 0], causal_offset: -1 },
      note: "A window of one key: each query attends to the previous token, the first one to none." },
    { name: "copy", title: "A copy task", items: [{ q: 6, k: 6, own: true }], calm: true,
      words: [["<s> m o n k e"], ["m o n k e y"]], fields: { bias: biased(6, 6, diagonal(6, 6)) },
      note: "Each query attends to the same position of the text that is copied." },
    { name: "toy", title: "Padded items", items: twice({ q: 4, k: 6 }),
      words: [[], ["we saw rain <pad> <pad> <pad>", "hello world <pad> <pad> <pad> <pad>"]],
      fields: { valid_lens: [3, 2] },
      note: "valid_lens masks padding: item 0 has 3 keys, item 1 has 2." },
    { name: "cross", title: "Cross attention", items: [{ q: 5, k: 8, own: true }], fields: {},
      words: [["Je vois le chat noir"], ["I see the black cat over there ."]],
      note: "Queries attend to separate keys and values." },
    { name: "causal", title: "Causal self-attention", items: [{ q: 8 }], fields: { causal: true },
      words: [["Once upon a time there was a king"]],
      note: "Each query attends to itself and to earlier positions." },
    { name: "ragged", title: "Ragged batch", fields: {},
      items: [{ q: 3, k: 6 }, { q: 5, k: 2 }, { q: 2, k: 9 }],
      note: "Items of different sizes, without padding." },
    { name: "levels", title: "Two levels", items: [{ q: 4, k: 9 }], sums: true,
      words: [[], ["The old man left early without his hat today"]],
      fields: { segments: [[3, 2, 4]] }, note: "Attention to segments of keys, and within each segment." },
    { name: "additive", title: "Additive pooling", items: twice({ q: 1, k: 10, own: true }),
      fields: { valid_lens: [2, 6] }, score: "additive",
      note: "One query per item, scores v·tanh(W q + U k), as in Dive into Deep Learning." },
    { name: "hard", title: "Hard selection", items: [{ q: 6, k: 6 }],
      fields: { select: "hard", return_pointers: true }, note: "Each query selects one key (hard attention)." },
    { name: "invalid", title: "An invalid one", items: twice({ q: 4, k: 6 }), fields: {},
      spoil: ({ queries }) => queries[1][2].pop(),
      note: "One vector is too short: the error shows where." },
  ];
  // The examples for whole models; their fields are made from a model and a random generator.
  const tokens = (model, next, n) => Array.from({ length: Math.min(n, model.positions || n) }, () =>
    Math.min(model.vocabulary - 1, 4 + Math.floor(next() * (model.vocabulary - 4))));
  const behind = (model, next) => (model.kind === "seq2seq" ? { targets: tokens(model, next, 5) } : {});
  const SENTENCE = "The animal did not cross the street because it was too tired.";
  const ofWhole = [
    { name: "sort", title: "Numbers to sort", fits: ({ source }) => source === "sort",
      fields: () => ({ tokens: [9, 4, 17, 2, 12, 25, 7, 20] }),
      note: "In the last layer, position i attends to the i-th smallest number." },
    { name: "sentence", title: "A sentence", fits: ({ tokenizer }) => Boolean(tokenizer),
      fields: (model, next) => ({ text: SENTENCE, ...behind(model, next) }),
      note: "Which tokens does “it” attend to, in which head?" },
    { name: "texts", title: "Two texts", fits: ({ tokenizer, kind }) => tokenizer && kind !== "seq2seq",
      fields: () => ({ text: [SENTENCE, "The cat sat on the mat."] }), note: "A batch, without padding." },
    { name: "ids", title: "Random token IDs", fits: ({ vocabulary }) => vocabulary > 4,
      fields: (model, next) => ({ tokens: tokens(model, next, 10), ...behind(model, next) }),
      note: "Sampled from the vocabulary." },
    { name: "outside", title: "An invalid one", fits: ({ vocabulary }) => vocabulary > 4,
      fields: (model) => ({ tokens: [1, 2, model.vocabulary] }),
      note: "A token ID outside the vocabulary: the error shows where." },
  ];
  const offered = (model) =>
    (Models.isWhole(model) ? ofWhole.filter(({ fits }) => fits(model)) : list);
  const first = (model) => (offered(model)[0] || { name: "" }).name;
  const find = (name) => [...list, ...ofWhole].find((example) => example.name === name);

  // Vectors of numbers with one decimal.
  const rows = (next, count, width) => Array.from({ length: count }, () =>
    Array.from({ length: width }, () => Math.round(next()) / 10));
  const itemOf = (model, next, { q, k, own }) => {
    const item = { queries: rows(next, q, model.query_size) };
    if (k || model.key_size !== model.query_size) item.keys = rows(next, k || q, model.key_size);
    if (own || model.value_size !== model.key_size)
      item.values = rows(next, k || q, model.value_size);
    return item;
  };
  // The body is the same each time.
  const bodyOf = (name, model) => {
    if (Models.isWhole(model))
      return { text: Request.layout(find(name).fields(model, Random.draw(1))) };
    const { items, fields, spoil, calm } = find(name), draw = Random.draw(1);
    const next = () => (calm ? 10 : 40) * (draw() - 0.5);
    const all = items.map((item) => itemOf(model, next, item)), whole = {};
    for (const part of Object.keys(all[0])) whole[part] = all.map((item) => item[part]);
    if (spoil) spoil(whole);
    return { text: Request.layout({ ...whole, ...fields, return_attention: true }) };
  };

  const taker = ({ score }) => (State.get("models") || []).find((m) => m.score === score);
  // The reason why the model does not support the example, or "".
  const barred = (example, model) => {
    if (example.score && !taker(example)) return `no model has the score ${example.score}`;
    return example.sums && model && model.weighting === "sigmoid" ? "not with sigmoid weights" : "";
  };

  // An example for a wider model is megabytes of text, and is made only when it is chosen.
  const WIDEST = 20000;
  // The example's name; its request; the name of the model that this was made for; and { from, to } if
  // an example has changed the model.
  let chosen = null, made = null, madeFor = null, before = null;
  const labels = (name) => Labels.of(...(find(name).words || [[]]));
  const put = (model, send = Ask.send) => {
    [made, madeFor] = [Own.made({ ...bodyOf(chosen, model), example: chosen }), model.name];
    State.set({ body: made, labels: labels(chosen) });
    return send();
  };
  // Makes the example again for the current model; a request of the user's own stays.
  const fit = () => {
    const model = Models.current();
    if (before && State.get("model") !== before.to) before = null;
    if (!made || !model || State.get("place") === "learn" || State.get("body") !== made) return;
    if (model.query_size > WIDEST) return;
    const example = offered(model).find(({ name }) => name === chosen);
    if (!example || barred(example, model) || (example.score && example.score !== model.score))
      chosen = first(model);
    if (!chosen) return;
    if (madeFor !== model.name || made.text !== bodyOf(chosen, model).text) put(model);
  };
  const choose = (name, send = Ask.start) => {
    const { score } = find(name), now = Models.current();
    const first = before && before.to === now.name ? Models.find(before.from) || now : now;
    const model = !score ? first : score === now.score ? now : taker(find(name));
    if (model !== first) before = { from: first.name, to: model.name };
    chosen = name;
    State.set({ model: model.name });
    return put(model, send);
  };

  const choice = Dom.id("example");
  const option = (example) => {
    const why = barred(example, Models.current());
    return Dom.el("option", { value: example.name, disabled: why !== "" },
      example.title + (why && ` (${why})`));
  };
  // "own0" is the newest of the user's own requests; "" is random input.
  const owned = (_, i) => Dom.el("option", { value: `own${i}` },
    i ? `your request, ${i} earlier` : "your request");
  const show = () => {
    const body = State.get("body"), own = Own.list();
    if (body !== made) chosen = "";
    Dom.fill(choice, own.map(owned), offered(Models.current()).map(option),
      Dom.el("option", { value: "", disabled: true, hidden: true }, "random input"));
    choice.value = chosen || (own.includes(body) ? `own${own.indexOf(body)}` : "");
    choice.disabled = !Models.current();
    Dom.id("example-note").textContent = chosen ? find(chosen).note : "";
  };
  const chooseOwn = (body) => {
    State.set({ body, labels: Own.labels(body) });
    return Ask.start();
  };
  choice.addEventListener("change", () => {
    const own = Own.list()[choice.value.replace("own", "")];
    if (choice.value.startsWith("own")) chooseOwn(own);
    else choose(choice.value);
  });
  const begin = () => {
    const model = Models.current();
    if (State.get("body") !== null || !model) return null;
    if (Own.kept && Own.kept.body) return chooseOwn(Own.kept.body);
    chosen = first(model);
    return chosen && !(model.query_size > WIDEST) ? put(model) : null;
  };
  State.on(["models", "model", "place"], fit);
  State.on(["models", "model", "body"], show);
  return { list, begin, choose, offered, labels };
})();
