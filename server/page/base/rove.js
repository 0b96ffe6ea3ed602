// rove: one tab stop for a group of controls; the arrow keys, Home and End move within the group.
//
// Rove.in(group, selector): the controls are those that match, now and later. The tab stop is the one
// focused last, or a chosen one (aria-pressed, aria-selected). Rove.tidy(group) sets it again after the
// controls have changed. Rove.fill(group, ...children) replaces them; the focus stays at its place.
// needs: dom
const Rove = (() => {
  const groups = new WeakMap();
  const members = (group) =>
    [...group.querySelectorAll(groups.get(group))].filter((one) => !one.hidden);
  const stop = (list, one) => list.forEach((each) => { each.tabIndex = each === one ? 0 : -1; });
  const tidy = (group) => {
    const list = members(group);
    stop(list, list.find((one) => one === document.activeElement)
      || list.find((one) => one.matches("[aria-pressed=true], [aria-selected=true]")) || list[0]);
  };

  // The nearest control of the next line above or below.
  const vertical = (list, i, by) => {
    const places = list.map((one) => one.getBoundingClientRect()), { top, left } = places[i];
    const beyond = places.filter((place) => by * (place.top - top) > 4);
    const line = Math.min(...beyond.map((place) => by * place.top));
    const far = (place) => (by * place.top - line < 4 ? Math.abs(place.left - left) : Infinity);
    return list[places.indexOf(beyond.sort((a, b) => far(a) - far(b))[0])];
  };
  const TO = { Home: (list) => list[0], End: (list) => list.at(-1),
    ArrowLeft: (list, i) => list.at(i - 1), ArrowRight: (list, i) => list[(i + 1) % list.length],
    ArrowUp: (list, i) => vertical(list, i, -1), ArrowDown: (list, i) => vertical(list, i, 1) };
  const press = (event) => {
    const list = members(event.currentTarget), i = list.indexOf(event.target);
    if (i < 0 || !Object.hasOwn(TO, event.key)) return;
    event.preventDefault();
    const to = TO[event.key](list, i);
    if (to) to.focus();
  };
  const within = (group, selector) => {
    groups.set(group, selector);
    group.addEventListener("keydown", press);
    group.addEventListener("focusin", ({ target }) => {
      const list = members(group);
      if (list.includes(target)) stop(list, target);
    });
    tidy(group);
  };
  const refill = (group, ...children) => {
    const i = members(group).indexOf(document.activeElement);
    fill(group, ...children);
    tidy(group);
    const same = members(group)[i];
    if (same) same.focus({ preventScroll: true });
  };
  return { in: within, tidy, fill: refill };
})();
