// problem: the last error, where it is and what can be done.
//
// Its pointer or offset is shown in the text that was sent, as long as that stays as it is.
(() => {
  const CONTEXT = 40, LONGEST = 160;
  const ADVICE = {
    413: "Send less at once, or start the server with a higher limit.",
    422: "Some numbers of the request are too large for float32 together: make them smaller.",
    504: "Ask for less at once, or try again when the server has less to do.",
  };
  const isPassing = (status) => status === 0 || status === 408 || status === 429 || status >= 500;
  const slug = ({ type }) => String(type).split("/").pop();

  let sent = null;
  const isText = () => sent !== null && "text" in sent;
  const placeOf = ({ offset, pointer }) =>
    !isText() ? null
      : typeof offset === "number" ? Json.at(sent.text, offset)
        : typeof pointer === "string" ? Json.find(sent.text, pointer) : null;

  // The piece with some text around it, each on one line.
  const excerpt = (text, begin, end) => {
    const flat = (part) => part.replace(/\s+/g, " ");
    const before = text.slice(Math.max(0, begin - CONTEXT), begin);
    const after = text.slice(end, end + CONTEXT);
    const long = end - begin > LONGEST;
    const piece = long ? `${text.slice(begin, begin + LONGEST)}…` : text.slice(begin, end);
    return Dom.el("pre", { class: "excerpt" },
      before.length < begin ? "…" : null, flat(before), Dom.el("mark", null, piece),
      flat(after), end + after.length < text.length ? "…" : null);
  };
  const inText = (text, [begin, end]) => {
    const { line, column } = Json.place(text, begin);
    const where = begin === text.length ? "At the end of the text, line" : "Line";
    const go = Mark.fits(text) && Dom.el("button", { type: "button", id: "problem-go",
      onclick: () => Mark.go(text, begin, end) }, "Go there");
    return [Dom.el("p", { class: "soft small" }, `${where} ${line}, column ${column}`),
      excerpt(text, begin, end), go || null];
  };
  const valueAt = (value, indices) => {
    const tensor = Tensor.of(value);
    if (!tensor || indices.length !== tensor.shape.length) return "";
    const flat = indices.reduce((sum, index, i) => sum * tensor.shape[i] + Number(index), 0);
    return flat < tensor.data.length ? `: ${Format.float(Number(tensor.data[flat]))}` : "";
  };
  const inFile = ({ pointer, offset }) => {
    if (typeof offset === "number") return [Dom.el("p", null, `At byte ${offset} of the file.`)];
    const [name, ...indices] = Json.keys(pointer || "");
    if (name === undefined) return [];
    const place = name + indices.map((index) => `[${index}]`).join("");
    const kind = name in sent.tensors ? "Tensor" : "Field";
    return [Dom.el("p", { class: "mono" }, `${kind} ${place}${valueAt(sent.tensors[name], indices)}`)];
  };
  const where = (problem, place) =>
    place ? inText(sent.text, place) : sent && !isText() ? inFile(problem) : [];

  const again = async () => {
    if (!State.get("models")) await Models.load();
    else Ask.send();
  };
  const advice = ({ status, limit, wait }) => [
    limit ? Dom.el("p", { class: "small" }, "The limit is the setting ", Dom.el("code", null, limit), ".")
      : null,
    ADVICE[status] ? Dom.el("p", { class: "small" }, ADVICE[status]) : null,
    wait ? Dom.el("p", { class: "small" }, `Try again in about ${wait} s.`) : null];
  const remedy = ({ status }) =>
    status === 401 ? Dom.el("button", { type: "button", onclick: Key.ask }, "Give a key")
      : isPassing(status) ? Dom.el("button", { type: "button", onclick: again }, "Try again") : null;

  let blamed = null, described = null;
  const describe = (text) =>
    text === null ? blamed.removeAttribute("aria-describedby")
      : blamed.setAttribute("aria-describedby", text);
  const pardon = () => {
    if (!blamed) return;
    blamed.removeAttribute("aria-invalid");
    describe(described);
    blamed = null;
  };
  const blame = (name) => {
    blamed = Dom.id(`field-${name}`);
    if (!blamed) return;
    described = blamed.getAttribute("aria-describedby");
    blamed.setAttribute("aria-invalid", "true");
    describe(`problem-says ${described || ""}`.trim());
  };
  const forget = () => {
    Mark.clear();
    pardon();
    const go = Dom.id("problem-go");
    if (go) go.remove();
  };

  const show = () => {
    const problem = State.get("problem");
    forget();
    if (!problem) return Dom.fill(Dom.id("problem"));
    const { title, detail, pointer } = problem, place = placeOf(problem);
    Dom.fill(Dom.id("problem"), Dom.el("div", { class: "card" }, Dom.el("h3", null, title),
      Dom.el("p", { id: "problem-says" }, detail || null), where(problem, place), advice(problem),
      remedy(problem)));
    if (place) Mark.show(sent.text, ...place);
    if (typeof pointer === "string") blame(Json.keys(pointer)[0]);
    if (slug(problem) === "unknown-model") Models.load();
  };
  State.on(["asking"], () => {
    if (State.get("asking")) sent = State.get("body");
  });
  State.on(["body"], () => {
    const { text } = State.get("body") || {};
    if (!isText() || text !== sent.text) forget();
  });
  State.on(["problem"], show);
  Key.on(() => {
    const problem = State.get("problem");
    if (!problem || problem.status !== 401 || !Key.has()) return;
    State.set({ problem: null });
    again();
  });
})();
