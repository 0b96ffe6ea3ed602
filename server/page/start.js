// start: starts the page: sets its tabs up and loads the models.
(() => {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (tab) => {
    for (const one of tabs) {
      one.setAttribute("aria-selected", one === tab);
      one.tabIndex = one === tab ? 0 : -1;
      Dom.id(one.getAttribute("aria-controls")).hidden = one !== tab;
    }
    document.dispatchEvent(new CustomEvent("show", { detail: tab.getAttribute("aria-controls") }));
  };
  const last = tabs.length - 1;
  const towards = { Home: () => 0, End: () => last,
    ArrowLeft: (i) => (i === 0 ? last : i - 1), ArrowRight: (i) => (i === last ? 0 : i + 1) };
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      if (!Object.hasOwn(towards, event.key)) return;
      event.preventDefault();
      const to = tabs[towards[event.key](i)];
      choose(to);
      to.focus();
    });
  }
  choose(tabs[0]);
  State.on(["asking"], () => Dom.id("answer-side").setAttribute("aria-busy", State.get("asking")));

  Models.load();
})();
