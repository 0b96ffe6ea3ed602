// own: the user's own requests, kept while others are shown, and over a reload of the tab.
//
// Own.made(body) -> body: the page has made it, so it is not the user's own. Own.list() -> the last
// few, newest first: an edit changes the newest; a file, or a paste over all of it, adds another one.
// Own.labels(body): its labels. Own.sound(value): labels of untrusted ones, empty unless they are some.
// Own.chat: the conversation, which chat.js sets. Own.kept: { model, body, address, chat } of the tab before the
// reload, or null; `body` is null if the request was not the user's own. Own.leave(address): the page ends with this
// address.
// needs: state
const Own = (() => {
  const MOST = 3, LONGEST = 1e6, NAME = "attend";
  const made = new WeakSet();
  const isOwn = (body) =>
    Boolean(body && !made.has(body) && (!("text" in body) || body.text.trim()));

  const read = () => {
    try {
      const kept = JSON.parse(sessionStorage.getItem(NAME));
      return kept && Array.isArray(kept.own) ? kept : null;
    } catch {
      return null; // nothing is stored, or something else
    }
  };
  const kept = read();
  const words = new WeakMap();
  let own = (kept ? kept.own : []).map(({ text, labels }) => {
    const body = { text: String(text) };
    words.set(body, labels);
    return body;
  });

  // A text that follows a text of the user's own is an edit of it.
  let last = null;
  const note = () => {
    const body = State.body, edits = last && own[0] === last && "text" in last
      && body && "text" in body && !body.name;
    last = body;
    if (!isOwn(body) || own.includes(body)) return;
    own = [body, ...(edits ? own.slice(1) : own)].slice(0, MOST);
  };
  const save = (address) => {
    const body = State.body;
    if (isOwn(body)) words.set(body, State.labels);
    const all = own.filter((one) => "text" in one && one.text.length < LONGEST);
    try {
      sessionStorage.setItem(NAME, JSON.stringify({ model: State.model,
        own: all.map((one) => ({ text: one.text, labels: words.get(one) })),
        current: all.indexOf(body), address, chat: self.chat }));
    } catch {
      // storage is full or disabled: the requests last as long as the page
    }
  };
  const sound = ({ rows, cols } = {}) => {
    const good = (side) => Array.isArray(side)
      && side.every((line) => Array.isArray(line) && line.every((w) => typeof w === "string"));
    return good(rows) && good(cols) ? { rows, cols } : { rows: [], cols: [] };
  };
  State.on(["body"], note);
  State.on(["body", "model", "labels"], () => save());
  const self = { leave: save,
    made: (body) => {
      made.add(body);
      return body;
    },
    list: () => own,
    labels: (body) => sound(words.get(body)), sound,
    kept: kept && { model: kept.model, address: kept.address, body: own[kept.current] || null, chat: kept.chat },
  };
  return self;
})();
