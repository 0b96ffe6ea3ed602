// source: the request that will be sent: a text area, or a summary of long text and binary files.
//
// Source.take(file) -> a promise: makes a JSON or safetensors file the request, or shows why it cannot.
// A file may be dropped or pasted anywhere on the page.
// needs: dom format state labels link request
const Source = (() => {
  const LONG = 2e6, LONGEST = 500e6, READABLE = 20000;
  const area = id("source"), whole = id("source-whole"), note = id("source-note");
  const isLong = (body) => body && (!("text" in body) || body.text.length > LONG);

  // --- files ---

  const OPENING = 0x7b;
  // A safetensors file begins with the length of its header, whose eighth byte is 0; text has no 0.
  const isBinary = (name, bytes) =>
    (bytes[7] === 0 && bytes[8] === OPENING) || /\.safetensors$/i.test(name);
  const bodyOf = (name, buffer) => {
    if (isBinary(name, new Uint8Array(buffer))) return { name, ...Tensor.read(buffer) };
    let text = null;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(buffer);
    } catch {
      // `text` stays null
    }
    if (text === null || text.trimStart()[0] !== "{")
      throw new Error("it is neither a JSON object nor a safetensors file");
    return { name, text: text.replace(/\r\n/g, "\n") };
  };
  // The last of several files is used, even if another one takes longer to read.
  let last = null;
  const take = async (file) => {
    last = file;
    try {
      if (file.size > LONGEST)
        throw new Error(`it has ${Format.bytes(file.size)}, more than ${Format.bytes(LONGEST)}`);
      const buffer = await file.arrayBuffer();
      if (last !== file) return;
      const body = bodyOf(file.name, buffer), saved = Link.of(Request.fields(body));
      if (saved) Link.restore(saved);
      else State.set({ body, labels: Labels.NONE });
    } catch (error) {
      if (last !== file) return;
      note.textContent = `${file.name} cannot be sent: ${error.message}.`;
    }
  };

  const input = id("source-file");
  id("source-open").addEventListener("click", () => input.click());
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
  // The cells of a spreadsheet are copied as text and as a picture: the text is pasted.
  document.addEventListener("paste", (event) =>
    has(event.clipboardData, "text/plain") || takeFrom(event, event.clipboardData));

  // --- the summary ---

  // Moves the focus to the text area, which replaces the summary.
  const put = (body) => {
    State.set({ body });
    queueMicrotask(() => area.focus());
  };
  const toText = () => {
    const body = Request.asText(State.body);
    if (body) put(body);
    else note.textContent = "It has numbers that JSON cannot represent.";
  };
  const remove = () => {
    State.set({ labels: Labels.NONE });
    put({ text: "" });
  };
  const sumUp = (body) => {
    const isText = "text" in body, size = Request.size(body), { tensors = {}, fields = {} } = body;
    const line = (...cells) => el("tr", cells.map((cell) => el("td", cell)));
    fill(whole,
      el("p", el("b", body.name || "The request"),
        ` · ${isText ? "JSON" : "safetensors"} · ${Format.bytes(size)}`),
      isText ? null : el("table.mono", Object.entries(tensors)
        .map(([name, { dtype, shape }]) => line(name, `${dtype} [${shape.join(", ")}]`)),
      Object.entries(fields).map(([name, value]) => line(name, JSON.stringify(value)))),
      el("div.row",
        isText || size > 4 * READABLE ? null : button("As JSON", toText),
        button("Remove", remove)));
  };

  // --- text ---

  const doubt = (text) => {
    if (!text.trim()) return "Write or paste a request as JSON, or drop a file anywhere.";
    try {
      JSON.parse(text);
      return "A request must be a JSON object.";
    } catch (error) {
      return `Invalid JSON: ${error.message}`;
    }
  };
  // Replaces the text as typing would, so that undo restores the old text. The time of that grows with
  // the square of the lines: a long text is set at once, and undo restores `undone` then.
  const TYPED = 200000, LINES = 200;
  const isTyped = (text) => text.length < TYPED && text.split("\n", LINES).length < LINES;
  // The last request with its labels; what undo restores after a long text.
  let writing = false, now = null, undone = null;
  const typed = (text) => {
    const at = document.activeElement;
    writing = true;
    area.focus({ preventScroll: true });
    area.select();
    // A text area that is folded away has no focus, and another element would get the text.
    if (document.activeElement === area)
      document.execCommand(text ? "insertText" : "delete", false, text);
    writing = false;
    if (at !== area) area.blur();
    if (at !== area && at) at.focus({ preventScroll: true });
  };
  const write = (text) => {
    const isShort = isTyped(text) && isTyped(area.value);
    undone = isShort ? null : now;
    if (isShort && area.value) typed(text);
    if (area.value !== text) area.value = text;
  };
  area.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || undone === null) return;
    event.preventDefault();
    State.set(undone);
  });
  const keep = () => (now = { body: State.body, labels: State.labels });
  const show = () => {
    const body = State.body, long = isLong(body);
    const text = body && "text" in body ? body.text : "";
    note.textContent = "";
    id("source-wrap").hidden = long;
    whole.hidden = !long;
    if (long) sumUp(body);
    else if (area.value !== text) write(text);
    id("source-hint").textContent = Request.fields(body) ? "" : doubt(text);
  };
  // A paste over all of the text is another request.
  let anew = false;
  area.addEventListener("beforeinput", ({ inputType }) => {
    anew = inputType === "insertFromPaste" && area.selectionEnd - area.selectionStart > 0
      && area.selectionStart === 0 && area.selectionEnd === area.value.length;
  });
  area.addEventListener("input", () => {
    if (writing) return;
    undone = null;
    State.set({ body: { text: area.value }, ...(anew && { labels: Labels.NONE }) });
  });
  State.on(["body"], show, id("ask-side"));
  State.on(["body", "labels"], keep, id("ask-side"));
  show();
  return { take };
})();
