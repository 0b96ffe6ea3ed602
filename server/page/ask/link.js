// link: what the address has of a request and its view, and a file with the same.
//
// The parameters of the address, beside the model: example=NAME, text=…, tokens=1 2 3, or request=CODE (the
// body and its labels, as JSON in base64url); item, layer, head, query, key, scale and contrast. The fragment
// of older links is CODE alone, with all of it.
//
// Link.of(parsed) -> { model, text, labels, view, tab } of a file's JSON, or null if it is no such file.
// Link.restore(kept): sends the request again and shows the view.
// needs: dom own place state models answer ask examples labels request
const Link = (() => {
  const NAME = "attend", LONGEST = 16000;
  const told = el("span.soft.small", { role: "status" });

  // --- untrusted input ---

  const number = (value, low) => (Number.isSafeInteger(value) && value >= low ? value : low);
  const viewOf = ({ item, part, head, row, col, range, strong }) => ({ item: number(item, 0),
    part: typeof part === "string" ? part : null, head: head === "mean" ? head : number(head, 0),
    row: number(row, -1), col: number(col, -1), range: range === "head" ? range : "shared",
    strong: typeof strong === "boolean" ? strong : null });
  const of = (value) => {
    if (!value || value[NAME] !== 1 || typeof value.model !== "string" || typeof value.text !== "string")
      return null;
    return { model: value.model, text: value.text, tab: String(value.tab).replace(/[^\w-]/g, ""),
      view: viewOf(value.view || {}), labels: Own.sound(value.labels || {}) };
  };
  const coded = (value) => btoa(String.fromCodePoint(...new TextEncoder().encode(JSON.stringify(value))))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const decoded = (text) => {
    try {
      return JSON.parse(new TextDecoder().decode(Uint8Array.from(
        atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));
    } catch {
      return null;
    }
  };

  // --- the address ---

  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  // The parameters of a body. A text or tokens alone can be read; a long request has none.
  const requestOf = (body, labels) => {
    if (!body || !("text" in body)) return {};
    if (body.example && same(labels, Examples.labels(body.example))) return { example: body.example };
    if (body.text.length + JSON.stringify(labels).length > LONGEST) return {};
    const { text, tokens } = Request.fields(body) || {}, is = (fields) => Request.layout(fields) === body.text;
    if (typeof text === "string" && is({ text }) && same(labels, Labels.NONE)) return { text };
    if (Array.isArray(tokens) && tokens.every(Number.isInteger) && is({ tokens })) return { tokens: tokens.join(" ") };
    return { request: coded({ text: body.text, labels }) };
  };
  const write = () => {
    const { item, part, head, row, col, range, strong } = State.view, { whole } = State.answer || {};
    return { model: State.model, ...requestOf(State.body, State.labels),
      item: item || "", layer: whole ? part : "", head: head || "", query: row < 0 ? "" : row,
      key: col < 0 ? "" : col, scale: range === "head" ? range : "", contrast: strong ?? "" };
  };
  const bodyOf = (params) => {
    const [example, text, tokens] = ["example", "text", "tokens"].map((name) => params.get(name));
    if (example !== null) return { example };
    if (text !== null) return { text: Request.layout({ text }) };
    if (tokens !== null && /^(\d+( \d+)*)?$/.test(tokens)) return { text: Request.layout({ tokens: tokens.split(" ").filter(Boolean).map(Number) }) };
    const request = decoded(params.get("request") || "");
    return request && typeof request.text === "string"
      ? { text: request.text, labels: Own.sound(request.labels || {}) } : {};
  };
  const read = (params) => {
    const get = (name) => params.get(name) || undefined;
    const whole = (name) => get(name) && Number(get(name)), head = get("head");
    const body = bodyOf(params);
    if (State.body && !State.asked) return choose(get("model")); // written before there were models
    if (["tokens", "request"].some((name) => params.has(name)) && !Object.keys(body).length)
      Place.doubt();
    return restore({ model: get("model") || State.model, ...body,
      view: viewOf({ item: whole("item"), part: get("layer"), head: head === "mean" ? head : whole("head"),
        row: whole("query"), col: whole("key"), range: get("scale"),
        strong: { true: true, false: false }[get("contrast")] }) });
  };

  // --- restore and save ---

  // Makes and sends the request, unless it is the one that is answered.
  const send = ({ model, example, text, labels = Labels.NONE }, view) => {
    const { body, asked } = State, same = body && (example
      ? body.example === example : text === undefined || body.text === text);
    if (same && asked && asked.body === body && asked.model === model) return null;
    State.set({ view: { ...State.view, part: view.part, item: view.item } });
    if (example && Examples.offered(Models.find(model)).some(({ name }) => name === example))
      return Examples.choose(example);
    if (text === undefined) return Examples.begin() || (same && Ask.send());
    const own = Own.list().find((one) => one.text === text) || { text };
    State.set({ body: own, labels });
    return Ask.start();
  };
  const choose = (model) => {
    if (model && !Models.find(model)) Place.say(`This server has no model “${model.slice(0, 60)}”: `
      + "the link's request was not sent.");
    else if (model) State.set({ model });
    return !model || Models.find(model) !== null;
  };
  const restore = async (kept) => {
    if (!choose(kept.model)) return Examples.begin();
    const { view } = kept;
    await send(kept, view);
    const answer = State.answer, item = Math.min(view.item, answer ? answer.items.length - 1 : 0);
    const { matrix, head } = Answer.face(answer, { ...view, item }) || { matrix: {}, head: 0 };
    const known = (at, n) => (at < n ? at : -1);
    const part = answer && (answer.whole && answer.names.includes(view.part) ? view.part : answer.part);
    State.show({ ...view, head, item: Math.max(0, item), part: part || null,
      row: known(view.row, matrix.rows), col: known(view.col, matrix.cols) });
  };
  // A file and an older link have a tab, which belongs to a place.
  const open = (kept) => {
    const tab = id(kept.tab)?.closest("[role=tab]"), { place = "explore" } = tab ? tab.dataset : {};
    Place.go(place, tab?.getAttribute("aria-controls"));
    return restore(kept);
  };
  Place.part("learn", { read: (params) => choose(params.get("model")), write: () => ({ model: State.model }) });
  Place.part("explore generate ablate api", { read, write });
  Place.old((text) => {
    const kept = of(decoded(text));
    if (kept) open(kept);
    return kept !== null;
  });

  const copy = async () => {
    const { example, text, tokens, request } = requestOf(State.body, State.labels);
    if ([example, text, tokens, request].every((one) => one === undefined))
      return fill(told, "The request is too long for a link: save it as a file.");
    const url = location.href.split("#")[0] + Place.link();
    try {
      await Dom.copy(url);
      fill(told, "Copied. The part after # is never sent to a server.");
    } catch {
      fill(told, "The link is in the address bar.");
    }
  };
  const save = () => {
    const { body, model } = State;
    if (!body || !("text" in body)) return fill(told, "A binary request is already a file.");
    const now = { [NAME]: 1, model, text: body.text, labels: State.labels, view: State.view,
      tab: `tab-${State.tab}` };
    Dom.save(new Blob([JSON.stringify(now, null, 1)], { type: "application/json" }),
      `attend-${model}-view.json`);
  };
  id("link").append(button("Copy link", copy), button("Save view", save), told);
  return { of, restore: open };
})();
