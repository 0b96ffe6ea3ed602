// terms: definitions of the page's terms, each in a tip that a click or Enter opens.
//
// Terms.of(word, shown = word) -> a node that shows the word, and its tip if it has one.
// needs: dom
const Terms = (() => {
  const MEANING = {
    attention: "Each query takes a weighted mean of the values. The weights tell how well the query "
      + "matches each key.",
    query: "The vector of a position that attends: it is compared with every key.",
    key: "The vector of a position that queries attend to.",
    value: "The vector that a position adds to the output, multiplied by its weight.",
    weight: "How much a query attends to a key, from 0 to 1.",
    softmax: "Turns the scores of a query into weights that add up to 1.",
    head: "One of several attentions side by side, each with its own projections.",
    score: "How a query and a key are compared: by their dot product, scaled or not, or by a small "
      + "network (additive).",
    weighting: "How scores become weights: softmax (those of a query add up to 1) or sigmoid (each by itself).",
    projection: "Which of queries, keys, values and outputs are multiplied by a weight matrix.",
    hidden: "The dimension in which queries and keys are compared.",
    heads: "The number of attention heads.",
    kv_heads: "How many key and value heads the query heads share (grouped-query attention).",
    bias: "Whether the projections add a bias vector.",
    causal: "Whether a query attends only to keys up to its own position.",
    parameters: "How many trained numbers the model has.",
    sha256: "The start of a checksum of all weights.",
    entropy: "How evenly a query spreads its weights, in nats: 0 is one key alone; 100 % is equal "
      + "weights on all unmasked keys.",
    "unmasked keys": "How many keys the query may attend to.",
    "top key": "The key with the largest weight of the query.",
    "output change": "The norm of the change of the output without these heads, relative to the "
      + "output's norm.",
    "predicted change": "From the measure delta; for one head only.",
    "largest change": "The largest change of a single number of the output.",
    masked: "A hatched cell: the query cannot attend to this key.",
  };
  const tip = el("div.card.small", { id: "tip", popover: "auto" });
  document.body.append(tip);

  const open = ({ currentTarget: button }, text) => {
    fill(tip, text);
    tip.showPopover();
    const { left, bottom, top } = button.getBoundingClientRect(), high = tip.offsetHeight;
    const below = bottom + high + 8 < innerHeight ? bottom + 4 : top - high - 4;
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(8, below)}px`;
  };
  const of = (word, shown = word) => {
    const text = MEANING[word];
    return text ? el("button.term", { "aria-describedby": "tip",
      onclick: (event) => open(event, text) }, shown) : shown;
  };
  return { of };
})();
