// key: the bearer key, and the dialog that asks for it. Only this closure holds the key: no storage,
// cookie, address or state does, and no element after the dialog has closed.
//
// Key.headers(): the headers for a request. Key.has(). Key.forget(). Key.on(f): calls f at changes.
// Key.count(): the number of changes so far.
// Key.ask() -> a promise: was a key given? All calls that wait share one dialog.
// Key.refused(count): the same after a 401. `count` is Key.count() from when the request was sent: if
//   the key has changed since, there is no dialog.
// needs: dom
const Key = (() => {
  let key = null, changes = 0, asked = null;
  const listeners = [];
  const dialog = id("key-dialog"), field = id("key-text");
  const say = (text) => (id("key-says").textContent = text);
  const has = () => key !== null;

  const change = (text) => {
    key = text;
    changes++;
    for (const listener of listeners) listener();
  };
  const take = () => {
    const text = field.value.trim();
    if (!/^[!-~]+$/.test(text))
      return say("A key is ASCII text without blanks.");
    change(text);
    dialog.close();
  };
  const open = (done) => {
    const before = changes;
    say(has() ? "The server rejected this key." : "");
    dialog.onclose = () => {
      field.value = "";
      asked = null;
      done(changes !== before);
    };
    dialog.showModal();
    field.focus();
  };
  field.addEventListener("keydown", (event) => event.key === "Enter" && take());
  id("key-use").addEventListener("click", take);
  id("key-leave").addEventListener("click", () => dialog.close());

  const ask = () => (asked ||= new Promise(open));
  return {
    has, ask,
    headers: () => (has() ? { Authorization: `Bearer ${key}` } : {}),
    count: () => changes,
    forget: () => change(null),
    on: (listener) => listeners.push(listener),
    refused: async (count) => (has() && count !== changes) || ask(),
  };
})();
