// models: which model is asked, and what it is.
//
// Models.load() -> a promise: reads the list, chooses a model. Models.current() -> its description,
// or null. Models.find(name) likewise, of any.
const Models = (() => {
  const find = (name) => (State.get("models") || []).find((m) => m.name === name) || null;
  const current = () => find(State.get("model"));
  const load = async () => {
    const reply = await Net.ask("GET", "v1/models");
    if (!reply.ok) return State.set({ problem: reply.problem });
    const { models } = JSON.parse(reply.text());
    const kept = models.some((m) => m.name === State.get("model"));
    State.set({ models, model: kept ? State.get("model") : models[0] ? models[0].name : null });
  };
  return { load, find, current };
})();
