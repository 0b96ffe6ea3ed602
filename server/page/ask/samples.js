// samples: the requests of the examples, for single layers and for whole models.
//
// Samples.chapter() -> those for chapter 11 of Dive into Deep Learning that a model takes.
// Samples.layers: of { name, title, note, ... }. Samples.offered(model) -> those for a model.
// Samples.find(name). Samples.body(name, model) -> the request, the same each time; its `beams` are those that
// Generate begins with. Samples.labels(name):
// its labels. Samples.takes(example, model): is it for this model? Samples.taker(example, model): the
// model for it: this one, another one, or null. Samples.barred(example, model): why it cannot be chosen,
// or "". Samples.first(model): the name of the example that a model begins with, or "".
// Samples.SENTENCE: the first text, of Learn, too. Samples.pixel(x, y): the brightness of the picture, of
// Samples.WIDE points a side.
// needs: list state models labels random request
const Samples = (() => {
  const twice = (item) => [item, item];
  // A bias for eleven words: it adds 5 to the score of word 8 with word 1.
  const bias = Array.from({ length: 11 }, (_, i) => Array.from({ length: 11 }, (__, j) => (i === 8 && j === 1 ? 5 : 0)));
  const ADDITIVE = ["the score additive", ({ score }) => score === "additive"];
  // The layer `demo`: the inverses of its matrices of queries and keys, and a column of that of values. The
  // vectors below are those that its two heads compare, two numbers for each, and these make the request's.
  const DEMO = ["the layer demo", ({ sha256 }) => /^413f670f/.test(sha256)];
  const QUERY = [[1.684, -1.081, 0.172, 0.582], [-0.685, 1.3, -1.106, -0.914],
    [1.985, -3.923, -1.268, -1.631], [0.097, 1.161, 2.262, 1.296]];
  const KEY = [[-0.873, -0.608, 0.484, -0.094], [-0.982, 2.471, -0.984, -2.53],
    [0.385, -1.462, 0.649, 2.731], [-0.501, 1.384, -2.404, -1.459]];
  const VALUE = [[0.736], [-1.494], [2.241], [-2.008]];
  const times = (matrix, vectors) => vectors.map((vector) => matrix.map((row) =>
    Math.round(1000 * List.sum(row, (x, i) => x * vector[i])) / 1000));
  const code = (by) => Array.from({ length: 8 }, (_, i) => [1, 0.25].flatMap((pace) =>
    [by * Math.cos(pace * i), by * Math.sin(pace * i)]));
  const POINTS = [0, 1, 2, 3, 4, 5], KNOWN = [0.2, 0.6, 1.1, 1.7, 2.4, 3, 3.7, 4.5];
  const named = (points) => [points.map((x) => `x=${x}`).join(" ")], KING = ["Once upon a time there was a king"];
  const layers = [
    { name: "lookup", title: "Color and taste (d2l 11.1, 11.5)", needs: DEMO, fields: {},
      words: [["purple red sour red+sour any"], ["apple cherry banana lemon lime plum"]],
      items: [{ queries: times(QUERY, [[0, -4, 0, 0], [4, 0, 0, 0], [0, 0, 0, 4], [4, 0, 0, 4], [0, 0, 0, 0]]),
        keys: times(KEY, [[2, 0, 0, -2], [2, 0, 0, 2], [0, 2, 0, -2], [0, 2, 0, 2], [-2, 0, 0, 2], [0, -2, 0, -2]]) }],
      note: "Head 0 compares colors, head 1 tastes. A query gets one key, or the mean of several; if it asks for "
        + "nothing, of all." },
    { name: "kernel", title: "Kernel regression (d2l 11.2)", needs: DEMO, fields: {},
      words: [named(POINTS), named(KNOWN)],
      items: [{ queries: times(QUERY, POINTS.map((x) => [x, 1, 4 * x, 4].map((part) => part * Math.SQRT2))),
        keys: times(KEY, KNOWN.map((x) => [x, -x * x / 2, x, -x * x / 2])),
        values: times(VALUE, KNOWN.map((x) => [2 * Math.sin(x) + x])) }],
      note: "Nadaraya-Watson: with q = (x, 1) and k = (x', -x'²/2), softmax of q·k is a Gaussian kernel, of width 1 "
        + "in head 0 and 1/2 in head 1. The context begins with the estimate of y = 2 sin x + x." },
    { name: "additive", title: "Additive pooling (d2l 11.3)", items: twice({ q: 1, k: 10, own: true }),
      fields: { valid_lens: [2, 6] }, needs: ADDITIVE,
      note: "One query per item, scores v·tanh(W q + U k)." },
    { name: "toy", title: "Masked softmax (d2l 11.3)", items: twice({ q: 4, k: 6 }),
      words: [[], ["we saw rain <pad> <pad> <pad>", "hello world <pad> <pad> <pad> <pad>"]],
      fields: { valid_lens: [3, 2] },
      note: "valid_lens masks padding: item 0 has 3 keys, item 1 has 2." },
    { name: "bahdanau", title: "Bahdanau attention (d2l 11.4)", fields: { valid_lens: [4] },
      needs: ["the layer additive", ({ sha256 }) => /^7882bda9/.test(sha256)],
      words: [["le chat noir dort"], ["the black cat sleeps <pad>"]],
      items: [{ k: 5, own: true, queries: [[-1, -2, -1, -2, 4, 3, -1, 0], [5, 3, -4, 4, -2, 0, 2, -3],
        [-1, 1, -1, -1, -3, 0, 2, -2], [1, 0, 0, 4, 1, -5, -3, 2]].map((state) => [...state, ...Array(12).fill(0)]),
      keys: [[-2, 7], [1, 0], [1, -6], [7, 10], [0, 0]] }],
      note: "Decoder states attend to encoder states: words find their translations." },
    { name: "position", title: "Positional encoding (d2l 11.6)", needs: DEMO, fields: {},
      words: [KING, KING],
      items: [{ queries: times(QUERY, code(3)), keys: times(KEY, code(2)) }],
      note: "Sines and cosines of positions: the weights depend on distance alone. Head 0 is narrow, but "
        + "takes 6 for 0; head 1 is wide." },
    { name: "causal", title: "Causal self-attention (d2l 11.7)", items: [{ q: 8 }], fields: { causal: true },
      words: [KING],
      note: "Each query attends to itself and to earlier positions." },
    { name: "pronoun", title: "A bias makes the weights", items: [{ q: 11 }], calm: true,
      words: [["The animal did not cross the street because it was tired"]],
      fields: { bias },
      note: "“it” attends to “animal” only because the bias adds 5 to this score: query and key are random." },
    { name: "previous", title: "Previous token", items: [{ q: 8 }], calm: true,
      words: [KING], fields: { window: [0, 0], causal_offset: -1 },
      note: "A window of one key: each query attends to the token before it." },
    { name: "ragged", title: "Ragged batch", fields: {},
      items: [{ q: 3, k: 6 }, { q: 5, k: 2 }, { q: 2, k: 9 }],
      note: "Items of different sizes, without padding." },
    { name: "levels", title: "Two levels", items: [{ q: 4, k: 9 }], sums: true,
      words: [[], ["The old man left early without his hat today"]],
      fields: { segments: [[3, 2, 4]] }, note: "Attention to segments of keys, and within each segment." },
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
  const SENTENCE = "The animal did not cross the street because it was too tired";
  const ofWhole = [
    { name: "sort", title: "Numbers to sort (d2l 11.7)", fits: ({ builtin }) => builtin === "sort",
      fields: () => ({ tokens: [9, 4, 17, 2, 12, 25, 7, 20] }),
      note: "In the last layer, position i attends to the i-th smallest number." },
    { name: "story", title: "Start of a sentence (d2l 11.7)", fits: ({ builtin }) => builtin === "story",
      fields: () => ({ text: "the animal did not cross the street because it" }),
      note: "Choose Generate: the model continues it with its 107 words." },
    { name: "beams", title: "Beam search (d2l 10.8)", fits: ({ builtin }) => builtin === "story", beams: 4,
      fields: () => ({ text: "the dog did not" }), note: "Choose Generate: the four best hypotheses, word by word." },
    { name: "mask", title: "Masked tokens", fits: ({ tokenizer, tasks }) => tokenizer?.mask && tasks.includes("fill"),
      fields: ({ tokenizer: { mask } }) => ({ text: SENTENCE.replace("animal", mask) }),
      note: "Choose Tasks: which tokens fit in the place of the mask?" },
    { name: "sentence", title: "A sentence (d2l 11.6)", fits: ({ tokenizer }) => Boolean(tokenizer),
      fields: (model, next) => ({ text: SENTENCE, ...behind(model, next) }),
      note: "Which tokens does “it” attend to, in which head?" },
    { name: "texts", title: "Two texts", fits: ({ tokenizer, kind }) => tokenizer && kind !== "seq2seq",
      fields: () => ({ text: [SENTENCE, SENTENCE.replace("tired", "wide")] }), note: "A batch, without padding." },
    { name: "ids", title: "Random token IDs", fits: ({ vocabulary }) => vocabulary > 4,
      fields: (model, next) => ({ tokens: tokens(model, next, 10), ...behind(model, next) }),
      note: "Sampled from the vocabulary." },
    { name: "repeat", title: "Repeated random tokens", fits: ({ kind, vocabulary }) => kind === "decoder" && vocabulary > 16,
      fields: (model, next) => {
        const all = [...new Set(tokens(model, next, 400))].slice(0, Math.min(12, (model.positions || 24) >> 1));
        return { tokens: [...all, ...all] };
      },
      note: "A token's second copy finds its first one: sort the heads by induction." },
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
  const itemOf = (model, next, { q, k, own, ...made }) => {
    const item = { queries: rows(next, q, model.query_size) };
    if (k || model.key_size !== model.query_size) item.keys = rows(next, k || q, model.key_size);
    if (own || model.value_size !== model.key_size)
      item.values = rows(next, k || q, model.value_size);
    return { ...item, ...made };
  };
  const body = (name, model) => {
    if (Models.isWhole(model))
      return { text: Request.layout(find(name).fields(model, Random.draw(1))), beams: find(name).beams };
    const { items, fields, spoil, calm } = find(name), draw = Random.draw(1);
    const next = () => (calm ? 10 : 40) * (draw() - 0.5);
    const all = items.map((item) => itemOf(model, next, item)), whole = {};
    for (const part of Object.keys(all[0])) whole[part] = all.map((item) => item[part]);
    if (spoil) spoil(whole);
    return { text: Request.layout({ ...whole, ...fields, return_attention: true }) };
  };

  // The model for an example, and why there is none, or "". An example's `needs` are words for the
  // models that it is for, and whether a model is one.
  const takes = ({ needs, fits }, model) => (Models.isWhole(model) ? Boolean(fits) && fits(model)
    : !fits && (!needs || needs[1](model)));
  const taker = (example, model) => [model, ...(State.models || [])].find((one) => takes(example, one)) || null;
  const chapter = () => [...layers, ...ofWhole].filter((one) => /d2l 11/.test(one.title) && Models.current()
    && taker(one, Models.current()));
  const barred = (example, model) => {
    if (!model || Models.isWhole(model)) return "";
    if (!taker(example, model)) return `needs ${example.needs[0]}`;
    return example.sums && model.weighting === "sigmoid" ? "not with sigmoid weights" : "";
  };
  const first = (model) => (offered(model).find((example) => takes(example, model) && !barred(example, model))
    || { name: "" }).name;
  return { layers, offered, chapter, find, labels, body, takes, taker, barred, first, SENTENCE, pixel, WIDE };
})();
