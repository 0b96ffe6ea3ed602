// fields: a control for every field of a request, with its meaning. Controls show the request's values,
// and a change of one rewrites the request.
//
// A control has the id "field-NAME" and data-field="NAME".
// needs: dom state tensor models request
const Fields = (() => {
  const flag = (none) => [["", none], ["true", "yes"], ["false", "no"]];
  const words = (none, ...list) => [["", none], ...list.map((word) => [`"${word}"`, word])];
  // Name; choices, or an example of a value; meaning.
  const LIST = [
    ["valid_lens", "[3, 2]", "each query attends to this many leading keys"],
    ["mask", "[[1, 0], [1, 1]]", "true or 1: the query attends to the key"],
    ["bias", "[[0.5, 0], [0, 0]]", "added to the scaled scores"],
    ["causal", flag("not set: the model's"), "query i attends to keys up to i + offset"],
    ["causal_offset", '0, [1, 2], "end"',
      "the offset; \"end\" is k − q: queries are the last positions of the keys"],
    ["window", "[left, right]",
      "query i attends to keys i + offset − left … i + offset + right; −1: no limit"],
    ["head_mask", "[1, 0]", "multiplies each head's output; 0 disables the head"],
    ["segments", "[[3, 3], [4, 2]]", "lengths of key segments, which add up to k: two-level attention"],
    ["select", words("not set: soft", "soft", "hard", "sample"),
      "weighted mean of the values; value of the top key; value of a key sampled by weight"],
    ["seed", "0", "for sample: the same seed samples the same keys"],
    ["empty_rows", words("not set: zero", "zero", "uniform"),
      "weights of a query whose keys are all masked: zero, or 1/k each"],
    ["return_attention", [...flag("not set: no"), ['"average"', "average"]],
      "also return the weights, per head or averaged over heads"],
    ["return_pointers", flag("not set: no"), "also return the selected key of each query"],
    ["encoding_format", words("not set: float", "float", "base64"),
      "format of float arrays in the response"],
    ["trace", '{"item": 0, "head": 0, "query": 0}', "how one query's weights are computed"],
  ];
  const ofWhole = ({ pools }) => [
    ["pool", words("not set: the model's", ...pools), "one vector per item instead of one per token, or several; or sparse weights"],
    ["head_mask", '{"encoder.0.self": [1, 0]}', "multiplies each head's output; 0 disables the head"],
    ["return_hidden", [...flag("not set: no"), ['"all"', "all"]], "also return hidden states"],
    ["return_top", "5", "most likely tokens at the position of each target"],
    ["token_types", "[[0, 0, 1]]", "which of two texts a token belongs to"],
    ["truncate", flag("not set: the model's"), "cut a text that is too long"],
    ["special_tokens", flag("not set: yes"), "tokens that the tokenizer adds around a text"],
    ["encoding_format", words("not set: float", "float", "base64"),
      "format of float arrays in the response"],
  ];
  const LONG = 2000, HIDDEN = "… too long to show";

  const part = id("fields-part"), controls = new Map();
  const node = (name, suffix) => id(`field-${name}${suffix}`);
  // Without a change of the text, aria-invalid stays: problem.js sets it on a field that the server
  // rejects.
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
      return complain(name, `Invalid JSON: ${error.message}`);
    }
    const body = Request.change(State.body, { [name]: value });
    if (!body) return complain(name, "The request cannot be changed.");
    State.set({ body });
  };

  const control = (name, kind) => {
    const rest = { id: `field-${name}`, "data-field": name, class: "mono",
      "aria-describedby": `field-${name}-meaning field-${name}-error`,
      onchange: (event) => commit(name, event.target.value) };
    return typeof kind === "string"
      ? el("input", { ...rest, placeholder: "not set", autocomplete: "off" })
      : el("select", rest);
  };
  const rowOf = ([name, kind, meaning]) => {
    controls.set(name, control(name, kind));
    return el("div", el("label", { for: `field-${name}`, class: "mono" }, name),
      controls.get(name),
      el("p.soft.small", { id: `field-${name}-meaning` },
        typeof kind === "string" ? el("code", kind) : null, meaning),
      el("p.bad.small", { id: `field-${name}-error`, role: "status" }));
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
  const showOne = ([name, kind], fields) => {
    const control = controls.get(name), text = fields ? textOf(fields[name]) : "";
    control.disabled = !fields;
    complain(name, "");
    if (typeof kind !== "string") {
      // A value of the request that is none of the choices is added to them.
      const list = kind.some(([value]) => value === text) ? kind : [...kind, [text, text]];
      return Dom.options(control, list, text);
    }
    control.value = text;
  };
  const show = () => {
    if (!part.open) return;
    const fields = Request.fields(State.body);
    id("fields-note").textContent =
      fields ? "" : "The request is not a JSON object: its fields cannot be set here.";
    for (const entry of list) showOne(entry, fields);
  };
  let list = [];
  const fit = () => {
    const model = Models.current();
    list = Models.isWhole(model) ? ofWhole(model) : LIST;
    fill(id("fields"), list.map(rowOf));
    show();
  };

  part.addEventListener("toggle", show);
  State.on(["body"], show, id("ask-side"));
  State.on(["models", "model"], fit, id("ask-side"));
})();
