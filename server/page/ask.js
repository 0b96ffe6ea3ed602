// ask: sends what stands in State.body to the chosen model and puts the answer into the state.
//
// Ask.send() -> a promise, done when state has answer or problem. Gradients stay here: they are for
// the measures of heads. Ask.path(what, model): "v1/models/NAME/attention". Ask.accept(size): the
// Accept of a request of that size.
const Ask = (() => {
  // Small answers come as text, to be read as they are; large ones in binary form. A ragged answer
  // has no binary form and comes as text in any case.
  const READABLE = 20000;
  const accept = (size) =>
    size > READABLE ? "application/x-safetensors, application/json;q=0.5" : "application/json";
  const path = (what, model) => `v1/models/${encodeURIComponent(model)}/${what}`;

  const take = (reply, asked) => {
    if (!reply.ok) return { problem: reply.problem };
    try {
      const fields = Request.fields(asked.body) || {};
      const answer = Answer.read(reply, fields);
      const view = State.get("view");
      return { answer, asked, problem: null,
        view: { ...view, item: Math.max(0, Math.min(view.item, answer.items.length - 1)), row: -1, col: -1 } };
    } catch (error) {
      return { problem: { title: "The answer cannot be read", detail: error.message, status: 0 } };
    }
  };
  const send = async () => {
    const body = State.get("body"), model = State.get("model");
    if (!body || !model || State.get("asking")) return;
    State.set({ asking: true });
    const { gradients } = Request.fields(body) || {};
    const sent = gradients ? Request.change(body, { gradients: undefined }) : body;
    const reply = await Net.ask("POST", path("attention", model),
      { ...Request.wire(sent), accept: accept(Request.size(body)) });
    State.set({ asking: false, ...take(reply, { body, model }) });
  };
  return { send, path, accept };
})();
