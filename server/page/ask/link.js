// link: a link that restores the model, the request, its labels, the view and the tab. They are in the
// address's fragment, which is never sent. A file can hold the same.
//
// Link.kept -> { model, text, labels, view, tab } of the address, or null. Link.of(parsed) -> the same
// of a file's JSON, or null if it is no such file. Link.restore(kept): sends the request again and shows
// the view.
// needs: dom state models answer ask
const Link = (() => {
  const NAME = "attend", LONGEST = 16000;
  const told = Dom.el("span", { class: "soft small", role: "status" });

  // --- untrusted input ---

  const list = (value) => Array.isArray(value) && value.every((line) => Array.isArray(line)
    && line.every((word) => typeof word === "string"));
  const number = (value, low) => (Number.isSafeInteger(value) && value >= low ? value : low);
  const viewOf = ({ item, part, head, row, col, range, strong }) => ({ item: number(item, 0),
    part: typeof part === "string" ? part : null, head: head === "mean" ? head : number(head, 0),
    row: number(row, -1), col: number(col, -1), range: range === "head" ? range : "shared",
    strong: typeof strong === "boolean" ? strong : null });
  const of = (value) => {
    if (!value || value[NAME] !== 1 || typeof value.model !== "string" || typeof value.text !== "string")
      return null;
    const { rows, cols } = value.labels || {}, tab = String(value.tab).replace(/[^\w-]/g, "");
    return { model: value.model, text: value.text, tab, view: viewOf(value.view || {}),
      labels: list(rows) && list(cols) ? { rows, cols } : { rows: [], cols: [] } };
  };

  // --- save and restore ---

  const state = () => {
    const body = State.get("body"), tab = document.querySelector("[role=tab][aria-selected=true]");
    return body && "text" in body ? { [NAME]: 1, model: State.get("model"), text: body.text,
      labels: State.get("labels"), view: State.get("view"), tab: tab.id } : null;
  };
  const coded = (text) => btoa(String.fromCodePoint(...new TextEncoder().encode(text)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const decoded = (text) => new TextDecoder().decode(Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)));
  const read = () => {
    try {
      return location.hash.length > 1 ? of(JSON.parse(decoded(location.hash.slice(1)))) : null;
    } catch {
      return null;
    }
  };
  const copy = async () => {
    const now = state(), text = now && JSON.stringify(now);
    if (!text || text.length > LONGEST)
      return Dom.fill(told, "The request is too long for a link: save it as a file.");
    const url = `${location.href.split("#")[0]}#${coded(text)}`;
    try {
      await Dom.copy(url);
      Dom.fill(told, "Copied. The part after # is never sent to a server.");
    } catch {
      history.replaceState(null, "", url);
      Dom.fill(told, "The link is in the address bar.");
    }
  };
  const save = () => {
    const now = state();
    if (!now) return Dom.fill(told, "A binary request is already a file.");
    Dom.save(new Blob([JSON.stringify(now, null, 1)], { type: "application/json" }),
      `attend-${now.model}-view.json`.replace(/[^\w.-]/g, "_"));
  };

  const restore = async ({ model, text, labels, view, tab }) => {
    State.set({ model: Models.find(model) ? model : State.get("model"), body: { text }, labels,
      view: { ...State.get("view"), part: view.part, item: view.item } });
    await Ask.send();
    const answer = State.get("answer"), item = Math.min(view.item, answer ? answer.items.length - 1 : 0);
    const { matrix, head } = Answer.face(answer, { ...view, item }) || { matrix: {}, head: 0 };
    const known = (at, n) => (at < n ? at : -1);
    State.view({ ...view, head, item: Math.max(0, item), part: answer ? answer.part || null : null,
      row: known(view.row, matrix.rows), col: known(view.col, matrix.cols) });
    const chosen = Dom.id(tab);
    if (chosen && chosen.matches("[role=tab]") && !chosen.hidden) chosen.click();
    if (!Models.find(model)) Dom.fill(told, `This server has no model ${model.slice(0, 60)}.`);
  };

  addEventListener("hashchange", () => {
    const kept = read();
    if (kept) restore(kept);
    else Dom.fill(told, "This link is invalid.");
  });
  Dom.id("link").append(Dom.button("Copy link", copy), Dom.button("Save view", save), told);
  const kept = read();
  if (location.hash.length > 1 && !kept) Dom.fill(told, "This link is invalid.");
  return { kept, of, restore };
})();
