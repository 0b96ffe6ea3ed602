// problem: the last error, its place and a remedy, above the answer of an earlier request. The place is
// shown in the text that was sent, and is marked in #source while that text is unchanged.
// needs: dom format json state tensor key ask mark
(() => {
  const CONTEXT = 40, LONGEST = 160;
  const ADVICE = {
    413: "Send a smaller request, or raise the server's limit.",
    422: "The numbers overflow float32: use smaller ones.",
    504: "Send a smaller request, or try again when the server is less busy.",
  };
  const box = id("problem");
  const line = (...parts) => el("p.small", parts);

  let blamed = null, goThere = null;
  const forget = () => {
    Mark.clear();
    if (goThere) goThere.remove();
    if (!blamed) return;
    blamed.ariaInvalid = "false";
    const others = blamed.getAttribute("aria-describedby").replace("problem-says ", "");
    blamed.setAttribute("aria-describedby", others);
    blamed = null;
  };
  const blame = (name) => {
    blamed = document.querySelector(`[data-field="${CSS.escape(name)}"]`);
    if (!blamed) return;
    blamed.ariaInvalid = "true";
    const others = blamed.getAttribute("aria-describedby");
    blamed.setAttribute("aria-describedby", `problem-says ${others}`);
  };

  // The marked part with some text around it, on one line.
  const excerpt = (text, begin, end) => {
    const from = Math.max(0, begin - CONTEXT), to = end + CONTEXT;
    const around = (a, b) => text.slice(a, b).replace(/\s+/g, " ");
    const piece = text.slice(begin, Math.min(end, begin + LONGEST));
    return el("pre", from > 0 ? "…" : "", around(from, begin),
      el("mark", piece, end > begin + LONGEST ? "…" : ""), around(end, to),
      to < text.length ? "…" : "");
  };
  const inText = (text, begin, end) => {
    const where = Json.place(text, begin);
    Mark.show(text, begin, end);
    goThere = Mark.fits(text) ? button("Go there", () => Mark.go(text, begin, end)) : null;
    return [line(begin === text.length ? "At the end: line " : "Line ",
      `${where.line}, column ${where.column}`), excerpt(text, begin, end), goThere];
  };
  const inFile = ({ tensors }, name, indices) => {
    const value = indices.reduce((part, i) => part && Tensor.part(part, i), tensors[name]);
    const isNumber = value && value.data && value.data.length === 1;
    return line(name + indices.map((i) => `[${i}]`).join(""),
      isNumber ? `: ${Format.float(Number(value.data[0]))}` : null);
  };
  const where = ({ pointer, offset, body }) => {
    const [name, ...rest] = Json.keys(pointer || "");
    if (name !== undefined) blame(name);
    if (!body) return null;
    const { text } = body;
    if (text === undefined) return name !== undefined ? inFile(body, name, rest) : null;
    const place = offset !== undefined ? Json.at(text, offset)
      : pointer !== undefined ? Json.find(text, pointer) : null;
    return place && inText(text, ...place);
  };

  const again = () => {
    State.set({ problem: null });
    Ask.send();
  };

  const show = () => {
    const problem = State.problem;
    forget();
    id("answer-side").classList.toggle("before", Boolean(problem && problem.body));
    if (!problem) return fill(box);
    const { title, detail, status, limit, wait } = problem;
    fill(box, el("div.card", el("h3", title),
      el("p", { id: "problem-says" }, detail), where(problem),
      limit && line("The limit is the setting ", el("code", limit), "."),
      ADVICE[status] && line(ADVICE[status]),
      wait && line(`Try again in about ${wait} s.`),
      status === 401 ? button("Enter API key", Key.ask)
        : [0, 408, 429].includes(status) || status >= 500 ? button("Try again", again) : null));
  };

  State.on(["problem"], show);
  State.on(["body"], () => {
    const { body } = State.problem || {}, { text } = State.body || {};
    if (text === undefined || !body || text !== body.text) forget();
  });
  Key.on(() => {
  const { status } = State.problem || {};
    if (status === 401 && Key.has()) again();
  });
})();
