// terms: what the words of the page mean, each in a tip that a click or Enter opens.
//
// Terms.of(word, shown = word) -> a node that shows the word, and its tip if it has one.
const Terms = (() => {
  const { el } = Dom;
  const MEANING = {
    score: "How a query and a key are compared: by their product, scaled or not, or by a small "
      + "network (additive).",
    weighting: "How scores become weights: softmax weights of a query add up to 1; sigmoid weights "
      + "stand each for itself.",
    projection: "Which of queries, keys, values and outputs are multiplied by a matrix of the model.",
    hidden: "The width in which queries and keys are compared.",
    heads: "Attentions side by side, each with matrices of its own.",
    kv_heads: "Heads of keys and values: some heads of queries share them.",
    bias: "Whether the projections add a constant.",
    causal: "Whether a query sees only the keys up to its own place.",
    parameters: "How many numbers the model has learned.",
    sha256: "The first digits of a sum over all weights: it differs where the weights do.",
    entropy: "How evenly a query's weights are spread, in nats: 0 is one key alone; the share is "
      + "that of even weights on all keys that it sees.",
    "keys seen": "How many keys lengths, masks and order leave to the query.",
    "heaviest key": "The key with the greatest weight of the query.",
    nats: "Units of information: one nat is 1.44 bits.",
    divergence: "How much two heads differ: the Jensen-Shannon divergence of their weights, in "
      + "nats; at most 0.69.",
    "output loses": "How far the output moves without these heads: the length of the change, as a "
      + "part of the output's length.",
    "predicted loss": "The same, told by the measure delta from the answer with all heads; of one "
      + "head alone.",
    "greatest change": "The greatest change of a single number of the output.",
    hiddenKey: "A hatched cell: the query may not see that key.",
  };
  const tip = el("div", { id: "tip", popover: "auto", class: "card small" });
  document.body.append(tip);

  const open = ({ currentTarget: button }, text) => {
    Dom.fill(tip, text);
    tip.showPopover();
    const { left, bottom, top } = button.getBoundingClientRect(), high = tip.offsetHeight;
    const below = bottom + high + 8 < innerHeight ? bottom + 4 : top - high - 4;
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(8, below)}px`;
  };
  const of = (word, shown = word) => {
    const text = MEANING[word];
    return text ? el("button", { type: "button", class: "term", "aria-describedby": "tip",
      onclick: (event) => open(event, text) }, shown) : shown;
  };
  return { of };
})();
