// start: starts the page: sets its tabs up and loads the models.
(() => {
  const list = document.querySelector("[role=tablist]"), tabs = [...list.children];
  const choose = (tab) => {
    for (const one of tabs) {
      one.setAttribute("aria-selected", one === tab);
      Dom.id(one.getAttribute("aria-controls")).hidden = one !== tab;
    }
    Rove.tidy(list);
    document.dispatchEvent(new CustomEvent("show", { detail: tab.getAttribute("aria-controls") }));
  };
  Rove.in(list, "[role=tab]");
  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("focus", () => tab.ariaSelected === "true" || choose(tab));
  }
  choose(tabs[0]);
  State.on(["asking"], () => Dom.id("answer-side").setAttribute("aria-busy", State.get("asking")));

  Models.load();
})();
