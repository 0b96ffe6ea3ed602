// state: what the page knows, and who wants to hear of changes.
//
// State.get("answer"); State.set({ answer, problem: null }); State.on(["answer", "view"], f).
// A listener hears once of all that was set before the browser draws again, in the order of
// listening; one that fails does not keep it from the others. State.view({ head: 2 }) changes parts
// of the view alone.
//
//   models   array of descriptions; null: not read yet
//   model    name of the chosen one, or null
//   body     what is going to be sent (request.js)
//   labels   { rows, cols }: arrays of words for each item; they never leave the browser
//   asking   true while a request is under way
//   asked    { body, model } of the answer that is shown (labels and marks belong to it)
//   answer   what answer.js made of the last answer, or null
//   problem  the last error (net.js), or null; an answer stays on show beside it. One of a request
//            has its body
//   view     { item, head, row, col, range, bright }: what is looked at. head: an index, or "mean";
//            row, col: -1 is none; range: "shared" or "head"; bright: see Scale.high
const State = (() => {
  const values = {
    models: null, model: null, body: null, labels: { rows: [], cols: [] }, asking: false,
    asked: null, answer: null, problem: null,
    view: { item: 0, head: 0, row: -1, col: -1, range: "shared", bright: false },
  };
  const listeners = [];
  const changed = new Set();

  const tell = () => {
    const names = new Set(changed);
    changed.clear();
    for (const [wanted, listener] of listeners) {
      try {
        if (wanted.some((name) => names.has(name))) listener();
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
  const get = (name) => values[name];
  const on = (names, listener) => listeners.push([names, listener]);
  const view = (changes) => set({ view: { ...values.view, ...changes } });
  return { get, set, on, view };
})();
