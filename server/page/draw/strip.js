// strip: a vector as a strip of colored cells, one for each of its first numbers: the stronger the color, the
// larger the number. The upper half of a cell is positive, the lower half negative.
//
// Strip.of(list, kind, most) -> a node; kind: "q", "k" or "v", the color of queries, keys or values; most: the
// number with the full color, by default the largest. Strip.largest(list): that number.
// needs: dom list
const Strip = (() => {
  const LONG = 128;
  const largest = (list) => List.far(list) || 1;
  const of = (list, kind, most = largest(list)) => el("span", { class: `strip ${kind}` },
    list.slice(0, LONG).map((x) => {
      const cell = el("i", { class: x < 0 ? "minus" : null });
      cell.style.opacity = Math.min(1, Math.abs(x) / most);
      return cell;
    }));
  return { of, largest };
})();
