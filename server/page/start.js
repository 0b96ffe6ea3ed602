// start: starts the page: sets its tabs up and loads the models.
// needs: dom rove state models
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
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab));
  // Rove has moved the focus by now.
  list.addEventListener("keydown", () => {
    const at = document.activeElement;
    if (tabs.includes(at) && at.ariaSelected !== "true") choose(at);
  });
  // Some parts are for some kinds of models: those of the request follow the chosen model, the views
  // follow the answer.
  const fit = () => {
    const kindOf = (model) => (Models.isWhole(model) ? model.kind : "layer");
    const answer = State.get("answer"), now = kindOf(Models.current());
    const seen = answer ? answer.kind || "layer" : now;
    for (const one of document.querySelectorAll("[data-of]"))
      one.hidden = !one.dataset.of.split(" ").includes(tabs.includes(one) ? seen : now);
    if (tabs.some((tab) => tab.hidden && tab.ariaSelected === "true")) choose(tabs[0]);
    Rove.tidy(list);
  };
  State.on(["models", "model", "answer"], fit);
  choose(tabs[0]);
  State.on(["asking"], () => Dom.id("answer-side").setAttribute("aria-busy", State.get("asking")));

  Models.load();
})();
