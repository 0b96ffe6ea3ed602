// dom: makes and finds elements of the page. Text enters the page as text, never as HTML.
//
// Nearly every script uses these, so they have short names:
// el("p.soft.small", { onclick: f, "aria-live": "polite" }, "text", node, ...): a tag, with classes.
//   Properties, which may be left out, that begin with "on" are listeners; true sets an attribute, false
//   and null leave it out. svg: the same for SVG.
// fill(node, ...children) replaces the content of a node. id(name) is getElementById. button(text, f).
// Dom.table(caption, titles, rows): rows are lists of cells, the first of
//   which is the row's header. Dom.options(select, list, value): the options, [value, text], and the chosen one.
// Dom.copy(text) -> a promise: writes the clipboard; it rejects if there is none.
// Dom.save(blob, name) downloads a file. Dom.show(image, blob) -> a function that frees the blob after
//   the image has been drawn.
const Dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  const dress = (make, tag, children) => {
    const [name, ...classes] = tag.split("."), node = make(name);
    node.classList.add(...classes);
    for (const [name, value] of Object.entries(children[0]?.constructor === Object ? children.shift() : {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    return fill(node, ...children);
  };
  const el = (tag, ...rest) => dress((name) => document.createElement(name), tag, rest);
  const svg = (tag, ...rest) => dress((name) => document.createElementNS(SVG, name), tag, rest);
  const id = (name) => document.getElementById(name);
  const fill = (node, ...children) => {
    node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };
  const button = (text, onclick) => el("button", { onclick }, text);
  const table = (caption, titles, rows) => el("table", el("caption", caption),
    el("thead", el("tr", titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", rows.map(([head, ...rest]) => el("tr", el("th", { scope: "row" }, head),
      rest.map((cell) => el("td", cell))))));
  const options = (select, list, value = select.value) => {
    fill(select, list.map(([value, text = value]) => el("option", { value }, text)));
    select.value = value;
  };
  const save = (blob, name) => {
    const url = URL.createObjectURL(blob);
    el("a", { href: url, download: name.replace(/[^\w.-]/g, "_").slice(-100) }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  };
  const copy = async (text) => navigator.clipboard.writeText(text);
  const show = (image, blob) => {
    image.src = URL.createObjectURL(blob);
    return () => URL.revokeObjectURL(image.src);
  };
  return { el, svg, id, fill, button, table, options,  copy, save, show };
})();
const { el, svg, id, fill, button } = Dom;
