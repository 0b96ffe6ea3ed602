// source: the request as it is going to be sent: text to be written in, or what a file holds.
//
// Source.take(file) -> a promise: puts a JSON or safetensors file into the request, or says why
// not. A file may be dropped or pasted anywhere on the page. Long text and binary files are summed
// up.
const Source = (() => {
  const LONG = 2e6, LONGEST = 500e6, READABLE = 20000;
  const area = Dom.id("source"), whole = Dom.id("source-whole"), note = Dom.id("source-note");
  const isLong = (body) => body && (!("text" in body) || body.text.length > LONG);

  // --- files ---

  const OPENING = 0x7b;
  // The length of a safetensors header has no eighth byte, and text has no NUL.
  const isBinary = (name, bytes) =>
    (bytes[7] === 0 && bytes[8] === OPENING) || /\.safetensors$/i.test(name);
  const bodyOf = (name, buffer) => {
    if (isBinary(name, new Uint8Array(buffer))) return { name, ...Tensor.read(buffer) };
    let text = null;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(buffer);
    } catch {
      // said below
    }
    if (text === null || text.trimStart()[0] !== "{")
      throw new Error("it is neither a JSON object nor a safetensors file");
    return { name, text: text.replaceAll("\r\n", "\n") };
  };
  // Of files the last one counts, whichever is read sooner.
  let last = null;
  const take = async (file) => {
    last = file;
    try {
      if (file.size > LONGEST)
        throw new Error(`it has ${Format.bytes(file.size)}, more than ${Format.bytes(LONGEST)}`);
      const buffer = await file.arrayBuffer();
      if (last === file) State.set({ body: bodyOf(file.name, buffer) });
    } catch (error) {
      if (last !== file) return;
      note.textContent = `${file.name} cannot be sent: ${error.message}.`;
    }
  };

  const input = Dom.id("source-file");
  Dom.id("source-open").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) take(input.files[0]);
    input.value = "";
  });
  const has = (transfer, type) => Boolean(transfer && transfer.types.includes(type));
  const takeFrom = (event, transfer) => {
    if (!has(transfer, "Files")) return;
    event.preventDefault();
    if (transfer.files[0]) take(transfer.files[0]);
  };
  const over = (is) => document.body.classList.toggle("dropping", is);
  document.addEventListener("dragover", (event) => {
    if (!has(event.dataTransfer, "Files")) return;
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || over(false));
  document.addEventListener("drop", (event) => {
    over(false);
    takeFrom(event, event.dataTransfer);
  });
  // Who copies cells of a sheet pastes their text, and not the picture that comes with it.
  document.addEventListener("paste", (event) =>
    has(event.clipboardData, "text/plain") || takeFrom(event, event.clipboardData));

  // --- what a file holds ---

  // The focus goes where the request is to be read next.
  const put = (body) => {
    State.set({ body });
    queueMicrotask(() => area.focus());
  };
  const toText = () => {
    const body = Request.asText(State.get("body"));
    if (body) put(body);
    else note.textContent = "It has numbers that JSON cannot write.";
  };
  const remove = () => put({ text: "" });
  const line = (...cells) => Dom.el("tr", {}, cells.map((cell) => Dom.el("td", {}, cell)));
  const tensorLines = ({ tensors, fields }) => [
    ...Object.entries(tensors).map(([name, { dtype, shape }]) =>
      line(name, `${dtype} [${shape.join(", ")}]`)),
    ...Object.entries(fields).map(([name, value]) => line(name, JSON.stringify(value))),
  ];
  const sumUp = (body) => {
    const isText = "text" in body, size = Request.size(body);
    Dom.fill(whole,
      Dom.el("p", {}, Dom.el("b", {}, body.name || "The request"),
        ` · ${isText ? "JSON" : "safetensors"} · ${Format.bytes(size)}`),
      isText ? null : Dom.el("table", { class: "mono" }, tensorLines(body)),
      Dom.el("div", { class: "row" },
        isText || size > 4 * READABLE ? null : Dom.button("As JSON", toText),
        Dom.button("Remove", remove)));
  };

  // --- text ---

  const doubt = (text) => {
    if (!text.trim()) return "Write or paste a request as JSON, or drop a file anywhere.";
    try {
      JSON.parse(text);
      return "A request is a JSON object.";
    } catch (error) {
      return `No JSON yet: ${error.message}`;
    }
  };
  const show = () => {
    const body = State.get("body"), long = isLong(body);
    const text = body && "text" in body ? body.text : "";
    note.textContent = "";
    Dom.id("source-wrap").hidden = long;
    whole.hidden = !long;
    if (long) sumUp(body);
    else if (area.value !== text) area.value = text;
    Dom.id("source-hint").textContent = Request.fields(body) ? "" : doubt(text);
  };
  area.addEventListener("input", () => State.set({ body: { text: area.value } }));
  State.on(["body"], show);
  show();
  return { take };
})();
