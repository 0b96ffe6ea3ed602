// whole: sends the requests of whole models. Their answers look like those of a single attention: they
// have the weights of one attention.
//
// Whole.path(model, fields): "encode", or "score" if there are targets. Whole.ask(body, model,
// signal) -> a promise of { reply, answer }: the request with thumbnails of every attention's weights;
// `answer` is as from Answer.read, and has
//   path; kind: of the model; next: the fields that make a decoder score the next tokens of its text, for
//   a request without targets, or null
//   part: the attention whose exact weights the shown item has; the other items have null
//   names: of all attentions that ran
//   thumbs(name, item): for each head { rows, cols, data }, maxima of the weights from 0 to 1
//   words(item, name) -> { rows, cols }: the tokens at an attention's queries and keys; one that the tokenizer
//     does not know has the typed piece before it, as "zebra <unk>". reads(item, name): without the piece
//   places: for each item the tokens of the "encoder" and of the "decoder", without padding
//   sees: the fields that mask each attention, { causal, window }, as in a request
//   heads(item): all of them, { name, head, thumb, words }
//   labels: the tokens of the part that is shown, as in State.labels
// Whole.show(part, head): shows the weights of another attention, and loads them if the answer has none.
// Whole.weights(body, model, part, item, words) -> a promise of { ok, weights } of one attention, or of
//   a reply with its problem; words: from the answer's words(item, part).
// Whole.BARE: changes that remove the fields of what a response has besides its numbers.
// Whole.changed(changes) -> the body of the answer that is shown with changed fields, and BARE.
// Whole.again(changes, what, accept): sends the request of the answer that is shown, also of a single attention,
//   with changed fields, and BARE -> a promise of a reply; `what`: its path, by default the answer's.
// needs: state tensor models net request
const Whole = (() => {
  const SIDE = 64;
  const OF_ITEMS = ["tokens", "text", "embeddings", "token_types", "targets", "valid_lens",
    "target_lens"];
  const BARE = Object.fromEntries(["return_attention", "return_hidden", "return_top", "return_lens", "return_tokens",
    "return_pointers", "gradients", "trace", "encoding_format"].map((name) => [name, undefined]));
  const path = (model, fields) => (model.kind !== "encoder" && fields.targets ? "score" : "encode");
  // The names of the attentions that run.
  const ran = ({ kind, attentions }, what) => attentions.filter((name) =>
    what === "score" || kind !== "seq2seq" || name.startsWith("encoder"));

  // A request of one item loses the dimension of the batch.
  const batched = ({ text, tokens, embeddings }) => Array.isArray(text)
    || Array.isArray(tokens && tokens[0]) || Array.isArray(embeddings && embeddings[0][0]);
  const single = (fields, item) => (batched(fields)
    ? Object.fromEntries(OF_ITEMS.filter((name) => Array.isArray(fields[name]))
      .map((name) => [name, [fields[name][item]]])) : {});

  const post = (what, body, model, signal, accept) => Net.ask("POST", Net.path(what, model), { ...Request.wire(body), accept, signal });
  // The exact weights of an attention for one item: a matrix for each head, without padding. `send` sends
  // their request, and `cut` reads its reply.
  const send = (body, model, part, item, signal) => {
    const fields = Request.fields(body);
    return post(path(model, fields), Request.change(body, { ...BARE, ...single(fields, item),
      return_attention: [part], encoding_format: "base64" }), model.name, signal);
  };
  const cut = (reply, body, part, item, words) => {
    if (!reply.ok) return reply;
    const all = reply.json().attention[part], at = batched(Request.fields(body)) ? 0 : item;
    const many = Array.isArray(all) || all.shape.length > 3;
    const tensor = Tensor.of(many ? Tensor.part(all, at) : all), [h, n, m] = tensor.shape;
    const [rows, cols] = [words.rows.length, words.cols.length];
    return { ok: true, weights: Array.from({ length: h }, (_, i) => {
      const data = tensor.data.subarray(i * n * m, (i + 1) * n * m);
      return { rows, cols, data: n === rows && m === cols ? data
        : Float32Array.from({ length: rows * cols }, (__, k) =>
          data[Math.floor(k / cols) * m + k % cols]) };
    }) };
  };
  const read = async (body, model, part, item, words, signal) =>
    cut(await send(body, model, part, item, signal), body, part, item, words);

  const pictures = ({ shape: [h, rows, cols], base64 }) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)), size = rows * cols;
    return Array.from({ length: h }, (_, i) => ({ rows, cols,
      data: Float32Array.from(bytes.subarray(i * size, (i + 1) * size), (x) => x / 255) }));
  };
  const matrix = (rows) => {
    const { shape: [n, cols], data } = Tensor.of(Array.isArray(rows[0]) ? rows : [rows]);
    return { rows: n, cols, data: Float32Array.from(data) };
  };
  const START = "start", UNKNOWN = /^[<[]unk[>\]]$/i;
  // The tokens of the encoder's rows and of the decoder's, without padding. Embeddings have the labels.
  const places = (fields, labels, said, kind, item, isMany) => {
    const of = (value) => (value && isMany ? Tensor.part(value, item) : value);
    const listed = (value) => (Array.isArray(value) ? value : (value && Tensor.of(value).data) || []);
    const rows = of(fields.embeddings), count = Array.isArray(rows) ? rows.length
      : rows ? Tensor.of(rows).shape[0] : 0;
    const kept = (name) => listed(fields[name])[item] ?? Infinity;
    const read = fields.embeddings ? Array.from({ length: count }, (_, i) => i) : listed(of(fields.tokens));
    const named = labels.rows[item] || [];
    const source = (said.strings && said.strings[item] || (named.length === count && count ? named : null) || Array.from(read, String)).slice(0, kept("valid_lens"));
    const fed = Array.from(listed(of(fields.targets)), String).slice(0, kept("target_lens")).slice(0, -1);
    return kind === "seq2seq" ? { encoder: source, decoder: [START, ...fed] }
      : { [kind]: [...source, ...fed] };
  };
  const wordsOf = (places, part) => {
    const [side, , of] = part.split(".");
    return { rows: places[side], cols: places[of === "cross" ? "encoder" : side] };
  };

  // The fields that score the next tokens of a decoder's own text, or null.
  const nextOf = (tokens, kind, what, isMany) => {
    const lists = isMany ? tokens : [tokens], of = (list) => (isMany ? list : list[0]);
    if (kind !== "decoder" || what === "score" || !Array.isArray(lists) || !lists.length
      || !lists.every((list) => Array.isArray(list) && list.length > 1)) return null;
    return { text: undefined, special_tokens: undefined, truncate: undefined,
      tokens: of(lists.map((list) => list.slice(0, 1))), targets: of(lists.map((list) => list.slice(1))) };
  };

  const answerOf = (reply, fields, labels, model, what, names) => {
    const said = reply.json(), first = said.thumbnails[names[0]];
    const isMany = Array.isArray(first), n = isMany ? first.length : 1;
    const kept = new Map();
    const thumbs = (name, item) => {
      const key = `${name} ${item}`, value = said.thumbnails[name];
      if (!kept.has(key)) kept.set(key, pictures(isMany ? value[item] : value));
      return kept.get(key);
    };
    const outputs = (item) => (said.outputs ? matrix(isMany ? said.outputs[item] : said.outputs) : null);
    const placed = (strings) => Array.from({ length: n }, (_, item) =>
      places(fields, labels, { strings }, model.kind, item, isMany));
    const { strings, offsets } = said, list = (value) => (isMany ? value : value && [value]), texts = list(fields.text);
    const typed = texts && strings && list(strings).map((line, item) => line.map((one, i) =>
      (UNKNOWN.test(one) && typeof texts[item] === "string"
        ? `${[...texts[item]].slice(...list(offsets)[item][i]).join("")} ${one}`.trim() : one)));
    const all = placed(typed), read = placed(list(strings));
    const heads = (item) => names.flatMap((name) => thumbs(name, item).map((thumb, head) =>
      ({ name, head, thumb, words: wordsOf(all[item], name) })));
    const { window } = model.decoder || model, isSelf = (name) => /^decoder.*self$/.test(name);
    const sees = Object.fromEntries(names.map((name) => [name, { causal: isSelf(name),
      ...(window && isSelf(name) && { window: [window - 1, -1] }) }]));
    const { status, type, id, timing, took, buffer } = reply;
    return { model: model.name, batched: isMany, average: false, whole: true, path: what, kind: model.kind,
      next: fields.valid_lens ? null : nextOf(said.tokens || fields.tokens, model.kind, what, isMany),
      names, thumbs, places: all, words: (item, name) => wordsOf(all[item], name),
      reads: (item, name) => wordsOf(read[item], name), heads, sees,
      items: all.map((_, item) => ({ outputs: outputs(item), weights: null, segments: null,
        pointers: null })),
      timing, took, status, type, id, bytes: buffer.byteLength, raw: reply.text(), buffer };
  };
  const withPart = (answer, part, item, weights) => ({ ...answer, part,
    labels: { rows: answer.places.map((one) => wordsOf(one, part).rows),
      cols: answer.places.map((one) => wordsOf(one, part).cols) },
    items: answer.items.map((one, i) => ({ ...one, weights: i === item ? weights
      : answer.part === part ? one.weights : null })) });

  const ask = async (body, model, signal) => {
    const fields = Request.fields(body);
    if (!fields) return { reply: await post("encode", body, model.name, signal) };
    const what = path(model, fields), names = ran(model, what), labels = State.labels;
    const view = State.view, part = names.includes(view.part) ? view.part : names.at(-1);
    // Both requests are sent at once: a page of words shows its first weights after one round trip.
    const weights = send(body, model, part, view.item, signal);
    const reply = await post(what, Request.change(body, { return_tokens: "text" in fields || undefined,
      return_attention: { of: names, as: { thumbnails: SIDE } } }), model.name, signal);
    if (reply.problem) delete reply.problem.offset; // it counts the bytes of a longer text
    if (!reply.ok) return { reply };
    const answer = answerOf(reply, fields, labels, model, what, names), item = Math.min(view.item, answer.items.length - 1);
    if (item < 0) return { reply, answer: withPart(answer, part, item, null) };
    const words = answer.words(item, part);
    const exact = item === view.item ? cut(await weights, body, part, item, words)
      : await read(body, model, part, item, words, signal);
    return exact.ok ? { reply, answer: withPart(answer, part, item, exact.weights) } : { reply: exact };
  };

  const changed = (changes) => Request.change(State.asked.body, { ...BARE, ...changes });
  const again = (changes, what = State.answer.path, accept) =>
    post(what, changed(changes), State.asked.model, undefined, accept);

  // Reads the weights of the current view if the answer lacks them. A failed read is not repeated.
  let wanted = null;
  const load = async () => {
    const { view: { item, part }, answer: now } = State;
    if (!now || !now.whole || !now.items[item] || !now.names.includes(part)) return;
    if (now.part === part && now.items[item].weights) return;
    const { body, model } = State.asked, one = Models.find(model);
    const mine = { thumbs: now.thumbs, item, part };
    if (wanted && Object.keys(mine).every((name) => mine[name] === wanted[name])) return;
    wanted = mine;
    const found = one ? await read(body, one, part, item, now.words(item, part)) : Net.failed("The model is no longer served",
      "Choose another one.");
    const answer = State.answer;
    if (mine !== wanted || answer.thumbs !== mine.thumbs) return;
    if (!found.ok) return State.set({ problem: found.problem, view: { ...State.view, part: answer.part } });
    wanted = null;
    State.set({ answer: withPart(answer, part, item, found.weights), problem: null });
  };
  const show = (part, head) => {
    wanted = null;
    State.show({ part, head });
  };
  State.on(["view"], load);
  return { path, ask, show, BARE, changed, again, weights: read };
})();
