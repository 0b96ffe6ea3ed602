// labels: the names of queries and keys: the words that were typed for them, else their numbers.
//
// Labels.row(item, i), Labels.col(item, j) -> text, for the answer that is shown. Keys without words
// have those of the queries, if the request has no keys of its own. Words belong to a request: code
// that sets State.body to another request sets State.labels, too. They are never sent.
// Labels.named(item, { rows, cols }) -> lists of as many. Labels.now(): the words that are shown, as in State.labels. Labels.NONE. Labels.of(rows, cols): the
// labels of lists of words separated by blanks, one for each item.
// needs: dom state request
const Labels = (() => {
  const NONE = { rows: [], cols: [] };
  // The words that are typed now, if the answer belongs to the current request.
  const now = () => {
    const { asked, answer } = State;
    if (answer && answer.whole) return answer.labels;
    return asked && asked.body !== State.body ? asked.labels || NONE : State.labels;
  };
  const pick = (lists, item, i) => (lists[item] && lists[item][i]) || null;
  const hasKeys = () => Boolean((Request.fields(State.asked?.body) || {}).keys);
  const row = (item, i) => pick(now().rows, item, i) || String(i);
  const col = (item, j) => {
    const { rows, cols } = now();
    return pick(cols, item, j) || (hasKeys() ? null : pick(rows, item, j)) || String(j);
  };

  const split = (line) => line.split(/\s+/).filter(Boolean);
  const of = (rows, cols = []) => ({ rows: rows.map(split), cols: cols.map(split) });
  const area = (side) => id(`labels-${side}`);
  const words = (text) => (text ? text.split("\n").map(split) : []);
  const spelt = (lists) => lists.map((line) => line.join(" ")).join("\n");
  const show = () => {
    for (const [side, lists] of Object.entries(State.labels))
      if (spelt(words(area(side).value)) !== spelt(lists)) area(side).value = spelt(lists);
  };

  // Messages for the items whose number of words is not that of the queries or keys.
  const wrong = (kind, lists, sizes) => lists.map((list, item) =>
    (list.length && list.length !== sizes[item]
      ? `Item ${item} has ${kind}: ${sizes[item] ?? 0}, words: ${list.length}.` : ""));
  const check = () => {
    const { rows, cols } = now(), items = State.answer?.items || [];
    const sizes = (side) => items.map(({ weights }) => weights[0][side]);
    const told = items.every(({ weights }) => weights && weights[0])
      ? [...wrong("queries", rows, sizes("rows")), ...wrong("keys", cols, sizes("cols"))] : [];
    id("labels-note").textContent = told.filter(Boolean).join(" ");
  };

  for (const side of ["rows", "cols"])
    area(side).addEventListener("input", () =>
      State.set({ labels: { ...State.labels, [side]: words(area(side).value) } }));
  State.on(["labels"], show, id("ask-side"));
  State.on(["labels", "answer", "body"], check, id("ask-side"));
  const named = (item, { rows, cols }) => ({ rows: Array.from({ length: rows }, (_, i) => row(item, i)),
    cols: Array.from({ length: cols }, (_, j) => col(item, j)) });
  return { row, col, named, now, of, NONE };
})();
