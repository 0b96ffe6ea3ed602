// behavior: what each head of a whole model does, as numbers by its weights.
//
// Behavior.NAMES: by a short name, { title, means }: what such a head attends to. The score of a behavior is
// the mean share of weight on matching keys, over the queries that can have it: some of their unmasked keys
// match and others do not. Behavior.measure(answer, item, told) -> a promise of a Map from "ATTENTION HEAD"
// to { entropy, distance, previous: { score, queries, even }, ... }, or of { problem }; even: the score of weights
// that are spread evenly. Thumbnails of more than SIDE tokens have no single weights: the exact ones are requested, and told(n) counts the attentions.
// Behavior.known(answer, item): the Map, or undefined before. Behavior.isLong(answer, item).
// needs: list state models visible whole slices
const Behavior = (() => {
  const SIDE = 64, MARK = /^\W*?(\[SEP\]|<\/s>|[.,;:!?])$/;
  // Title; meaning; does a key match?; only where queries and keys are the same tokens?
  const ALL = {
    previous: ["previous token", "the token before", (i, j) => j === i - 1, true],
    current: ["current token", "the token itself", (i, j) => j === i, true],
    next: ["next token", "the token after", (i, j) => j === i + 1, true],
    first: ["first token", "the first token (attention sink)", (i, j) => j === 0],
    duplicate: ["duplicate token", "the same token earlier",
      (i, j, rows, cols) => j < i && cols[j] === rows[i], true],
    induction: ["induction", "the token after an earlier copy of this token",
      (i, j, rows, cols) => j > 0 && j < i && cols[j - 1] === rows[i], true],
    separator: ["separator", "[SEP], </s> or punctuation", (i, j, rows, cols) => MARK.test(cols[j])],
  };

  // matches -> for each behavior a list of [query, matching keys, their weight in an even spread].
  function* matches({ rows, cols }, seen, isSelf) {
    const list = Object.entries(ALL).filter(([, [, , , needsSelf]]) => isSelf || !needsSelf);
    const all = Object.fromEntries(Object.keys(ALL).map((name) => [name, []]));
    for (let i = 0; i < rows.length; i++) {
      const keys = Array.from(cols.keys()).filter((j) => seen[i * cols.length + j]);
      for (const [name, [, , match]] of list) {
        const found = keys.filter((j) => match(i, j, rows, cols));
        if (found.length && found.length < keys.length) all[name].push([i, found, found.length / keys.length]);
      }
      yield;
    }
    return all;
  }
  const scores = ({ rows, cols, data }, all) => {
    const totals = new Float64Array(rows);
    let entropy = 0, distance = 0;
    for (let i = 0, at = 0; i < rows; i++) {
      let logs = 0, far = 0;
      for (let j = 0; j < cols; j++, at++) {
        const x = data[at];
        if (!(x > 0)) continue;
        totals[i] += x;
        logs += x * Math.log(x);
        far += x * Math.abs(i - j);
      }
      const total = totals[i] || 1;
      entropy += Math.log(total) - logs / total;
      distance += far / total;
    }
    const mean = (list, f) => list.length && List.sum(list, f) / list.length;
    const score = (list) => ({ queries: list.length, even: mean(list, ([, , even]) => even), score: mean(list, ([i, keys]) =>
      List.sum(keys, (j) => data[i * cols + j]) / (totals[i] || 1)) });
    return { entropy: entropy / (rows * Math.log(cols) || 1), distance: distance / (rows || 1),
      ...Object.fromEntries(Object.entries(all).map(([name, list]) => [name, score(list)])) };
  };
  function* heads(weights, all) {
    const found = [];
    for (const matrix of weights) {
      found.push(scores(matrix, all));
      yield;
    }
    return found;
  }

  const isLong = (answer, item) => answer.names.some((name) => {
    const { rows, cols } = answer.words(item, name);
    return Math.max(rows.length, cols.length) > SIDE;
  });
  const measureAll = async (answer, item, told) => {
    const { body, model } = State.asked, found = new Map(), known = new Map();
    for (const [n, name] of answer.names.entries()) {
      const words = answer.reads(item, name), kind = name.replace(/\d+/, "");
      const [rows, cols] = [words.rows.length, words.cols.length];
      if (!known.has(kind)) known.set(kind, await Slices.run(matches(words,
        Visible.of(answer.sees[name], null, item, rows, cols, 0), name.endsWith("self"))));
      told(n);
      const reply = isLong(answer, item) ? await Whole.weights(body, Models.find(model), name, item, words)
        : { weights: answer.thumbs(name, item) };
      if (reply.problem) return reply;
      (await Slices.run(heads(reply.weights, known.get(kind)))).forEach((one, head) =>
        found.set(`${name} ${head}`, one));
    }
    return found;
  };
  const kept = new WeakMap(); // by the thumbnails of an answer: for each item a promise, and its result
  const of = ({ thumbs }) => {
    if (!kept.has(thumbs)) kept.set(thumbs, { asked: [], known: [] });
    return kept.get(thumbs);
  };
  const measure = async (answer, item, told = () => {}) => {
    const { asked, known } = of(answer);
    asked[item] ||= measureAll(answer, item, told);
    const found = await asked[item];
    if (found.problem) asked[item] = null;
    else known[item] = found;
    return found;
  };
  return { measure, isLong, known: (answer, item) => of(answer).known[item],
    NAMES: Object.fromEntries(Object.entries(ALL).map(([name, [title, means]]) => [name, { title, means }])) };
})();
