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
  // Some parts are for one attention alone, or for whole models.
  const fit = () => {
    const kind = Models.isWhole(Models.current()) ? "whole" : "layer";
    for (const one of document.querySelectorAll("[data-of]")) one.hidden = one.dataset.of !== kind;
    if (tabs.some((tab) => tab.hidden && tab.ariaSelected === "true")) choose(tabs[0]);
  };
  State.on(["models", "model"], fit);
  choose(tabs[0]);
  State.on(["asking"], () => Dom.id("answer-side").setAttribute("aria-busy", State.get("asking")));

  Models.load();
})();
