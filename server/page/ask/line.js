// line: the input of a whole model, as text or as token ids, a line for each item; the request follows.
//
// Enter sends, Shift+Enter begins another item. A model that can score has a second line with the
// targets: they follow the tokens, or are the input of the decoder.
// needs: dom state models ask request
(() => {
  const part = Dom.id("line-part"), line = Dom.id("line"), behind = Dom.id("line-targets");
  const note = Dom.id("line-note"), title = Dom.id("line-title"), other = Dom.id("line-second");
  const WORDS = /[\s,]+/;
  // A word that is not a number is sent as a string: the server's error names its place.
  const ids = (text) => text.split(WORDS).filter(Boolean)
    .map((word) => (/^-?\d+$/.test(word) ? Number(word) : word));

  // The items of a field as lines, or null if they have another form.
  const spelt = (value, isText) => {
    if (value === undefined) return "";
    if (isText) {
      const texts = Array.isArray(value) ? value : [value];
      return texts.every((one) => typeof one === "string" && !one.includes("\n"))
        ? texts.join("\n") : null;
    }
    if (!Array.isArray(value)) return null;
    const lists = Array.isArray(value[0]) ? value : [value];
    return lists.every((list) => Array.isArray(list) && list.every((id) => Number.isInteger(id)
      || (typeof id === "string" && id && !WORDS.test(id))))
      ? lists.map((list) => list.join(" ")).join("\n") : null;
  };
  // Words that are typed where ids were are text.
  const isText = (fields, model) => ("text" in fields || !("tokens" in fields))
    && Boolean(model.tokenizer);

  let wrong = "";
  const commit = () => {
    const model = Models.current(), body = State.get("body"), lines = line.value.split("\n");
    const typed = lines.map(ids), isIds = typed.flat().every(Number.isInteger);
    const text = isText(Request.fields(body) || {}, model) || (Boolean(model.tokenizer) && !isIds);
    const lists = text ? lines : typed;
    const targets = behind.value.trim() ? behind.value.split("\n").map(ids) : undefined;
    const bad = [...(text ? [] : lists), ...(targets || [])].flat().some((id) => !Number.isInteger(id));
    wrong = bad ? "Token IDs must be whole numbers, separated by spaces." : "";
    const one = lines.length === 1, of = (list) => (one ? list[0] : list);
    const next = Request.change(body || { text: "{}" }, { tokens: undefined, [text ? "text" : "tokens"]: of(lists),
      targets: targets && of(targets) });
    if (next) State.set({ body: next });
  };

  const fill = (area, value) => {
    if (area.value !== value && document.activeElement !== area) area.value = value;
  };
  const show = () => {
    const model = Models.current();
    part.hidden = !Models.isWhole(model) || !model.vocabulary;
    if (part.hidden) return;
    const fields = Request.fields(State.get("body")) || {}, text = isText(fields, model);
    const lines = [spelt(text ? fields.text : fields.tokens, text), spelt(fields.targets, false)];
    title.textContent = text ? "Text" : "Token IDs";
    Dom.id("line-more").hidden = model.kind === "encoder";
    other.textContent = model.kind === "seq2seq" ? "Decoder input (token IDs)" : "Targets (token IDs)";
    const isOther = lines.includes(null) || "embeddings" in fields;
    line.disabled = behind.disabled = isOther;
    note.textContent = isOther ? "The request has another format: edit its JSON in the API place." : wrong;
    fill(line, lines[0] || "");
    fill(behind, lines[1] || "");
  };
  const press = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    commit();
    Ask.start();
  };
  for (const area of [line, behind]) {
    area.addEventListener("input", commit);
    area.addEventListener("keydown", press);
    area.addEventListener("blur", show);
  }
  State.on(["models", "model", "body"], show);
})();
