// cards: the three steps of attention for one word, in the numbers of its trace: query meets keys, scores
// become weights, weights mix values.
//
// Cards.node. Cards.show({ words, row, trace, named, stands }): named: the names of the first numbers of
// query and keys, or null; stands: a node that tells what the word stands for after the layer, or null.
// needs: dom format list report terms strip
const Cards = (() => {
  const SHOWN = 4, OFFERED = 2, SOUGHT = 8; // keys that are shown; the taught sizes of named numbers
  const parts = [el("div"), el("div"), el("div")];
  const card = (i, title, words) => el("section.card",
    el("h3", el("span.number", i + 1), title), words, parts[i]);
  const mine = el("span.q"), also = el("span.q");
  const node = el("div", { id: "cards" },
    card(0, [el("span.q", Terms.of("query", "Query")), " meets ", el("span.k", Terms.of("key", "keys"))],
      el("p", "What ", mine, " looks for, against what each word offers. Where both are large, the ",
        Terms.of("score"), " grows.")),
    card(1, ["Scores become ", Terms.of("weight", "weights")], el("p", Terms.of("softmax", "Softmax"),
      ": exp(score), as a share of the sum. All weights add up to 100 %.")),
    card(2, ["Weights mix ", el("span.v", Terms.of("value", "values"))], el("p", also,
      " takes from each word as much as its weight, and gets the sum:")));

  const score = (x) => x.toFixed(1).replace(/^-(?=0\.0$)/, "");
  const part = (x) => `${(100 * x).toFixed(1)} %`;
  const masked = (x) => x === null || x === undefined;
  const dot = (x, most, kind, name) => {
    const one = el("span", { class: `dot ${kind}`, title: `${name} ${Format.short(x)}` });
    one.style.opacity = Math.min(1, Math.max(0.06, x / most));
    return one;
  };
  const pattern = (list, most, kind, named) => (named ? named.map((name, i) => el("td", dot(list[i], most, kind, name)))
    : [el("td", Strip.of(list, kind))]);
  const query = ({ words, row, trace: { query: q, keys, scores }, named }, some) => {
    const titles = named || ["numbers of query and keys"];
    return [el("table", el("thead", el("tr", el("th", "word"),
      titles.map((name) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, "score"))),
    el("tbody", el("tr", el("th.q", { scope: "row" }, words[row]), pattern(q, SOUGHT, "q", named), el("td")),
      some.map((j) => el("tr", el("th.k", { scope: "row" }, words[j]),
        pattern(keys[j], OFFERED, "k", named), el("td", masked(scores[j]) ? "masked" : score(scores[j])))))),
    named ? el("p.small.soft", `These ${named.length} of the head's ${q.length} numbers have names. The others `
      + "count in the score, too.") : null];
  };
  const bar = (word, share, isRest) => Report.bar(word, share, part(share), isRest);
  const weights = ({ words, trace }, some) => [...some.map((j) => bar(words[j], trace.weights[j])),
    some.length < words.length ? bar("others", Math.max(0, 1 - List.sum(some, (j) => trace.weights[j])), true) : null];
  const values = ({ words, trace: { weights: w, values: v, context }, stands }, some) => {
    const most = Strip.largest(context);
    const line = (word, times, list) => el("div.mix-row", el("span", word),
      el("span.soft", times), Strip.of(list, "v", most));
    return [...some.slice(0, 3).map((j) => line(words[j], `× ${part(w[j])} =`, v[j].map((x) => w[j] * x))),
      el("div.sum", line("sum", "", context)), stands];
  };

  const show = (now) => {
    const { words, row, trace } = now, order = List.order(trace.weights);
    const some = [...new Set([...order.slice(0, SHOWN), row])];
    for (const one of [mine, also]) one.textContent = `“${words[row]}”`;
    [query, weights, values].forEach((make, i) => fill(parts[i], make(now, some)));
  };
  return { node, show };
})();
