// start: starts the page: decides which place it opens with, and fits the parts to
// the model.
// needs: dom place state models ask examples
(() => {
  const kindOf = (model) => (Models.isWhole(model) ? model.kind : "layer");
  const KINDS = { layer: "a single attention layer", encoder: "an encoder", decoder: "a decoder",
    seq2seq: "an encoder-decoder model" };
  const DOES = { learn: "takes no text", generate: "does not generate", ablate: "has no heads to measure" };
  const DO = { learn: "takes text", generate: "generates", ablate: "has heads to measure" };
  const fitting = (place) => Models.all().filter((one) => (place === "learn" ? Models.hasText(one)
    : Place.tabs(place, kindOf(one)).length > 0));

  // A place that has nothing for the chosen model offers the models that it has something for.
  const offer = () => {
    const place = State.place, model = Models.current(), good = fitting(place);
    const lacks = Boolean(model && place) && !good.includes(model);
    id("elsewhere").hidden = !lacks;
    if (!lacks) return;
    fill(id("elsewhere"), el("span", `${model.name} is ${KINDS[kindOf(model)]} and ${DOES[place]}. `,
      good.length ? "Models that do:" : `No model of this server ${DO[place]}.`),
    good.map(({ name }) => button(name, () => State.set({ model: name }))));
  };
  // The request, the only input of a layer, is unfolded where there are two columns.
  let last = null;
  const fit = () => {
    const kind = kindOf(Models.current()), answer = State.answer;
    if (kind !== last) id("drawer").open = kind === "layer" && innerWidth > 900;
    last = kind;
    Place.fit(kind, answer && !Ask.isOther() ? answer.kind || "layer" : kind, ...Models.current()?.tasks || []);
    offer();
  };
  // The page opens with Learn if a model takes text. Learn has no models but these.
  const open = () => {
    if (!State.models && !State.problem) return;
    const good = fitting("learn");
    if (!State.place) Place.go(good.length ? "learn" : "explore");
    if (State.place === "learn" && good.length && !good.includes(Models.current()))
      State.set({ model: good[0].name });
  };
  let isBegun = false;
  const begin = () => {
    if (!Models.current()) return;
    if (!isBegun) Place.begin();
    isBegun = true;
    if (State.place !== "learn") Examples.begin();
  };
  State.on(["models", "problem", "place"], open);
  State.on(["models", "model", "answer", "place"], fit);
  State.on(["models", "place"], begin);
  fit();
  State.on(["asking"], () => id("answer-side").setAttribute("aria-busy", State.asking));

})();
