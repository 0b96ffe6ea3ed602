// curve: measures the loss while heads are removed one after another, and draws it as a curve and a
// list.
//
// Curve.follow(place, what, names, lose, goesOn, said) -> a promise. lose(n) -> a promise of the loss without
// the first n names, { lost }, or of { problem }; `what` names the loss; said(name): the name for readers. The
// measurement stops when goesOn() is false or a newer call uses the same place.
// needs: dom format report picture save
const Curve = (() => {
  const STEPS = 32, WIDE = 480, TALL = 140, EDGE = 44, FOOT = TALL - 20;

  const draw = (points) => {
    const n = points.at(-1)[0], lost = points.map(([, y]) => y);
    const high = Math.max(...lost) || 1, low = Math.min(...lost);
    const x = (i) => EDGE + i / n * (WIDE - EDGE - 8);
    const y = (v) => FOOT - (v - low) / (high - low) * (TALL - 34);
    const text = (x, y, word, anchor) => svg("text", { x, y, "text-anchor": anchor, "font-size": 11,
      fill: "currentColor" }, word);
    return svg("svg.axes", { width: WIDE, height: TALL, role: "img",
      "aria-label": "Loss by number of removed heads" },
    svg("path", { d: `M${x(0)} ${y(high)}V${FOOT}H${x(n)}`, fill: "none", stroke: "currentColor" }),
    text(EDGE - 4, y(high) + 4, Format.short(high), "end"),
    text(EDGE - 4, y(low) + 4, Format.short(low), "end"),
    text(x(0), TALL - 6, "0", "middle"), text(x(n), TALL - 6, `${n} heads`, "end"),
    svg("polyline", { fill: "none", stroke: "#1f5a8c", points: points.map(([i, v]) => `${x(i)},${y(v)}`).join(" ") }));
  };
  const running = new WeakMap();
  const follow = async (place, what, names, lose, goesOn, said = String) => {
    const points = [[0, 0]], list = el("ol");
    running.set(place, list);
    fill(place, "Measuring …");
    for (let n = 0; n < names.length;) {
      n = Math.min(names.length, n + Math.ceil(names.length / STEPS));
      const { lost, problem } = await lose(n);
      if (running.get(place) !== list) return;
      if (!goesOn()) return fill(place);
      if (problem) return fill(place, Report.failed(problem, () =>
        follow(place, what, names, lose, goesOn, said)));
      points.push([n, lost]);
      list.append(el("li", { value: n }, `${said(names[n - 1])}: `, Report.number(lost)[0]));
    }
    const figure = () => {
      const drawn = draw(points);
      for (const [name, value] of [["x", 16], ["y", 40], ["color", "#333"]]) drawn.setAttribute(name, value);
      return Picture.frame(`${what} as heads are removed, least important first`, WIDE + 32, TALL + 56, drawn);
    };
    const table = () => [["removed", "last head", what],
      ...points.map(([n, lost]) => [n, n ? names[n - 1] : "", lost])];
    fill(place, el("p", `${what} as heads are removed, least important first:`),
      draw(points), list, Save.row(() => "curve", { svg: figure, csv: table }));
  };
  return { follow };
})();
