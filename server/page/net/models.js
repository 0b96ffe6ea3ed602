// models: the list of models, and the chosen one.
//
// Models.load() -> a promise: reads the list and chooses a model: the first one if the chosen one is
// not in it. Models.current() -> the description of the chosen one, or null. Models.find(name) -> that
// of any model. Models.all(): the list. Models.hasText(model): does it take text? Models.isWhole(model): is it
// a model with layers rather than a single attention? Models.isSmall(model): may a request be sent without
// being asked for?
// needs: dom format own place state terms net
const Models = (() => {
  const find = (name) => (State.models || []).find((m) => m.name === name) || null;
  const current = () => find(State.model);

  const SIZES = ["query_size", "key_size", "value_size", "output_size", "heads", "parameters"];
  const KINDS = ["encoder", "decoder", "seq2seq"];
  const SMALL = 50e6;
  const isSmall = (m) => Boolean(m) && m.parameters < SMALL;
  const isWhole = (m) => Boolean(m) && KINDS.includes(m.kind);
  const hasText = (m) => isWhole(m) && Boolean(m.tokenizer);
  const isModel = (m) => typeof m.name === "string"
    && (isWhole(m) ? Array.isArray(m.attentions)
      : SIZES.every((name) => Number.isSafeInteger(m[name]) && m[name] >= 0));
  // A model without layers has no attention to show.
  const shows = (m) => !isWhole(m) || m.attentions.length > 0;
  const listOf = (reply) => {
    try {
      const { models } = reply.json();
      return models.every(isModel) ? models.filter(shows) : null;
    } catch {
      return null;
    }
  };
  const { problem: strange } = Net.failed("The response did not come from an attend server");
  const load = async () => {
    const reply = await Net.ask("GET", "v1/models");
    if (!reply.ok) return State.set({ problem: reply.problem });
    const models = listOf(reply);
    if (!models) return State.set({ problem: strange });
    const before = State.model || (Own.kept && Own.kept.model);
    const kept = models.some((m) => m.name === before);
    const model = kept ? before : models[0] ? models[0].name : null;
    const same = JSON.stringify(models) === JSON.stringify(State.models);
    if (State.model && !kept && model) Place.say(`The server no longer has the model “${before}”. Now chosen: ${model}.`);
    if (!same || model !== State.model) State.set({ models, model });
  };

  const choice = id("model");
  const SPELT = new Map([[true, "yes"], [false, "no"]]);
  const said = (name, value) => (/^(sha256|digest)$/.test(name)
    ? String(value).replace(/.*:/, "").slice(0, 8) : SPELT.get(value) ?? value);
  const summary = (m) => (isWhole(m)
    ? [m.kind, Format.many(m.layers, "layer"), Format.many(m.heads, "head"), `width ${m.width}`,
      m.tokenizer ? "text" : "ids"]
    : [Format.many(m.heads, "head"), `${m.query_size} → ${m.output_size}`, m.score])
    .concat(`${Format.count(m.parameters)} parameters`, m.source).join(" · ");
  const show = () => {
    const m = current();
    const names = (State.models || []).filter((one) => hasText(one) || State.place !== "learn")
      .map((one) => one.name);
    Dom.options(choice, names.map((name) => [name]), m ? m.name : "");
    choice.disabled = !m;
  };
  const tell = () => {
    const m = current();
    id("model-summary").textContent = m ? summary(m)
      : State.models ? "The server has no model."
        : State.problem ? "The models could not be loaded." : "Loading the models …";
    const facts = Object.entries(m || {}).filter(([, value]) => typeof value !== "object");
    fill(id("model-facts"), facts.map(([name, value]) => el("div", { title: String(value) },
      el("dt", Terms.of(name)), el("dd", said(name, value)))));
  };
  choice.addEventListener("change", () => State.set({ model: choice.value }));
  State.on(["models", "model", "place"], show);
  State.on(["models", "model", "problem"], tell, id("ask-side"));
  // The list is loaded again after a rejected request, because a reload of the server may have changed
  // it. A list that could not be loaded is loaded when the problem is gone: after a key or a success.
  State.on(["problem"], () => {
    const problem = State.problem;
    if (problem ? problem.body && problem.status < 500 : !State.models) load();
  });
  Net.onReturn(load);
  show();
  tell();
  load(); // the response comes when all scripts have run
  return { load, find, current, isWhole, isSmall, hasText, all: () => State.models || [] };
})();
