// rows: a table of the chosen face: for each query its entropy, the number of its unmasked keys, and the
// one with the largest weight. A click on a row sets State.view.row; another click clears it.
//
// The table is made when the face or its labels change, not when the cursor moves. Sigmoid weights are
// not a distribution and have no entropy.
// needs: dom format list rove state terms answer look
(() => {
  const FIRST = 50;
  const place = id("rows");
  let made = null;

  const word = (tag, text) => el(`${tag}.word.plain`, { title: text }, text);
  const entropy = (nats, visible) => {
    const share = visible > 1 ? Math.round(100 * Math.min(1, nats / Math.log(visible))) : 0;
    const bar = el("span.share", el("span"));
    bar.firstChild.style.width = `${share}%`;
    return [nats.toFixed(3), bar, ` ${share} %`];
  };
  const cells = ({ matrix, seen, rows, cols, even }, i) => {
    const from = i * matrix.cols, best = Answer.heaviest(matrix, i);
    const visible = List.sum(seen.subarray(from, from + matrix.cols), (x) => x === 1);
    const heaviest = best < 0 || !visible ? "–"
      : [word("span", cols[best]), " ", el("span.soft",
        Format.percent(matrix.data[from + best]))];
    return [word("button", rows[i]),
      !visible ? "all masked" : even ? "–" : entropy(Answer.entropy(matrix, i), visible),
      visible, heaviest];
  };
  const choose = ({ target }) => {
    const row = target.closest("tr").sectionRowIndex;
    State.show({ row: row === State.view.row ? -1 : row });
  };
  const make = (sheet, limit) => {
    const all = sheet.rows.length, next = Math.min(all, 10 * limit);
    const table = Dom.table(`Queries of ${sheet.label}`,
      [Terms.of("query", "Query"), Terms.of("entropy", "Entropy, nats"), Terms.of("unmasked keys", "Unmasked keys"),
        Terms.of("top key", "Top key")],
      sheet.rows.slice(0, limit).map((_, i) => cells(sheet, i)));
    table.tBodies[0].addEventListener("click", choose);
    const more = () => {
      make(sheet, next);
      place.querySelectorAll("tbody button")[limit].focus();
    };
    Rove.in(table.tBodies[0], "button");
    fill(place, table, all > limit ? button(`Show ${next} of ${all} queries`, more) : null);
  };

  const draw = () => {
    const sheet = Look.sheet();
    if (!sheet) fill(place);
    else if (sheet !== made) make(sheet, FIRST);
    made = sheet;
    for (const on of place.querySelectorAll(".on")) on.classList.remove("on");
    const row = place.querySelectorAll("tbody tr")[State.view.row];
    if (row) row.classList.add("on");
  };
  State.on(["answer", "labels", "body", "view"], draw, place);
})();
