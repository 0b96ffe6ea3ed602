// report: numbers with a bar, and problems with a button.
//
// Report.number(x, part, text) -> nodes: a number, or `text` in its place, and a bar; `part` is the
//   bar's share of the line's width.
// Report.bar(word, share, text, isRest) -> a node: a line of a bar chart; isRest: the bar of all others.
// Report.failed(problem, again) -> a node that shows the problem, with a button to try again.
// needs: dom format
const Report = (() => {
  const number = (x, part, text = Format.short(x)) => {
    const bar = el("div.fill");
    bar.style.width = `${Math.min(100, 100 * part || 0)}%`;
    return [el("span", { title: Format.float(x) }, text), part >= 0 ? bar : null];
  };
  const failed = ({ title, detail, pointer }, again) => el("p", { role: "alert" },
    el("b", title), ` ${pointer || ""} ${detail} `, button("Try again", again));
  const bar = (word, share, text, isRest) => {
    const one = el("span", { class: isRest ? "amount rest" : "amount" });
    one.style.width = `${100 * share}%`;
    return el("div.bar-row", el("span", { class: isRest ? "soft" : "k" }, word), el("span", one),
      el("span", text));
  };
  return { number, bar, failed };
})();
