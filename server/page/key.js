// key: the bearer key, and the dialog that asks for it. The key lives in this closure and nowhere
// else: in no storage, cookie, address or state, and in no element once the dialog has closed.
//
// Key.headers(): what goes with a request. Key.has(). Key.forget(). Key.on(f): f hears of changes.
// Key.count(): how many changes there have been.
// Key.ask() -> a promise: has somebody given a key? There is one dialog, however many ask.
// Key.refused(count) likewise, after a 401; `count` is of the time when the request went out: where
//   there is another key by now, nobody is asked.
const Key = (() => {
  let key = null, changes = 0, asked = null;
  const listeners = [];

  const change = (text) => {
    key = text;
    changes++;
    for (const listener of listeners) listener();
  };
  const wrongWith = (text) => {
    if (text === "") return "There is no key yet: type or paste it.";
    return /^[!-~]+$/.test(text) ? null
      : "This cannot be sent: a key is of ASCII letters, digits and signs, without blanks.";
  };

  const contents = (says, take, leave) => {
    const field = Dom.el("input", { id: "key-text", type: "password", autocomplete: "off",
      autocapitalize: "off", spellcheck: "false", "aria-describedby": "key-says",
      onkeydown: (event) => event.key === "Enter" && take() });
    return [field, [
      Dom.el("h2", { id: "key-title" }, "The server asks for a key"),
      Dom.el("p", { class: "soft small" },
        "It stays in the memory of this tab, and goes when the page is left or loaded anew."),
      Dom.el("label", { for: "key-text" }, "Key"), field,
      Dom.el("p", { id: "key-says", role: "alert" }, says),
      Dom.el("div", { class: "row" },
        Dom.el("button", { type: "button", class: "primary", onclick: take }, "Use it"),
        Dom.el("button", { type: "button", onclick: leave }, "Cancel"))]];
  };
  const open = () => new Promise((done) => {
    const dialog = Dom.id("key-dialog"), before = changes;
    const take = () => {
      const text = field.value.trim(), wrong = wrongWith(text);
      Dom.id("key-says").textContent = wrong || "";
      if (wrong) return field.focus();
      change(text);
      dialog.close();
    };
    const says = key === null ? null : "The server refused that key.";
    const [field, parts] = contents(says, take, () => dialog.close());
    dialog.addEventListener("close", () => {
      field.value = "";
      Dom.fill(dialog);
      asked = null;
      done(changes !== before);
    }, { once: true });
    Dom.fill(dialog, parts);
    dialog.showModal();
    field.focus();
  });

  const has = () => key !== null;
  const ask = () => (asked = asked || open());
  return {
    has, ask,
    headers: () => (has() ? { Authorization: `Bearer ${key}` } : {}),
    count: () => changes,
    forget: () => change(null),
    on: (listener) => listeners.push(listener),
    refused: async (count) => (has() && count !== changes) || ask(),
  };
})();
