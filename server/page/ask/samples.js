// samples: the requests of the examples, for single layers and for whole models.
//
// Samples.layers: of { name, title, note, ... }. Samples.offered(model) -> those for a model.
// Samples.find(name). Samples.body(name, model) -> the request, the same each time. Samples.labels(name):
// its labels. Samples.takes(example, model): is it for this model? Samples.taker(example, model): the
// model for it: this one, another one, or null. Samples.barred(example, model): why it cannot be chosen,
// or "". Samples.pixel(x, y): the brightness of the picture, of Samples.WIDE points a side.
// needs: state models labels random request
const Samples = (() => {
  const twice = (item) => [item, item];
  // A bias that adds numbers to some scores: the other scores are small in a `calm` example.
  const biased = (q, k, pairs) => {
    const rows = Array.from({ length: q }, () => Array(k).fill(0));
    for (const [i, j, by] of pairs) rows[i][j] = by;
    return [rows];
  };
  const diagonal = (n, by) => Array.from({ length: n }, (_, i) => [i, i, by]);
  const layers = [
    { name: "pronoun", title: "A pronoun and its noun", items: [{ q: 11 }], calm: true,
      words: [["The animal did not cross the street because it was tired"]],
      fields: { bias: biased(11, 11, [[1, 0, 2], [4, 1, 3], [4, 6, 2], [6, 5, 3], [8, 1, 5],
        [8, 6, 3.5], [10, 8, 3], [10, 1, 4]]) },
      note: "The weights are made by hand: the request adds a bias to the scores, against what query and key say." },
    { name: "previous", title: "Previous token", items: [{ q: 8 }], calm: true,
      words: [["Once upon a time there was a king"]], fields: { window: [0, 0], causal_offset: -1 },
      note: "A window of one key: each query attends to the previous token, the first one to none." },
    { name: "copy", title: "A copy task", items: [{ q: 6, k: 6, own: true }], calm: true,
      words: [["<s> m o n k e"], ["m o n k e y"]], fields: { bias: biased(6, 6, diagonal(6, 6)) },
      note: "Each query attends to the same position of the text that is copied." },
    { name: "toy", title: "Padded items (d2l 11.3)", items: twice({ q: 4, k: 6 }),
      words: [[], ["we saw rain <pad> <pad> <pad>", "hello world <pad> <pad> <pad> <pad>"]],
      fields: { valid_lens: [3, 2] },
      note: "valid_lens masks padding: item 0 has 3 keys, item 1 has 2." },
    { name: "cross", title: "Cross attention (d2l 11.4)", items: [{ q: 5, k: 8, own: true }], fields: {},
      words: [["Je vois le chat noir"], ["I see the black cat over there ."]],
      note: "Queries attend to separate keys and values." },
    { name: "causal", title: "Causal self-attention (d2l 11.6)", items: [{ q: 8 }], fields: { causal: true },
      words: [["Once upon a time there was a king"]],
      note: "Each query attends to itself and to earlier positions." },
    { name: "ragged", title: "Ragged batch", fields: {},
      items: [{ q: 3, k: 6 }, { q: 5, k: 2 }, { q: 2, k: 9 }],
      note: "Items of different sizes, without padding." },
    { name: "levels", title: "Two levels", items: [{ q: 4, k: 9 }], sums: true,
      words: [[], ["The old man left early without his hat today"]],
      fields: { segments: [[3, 2, 4]] }, note: "Attention to segments of keys, and within each segment." },
    { name: "additive", title: "Additive pooling (d2l 11.3)", items: twice({ q: 1, k: 10, own: true }),
      fields: { valid_lens: [2, 6] }, score: "additive",
      note: "One query per item, scores v·tanh(W q + U k), as in Dive into Deep Learning." },
    { name: "hard", title: "Hard selection", items: [{ q: 6, k: 6 }],
      fields: { select: "hard", return_pointers: true }, note: "Each query selects one key (hard attention)." },
    { name: "invalid", title: "An invalid one", items: twice({ q: 4, k: 6 }), fields: {},
      spoil: ({ queries }) => queries[1][2].pop(),
      note: "One vector is too short: the error shows where." },
  ];
  // A picture, the sun above the ground. An image model takes a vector for each patch, and one more first.
  const PATCHES = 6, PATCH = 4, WIDE = PATCHES * PATCH;
  const pixel = (x, y) => (Math.hypot(x - 8, y - 9) < 6 ? 1 : y > 18 ? 0.4 : 0);
  const squares = Array.from({ length: PATCHES ** 2 }, (_, i) => [Math.floor(i / PATCHES), i % PATCHES]);
  const patches = ({ width }, next) => {
    const basis = Array.from({ length: width }, () => Array.from({ length: PATCH ** 2 }, () => next() - 0.5));
    const vector = ([row, column]) => basis.map((one) => Math.round(100 * one.reduce((sum, weight, i) =>
      sum + weight * pixel(column * PATCH + i % PATCH, row * PATCH + Math.floor(i / PATCH)), 0)) / 100);
    return { embeddings: [Array(width).fill(0), ...squares.map(vector)] };
  };
  // The examples for whole models; their fields are made from a model and a random generator.
  const tokens = (model, next, n) => Array.from({ length: Math.min(n, model.positions || n) }, () =>
    Math.min(model.vocabulary - 1, 4 + Math.floor(next() * (model.vocabulary - 4))));
  const behind = (model, next) => (model.kind === "seq2seq" ? { targets: tokens(model, next, 5) } : {});
  const SENTENCE = "The animal did not cross the street because it was too tired.";
  const ofWhole = [
    { name: "sort", title: "Numbers to sort", fits: ({ builtin }) => builtin === "sort",
      fields: () => ({ tokens: [9, 4, 17, 2, 12, 25, 7, 20] }),
      note: "In the last layer, position i attends to the i-th smallest number." },
    { name: "story", title: "The beginning of a sentence", fits: ({ builtin }) => builtin === "story",
      fields: () => ({ text: "the animal did not cross the street because it" }),
      note: "Choose Generate: the model continues it with its 107 words." },
    { name: "sentence", title: "A sentence", fits: ({ tokenizer }) => Boolean(tokenizer),
      fields: (model, next) => ({ text: SENTENCE, ...behind(model, next) }),
      note: "Which tokens does “it” attend to, in which head?" },
    { name: "texts", title: "Two texts", fits: ({ tokenizer, kind }) => tokenizer && kind !== "seq2seq",
      fields: () => ({ text: [SENTENCE, "The cat sat on the mat."] }), note: "A batch, without padding." },
    { name: "ids", title: "Random token IDs", fits: ({ vocabulary }) => vocabulary > 4,
      fields: (model, next) => ({ tokens: tokens(model, next, 10), ...behind(model, next) }),
      note: "Sampled from the vocabulary." },
    { name: "repeat", title: "Repeated random tokens", fits: ({ kind, vocabulary }) => kind === "decoder" && vocabulary > 16,
      fields: (model, next) => {
        const all = [...new Set(tokens(model, next, 400))].slice(0, Math.min(12, (model.positions || 24) >> 1));
        return { tokens: [...all, ...all] };
      },
      note: "Tokens, and the same again. A token's second copy finds its first one: sort the heads by induction." },
    { name: "picture", title: "A picture", fits: ({ family }) => ["vit", "clip"].includes(family), fields: patches,
      labels: { rows: [["class", ...squares.map(([row, column]) => `row ${row}, column ${column}`)]], cols: [] },
      picture: true, note: "6 × 6 patches. The server takes patch embeddings: here the pixels of each patch, "
        + "multiplied by a random matrix." },
    { name: "outside", title: "An invalid one", fits: ({ vocabulary }) => vocabulary > 4,
      fields: (model) => ({ tokens: [1, 2, model.vocabulary] }),
      note: "A token ID outside the vocabulary: the error shows where." },
  ];
  const offered = (model) =>
    (Models.isWhole(model) ? ofWhole.filter(({ fits }) => fits(model)) : layers);
  const find = (name) => [...layers, ...ofWhole].find((example) => example.name === name);
  const labels = (name) => find(name).labels || Labels.of(...(find(name).words || [[]]));

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
  const body = (name, model) => {
    if (Models.isWhole(model))
      return { text: Request.layout(find(name).fields(model, Random.draw(1))) };
    const { items, fields, spoil, calm } = find(name), draw = Random.draw(1);
    const next = () => (calm ? 10 : 40) * (draw() - 0.5);
    const all = items.map((item) => itemOf(model, next, item)), whole = {};
    for (const part of Object.keys(all[0])) whole[part] = all.map((item) => item[part]);
    if (spoil) spoil(whole);
    return { text: Request.layout({ ...whole, ...fields, return_attention: true }) };
  };

  // The model for an example of layers, and why there is none, or "".
  const takes = ({ score }, model) => !score || model.score === score;
  const taker = (example, model) => (takes(example, model) ? model
    : (State.get("models") || []).find((one) => !Models.isWhole(one) && takes(example, one)) || null);
  const barred = (example, model) => {
    if (!model || Models.isWhole(model)) return "";
    if (!taker(example, model)) return `no model has the score ${example.score}`;
    return example.sums && model.weighting === "sigmoid" ? "not with sigmoid weights" : "";
  };
  return { layers, offered, find, labels, body, takes, taker, barred, pixel, WIDE };
})();
