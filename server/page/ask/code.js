// code: the request as curl, Python and JavaScript, to copy, and as a notebook's cell that has the weights as
// numpy arrays: Code.cell(). The request of a model gets the weights that the views show, and the tokens of its text,
// unless it says which weights it wants. A body that is long, or that cannot be written in a program's text, is saved as a
// file that the program reads.
//
// Code.offer(text, make) -> a button that copies make(), with a note beside it. Code.button(make): one for the request
// of a view, make() -> [the end of its path, its body, its model]: its program in the chosen language, with all of the
// body; by default the model is that of the answer; null: the body names it.
// needs: dom state key net ask request
const Code = (() => {
  const LONG = 8000;
  const part = id("code-part"), shown = id("code"), choice = id("code-language");
  const told = id("code-told");
  const isWhole = () => Ask.what() !== "attention";
  const body = () => {
    const own = Ask.sent(State.body), fields = Request.fields(own) || {};
    const isShown = isWhole() && !("return_attention" in fields);
    return (isShown && Request.change(own, { return_attention: true,
      return_tokens: fields.return_tokens ?? ("text" in fields || undefined) })) || own;
  };

  // The variables of a snippet. `text`: the body, or null if the program reads it from `file`.
  const parts = (what = Ask.what(), { text } = body(), model = State.model, most = LONG) => {
    const isText = text !== undefined;
    const inline = isText && text.length <= most && !/[^\n\t -\uffff]/.test(text);
    const url = new URL(Net.path(what, model), location).href;
    return { url, text: inline ? text : null,
      file: isText ? "request.json" : "request.safetensors",
      type: isText ? "application/json" : "application/x-safetensors",
      key: Net.hasKey() };
  };

  const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const curl = ({ url, text, file, type, key }) => [`curl -s ${shell(url)}`,
    `-H 'Content-Type: ${type}'`, "-H 'Accept: application/json'",
    ...(key ? ['-H "Authorization: Bearer $ATTEND_KEY"'] : []),
    text === null ? `--data-binary @${file}` : `--data-raw ${shell(text)}`].join(" \\\n  ");

  const pyText = (text) => `'''${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'''`;
  const python = ({ url, text, file, type, key }) => [
    key ? "import json, os, urllib.request" : "import json, urllib.request", "",
    text === null ? `body = open("${file}", "rb").read()` : `body = ${pyText(text)}.encode()`,
    `headers = {"Content-Type": "${type}", "Accept": "application/json"}`,
    ...(key ? ['headers["Authorization"] = "Bearer " + os.environ["ATTEND_KEY"]'] : []),
    `request = urllib.request.Request(${JSON.stringify(url)}, body, headers)`,
    "response = json.load(urllib.request.urlopen(request))",
    "print(json.dumps(response))"].join("\n");

  const jsText = (text) => `\x60${text.replace(/[\\\x60]|\$\{/g, "\\$&")}\x60`;
  const script = ({ url, text, file, type, key }) => [
    ...(text === null ? ['import { readFile } from "node:fs/promises";', ""] : []),
    text === null ? `const body = await readFile("${file}");` : `const body = ${jsText(text)};`,
    `const headers = { "Content-Type": "${type}", Accept: "application/json" };`,
    ...(key ? ["headers.Authorization = `Bearer ${process.env.ATTEND_KEY}`;"] : []),
    `const response = await fetch(${JSON.stringify(url)}, { method: "POST", headers, body });`,
    "const result = await response.json();",
    "console.log(JSON.stringify(result));"].join("\n");

  // numpy needs the exact weights of all attentions, whatever the request says.
  const notebook = (made) => [...python({ ...made, ...(made.text !== null && { text: withWeights(made.text) }) })
    .split("\n").slice(0, -1), "", "import numpy as np", isWhole()
    ? "weights = {name: [np.array(head) for head in heads] for name, heads in response[\"attention\"].items()}"
    : "weights = [np.array(item) for item in response[\"attention_weights\"]]",
  isWhole() ? "{name: heads[0].shape for name, heads in weights.items()}" : "[item.shape for item in weights]"].join("\n");
  const withWeights = (text) => Request.change({ text }, { return_attention: true })?.text ?? text;

  const WAYS = { curl, Python: python, JavaScript: script, Notebook: notebook };
  const offer = (text, make) => {
    const note = el("span.soft.small", { role: "status" });
    return el("span", button(text, () => Dom.copy(make()).then(() => fill(note, "Copied."), () =>
      fill(note, "The browser does not allow it."))), " ", note);
  };
  const copier = (make) => offer("Copy code", () => {
    const [what, body, model = State.asked.model] = make();
    return (choice.value === "Notebook" ? python : WAYS[choice.value])(
      parts(what, (body.tensors && Request.asText(body)) || body, model, Infinity));
  });
  const show = () => {
    if (!part.open) return;
    const made = Ask.ready() ? parts() : null;
    shown.textContent = made ? WAYS[choice.value](made) : "There is no request yet.";
    for (const name of ["code-copy", "code-save"]) id(name).disabled = !made;
    told.textContent = made && made.text === null ? `It reads ${made.file}: save it first.` : "";
  };

  // The clipboard needs a secure connection: without one the text is selected instead.
  const copy = async () => {
    try {
      await Dom.copy(shown.textContent);
      told.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(shown);
      told.textContent = "Selected: press Ctrl+C or ⌘+C to copy.";
    }
  };
  const save = () => {
    const { type, data } = Request.wire(body());
    Dom.save(new Blob([data], { type }), parts().file);
  };

  fill(choice, Object.keys(WAYS).map((name) => el("option", name)));
  choice.addEventListener("change", show);
  id("code-copy").addEventListener("click", copy);
  id("code-save").addEventListener("click", save);
  part.addEventListener("toggle", show);
  State.on(["body", "model"], show, part);
  Key.on(show);
  return { offer, button: copier, cell: () => notebook(parts()) };
})();
