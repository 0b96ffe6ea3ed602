// fields: a control for every field of a request, with its meaning. Controls show the request's values,
// and a change of one rewrites the request.
//
// The fields are those of the server's OpenAPI document, which is requested when the part is first opened; the
// inputs themselves have no control. A control has the id "field-NAME" and data-field="NAME".
// needs: dom report state tensor models net ask request
(() => {
  const INPUTS = /^(queries|keys|values|text|tokens|embeddings|targets)$/;
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

  // A field is [name, choices or null, example, meaning].
  const rowOf = ([name, choices, example, meaning]) => {
    const rest = { id: `field-${name}`, "data-field": name, class: "mono",
      "aria-describedby": `field-${name}-meaning field-${name}-error`,
      onchange: (event) => commit(name, event.target.value) };
    controls.set(name, choices ? el("select", rest)
      : el("input", { ...rest, placeholder: "not set", autocomplete: "off" }));
    return el("div", el("label", { for: `field-${name}`, class: "mono" }, name),
      controls.get(name),
      el("p.soft.small", { id: `field-${name}-meaning` }, example && el("code", JSON.stringify(example)), meaning),
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
  const showOne = ([name, choices], fields) => {
    const control = controls.get(name), text = fields ? textOf(fields[name]) : "";
    control.disabled = !fields;
    complain(name, "");
    // A value of the request that is none of the choices is added to them.
    if (choices) return Dom.options(control, choices.some(([value]) => value === text) ? choices : [...choices, [text]], text);
    control.value = text;
  };
  let schemas = null, list = [], made = "";
  const resolve = ({ $ref, ...own }) => ({ ...($ref && schemas[$ref.split("/").at(-1)]), ...own });
  const fieldOf = ([name, schema]) => {
    const { type, enum: all = type === "boolean" ? [true, false] : null, default: none, examples = [], description = "" } = resolve(schema);
    const choices = (name === "pool" && Models.current().pools) || all;
    return [name, choices && [["", none === undefined ? "not set" : `not set: ${none}`],
      ...choices.map((one) => [JSON.stringify(one), String(one)])], examples[0], description];
  };
  const read = async () => {
    const reply = await Net.ask("GET", "openapi.json");
    return reply.ok ? reply.json().components : reply;
  };
  let isLoading = false;
  const load = async () => {
    if (isLoading) return;
    isLoading = true;
    const found = await read().catch(Net.unreadable);
    isLoading = false;
    if (found.problem) return fill(id("fields"), Report.failed(found.problem, load));
    schemas = found.schemas;
    show();
    State.set({ problem: State.problem }); // it may be that of a field
  };
  const show = () => {
    const fields = Request.fields(State.body), what = Ask.what(), key = `${State.model} ${what}`;
    if (!part.open || !State.model) return;
    if (!schemas) return load();
    id("fields-note").textContent =
      fields ? "" : "The request is not a JSON object: its fields cannot be set here.";
    if (key !== made) {
      made = key;
      list = Object.entries(schemas[`${what[0].toUpperCase()}${what.slice(1)}Request`].properties)
        .filter(([name]) => !INPUTS.test(name)).map(fieldOf);
      fill(id("fields"), list.map(rowOf));
    }
    for (const entry of list) showOne(entry, fields);
  };

  part.addEventListener("toggle", show);
  State.on(["models", "model", "body"], show, id("ask-side"));
})();
