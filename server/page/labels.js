// labels: what a query and a key are called: the words that somebody gave, else their numbers.
//
// Labels.row(item, i), Labels.col(item, j) -> text. Without words for keys those of the queries
// serve, where the request has no keys of its own. They are typed here and are sent nowhere.
const Labels = (() => {
  const pick = (lists, item, i) => (lists[item] && lists[item][i]) || null;
  const row = (item, i) => pick(State.get("labels").rows, item, i) || String(i);
  const col = (item, j) => {
    const { rows, cols } = State.get("labels");
    const asked = State.get("asked");
    const own = asked && (Request.fields(asked.body) || {}).keys;
    return pick(cols, item, j) || (own ? null : pick(rows, item, j)) || String(j);
  };

  const words = (text) => text.split("\n").map((line) => line.split(/\s+/).filter(Boolean));
  for (const side of ["rows", "cols"]) {
    const area = Dom.id(`labels-${side}`);
    area.addEventListener("input", () =>
      State.set({ labels: { ...State.get("labels"), [side]: words(area.value) } }));
  }
  return { row, col };
})();
