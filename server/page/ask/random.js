// random: a request of chosen shapes, with numbers sampled from a seed.
//
// Random.draw(seed) -> a generator of numbers from 0 to 1, the same for the same seed.
// needs: dom format list own state tensor models ask labels request
const Random = (() => {
  const READABLE = 20000, MOST = 64e6;

  const draw = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  // The shapes of the request's arrays. Without k it is self-attention.
  const shapes = (m, { b, q, k }) => {
    const keys = k !== null || m.key_size !== m.query_size, rows = k ?? q;
    return { queries: [b, q, m.query_size], ...(keys && { keys: [b, rows, m.key_size] }),
      ...(m.value_size !== m.key_size && { values: [b, rows, m.value_size] }) };
  };
  const filled = (shape, next) => {
    const data = new Float32Array(Tensor.size(shape));
    for (let i = 0; i < data.length; i++) data[i] = Math.round(400 * next() - 200) / 100;
    return { dtype: "F32", shape, bytes: new Uint8Array(data.buffer) };
  };
  const make = (all, { b, q, k, seed, lengths }) => {
    const next = draw(seed), tensors = {};
    for (const [name, shape] of Object.entries(all)) tensors[name] = filled(shape, next);
    const lens = Array.from({ length: b }, () => Math.ceil(next() * (k ?? q)));
    const body = { name: "random input", tensors, fields: { return_attention: true } };
    return Request.change(body, { valid_lens: lengths ? lens : undefined });
  };

  const form = id("random"), note = id("random-note");

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const model = Models.current(), of = (name) => Number(form.elements[name].value);
    if (!model) return;
    const shape = { b: of("b"), q: of("q"), seed: of("seed"), lengths: form.elements.lengths.checked,
      k: form.elements.k.value === "" ? null : of("k") };
    const all = shapes(model, shape);
    const n = List.sum(Object.values(all), Tensor.size);
    note.textContent = n > MOST
      ? `That is ${Format.count(n)} numbers; the page makes at most ${Format.count(MOST)}.` : "";
    if (n > MOST) return;
    const body = make(all, shape);
    State.set({ body: Own.made(n < READABLE ? Request.asText(body) : body), labels: Labels.NONE });
    Ask.start();
  });
  // The keys that run a request run this one here.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    form.requestSubmit();
  });
  return { draw };
})();
