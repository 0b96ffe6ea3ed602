// ask: sends the request in State.body to the chosen model and stores the answer in the state.
//
// Ask.send() -> a promise that ends when the state has an answer or a problem. A request under way is
//   stopped first.
// Ask.start() -> the same for a user who waits: a narrow page scrolls to the answer or the problem.
// Ask.change(changes): the same for the answered request with changed fields.
// Ask.stop(). Ask.sent(body): the body as it is sent: without gradients, which only the measures of
//   heads use. Ask.what(): the last part of the request's path: "attention", or "encode" or "score" of
//   a whole model. Ask.accept(size): the Accept header for a request of that size. Ask.ready(): is
//   there a request to send? Ask.isOther(): is the response that of a model that is not the chosen one?
//
// An answer of more than Ask.limit bytes is not read, but can be saved as a file: it has no items,
// tooLarge is true, and raw is null for every type.
// needs: dom state models net answer request whole
const Ask = (() => {
  // Small responses are requested as text, which is readable, large ones in binary form. A ragged
  // response has no binary form and is always text.
  const READABLE = 20000;
  const accept = (size) =>
    size > READABLE ? "application/x-safetensors, application/json;q=0.5" : "application/json";
  const what = () => {
    const model = Models.current();
    return Models.isWhole(model) ? Whole.path(model, Request.fields(State.body) || {})
      : "attention";
  };
  const isBlank = (text) => typeof text === "string" && !text.trim();
  // Are all texts of the request empty?
  const lacksText = () => {
    const texts = [(Request.fields(State.body) || {}).text].flat();
    return texts.length > 0 && texts.every(isBlank);
  };
  const ready = () => {
    const body = State.body;
    return Boolean(State.model && body && !isBlank(body.text) && !lacksText());
  };

  const sent = (body) => {
    const { gradients } = Request.fields(body) || {};
    return (gradients && Request.change(body, { gradients: undefined })) || body;
  };

  const take = ({ reply, answer: made }, asked) => {
    if (!reply.ok) return { problem: { ...reply.problem, body: asked.body } };
    try {
      const answer = made || (reply.buffer.byteLength > self.limit
        ? { ...reply, model: asked.model, batched: true, average: false, items: [], raw: null,
          tooLarge: true, bytes: reply.buffer.byteLength }
        : Answer.read(reply, Request.fields(asked.body) || {}));
      const view = State.view, last = Math.max(0, answer.items.length - 1);
      return { answer, asked, problem: null,
        view: { ...view, item: Math.min(view.item, last), part: answer.part || null, row: -1,
          col: -1, masked: -1 },
        over: { row: -1, col: -1 }, off: [], losses: null };
    } catch (error) {
      return { problem: Net.unreadable(error).problem };
    }
  };

  // Sends the request of a single attention. Without gradients, the body as sent is not the body as
  // shown, and an offset into the former is dropped.
  const ask = async (body, model, signal) => {
    const bare = sent(body);
    const reply = await Net.ask("POST", Net.path("attention", model),
      { ...Request.wire(bare), accept: accept(Request.size(body)), signal });
    if (bare !== body && reply.problem) delete reply.problem.offset;
    return { reply };
  };

  let under = null, isAwaited = false; // isAwaited: a user waits
  const stop = () => {
    if (under) under.abort();
    under = null;
    State.set({ asking: false });
  };
  const send = async () => {
    if (!ready()) return;
    stop();
    const { body, model, labels } = State;
    const mine = new AbortController();
    under = mine;
    State.set({ asking: true });
    const one = Models.find(model), isWhole = Models.isWhole(one);
    const found = await (isWhole ? Whole.ask(body, one, mine.signal) : ask(body, model, mine.signal))
      .catch((error) => ({ reply: Net.unreadable(error) }));
    if (under !== mine) return;
    under = null;
    State.set({ asking: false, ...take(found, { body, model, labels }) });
    const scrolls = isAwaited;
    isAwaited = false;
    await null; // the listeners of the state run first: they move what is on the page
    // The link "See the response" is visible on a narrow page, where the answer is below the request.
    if (scrolls && id("see").offsetParent) side.scrollIntoView();
  };

  const button = id("send"), halt = id("stop");
  const hint = id("send-hint"), keys = matchMedia("(hover: none)").matches ? "" : hint.textContent;
  const side = id("answer-side"), other = id("other");
  const differs = (name) => Boolean(State.asked) && State.asked[name] !== State[name];
  const isOld = () => differs("body") || differs("model");
  // The button does nothing while a request is under way; it is not disabled, and keeps the focus.
  const show = () => {
    const asking = State.asking;
    halt.hidden = !asking;
    button.disabled = !ready();
    button.setAttribute("aria-disabled", asking);
    // The response of another model is not shown under the name of this one.
    other.hidden = !differs("model") || !State.model;
    side.classList.toggle("other", !other.hidden);
    other.textContent = asking ? "Running …" : `Run a request to see ${State.model}.`;
    hint.textContent = lacksText() ? "Type some text." : isOld() ? "The response belongs to an earlier request." : keys;
  };
  const start = async () => {
    isAwaited = true;
    await send();
  };
  const change = (changes) => {
    const body = Request.change(State.asked.body, changes);
    if (!body) return;
    State.set({ body });
    start();
  };
  id("model").addEventListener("change", () => (isAwaited = true));
  const unlessAsking = () => State.asking || start();
  button.addEventListener("click", unlessAsking);
  halt.addEventListener("click", stop);
  document.addEventListener("keydown", (event) => {
    const run = [...document.querySelectorAll("main .primary")].find((one) => one.offsetParent);
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !run || State.place === "learn") return;
    event.preventDefault();
    // A field that is being typed into commits its text when it loses the focus.
    const at = document.activeElement;
    at.blur();
    at.focus();
    run.click();
  });
  State.on(["asked", "asking", "body", "model"], show);
  show();
  const self = { send, start, change, sent, stop, what, accept, ready,
    isOther: () => differs("model"), limit: 128 * 2 ** 20 };
  return self;
})();
