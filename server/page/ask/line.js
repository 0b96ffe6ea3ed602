// line: the input of a whole model, as text or as token ids, a line for each item; the request follows.
//
// Enter sends, Shift+Enter begins another item. A text that is typed runs by itself where the last answer
// was quick. A model that can score has a second line with the targets: the continuation of the tokens, or the
// input of the decoder. Words there become token IDs, which the request has.
// needs: dom state models net ask request
(() => {
  const part = id("line-part"), line = id("line"), behind = id("line-targets");
  const mask = button("", () => {
    line.focus();
    line.setRangeText(mask.value, line.selectionStart, line.selectionEnd, "end");
    type();
  });
  mask.className = "plain small";
  line.after(mask);
  const note = id("line-note"), title = id("line-title"), other = id("line-second");
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

  // The token IDs of targets that are words: the tokens that a text gets after its prompt, because a blank may
  // belong to a token. Those of an encoder-decoder model begin and end as a text does.
  const tokenized = async (model, prompts, texts) => {
    const isAlone = model.kind === "seq2seq";
    const all = texts.flatMap((text, i) => [prompts[i] || "", `${prompts[i] || ""} ${text}`, text]);
    const reply = await Net.post("tokenize", model.name, { text: all, special_tokens: isAlone });
    const { tokens } = reply.ok ? reply.json() : {};
    return tokens && texts.map((_, i) => {
      const [before, both, own] = tokens.slice(3 * i, 3 * i + 3);
      return !isAlone && before.every((id, j) => id === both[j]) ? both.slice(before.length) : own;
    });
  };
  const keyOf = (targets) => JSON.stringify(Array.isArray((targets || [])[0]) ? targets : [targets]);
  const spoken = new Map(); // the words of targets, by their token IDs

  let wrong = "", turn = 0;
  const commit = async () => {
    const mine = ++turn;
    const model = Models.current(), body = State.body, lines = line.value.split("\n");
    const typed = lines.map(ids), isIds = typed.flat().every(Number.isInteger);
    const text = isText(Request.fields(body) || {}, model) || (Boolean(model.tokenizer) && !isIds);
    const lists = text ? lines : typed;
    const said = behind.value.trim() ? behind.value.split("\n") : undefined;
    const isWords = Boolean(said && model.tokenizer) && !said.map(ids).flat().every(Number.isInteger);
    const targets = isWords ? undefined : said && said.map(ids);
    const bad = [...(text ? [] : lists), ...(targets || [])].flat().some((id) => !Number.isInteger(id));
    wrong = bad ? "Token IDs must be whole numbers, separated by spaces." : "";
    const one = lines.length === 1, of = (list) => (one ? list[0] : list);
    const next = Request.change(body || { text: "{}" }, { tokens: undefined, [text ? "text" : "tokens"]: of(lists),
      targets: targets && of(targets) });
    if (next) State.set({ body: next });
    if (!next || !isWords) return;
    const found = await tokenized(model, text ? lines : [], said);
    if (mine !== turn || !found || State.body !== next) return;
    spoken.set(keyOf(found), behind.value);
    State.set({ body: Request.change(next, { targets: of(found) }) });
  };

  // A long text, a slow answer and a large model wait for Enter.
  const PAUSE = 300, QUICK = 50;
  let timer = 0;
  const run = () => {
    const { took, whole } = State.answer || {}, model = Models.current();
    if (Models.isSmall(model) && whole && took < QUICK && !Ask.isOther() && State.asked.body !== State.body
      && "text" in (Request.fields(State.body) || {})) Ask.send();
  };
  const type = () => {
    commit();
    clearTimeout(timer);
    timer = setTimeout(run, PAUSE);
  };

  const put = (area, value) => {
    if (area.value !== value && document.activeElement !== area) area.value = value;
  };
  const show = () => {
    const model = Models.current();
    part.hidden = !Models.isWhole(model) || !model.vocabulary;
    if (part.hidden) return;
    const fields = Request.fields(State.body) || {}, text = isText(fields, model);
    const lines = [spelt(text ? fields.text : fields.tokens, text), spoken.get(keyOf(fields.targets)) ?? spelt(fields.targets, false)];
    title.textContent = text ? "Text" : "Token IDs";
    id("line-more").hidden = model.kind === "encoder";
    other.textContent = `${model.kind === "seq2seq" ? "Decoder input" : "Targets: the continuation to score"} (${model.tokenizer ? "text or " : ""}token IDs)`;
    const isOther = lines.includes(null) || "embeddings" in fields;
    line.disabled = behind.disabled = isOther;
    mask.value = model.tokenizer?.mask || "";
    mask.textContent = `Insert ${mask.value}`;
    mask.hidden = isOther || !text || !mask.value || !model.tasks.includes("fill");
    note.textContent = isOther ? "The request has another format: edit its JSON in the API place." : wrong;
    put(line, lines[0] || "");
    put(behind, lines[1] || "");
  };
  const press = async (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    clearTimeout(timer);
    await commit();
    Ask.start();
  };
  for (const area of [line, behind]) {
    area.addEventListener("input", type);
    area.addEventListener("keydown", press);
    area.addEventListener("blur", show);
  }
  State.on(["models", "model", "body"], show, id("ask-side"));
})();
