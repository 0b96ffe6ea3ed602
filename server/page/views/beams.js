// beams: draws a beam search as a tree. Each column is a step: first the beams that continue, the best
// one on top, then the sequences that end at this step, with their scores.
//
// Beams.tree(found) -> the nodes of a response of /generate with return_search: { step, row, token,
//   log_probability, sum, parent, path, done, score, best }; path: the tokens up to the node; sum: the
//   log probability of an unfinished hypothesis; done: the rank of the sequence that ends at the node,
//   or null; score: of that sequence; best: is the node on the path of the best sequence?
// Beams.draw(place, nodes, { spelt, choose }): a click calls choose(node). Beams.choose(place, i) marks
//   node i and scrolls to it.
// needs: dom format rove
const Beams = (() => {
  const { el, svg } = Dom;
  const WIDE = 112, TALL = 36, NODE = 94;

  const tree = ({ search, sequences }) => {
    const nodes = [], rows = [];
    const add = (node) => {
      rows[node.step] = (rows[node.step] || 0) + 1;
      nodes.push({ done: null, ...node, row: rows[node.step] - 1 });
      return nodes.at(-1);
    };
    let before = [null];
    for (const [step, ways] of search.entries())
      before = ways.map(({ parent: at, ...way }) => {
        const parent = before[at];
        return add({ ...way, step, parent, path: [...(parent ? parent.path : []), way.token] });
      });
    const ways = new Map(nodes.map((node) => [node.path.join(), node]));
    for (const [done, { tokens: path, score, log_probabilities: logs }] of sequences.entries())
      add({ step: path.length - 1, parent: ways.get(path.slice(0, -1).join()) || null, path, done, score,
        token: path.at(-1), log_probability: logs.at(-1) });
    for (let node = nodes.find(({ done }) => done === 0); node; node = node.parent) node.best = true;
    return nodes;
  };

  const left = ({ step }) => step * WIDE, top = ({ row }) => row * TALL;
  const edge = (node) => {
    const { parent } = node, [a, b] = [left(parent) + NODE, left(node)], middle = (a + b) / 2;
    const [from, to] = [top(parent) + TALL / 2 - 4, top(node) + TALL / 2 - 4];
    return svg("path", { d: `M${a} ${from}C${middle} ${from} ${middle} ${to} ${b} ${to}`,
      class: node.best ? "best" : null });
  };
  const button = (node, { spelt, choose }) => {
    const { token, log_probability: log, sum, done, score, step } = node;
    const likely = Format.percent(Math.exp(log)), text = done === null ? likely : Format.short(score);
    const title = `Step ${step + 1}: “${spelt(token)}”, ${likely}; `
      + (done === null ? `log probability of the hypothesis ${Format.short(sum)}`
        : `finished, rank ${done + 1}, score ${Format.short(score)}`);
    const one = el("button", { type: "button", title, onclick: () => choose(node),
      class: `way ${done === null ? "" : "done"} ${node.best ? "best" : ""}` },
    el("span", null, spelt(token)), " ", el("small", null, text));
    Object.assign(one.style, { left: `${left(node)}px`, top: `${top(node)}px`, width: `${NODE}px` });
    return one;
  };
  const draw = (place, nodes, how) => {
    const most = (of) => nodes.reduce((all, node) => Math.max(all, of(node)), 0);
    const width = most(left) + WIDE, height = most(top) + TALL, from = place.scrollLeft;
    const box = el("div", { class: "tree" }, svg("svg", { width, height, "aria-hidden": true },
      nodes.filter(({ parent }) => parent).map(edge)), nodes.map((node) => button(node, how)));
    box.style.height = `${height}px`;
    Rove.fill(place, box);
    place.scrollLeft = from;
  };
  const choose = (place, i) => {
    const before = place.querySelector("[aria-pressed=true]"), now = place.querySelectorAll("button")[i];
    if (before === now) return;
    if (before) before.removeAttribute("aria-pressed");
    if (!now) return;
    now.setAttribute("aria-pressed", true);
    Rove.tidy(place);
    const far = now.offsetLeft + WIDE - place.clientWidth;
    if (now.offsetLeft < place.scrollLeft || far > place.scrollLeft)
      place.scrollLeft = now.offsetLeft < place.scrollLeft ? now.offsetLeft : far;
  };
  return { tree, draw, choose };
})();
