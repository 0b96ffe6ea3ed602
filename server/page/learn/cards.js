// cards: the three steps of attention for one word, in the numbers of its trace: query meets keys, scores
// become weights, weights mix values.
//
// Cards.node. Cards.show({ words, row, trace, named, stands }): named: the names of the first numbers of
// query and keys, or null; stands: a node that tells what the word stands for after the layer, or null.
// needs: dom format report terms strip
const Cards = (() => {
  const { el, fill } = Dom;
  const SHOWN = 4, OFFERED = 2, SOUGHT = 8; // keys that are shown; the taught sizes of named numbers
  const parts = [el("div"), el("div"), el("div")];
  const card = (i, title, words) => el("section", { class: "card" },
    el("h3", null, el("span", { class: "number" }, i + 1), title), words, parts[i]);
  const mine = el("span", { class: "q" }), also = el("span", { class: "q" });
  const node = el("div", { id: "cards" },
    card(0, [el("span", { class: "q" }, Terms.of("query", "Query")), " meets ", el("span", { class: "k" }, Terms.of("key", "keys"))],
      el("p", null, "What ", mine, " looks for, against what each word offers. Where both are large, the ",
        Terms.of("score"), " grows.")),
    card(1, ["Scores become ", Terms.of("weight", "weights")], el("p", null, Terms.of("softmax", "Softmax"),
      ": exp(score), as a share of the sum. All weights add up to 100 %.")),
    card(2, ["Weights mix ", el("span", { class: "v" }, Terms.of("value", "values"))], el("p", null, also,
      " takes from each word as much as its weight, and gets the sum:")));

  const score = (x) => x.toFixed(1).replace(/^-(?=0\.0$)/, "");
  const part = (x) => `${(100 * x).toFixed(1)} %`;
  const masked = (x) => x === null || x === undefined;
  const dot = (x, most, kind, name) => {
    const one = el("span", { class: `dot ${kind}`, title: `${name} ${Format.short(x)}` });
    one.style.opacity = Math.min(1, Math.max(0.06, x / most));
    return one;
  };
  const pattern = (list, most, kind, named) => (named ? named.map((name, i) => el("td", null, dot(list[i], most, kind, name)))
    : [el("td", null, Strip.of(list, kind))]);
  const query = ({ words, row, trace: { query: q, keys, scores }, named }, some) => {
    const titles = named || ["numbers of query and keys"];
    return [el("table", null, el("thead", null, el("tr", null, el("th", null, "word"),
      titles.map((name) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, "score"))),
    el("tbody", null, el("tr", null, el("th", { scope: "row", class: "q" }, words[row]), pattern(q, SOUGHT, "q", named), el("td")),
      some.map((j) => el("tr", null, el("th", { scope: "row", class: "k" }, words[j]),
        pattern(keys[j], OFFERED, "k", named), el("td", null, masked(scores[j]) ? "masked" : score(scores[j])))))),
    named ? el("p", { class: "small soft" }, `These ${named.length} of the head's ${q.length} numbers have names. The others `
      + "count in the score, too.") : null];
  };
  const bar = (word, share, isRest) => Report.bar(word, share, part(share), isRest);
  const weights = ({ words, trace }, some) => [...some.map((j) => bar(words[j], trace.weights[j])),
    some.length < words.length ? bar("others", Math.max(0, 1 - some.reduce((sum, j) => sum + trace.weights[j], 0)), true) : null];
  const values = ({ words, trace: { weights: w, values: v, context }, stands }, some) => {
    const most = Strip.largest(context);
    const line = (word, times, list) => el("div", { class: "mix-row" }, el("span", null, word),
      el("span", { class: "soft" }, times), Strip.of(list, "v", most));
    return [...some.slice(0, 3).map((j) => line(words[j], `× ${part(w[j])} =`, v[j].map((x) => w[j] * x))),
      el("div", { class: "sum" }, line("sum", "", context)), stands];
  };

  const show = (now) => {
    const { words, row, trace } = now, order = [...trace.weights.keys()].sort((a, b) =>
      trace.weights[b] - trace.weights[a] || a - b);
    const some = [...new Set([...order.slice(0, SHOWN), row])];
    for (const one of [mine, also]) one.textContent = `“${words[row]}”`;
    [query, weights, values].forEach((make, i) => fill(parts[i], make(now, some)));
  };
  return { node, show };
})();
