// prune: switches for the heads, and a report of the loss and the compute time without some of them.
//
// Prune.begin(found) begins with new measures, and all heads enabled. Prune.toggle(head) is the switch
// of a head. Prune.tools, report and along are nodes: the buttons; the loss; the loss as heads are
// disabled one by one. Prune.change() measures the loss again.
// The disabled heads are in State.off, for the other views.
// needs: dom format report state terms ask curve measures
const Prune = (() => {
  let found, own, boxes, last;
  const off = new Set();

  const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
  // The difference of two times is shown only if four of five pairs agree, and if the times are long
  // enough for the clock.
  const won = ([full, pruned]) => {
    const a = middle(full), b = middle(pruned), n = full.length;
    if (!(a >= 0)) return "unknown";
    const agree = full.filter((ms, i) => ms > pruned[i] === a > b).length;
    const part = `${b < a ? "−" : "+"}${Math.abs(Math.round(100 * (b / a - 1)))} %`;
    const what = a >= 0.1 && agree >= 0.8 * n ? part : "no clear difference";
    return `${Format.ms(a)} → ${Format.ms(b)} (${what}), medians of ${n} pairs`;
  };

  // The report has the same height without disabled heads: else a switch would move under the pointer.
  const report = el("div", { id: "loss", "aria-live": "polite" });
  const along = el("div.along", { id: "along", "aria-live": "polite" });
  const tell = ({ lost, most }, time) => {
    // The delta of /heads ignores queries whose keys are all masked, and is for a single head.
    const [head, another] = off, delta = found.heads[head]?.delta || 0;
    const top = Math.max(1, lost, delta);
    const line = (name, what) => el("div",
      el("dt", Terms.of(name.toLowerCase(), name)), el("dd", what));
    fill(report, el("dl", line("Output change", Report.number(lost, lost / top)),
      line("Predicted change", another >= 0 ? "–" : Report.number(delta, delta / top)),
      line("Largest change", Report.number(most)), line("Compute time", time)));
  };
  const masked = (heads) => own.map((x, i) => (heads.includes(i) ? 0 : x));
  const change = async () => {
    const mine = (last = {}), answer = State.answer, head_mask = masked([...off]);
    const goesOn = () => mine === last && answer === State.answer && !id("heads").hidden;
    if (!off.size) return fill(report, el("p.soft", "Disable heads in the table to see "
      + "how the output and the compute time change."));
    const loss = await Measures.lose(head_mask);
    if (!goesOn()) return;
    if (loss.problem) return fill(report, Report.failed(loss.problem, change));
    tell(loss, "measuring …");
    const times = await Measures.race(head_mask, goesOn);
    if (times) tell(loss, times.problem ? times.problem.title : won(times));
  };

  const toggle = (head) => {
    const onchange = () => {
      if (!off.delete(head)) off.add(head);
      mark();
      change();
    };
    boxes[head] = el("input", { type: "checkbox", disabled: !own[head],
      checked: own[head] !== 0 && !off.has(head), onchange });
    return el("label", boxes[head], `head ${head}`);
  };
  const least = button("Disable next", () => {
    const head = found.ranking.find((i) => boxes[i].checked);
    if (head >= 0) boxes[head].click();
  });
  const all = button("Enable all heads", () => {
    for (const head of off) boxes[head].checked = true;
    off.clear();
    mark();
    change();
  });
  const follow = button("Ablation curve", () => {
    const { ranking } = found, answer = State.answer;
    Curve.follow(along, "Output change", ranking.map((i) => `head ${i}`),
      (n) => Measures.lose(masked(ranking.slice(0, n))),
      () => answer === State.answer && !id("heads").hidden);
  });
  const taken = button("Copy to request", () => Ask.change({ head_mask: masked([...off]) }));
  const mark = () => {
    State.set({ off: [...off] });
    taken.disabled = !off.size;
  };

  const tools = el("div.row", least, all, follow, taken);
  const begin = (measures) => {
    found = measures;
    own = Measures.mask(found.heads.length);
    boxes = [];
    off.clear();
    mark();
    fill(along);
    change();
  };
  return { begin, toggle, change, tools, report, along };
})();
