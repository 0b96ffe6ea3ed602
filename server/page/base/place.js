// place: the places of the page, their tabs, and the address that restores them.
//
// A place is a group of tabs: data-place of a tab, or of any other part, names the places that show it. The tab
// "tab-VIEW" shows the panel VIEW, which is made here if the page lacks it.
// data-of names the kinds of models that it is for, or their tasks, and data-or a kind that has it in all places.
// Place.go(place, tab): shows a place and one of its tabs; by default the last one that was shown there.
// Place.fit(kind, ...seen): the kind of the chosen model, and kind and tasks of the answer's, which the tabs follow.
// Place.tabs(place, kind) -> the tabs for a kind of models.
//
// The address is "#PLACE/TAB?NAME=VALUE&…": a fragment, which is never sent to a server. A change of the
// place, the tab or the model makes an entry of the history, and any other change replaces the entry.
// Place.part(places, { read(params), write() }): parameters of the address while one of the places, a list
//   such as "explore api", is shown. read gets URLSearchParams when an address is opened, and after Back
//   and Forward: the place and the tab are shown by then, and there are models. write returns an object of
//   strings and numbers; null, undefined and "" are left out. An example:
//     Place.part("learn", { read: (params) => choose(params.get("word")), write: () => ({ word }) });
// Place.changed(): call it after a change of what `write` returns, unless State has changed, too.
// With "?embed=1" before the "#", the page is the view alone, for a frame in another page: it makes no entries in
// the history of that page. Place.embedded: is it so?
// Place.begin(): reads the address, once there are models. Place.old(f): f(text) reads a fragment of another
//   form, and returns whether it can. Place.link() -> the address as it is now. Place.say(text): a notice.
//   Place.doubt(): that the link is invalid.
// needs: dom own rove state
const Place = (() => {
  const PAUSE = 400, AT_ONCE = 40;
  const list = document.querySelector("[role=tablist]"), tabs = [...list.children];
  const links = [...document.querySelectorAll("#places a")];
  const viewOf = (tab) => tab.id.slice(4);
  for (const tab of tabs) {
    const view = viewOf(tab);
    tab.setAttribute("aria-controls", view);
    if (!id(view)) id("look").after(el("div", { id: view, role: "tabpanel", "aria-labelledby": tab.id, hidden: true }));
  }
  const has = (words, ...any) => words === undefined || words.split(" ").some((word) => any.includes(word));

  // --- the places and their tabs ---

  const chosen = {}; // by place: the tab that was chosen there
  let kinds = ["layer", "layer"];
  const tabsOf = (place, ...any) =>
    tabs.filter(({ dataset }) => has(dataset.place, place) && has(dataset.of, ...any));
  const show = () => {
    const place = State.place, [kind, ...seen] = kinds, fitting = tabsOf(place, ...seen);
    const tab = fitting.find((one) => viewOf(one) === chosen[place]) || fitting[0];
    for (const one of document.querySelectorAll("[data-of], [data-place]")) {
      const { of, place: places, or } = one.dataset;
      one.hidden = tabs.includes(one) ? !fitting.includes(one)
        : !has(of, kind) || !(has(places, place) || or === kind);
    }
    for (const one of tabs) {
      one.setAttribute("aria-selected", one === tab);
      id(viewOf(one)).hidden = one !== tab;
    }
    for (const one of links) one.ariaCurrent = one.hash === `#${place}` ? "page" : null;
    list.hidden = fitting.length < 2;
    Rove.tidy(list);
    const view = tab ? viewOf(tab) : place;
    if (State.tab !== view) State.set({ tab: view });
  };
  const go = (place, tab) => {
    if (tab) chosen[place] = tab;
    if (State.place !== place) State.set({ place });
    show();
  };
  const fit = (...now) => {
    kinds = now;
    show();
  };

  // --- the address ---

  const embedded = new URLSearchParams(location.search).has("embed"), full = id("full");
  document.body.classList.toggle("embed", embedded);
  full.hidden = !embedded;
  const parts = [];
  const here = () => parts.filter(({ places }) => has(places, State.place));
  const link = () => {
    const place = State.place, all = new URLSearchParams();
    for (const [name, value] of here().flatMap(({ write }) => Object.entries(write())))
      if (value !== null && value !== undefined && value !== "") all.set(name, value);
    const tab = list.hidden ? "" : `/${State.tab}`, text = all.toString();
    return `#${place}${tab}${text && `?${text}`}`;
  };
  // The address is written after the changes of a task. Browsers limit how often: after AT_ONCE times, it is
  // replaced once in PAUSE ms.
  let entry = null, pending = null, timer = 0, isOpening = true, reads = false, credit = AT_ONCE, last = 0;
  const write = () => {
    clearTimeout(timer);
    if (pending && pending !== location.hash) history.replaceState(null, "", pending);
    pending = null;
    full.href = location.pathname + location.hash;
  };
  const replace = () => {
    const now = performance.now();
    credit = Math.min(AT_ONCE, credit + (now - last) / PAUSE) - 1;
    [pending, last] = [link(), now];
    clearTimeout(timer);
    if (credit >= 0) return write();
    credit = 0;
    timer = setTimeout(write, PAUSE);
  };
  const note = () => {
    const place = State.place, now = [place, chosen[place], State.model].join(" ");
    if (now !== entry && !isOpening && !embedded && link() !== location.hash) {
      write();
      history.pushState(null, "", link());
    } else {
      replace();
    }
    entry = now;
    isOpening = false;
  };
  let isNoted = false;
  const changed = () => {
    if (!reads || isNoted) return;
    isNoted = true;
    setTimeout(() => {
      isNoted = false;
      note();
    });
  };
  State.on(["place", "tab", "model", "body", "labels", "view", "answer"], changed);
  // A browser takes the address of a reload before the page can write the last one.
  addEventListener("pagehide", () => {
    write();
    if (reads && !embedded) Own.leave(link());
  });
  const [how] = performance.getEntriesByType("navigation");
  if (how?.type === "reload" && !embedded && /^#/.test(Own.kept?.address)) history.replaceState(null, "", Own.kept.address);

  const notice = id("place-notice");
  const say = (text) => {
    fill(notice, text, text && button("Close", () => say(""))).hidden = !text;
  };
  const doubt = () => say("This link is invalid or was cut off.");
  let readOld = () => false;
  const parse = () => {
    const [, place, tab, text = ""] = /^#(\w+)(?:\/(\w+))?(?:\?(.*))?$/.exec(location.hash) || [];
    return links.some((one) => one.hash === `#${place}`) ? { place, tab, text } : null;
  };
  const read = () => {
    const text = location.hash.slice(1), to = parse();
    clearTimeout(timer);
    [isOpening, pending] = [true, null];
    say("");
    if (to) {
      go(to.place, to.tab);
      const params = new URLSearchParams(to.text);
      for (const part of here()) part.read(params);
    } else if (text && !document.getElementById(text) && !readOld(text)) {
      doubt();
    }
    changed();
  };
  addEventListener("popstate", () => reads && read());

  for (const one of links) one.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(one.hash.slice(1));
  });
  Rove.in(list, "[role=tab]");
  for (const tab of tabs) tab.addEventListener("click", () => go(tab.dataset.place, viewOf(tab)));
  // Rove has moved the focus by now.
  list.addEventListener("keydown", () => {
    const at = document.activeElement;
    if (tabs.includes(at) && at.ariaSelected !== "true") at.click();
  });
  const first = parse();
  if (first) {
    chosen[first.place] = first.tab;
    State.set({ place: first.place });
  }
  return { go, fit, tabs: tabsOf, link, changed, say, doubt, embedded,
    part: (places, part) => parts.push({ places, ...part }),
    old: (f) => (readOld = f),
    begin: () => {
      reads = true;
      read();
    } };
})();
