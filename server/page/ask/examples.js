// examples: the choice of an example, which sends it (samples.js has their requests).
//
// While its text is unchanged, an example is made again for each model that is chosen; another model
// that is small is asked at once. The user's own requests can be chosen, too; one that another model
// cannot take gives way to its first example. An example that needs another model selects it, and the
// next one restores the model before.
//
// Examples.begin() -> a promise, or null: the request of the tab before the reload, or the first example, unless there is a
// request. Examples.choose(name, send): the example `name`, which its body has as `example`.
// Examples.offered(model) -> those for a model. Examples.labels(name): its labels.
// needs: dom own state tensor models ask request samples
const Examples = (() => {
  // An example for a wider model is megabytes of text, and is made only when it is chosen.
  const WIDEST = 20000;
  const ask = () => (Models.isSmall(Models.current()) ? Ask.send() : null);
  // The example's name; its request; the name of the model that this was made for; and { from, to } if
  // an example has changed the model.
  let chosen = null, made = null, madeFor = null, before = null;
  const put = (model, send = ask) => {
    [made, madeFor] = [Own.made({ ...Samples.body(chosen, model), example: chosen }), model.name];
    State.set({ body: made, labels: Samples.labels(chosen) });
    return send();
  };

  // The user's own request for another model: itself, the words that were typed as ids, or null.
  const adapted = (body, model) => {
    const { text, tokens, queries, embeddings } = Request.fields(body) || {};
    if (!Models.isWhole(model)) {
      const { shape = [] } = Tensor.of(queries) || {}; // a ragged batch has none
      return (text ?? tokens ?? embeddings) === undefined && [undefined, model.query_size].includes(shape.at(-1))
        ? body : null;
    }
    if (queries || (text !== undefined && !model.tokenizer)) return null;
    if (tokens === undefined || !model.tokenizer) return tokens && !model.vocabulary ? null : body;
    const words = [tokens].flat(2);
    return words.every(Number.isInteger) ? null : { text: Request.layout({ text: words.join(" ") }) };
  };
  // Makes the example again for the current model.
  const fit = () => {
    const model = Models.current(), body = State.body;
    if (before && State.model !== before.to) before = null;
    if (!body || !model || State.place === "learn") return;
    if (body !== made) {
      if (State.asking || !Ask.isOther()) return;
      const own = adapted(body, model);
      if (own) {
        State.set({ body: own });
        if (Models.find(State.asked.model)) ask(); // else no one has chosen this model
        return;
      }
      chosen = null;
    }
    if (model.query_size > WIDEST) return;
    const isNew = body !== made || madeFor !== model.name;
    const example = Samples.offered(model).find(({ name }) => name === chosen);
    if (!example || Samples.barred(example, model) || !Samples.takes(example, model)
      || (isNew && model.tokenizer && chosen === "ids")) chosen = Samples.first(model);
    if (chosen && (isNew || made.text !== Samples.body(chosen, model).text)) put(model);
  };
  const choose = (name, send = Ask.start) => {
    const now = Models.current(), example = Samples.find(name);
    const first = before && before.to === now.name ? Models.find(before.from) || now : now;
    const model = Samples.takes(example, first) ? first : Samples.taker(example, now);
    if (model !== first && !Models.isWhole(first)) before = { from: first.name, to: model.name };
    chosen = name;
    State.set({ model: model.name });
    return put(model, send);
  };

  const choice = id("example");
  const option = (example) => {
    const why = Samples.barred(example, Models.current());
    return el("option", { value: example.name, disabled: why !== "" },
      example.title + (why && ` (${why})`));
  };
  const drawn = () => {
    const side = Samples.WIDE, canvas = el("canvas", { width: side, height: side, role: "img",
      "aria-label": "The picture" }), pen = canvas.getContext("2d");
    for (let i = 0; i < side * side; i++) {
      pen.fillStyle = `hsl(0 0% ${100 * Samples.pixel(i % side, Math.floor(i / side))}%)`;
      pen.fillRect(i % side, Math.floor(i / side), 1, 1);
    }
    return canvas;
  };
  // "own0" is the newest of the user's own requests; "" is none of these.
  const owned = (_, i) => el("option", { value: `own${i}` },
    i ? `your request, ${i} earlier` : "your request");
  const show = () => {
    const body = State.body, own = Own.list();
    if (body !== made) chosen = "";
    fill(choice, own.map(owned), Samples.offered(Models.current()).map(option),
      el("option", { value: "", disabled: true, hidden: true }, "none of these"));
    choice.value = chosen || (own.includes(body) ? `own${own.indexOf(body)}` : "");
    choice.disabled = !Models.current();
    const { note, picture } = chosen ? Samples.find(chosen) : {};
    fill(id("example-note"), note, picture && drawn());
  };
  const chooseOwn = (body) => {
    State.set({ body, labels: Own.labels(body) });
    return Ask.start();
  };
  choice.addEventListener("change", () => {
    const own = Own.list()[choice.value.replace("own", "")];
    if (choice.value.startsWith("own")) chooseOwn(own);
    else choose(choice.value);
  });
  const begin = () => {
    const model = Models.current();
    if (State.body !== null || !model) return null;
    if (Own.kept && Own.kept.body) return chooseOwn(Own.kept.body);
    chosen = Samples.first(model);
    return chosen && !(model.query_size > WIDEST) ? put(model) : null;
  };
  State.on(["models", "model", "place"], fit);
  State.on(["models", "model", "body"], show, id("ask-side"));
  return { begin, choose, offered: Samples.offered, labels: Samples.labels };
})();
