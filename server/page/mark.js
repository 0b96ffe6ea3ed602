// mark: a marked piece of the text in #source: behind the text, which is see-through meanwhile,
// stands the same text with a mark in it.
//
// Mark.show(text, begin, end): marks the piece and scrolls to it, if #source shows this text.
// Mark.clear(). Mark.fits(text): does #source show it? Mark.go(text, begin, end): selects the piece.
const Mark = (() => {
  // Beyond this, laying the text out twice is felt.
  const LARGEST = 300000;
  const source = () => Dom.id("source");
  // As a textarea has its lines.
  const lined = (text) => text.replace(/\r\n?/g, "\n");
  const fits = (text) => source() !== null && source().value === lined(text);

  const clear = () => {
    const back = Dom.id("source-back");
    if (back) back.remove();
  };
  const reveal = (piece) => {
    const area = source();
    area.scrollTop = piece.offsetTop - area.clientHeight / 2;
    area.scrollLeft = piece.offsetLeft - area.clientWidth / 2;
  };
  const follow = (layer) => {
    const { scrollLeft, scrollTop } = source();
    layer.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  };
  const show = (text, begin, end) => {
    clear();
    if (text.length > LARGEST || !fits(text)) return;
    const piece = Dom.el("mark", null, lined(text.slice(begin, end)));
    const layer = Dom.el("div", null, lined(text.slice(0, begin)), piece, lined(text.slice(end)));
    source().before(Dom.el("div", { id: "source-back", "aria-hidden": "true" }, layer));
    source().onscroll = () => follow(layer);
    reveal(piece);
    follow(layer);
  };
  // A textarea scrolls to what is selected when it gets the focus.
  const go = (text, begin, end) => {
    const from = lined(text.slice(0, begin)).length;
    source().blur();
    source().setSelectionRange(from, from + lined(text.slice(begin, end)).length);
    source().focus();
  };
  return { show, clear, fits, go };
})();
