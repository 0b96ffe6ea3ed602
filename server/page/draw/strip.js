// strip: a vector as a strip of colored cells, one for each number: the stronger, the larger; a negative
// number is hollow.
//
// Strip.of(list, most, kind) -> a node; most: the number with the full color; kind: "q", "k" or "v",
// the color of queries, keys or values.
// needs: dom format
const Strip = (() => {
  const of = (list, most, kind) => Dom.el("span", { class: `strip ${kind}`, role: "img",
    title: list.map(Format.short).join(", "), "aria-label": `${list.length} numbers` },
  list.map((x) => {
    const cell = Dom.el("i", { class: x < 0 ? "below" : null });
    cell.style.opacity = most ? Math.max(0.06, Math.min(1, Math.abs(x) / most)) : 0.06;
    return cell;
  }));
  return { of };
})();
