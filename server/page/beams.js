// beams: the ways of a search as a tree: a column for each step, the best way on top; below those that
// go on stand those that are done, with their scores.
//
// Beams.tree(found) -> its nodes, of an answer of /generate with return_search: { step, row, token,
//   log_probability, sum, parent, path, done, score, best }; path: the tokens up to it; sum: of a way
//   that goes on; done: which of the sequences ends there, or null, with its score; best: does the best
//   sequence pass here?
// Beams.draw(place, nodes, { spelt, choose, chosen }): choose(node) is called for a click; chosen: the
//   node whose way is looked at.
const Beams = (() => {
  const { el, svg } = Dom;
  const WIDE = 128, TALL = 38, NODE = 108;

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
  const draw = (place, nodes, { spelt, choose, chosen }) => {
    const wide = Math.max(...nodes.map(left)) + WIDE, tall = Math.max(...nodes.map(top)) + TALL;
    const box = el("div", { class: "tree" }, svg("svg", { width: wide, height: tall, "aria-hidden": true },
      nodes.filter(({ parent }) => parent).map(edge)));
    for (const node of nodes) {
      const { token, log_probability: log, sum, done, score, step } = node;
      const text = done === null ? Format.percent(Math.exp(log)) : Format.short(score);
      const title = `Step ${step + 1}: “${spelt(token)}”, ${Format.percent(Math.exp(log))}; `
        + (done === null ? `log probability of the way ${Format.short(sum)}`
          : `done, number ${done + 1}, score ${Format.short(score)}`);
      const one = el("button", { type: "button", title, onclick: () => choose(node),
        "aria-pressed": String(node === chosen),
        class: `${done === null ? "" : "done"} ${node.best ? "best" : ""}` },
      el("span", null, spelt(token)), el("small", null, text));
      Object.assign(one.style, { left: `${left(node)}px`, top: `${top(node)}px`, width: `${NODE}px` });
      box.append(one);
    }
    box.style.height = `${tall}px`;
    const from = place.scrollLeft;
    Rove.fill(place, box);
    place.scrollLeft = from;
  };
  return { tree, draw };
})();
