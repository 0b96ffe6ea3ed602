// random: input of a chosen shape, made of numbers that are drawn with a seed.
//
// Random.draw(seed) -> a function of numbers from 0 to 1, the same for the same seed.
// Random.body(model, { b, q, k, seed, lengths }) -> a body; k: null is self-attention. Small ones
// are text, to be read; large ones are in binary form. Random.numbers(model, shape): how many.
const Random = (() => {
  const READABLE = 20000, MOST = 64e6;

  const draw = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  // The arrays that a request of that shape has: [name, rows, width].
  const arrays = (m, { q, k }) => {
    const own = k !== null || m.key_size !== m.query_size, rows = k ?? q;
    return [["queries", q, m.query_size], own && ["keys", rows, m.key_size],
      m.value_size !== m.key_size && ["values", rows, m.value_size]].filter(Boolean);
  };
  const numbers = (model, shape) =>
    arrays(model, shape).reduce((sum, [, rows, width]) => sum + shape.b * rows * width, 0);

  const lengthsOf = ({ b, q, k, lengths }, next) =>
    lengths ? Array.from({ length: b }, () => Math.ceil(next() * (k ?? q))) : undefined;
  const text = (model, shape, next) => {
    const list = (n, part) => Array.from({ length: n }, part);
    const number = () => Math.round(400 * next() - 200) / 100;
    const fields = arrays(model, shape).map(([name, rows, width]) =>
      [name, list(shape.b, () => list(rows, () => list(width, number)))]);
    return Request.change({ text: "{}" }, { ...Object.fromEntries(fields),
      valid_lens: lengthsOf(shape, next), return_attention: true });
  };
  const file = (model, shape, next) => {
    const tensors = {};
    for (const [name, rows, width] of arrays(model, shape)) {
      const data = new Float32Array(shape.b * rows * width);
      for (let i = 0; i < data.length; i++) data[i] = 4 * next() - 2;
      const bytes = new Uint8Array(data.buffer);
      tensors[name] = { dtype: "F32", shape: [shape.b, rows, width], bytes };
    }
    const body = { name: "random input", tensors, fields: { return_attention: true } };
    return Request.change(body, { valid_lens: lengthsOf(shape, next) });
  };
  const body = (model, shape) =>
    (numbers(model, shape) < READABLE ? text : file)(model, shape, draw(shape.seed));

  const form = Dom.id("random"), note = Dom.id("random-note");
  const read = () => {
    const of = (name) => Number(form.elements[name].value);
    return { b: of("b"), q: of("q"), seed: of("seed"), lengths: form.elements.lengths.checked,
      k: form.elements.k.value === "" ? null : of("k") };
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const model = Models.current(), shape = read();
    if (!model) return;
    const n = numbers(model, shape);
    note.textContent = n > MOST
      ? `That is ${Format.count(n)} numbers; the page makes at most ${Format.count(MOST)}.` : "";
    if (n > MOST) return;
    State.set({ body: body(model, shape) });
    Ask.send();
  });
  return { draw, body, numbers };
})();
