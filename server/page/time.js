// time: the times of the stages of the shown answer, from Server-Timing.
(() => {
  const { el, fill } = Dom;
  const show = () => {
    const answer = State.get("answer");
    if (!answer) return fill(Dom.id("time"));
    const { timing, took, bytes } = answer;
    const parts = timing.map(({ name, ms }) => {
      const part = el("i", { class: name, hidden: ms === 0 });
      part.style.flexGrow = 1000 * ms;
      return part;
    });
    const item = (name, value, mark) => el("li", null, mark, `${name} `, el("b", null, value));
    const all = timing.reduce((sum, { ms }) => sum + ms, 0);
    fill(Dom.id("time"), el("div", { class: "stages", "aria-hidden": "true" }, parts),
      el("ul", { class: "row small soft" },
        timing.map(({ name, ms }) => item(name, `${ms} ms`, el("i", { class: name }))),
        item("in all", `${Number(all.toFixed(3))} ms`), item("round trip", Format.ms(took)),
        item("answer", Format.bytes(bytes))));
  };
  State.on(["answer"], show);
})();
