// part: names of the attentions and heads of a whole model for readers.
//
// Part.name("encoder.2.self", kind) -> "Layer 2"; in a model that has an encoder and a decoder "Encoder layer 2"
// or "Cross-attention layer 2". kind: of the model, by default that of the answer. Part.head(part, head) ->
// "Layer 2 · head 0". Part.brief(part, head) -> "L2H0"; there E, D or C are in place of L.
// needs: state
const Part = (() => {
  const KINDS = { "encoder.self": "Encoder", "decoder.self": "Decoder", "decoder.cross": "Cross-attention" };
  const parts = (part, of = State.answer?.kind) => {
    const [side, layer, kind] = part.split(".");
    return [of === "seq2seq" ? KINDS[`${side}.${kind}`] : "", layer];
  };
  const name = (part, of) => {
    const [kind, layer] = parts(part, of);
    return kind ? `${kind} layer ${layer}` : `Layer ${layer}`;
  };
  const brief = (part, head) => {
    const [kind, layer] = parts(part);
    return `${kind[0] || "L"}${layer}H${head}`;
  };
  return { name, brief, head: (part, head) => `${name(part)} · head ${head}` };
})();
