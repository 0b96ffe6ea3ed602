// mark: marks a part of the text in #source: a copy of the text with the mark in it is behind the text
// area, whose background is transparent meanwhile.
//
// Mark.show(text, begin, end): marks the part and scrolls to it, if #source shows this text.
// Mark.clear(). Mark.fits(text): does #source show it? Mark.go(text, begin, end) selects the part.
// needs: dom place
const Mark = (() => {
  // Two layouts of a longer text take noticeable time.
  const LARGEST = 300000;
  const area = id("source");
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
    const piece = el("mark", lined(text.slice(begin, end)));
    back = el("div", { id: "source-back", "aria-hidden": "true" },
      el("div", lined(text.slice(0, begin)), piece, lined(text.slice(end))));
    area.before(back);
    area.scrollTop = piece.offsetTop - area.clientHeight / 2;
    area.scrollLeft = piece.offsetLeft - area.clientWidth / 2;
    follow();
  };
  // A textarea scrolls to its selection when it gets the focus.
  const go = (text, begin, end) => {
    const from = lined(text.slice(0, begin)).length;
    const drawer = id("drawer");
    drawer.open = true;
    if (drawer.hidden) Place.go("api");
    area.blur();
    area.setSelectionRange(from, from + lined(text.slice(begin, end)).length);
    area.focus();
  };
  area.addEventListener("scroll", follow);
  return { show, clear, fits, go };
})();
