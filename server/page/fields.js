// fields: every field of a request as a control with its meaning. Controls show the request's
// values, and changing one rewrites the request.
//
// A control has the id "field-NAME" and data-field="NAME".
const Fields = (() => {
  const flag = (none) => [["", none], ["true", "yes"], ["false", "no"]];
  const words = (none, ...list) => [["", none], ...list.map((word) => [`"${word}"`, word])];
  // Name; choices, or an example of what to write; meaning.
  const LIST = [
    ["valid_lens", "[3, 2]", "how many leading keys each query may see"],
    ["mask", "[[1, 0], [1, 1]]", "true or 1: the query may see the key"],
    ["bias", "[[0.5, 0], [0, 0]]", "added to the scaled scores"],
    ["causal", flag("not set: the model's"), "query i sees keys up to i + offset"],
    ["causal_offset", '0, [1, 2], "end"',
      "the offset; \"end\" is k − q: queries are the last rows of their keys"],
    ["window", "[left, right]",
      "query i sees keys i + offset − left … i + offset + right; −1 is no bound"],
    ["head_mask", "[1, 0]", "multiplies each head's context; 0 prunes the head"],
    ["segments", "[[3, 3], [4, 2]]", "runs of keys, summing to k: attention on two levels"],
    ["select", words("not set: soft", "soft", "hard", "sample"),
      "the mean of the values; that of the heaviest key; that of one drawn by the weights"],
    ["seed", "0", "of sample: the same seed draws the same keys"],
    ["empty_rows", words("not set: zero", "zero", "uniform"),
      "what a query gets that may see nothing: zero weights, or 1/k each"],
    ["return_attention", [...flag("not set: no"), ['"average"', "average"]],
      "the weights too, of each head or averaged over heads"],
    ["return_pointers", flag("not set: no"), "the heaviest or the drawn key too"],
    ["encoding_format", words("not set: float", "float", "base64"),
      "how arrays of floats are written in the answer"],
    ["trace", '{"item": 0, "head": 0, "query": 0}', "how one query's weights come about"],
  ];
  const OF_WHOLE = [
    ["pool", words("not set: the model's", "none", "cls", "mean", "max", "last", "mean_sqrt_len", "weighted_mean",
      "pooler"),
      "one vector of each item instead of a row for each token"],
    ["head_mask", '{"encoder.0.self": [1, 0]}', "multiplies each head's context; 0 prunes the head"],
    ["return_hidden", [...flag("not set: no"), ['"all"', "all"]], "hidden states too"],
    ["return_top", "5", "the likeliest tokens in the place of each target"],
    ["token_types", "[[0, 0, 1]]", "which of two texts a token belongs to"],
    ["truncate", flag("not set: the model's"), "a text that is too long is cut"],
    ["special_tokens", flag("not set: yes"), "the tokens that a tokenizer puts around texts"],
    ["encoding_format", words("not set: float", "float", "base64"),
      "how arrays of floats are written in the answer"],
  ];
  const LONG = 2000, HIDDEN = "… too long to show";

  const part = Dom.id("fields-part"), controls = new Map();
  const node = (name, suffix) => Dom.id(`field-${name}${suffix}`);
  // Without a change of the text, aria-invalid stays: problem.js sets it on a field that the server
  // refuses.
  const complain = (name, text) => {
    if (node(name, "-error").textContent === text) return;
    node(name, "-error").textContent = text;
    node(name, "").setAttribute("aria-invalid", text !== "");
  };

  // An empty control removes the field.
  const commit = (name, text) => {
    let value;
    try {
      if (text.trim()) value = JSON.parse(text);
    } catch (error) {
      return complain(name, `This is no JSON: ${error.message}`);
    }
    const body = Request.change(State.get("body"), { [name]: value });
    if (!body) return complain(name, "The request cannot be rewritten.");
    State.set({ body });
  };

  const control = (name, kind) => {
    const rest = { id: `field-${name}`, "data-field": name, class: "mono",
      "aria-describedby": `field-${name}-meaning field-${name}-error`,
      onchange: (event) => commit(name, event.target.value) };
    return typeof kind === "string"
      ? Dom.el("input", { ...rest, placeholder: "not set", autocomplete: "off" })
      : Dom.el("select", rest);
  };
  const rowOf = ([name, kind, meaning]) => {
    controls.set(name, control(name, kind));
    return Dom.el("div", {}, Dom.el("label", { for: `field-${name}`, class: "mono" }, name),
      controls.get(name),
      Dom.el("p", { class: "soft small", id: `field-${name}-meaning` },
        typeof kind === "string" ? Dom.el("code", {}, kind) : null, meaning),
      Dom.el("p", { class: "bad small", id: `field-${name}-error`, role: "status" }));
  };

  // The value as text on one line. A value that is too long is not shown, but can be removed.
  const textOf = (value) => {
    if (value === undefined) return "";
    const tensor = value && value.bytes ? Tensor.of(value) : null;
    if (tensor && tensor.data.length > LONG) return HIDDEN;
    try {
      const text = JSON.stringify(tensor ? Tensor.list(tensor) : value);
      return text.length > LONG ? HIDDEN : text;
    } catch {
      return HIDDEN;
    }
  };
  // A value of the request that is none of the choices is added to them.
  const showChoice = (select, kind, text) => {
    const list = kind.some(([value]) => value === text) ? kind : [...kind, [text, text]];
    Dom.fill(select, list.map(([value, label]) => Dom.el("option", { value }, label)));
    select.value = text;
  };
  const showOne = ([name, kind], fields) => {
    const control = controls.get(name), text = fields ? textOf(fields[name]) : "";
    control.disabled = !fields;
    complain(name, "");
    if (typeof kind === "string") control.value = text;
    else showChoice(control, kind, text);
  };
  const show = () => {
    if (!part.open) return;
    const fields = Request.fields(State.get("body"));
    Dom.id("fields-note").textContent =
      fields ? "" : "The request is no JSON object: its fields cannot be set one by one.";
    for (const entry of list) showOne(entry, fields);
  };
  let list = null;
  const fit = () => {
    const wanted = Models.isWhole(Models.current()) ? OF_WHOLE : LIST;
    if (wanted !== list) Dom.fill(Dom.id("fields"), wanted.map(rowOf));
    list = wanted;
    show();
  };

  fit();
  part.addEventListener("toggle", show);
  State.on(["body"], show);
  State.on(["models", "model"], fit);
})();
