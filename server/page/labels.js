// labels: the names of queries and keys: the words that were typed for them, else their numbers.
//
// Labels.row(item, i), Labels.col(item, j) -> text. Without words for keys, those of the queries
// are used, if the request has no keys of its own. Words are never sent to a server.
const Labels = (() => {
  const pick = (lists, item, i) => (lists[item] && lists[item][i]) || null;
  const row = (item, i) => pick(State.get("labels").rows, item, i) || String(i);
  const col = (item, j) => {
    const { rows, cols } = State.get("labels");
    const asked = State.get("asked");
    const own = asked && (Request.fields(asked.body) || {}).keys;
    return pick(cols, item, j) || (own ? null : pick(rows, item, j)) || String(j);
  };

  const kept = Own.kept && Own.kept.labels;
  const words = (text) => text.split("\n").map((line) => line.split(/\s+/).filter(Boolean));
  for (const side of ["rows", "cols"]) {
    const area = Dom.id(`labels-${side}`);
    if (kept && Array.isArray(kept[side]) && kept[side].every(Array.isArray)) {
      area.value = kept[side].map((line) => line.join(" ")).join("\n");
      State.set({ labels: { ...State.get("labels"), [side]: words(area.value) } });
    }
    area.addEventListener("input", () =>
      State.set({ labels: { ...State.get("labels"), [side]: words(area.value) } }));
  }
  return { row, col };
})();
