// start: the page begins: its tabs, the models, a first example.
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
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -tabs.length, End: tabs.length };
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      const to = tabs[Math.max(0, Math.min(tabs.length - 1, i + step))];
      choose(to);
      to.focus();
    });
  }
  choose(tabs[0]);
  State.on(["asking"], () => Dom.id("answer-side").setAttribute("aria-busy", State.get("asking")));

  Models.load();
})();
