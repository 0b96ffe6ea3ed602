// beams: draws a beam search as a tree. Each column is a step: first the beams that continue, the best
// one on top, then the sequences that end at this step, with their scores.
//
// Beams.tree(found) -> the nodes of a response of /generate with return_search: { step, row, token,
//   log_probability, sum, parent, path, done, score, best }; path: the tokens up to the node; sum: the
//   log probability of an unfinished hypothesis; done: the rank of the sequence that ends at the node,
//   or null; score: of that sequence; best: is the node on the path of the best sequence?
// Beams.draw(place, nodes, { spelt, choose }): a click calls choose(node). Beams.choose(place, i) marks
//   node i and scrolls to it.
// Beams.figure(nodes, spelt) -> an SVG element of it; Beams.table(nodes, spelt): its rows, to be saved.
// needs: dom format rove picture
const Beams = (() => {
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
  const way = (node, { spelt, choose }) => {
    const { token, log_probability: log, sum, done, score, step } = node;
    const likely = Format.percent(Math.exp(log)), text = scored(node);
    const title = `Step ${step + 1}: “${spelt(token)}”, ${likely}; `
      + (done === null ? `log probability of the hypothesis ${Format.short(sum)}`
        : `finished, rank ${done + 1}, score ${Format.short(score)}`);
    const one = el("button", { title, onclick: () => choose(node),
      class: `way ${done === null ? "" : "done"} ${node.best ? "best" : ""}` },
    el("span", spelt(token)), " ", el("small", text));
    Object.assign(one.style, { left: `${left(node)}px`, top: `${top(node)}px`, width: `${NODE}px` });
    return one;
  };
  const most = (nodes, of) => nodes.reduce((all, node) => Math.max(all, of(node)), 0);
  const scored = ({ log_probability: log, done, score }) =>
    (done === null ? Format.percent(Math.exp(log)) : Format.short(score));
  const figure = (nodes, spelt) => Picture.frame("Beam search", most(nodes, left) + WIDE + 40, most(nodes, top) + TALL + 60,
    svg("g", { transform: "translate(20 44)", fill: "none", stroke: "#8d877c" },
      nodes.filter(({ parent }) => parent).map((node) => {
        const path = edge(node);
        if (node.best) path.setAttribute("stroke", "#1f5a8c");
        return path;
      }), nodes.flatMap((node) => [svg("rect", { x: left(node), y: top(node), width: NODE, height: TALL - 8, rx: 4,
        stroke: node.best ? "#1f5a8c" : null, "stroke-dasharray": node.done === null ? null : 3 }),
      svg("text", { x: left(node) + 5, y: top(node) + 18, stroke: "none", fill: "#333" },
        `${spelt(node.token).slice(0, 8)} ${scored(node)}`)])));
  const table = (nodes, spelt) => [["step", "token", "text", "log_probability", "sum", "rank", "score", "path"],
    ...nodes.map(({ step, token, log_probability: log, sum, done, score, path }) =>
      [step + 1, token, spelt(token), log, sum, done === null ? null : done + 1, score, path.map(spelt).join(" ")])];
  const draw = (place, nodes, how) => {
    const width = most(nodes, left) + WIDE, height = most(nodes, top) + TALL, from = place.scrollLeft;
    const box = el("div.tree", svg("svg", { width, height, "aria-hidden": true },
      nodes.filter(({ parent }) => parent).map(edge)), nodes.map((node) => way(node, how)));
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
  return { tree, draw, choose, figure, table };
})();
