// state: the state of the page, and listeners to its changes.
//
// State.answer is a part of it; State.set({ answer, problem: null }); State.on(["answer", "view"], f, node).
// Before the next frame each listener is called once for all changes, in the order of State.on; an
// exception in one does not stop the others. The listener of a node that is hidden waits until the node
// is shown. State.show({ head: 2 }) changes parts of the view.
//
//   place    "learn", "explore", "generate", "ablate" or "api"; null: not decided yet (place.js)
//   tab      the id of the view that is shown
//   models   array of descriptions; null: not loaded yet
//   model    name of the chosen one, or null
//   body     the request that will be sent (request.js)
//   labels   { rows, cols }: arrays of words for each item of the body (labels.js)
//   asking   true while a request is under way
//   asked    { body, model, labels } of the answer that is shown
//   answer   the last answer, as Answer.read returns it, or null
//   problem  the last error (net.js), or null; an answer stays visible beside it. The error of a
//            request has its body
//   view     { item, part, head, row, col, range, strong, masked }: what is shown. part: the attention of a
//            whole model, or null; head: an index, or "mean"; row, col: the chosen query and key, or
//            -1; range: "shared" or "head"; strong: see Scale.high, null: chosen by the page;
//            masked: the key that Learn masks, or -1
//   over     { row, col } under the pointer, or -1; a click chooses it
//   off      list of the disabled heads
//   losses   loss without each head of a whole model, by "ATTENTION HEAD"; null: not measured
//   dark     is the page dark?
//   width    of the window
const State = (() => {
  const values = {
    place: null, tab: null, models: null, model: null, body: null, labels: { rows: [], cols: [] }, asking: false,
    asked: null, answer: null, problem: null,
    view: { item: 0, part: null, head: 0, row: -1, col: -1, range: "shared", strong: null, masked: -1 },
    over: { row: -1, col: -1 }, off: [], losses: null, dark: false, width: innerWidth,
  };
  const listeners = [];
  const changed = new Set();

  const tell = () => {
    const names = new Set(changed);
    changed.clear();
    for (const one of listeners) {
      one.isDue ||= one.wanted.some((name) => names.has(name));
      if (!one.isDue || one.node?.closest("[hidden]")) continue;
      one.isDue = false;
      try {
        one.listener();
      } catch (error) {
        reportError(error);
      }
    }
  };
  const set = (changes) => {
    for (const [name, value] of Object.entries(changes)) {
      if (!(name in values)) throw new Error(`no such state: ${name}`);
      values[name] = value;
      if (changed.size === 0) queueMicrotask(tell);
      changed.add(name);
    }
  };
  const on = (wanted, listener, node) => listeners.push({ wanted, listener, node });
  const show = (changes) => set({ view: { ...values.view, ...changes } });
  addEventListener("resize", () => set({ width: innerWidth }));
  const self = { set, on, show };
  for (const name of Object.keys(values)) Object.defineProperty(self, name, { get: () => values[name] });
  return self;
})();
