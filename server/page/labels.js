// labels: what a query and a key are called: the words that somebody gave, else their numbers.
//
// Labels.row(item, i), Labels.col(item, j) -> text. Without words for keys those of the queries
// serve, where the request has no keys of its own.
const Labels = (() => {
  const pick = (lists, item, i) => (lists[item] && lists[item][i]) || null;
  const row = (item, i) => pick(State.get("labels").rows, item, i) || String(i);
  const col = (item, j) => {
    const { rows, cols } = State.get("labels");
    const asked = State.get("asked");
    const own = asked && (Request.fields(asked.body) || {}).keys;
    return pick(cols, item, j) || (own ? null : pick(rows, item, j)) || String(j);
  };
  return { row, col };
})();
