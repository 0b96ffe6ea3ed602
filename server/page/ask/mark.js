// mark: marks a piece of the text in #source: behind the text, whose background is transparent
// meanwhile, lies the same text with a mark in it.
//
// Mark.show(text, begin, end): marks the piece and scrolls to it, if #source shows this text.
// Mark.clear(). Mark.fits(text): does #source show it? Mark.go(text, begin, end) selects the piece.
// needs: dom
const Mark = (() => {
  // Laying out a longer text twice takes noticeable time.
  const LARGEST = 300000;
  const area = Dom.id("source");
  // A textarea ends its lines with \n.
  const lined = (text) => text.replace(/\r\n?/g, "\n");
  const fits = (text) => area.value === lined(text);

  let back = null;
  const follow = () => back &&
    (back.firstChild.style.translate = `${-area.scrollLeft}px ${-area.scrollTop}px`);
  const clear = () => {
    if (back) back.remove();
    back = null;
  };
  const show = (text, begin, end) => {
    if (text.length > LARGEST || !fits(text)) return;
    const piece = Dom.el("mark", {}, lined(text.slice(begin, end)));
    back = Dom.el("div", { id: "source-back", "aria-hidden": "true" },
      Dom.el("div", {}, lined(text.slice(0, begin)), piece, lined(text.slice(end))));
    area.before(back);
    area.scrollTop = piece.offsetTop - area.clientHeight / 2;
    area.scrollLeft = piece.offsetLeft - area.clientWidth / 2;
    follow();
  };
  // A textarea scrolls to its selection when it gets the focus.
  const go = (text, begin, end) => {
    const from = lined(text.slice(0, begin)).length;
    Dom.id("drawer").open = true;
    area.blur();
    area.setSelectionRange(from, from + lined(text.slice(begin, end)).length);
    area.focus();
  };
  area.addEventListener("scroll", follow);
  return { show, clear, fits, go };
})();
