// steps: the tab Computation: the computation of one query's weights, in the server's own numbers: its
// query, the products with each key, scores, weights, and the context. A user may change a score or mask
// a key: then the page computes the effect.
//
// The query, the key and the head are those of State.view; by default the query with the most concentrated
// weights, its key with the largest one, and head 0. The trace is requested when the tab is open, once for
// each of them. Step n shows the first n columns of the table. Vectors are strips: a cell for each number,
// its upper half colored for a positive number, its lower half for a negative one.
// needs: dom format list report rove state terms models net answer code request whole picture sentence strip look save
const Steps = (() => {
  const FEW = 12, SOME = 6; // how many keys and numbers of a vector are shown at first
  const panel = id("steps");
  const NAMES = ["Query", "Products", "Scores", "Weights", "Values", "Context"];
  let shown = "", trace = null, step = 0, all = false, asking = null;
  const changed = new Map(); // key -> another score, or null: masked

  // --- numbers ---

  const hidden = (x) => x === null || x === undefined;
  // The weights of scores: a softmax, or the sigmoid of each.
  const weigh = (scores, isEven) => {
    if (isEven) return scores.map((x) => (hidden(x) ? 0 : 1 / (1 + Math.exp(-x))));
    const most = Math.max(...scores.filter((x) => !hidden(x)));
    const parts = scores.map((x) => (hidden(x) ? 0 : Math.exp(x - most)));
    const sum = List.sum(parts);
    return parts.map((x) => (sum ? x / sum : 0));
  };
  const mix = (weights, values) => values[0].map((_, c) =>
    List.sum(weights, (x, j) => x * values[j][c]));
  const short = Format.short;
  const vector = (list) => el("code", `[${list.slice(0, SOME).map(short).join(", ")}`
    + `${list.length > SOME ? `, … ${list.length} numbers` : ""}]`);
  const signed = (x) => (x < 0 ? `(${short(x)})` : short(x));
  const product = (a, b) => {
    const terms = a.slice(0, 3).map((x, c) => `${signed(x)}·${signed(b[c])}`).join(" + ");
    return a.length > 3 ? `${terms} + …` : terms;
  };
  // The factor of the products, if the trace agrees with one of the usual ones: the rest is a bias.
  const scale = () => {
    const root = 1 / Math.sqrt(trace.query.length), model = Models.find(State.asked.model) || {};
    const fits = (by) => trace.scores.every((x, j) => hidden(x)
      || Math.abs(x - by * trace.products[j]) <= 1e-4 * (1 + Math.abs(x)));
    return model.scale ?? ([root, 1].find(fits) || (model.family === "t5" ? 1 : root));
  };
  const scored = (col) => {
    const d = trace.query.length, by = scale(), x = trace.products[col], score = trace.scores[col];
    const rest = score - by * x, isRoot = Math.abs(by * Math.sqrt(d) - 1) < 1e-5;
    const isBiased = Math.abs(rest) > 1e-4 * (1 + Math.abs(score));
    const bias = (Request.fields(State.asked.body) || {}).bias ? "bias" : "relative position";
    return [isRoot ? `q·k / √d${isBiased ? ` + ${bias}` : ""}, with d = ${d}, the size of a head: `
      : `q·k${by === 1 ? "" : " × scale"}${isBiased ? ` + ${bias}` : ""}: `,
    el("code", short(x) + (isRoot ? ` / √${d}` : by === 1 ? "" : ` × ${short(by)}`)
      + (isBiased ? ` ${rest < 0 ? "−" : "+"} ${short(Math.abs(rest))}` : ""), ` = ${short(score)}`)];
  };

  const softmax = (scores, col, weight) => {
    const there = scores.filter((x) => !hidden(x)), most = Math.max(...there);
    const sum = List.sum(there, (x) => Math.exp(x - most));
    return `exp(${short(scores[col])} − ${short(most)}) / ${short(sum)} = ${Format.weight(weight)}`;
  };

  // --- the chosen query and its trace ---

  // The query with the largest weight, of those with a choice.
  const sharpest = ({ matrix, seen }) => {
    let best = 0, most = 0;
    for (let i = 0; i < matrix.rows; i++) {
      const from = i * matrix.cols, keys = seen.subarray(from, from + matrix.cols);
      const top = Math.max(...Answer.row(matrix, i));
      if (top > most && keys.indexOf(1) !== keys.lastIndexOf(1)) [best, most] = [i, top];
    }
    return best;
  };
  const place = () => {
    const sheet = Look.sheet(), view = State.view;
    if (!sheet || !sheet.matrix.rows || !sheet.matrix.cols) return null;
    const row = view.row < 0 ? sharpest(sheet) : view.row, best = Math.max(0, Answer.heaviest(sheet.matrix, row));
    return { sheet, row, col: view.col < 0 ? best : view.col, item: view.item,
      head: typeof view.head === "number" ? view.head : 0, mean: typeof view.head !== "number" };
  };
  const path = () => State.answer.path || "attention";
  const traced = ({ item, head, row }, { part } = State.answer) =>
    ({ trace: { ...(part && { attention: part }), item, head, query: row } });
  const ask = async (at) => {
    const reply = await Whole.again(traced(at), path());
    return reply.ok ? { trace: reply.json().trace } : reply;
  };

  // --- the steps ---

  const scores = () => trace.scores.map((x, j) => (changed.has(j) ? changed.get(j) : x));
  const line = (...parts) => el("p", parts);
  const name = (word, kind) => el("b", { class: kind }, Terms.of(word));
  const explain = ({ sheet, row, col }) => {
    const key = Sentence.key(sheet, col), q = trace.query, k = trace.keys[col], s = scores();
    const weights = changed.size ? weigh(s, sheet.even) : trace.weights, v = trace.values;
    if (step && step < 5 && hidden(s[col])) return [line(`${key} is masked for this query: no score.`)];
    return [
      () => [line(`${Sentence.query(sheet, row).replace("query", "Query")} in this head: `, name("query", "q"), " q = ",
        vector(q)), line(Strip.of(q, "q"))],
      () => [line(`${key}: `, name("key", "k"), " k = ", vector(k)), line(Strip.of(q, "q")), line(Strip.of(k, "k")),
        line("How well q and k match: ", el("code", `${product(q, k)} = ${short(trace.products[col])}`))],
      () => [line(...scored(col)), changed.has(col) ? line("You changed it to ", el("code", short(s[col])), ".") : null],
      () => [line(...(sheet.even ? ["Sigmoid of the score: "] : [Terms.of("softmax", "Softmax"), " over all keys: "]),
        el("code", sheet.even ? `1 / (1 + exp(−${short(s[col])})) = ${Format.weight(weights[col])}`
          : softmax(s, col, weights[col])))],
      () => [line(`${key}: `, name("value", "v"), " v = ", vector(v[col])), line("Multiplied by the weight ",
        el("code", Format.weight(weights[col])), ": ", vector(v[col].map((x) => x * weights[col])))],
      () => {
        const mixed = changed.size ? mix(weights, v) : trace.context;
        return [line("The sum over all keys is the head's output, the context: ", vector(mixed)),
          line(Strip.of(mixed, "v")), changed.size ? line("With the server's scores: ", vector(trace.context)) : null];
      },
    ][step]();
  };

  const edit = (j, value) => {
    if (value === trace.scores[j]) changed.delete(j);
    else changed.set(j, value);
    draw();
  };
  const cells = (sheet, j, s, weights, form, parts, most) => {
    const original = trace.scores[j], gone = hidden(s[j]), name = Sentence.key(sheet, j);
    const number = el("input", { type: "number", step: "any", value: gone ? "" : s[j], disabled: gone,
      "aria-label": `Score of ${name}`, onchange: () => number.value !== ""
        && edit(j, Number(number.value)) });
    const seen = el("input", { type: "checkbox", checked: !gone, disabled: hidden(original),
      "aria-label": `Attend to ${name}`,
      onchange: () => edit(j, seen.checked ? original : null) });
    const word = button(sheet.cols[j], () => State.show({ col: j }));
    word.className = "word plain";
    return [word, hidden(original) ? "–" : [Strip.of(trace.keys[j], "k"), form(trace.products[j])],
      el("span", seen, number),
      Report.number(weights[j], weights[j] / Math.max(...weights), Format.weight(weights[j])),
      Strip.of(parts[j], "v", most)];
  };
  const table = ({ sheet, col }) => {
    const s = scores(), weights = changed.size ? weigh(s, sheet.even) : trace.weights;
    const order = List.order(trace.weights);
    const some = all || order.length <= FEW ? [...weights.keys()]
      : [...new Set([...order.slice(0, FEW), col])].sort((a, b) => a - b);
    const titles = [Terms.of("key", "Key"), "q·k", "Score", Terms.of("weight", "Weight"), "Weight × value"];
    const parts = trace.values.map((v, j) => v.map((x) => x * weights[j])), most = Strip.largest(parts.flat());
    const form = Format.even(some.map((j) => trace.products[j]));
    const then = changed.size && step > 2 ? (j) => [Format.weight(trace.weights[j])] : () => [];
    const upTo = (list) => list.slice(0, step + 1);
    const node = Dom.table("Keys", [...upTo(titles), ...(then(0).length ? ["Server's weight"] : [])],
      some.map((j) => [...upTo(cells(sheet, j, s, weights, form, parts, most)), ...then(j)]));
    for (const [i, row] of [...node.tBodies[0].rows].entries())
      row.classList.toggle("on", some[i] === col);
    for (const row of node.rows)
      [...row.cells].forEach((cell, c) => cell.classList.toggle("now", c > 0 && c === step));
    return [node, some.length < order.length ? button(`Show all ${order.length} keys`, () => {
      all = true;
      draw();
    }) : null];
  };

  const list = el("div.row", { role: "group", "aria-label": "Steps" }, NAMES.map((name, i) =>
    button(`${i + 1} ${name}`, () => go(i))));
  Rove.in(list, "button");
  const words = el("div", { id: "steps-text", "aria-live": "polite" });
  const content = el("div.wide"), back = button("Back to the server's numbers", () => {
    changed.clear();
    draw();
  });
  // Scores and weights as they are shown, also changed ones.
  const shownNow = () => {
    const at = place(), s = scores();
    return { ...at, s, weights: changed.size ? weigh(s, at.sheet.even) : trace.weights };
  };
  const save = Save.row(() => "computation", { svg: () => {
    const { sheet, row, weights } = shownNow(), title = `${Sentence.query(sheet, row)} in ${sheet.label}`;
    return Picture.svg({ ...sheet, title, matrix: { rows: 1, cols: weights.length, data: Float32Array.from(weights) },
      seen: Uint8Array.from(weights, (_, j) => sheet.seen[row * weights.length + j]), high: Math.max(...weights) || 1,
      rows: [sheet.rows[row]], pointers: null });
  }, csv: () => {
    const { sheet, s, weights } = shownNow(), numbers = (list) => list.map((_, c) => c);
    return [["key_position", "key", "q·k", "score", "weight", ...numbers(trace.keys[0]).map((c) => `k${c}`),
      ...numbers(trace.values[0]).map((c) => `v${c}`)], ["", "query", "", "", "", ...trace.query],
    ...s.map((score, j) => [j, sheet.cols[j], trace.products[j], score, weights[j], ...trace.keys[j], ...trace.values[j]])];
  } });
  const go = (to) => {
    step = Math.max(0, Math.min(NAMES.length - 1, to));
    draw();
  };
  const before = button("Previous", () => go(step - 1)), after = button("Next", () => go(step + 1));
  const head = el("p.soft");
  const draw = () => {
    const at = place();
    if (!at || !trace) return;
    const missing = ["query", "keys", "products", "scores", "weights", "values", "context"]
      .filter((name) => !trace[name]);
    if (missing.length) return fill(words, `The trace has no ${missing.join(", ")}.`);
    before.disabled = step === 0;
    after.disabled = step === NAMES.length - 1;
    back.hidden = !changed.size;
    for (const [i, one] of [...list.children].entries()) one.setAttribute("aria-pressed", i === step);
    Rove.tidy(list);
    fill(head, `${Sentence.query(at.sheet, at.row).replace("query", "Query")} in ${at.sheet.label}`
      + `${at.mean ? ": head 0" : ""}. Change a score or mask a key to see the effect.`);
    fill(words, explain(at));
    const focused = document.activeElement.ariaLabel;
    fill(content, table(at));
    if (focused) [...content.querySelectorAll("input")].find((one) =>
      one.ariaLabel === focused)?.focus();
  };
  const look = async () => {
    const at = place();
    if (!at) {
      shown = "";
      return fill(panel, el("p.soft", "There are no weights to explain."));
    }
    const { part } = State.answer, now = [at.item, at.head, at.row, part].join();
    if (now === shown && asking === State.answer) return draw();
    [shown, asking, trace, all] = [now, State.answer, null, false];
    changed.clear();
    fill(panel, el("div.bar", list, before, after, back), head, words, content, save,
      Code.button(() => [path(), Whole.changed(traced(place()))]));
    fill(words, "Loading …");
    fill(content);
    const reply = await ask(at).catch(Net.unreadable);
    if (now !== shown || asking !== State.answer) return;
    if (reply.trace) trace = reply.trace;
    else return fill(words, Report.failed(reply.problem, () => {
      shown = "";
      look();
    }));
    draw();
  };
  State.on(["answer", "view", "labels"], look, panel);
  return { weigh, go };
})();
