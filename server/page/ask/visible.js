// visible: the keys that a query may attend to, by the fields of the request. The response has a zero
// weight for a masked key and for a tiny weight alike; this tells them apart.
//
// Visible.of(fields, model, item, q, k, head) -> Uint8Array of q * k. 1: unmasked; 2: masked, but with
// the same weight as all others, because all keys of the query are masked and empty_rows is uniform.
// `head` matters only if each head has a bias of its own. A field that cannot be read masks nothing.
// needs: tensor request
const Visible = (() => {
  // These fields always have one value for each item; a mask or a bias of rank two is for all items.
  const PER_ITEM = ["valid_lens", "causal_offset"];
  // The field of one item, as { shape, data }; `rank` is its rank without the batch.
  const ofItem = (fields, name, item, rank) => {
    const value = fields[name];
    if (value === undefined || value === null) return null;
    if (typeof value === "number") return { shape: [], data: [value] };
    const whole = Tensor.of(value), batched = Request.batched(fields);
    if (whole && whole.shape.length <= rank && !(batched && PER_ITEM.includes(name))) return whole;
    const part = batched ? Tensor.part(value, item) : value;
    return typeof part === "number" ? { shape: [], data: [part] } : Tensor.of(part);
  };

  const lengths = (fields, item, seen, q, k) => {
    const lens = ofItem(fields, "valid_lens", item, 1);
    if (!lens) return;
    for (let i = 0; i < q; i++) {
      const n = lens.shape.length ? lens.data[i] : lens.data[0];
      seen.fill(0, i * k + Math.max(0, n), (i + 1) * k);
    }
  };
  const offsetOf = (fields, item, q, k) => {
    if (fields.causal_offset === "end") return k - q;
    const offset = ofItem(fields, "causal_offset", item, 0);
    return offset ? Number(offset.data[0]) : 0;
  };
  const places = (fields, model, item, seen, q, k) => {
    const causal = fields.causal ?? (model && model.causal);
    const [left, right] = Array.isArray(fields.window) ? fields.window : [-1, -1];
    const offset = offsetOf(fields, item, q, k);
    for (let i = 0; i < q; i++) {
      const at = i + offset;
      const first = left >= 0 ? at - left : 0;
      const last = Math.min(causal ? at : k - 1, right >= 0 ? at + right : k - 1);
      for (let j = 0; j < k; j++) if (j < first || j > last) seen[i * k + j] = 0;
    }
  };
  const cells = (tensor, seen, from, hides) => {
    if (!tensor || tensor.data.length < from + seen.length) return;
    for (let i = 0; i < seen.length; i++) if (hides(tensor.data[from + i])) seen[i] = 0;
  };

  const of = (fields, model, item, q, k, head) => {
    const seen = new Uint8Array(q * k).fill(1);
    if (!fields) return seen;
    lengths(fields, item, seen, q, k);
    places(fields, model, item, seen, q, k);
    cells(ofItem(fields, "mask", item, 2), seen, 0, (x) => x === 0);
    const bias = ofItem(fields, "bias", item, 2), own = bias && bias.shape.length === 3;
    if (!own || typeof head === "number")
      cells(bias, seen, own ? head * q * k : 0, (x) => x === -Infinity);
    if (fields.empty_rows === "uniform")
      for (let i = 0; i < q; i++)
        if (!seen.subarray(i * k, (i + 1) * k).includes(1)) seen.fill(2, i * k, (i + 1) * k);
    return seen;
  };
  return { of };
})();
