// answer: turns a response, JSON or safetensors, ragged or not, into matrices.
//
// Answer.read(reply, fields) -> {
//   model, batched, average,
//   items: [{ outputs, weights, segments, pointers }],
//     outputs: a matrix { rows, cols, data: Float32Array }
//     weights: a matrix for each head, or a single one if averaged; null if not requested
//     segments: weights of segments, likewise; pointers: a list for each head, or null
//   timing: [{ name, ms }] of Server-Timing; took: ms from sending to the last byte
//   status, type, id: of the reply; bytes: of the body; raw: its text, or null if it is binary;
//   buffer
// }
// Answer.faces(answer, item) -> [{ head, label, matrix }]: the heads of an item, and their mean if
//   there are several. Answer.face(answer, view): the chosen one, or null.
// Answer.entropy(matrix, row): in nats. Answer.heaviest(matrix, row): the key, or -1.
// needs: tensor request
const Answer = (() => {
  // The constructor copies all at once; Float32Array.from copies number by number.
  const floats = (data) => (data instanceof Float32Array ? data : new Float32Array(data));
  // A matrix for each head of an item with three dimensions. A matrix without rows has no number of
  // columns in JSON.
  const heads = (value) => {
    if (Array.isArray(value)) return value.map((head) => rowsOf(head));
    const tensor = Tensor.of(value);
    if (!tensor) return null;
    const [h, rows, cols] = tensor.shape, data = floats(tensor.data);
    return Array.from({ length: h }, (_, i) =>
      ({ rows, cols, data: data.subarray(i * rows * cols, (i + 1) * rows * cols) }));
  };
  const rowsOf = (value) => {
    const tensor = Tensor.of(value);
    if (!tensor || tensor.shape.length !== 2) return { rows: 0, cols: 0, data: floats([]) };
    return { rows: tensor.shape[0], cols: tensor.shape[1], data: floats(tensor.data) };
  };

  const itemOf = (members, average, part) => {
    const get = (name) => (members[name] === undefined ? null : part(members[name]));
    const weights = get("attention_weights"), segments = get("segment_weights");
    const pointers = get("pointers");
    return {
      outputs: members.outputs === undefined ? null : rowsOf(get("outputs")),
      weights: weights === null ? null : average ? [rowsOf(weights)] : heads(weights),
      segments: segments === null ? null : heads(segments),
      pointers: pointers === null || Array.isArray(pointers) ? pointers
        : Array.from({ length: pointers.shape[0] }, (_, i) => [...Tensor.part(pointers, i).data]),
    };
  };

  const members = (reply) => {
    if (reply.type === "application/json") return reply.json();
    const { tensors, fields } = Tensor.read(reply.buffer);
    for (const name of Object.keys(tensors)) tensors[name] = Tensor.of(tensors[name]);
    return { ...fields, ...tensors };
  };

  const read = (reply, fields) => {
    const all = members(reply);
    const average = fields.return_attention === "average", batched = Request.batched(fields);
    const n = !batched ? 1 : Array.isArray(all.outputs) ? all.outputs.length : all.outputs.shape[0];
    const items = Array.from({ length: n }, (_, i) =>
      itemOf(all, average, batched ? (value) => Tensor.part(value, i) : (value) => value));
    const raw = reply.type === "application/json" ? reply.text() : null;
    const { status, type, id, timing, took } = reply;
    return { model: all.model, batched, average, items, timing, took, status, type, id,
      bytes: reply.buffer.byteLength, raw, buffer: reply.buffer };
  };

  const means = new WeakMap();
  const mean = (weights) => {
    if (!means.has(weights)) {
      const { rows, cols } = weights[0], sums = new Float64Array(rows * cols);
      for (const { data } of weights) for (let i = 0; i < sums.length; i++) sums[i] += data[i];
      for (let i = 0; i < sums.length; i++) sums[i] /= weights.length;
      means.set(weights, { rows, cols, data: new Float32Array(sums) });
    }
    return means.get(weights);
  };
  const faces = (answer, item) => {
    const weights = answer && answer.items[item] && answer.items[item].weights;
    if (!weights || weights.length === 0) return [];
    if (answer.average) return [{ head: "mean", label: "mean of heads", matrix: weights[0] }];
    const list = weights.map((one, head) => ({ head, label: `head ${head}`, matrix: one }));
    if (list.length > 1)
      list.push({ head: "mean", label: "mean of heads", matrix: mean(weights) });
    return list;
  };
  const face = (answer, view) => {
    const list = faces(answer, view.item);
    return list.find((one) => one.head === view.head) || list[0] || null;
  };

  const row = (matrix, i) => matrix.data.subarray(i * matrix.cols, (i + 1) * matrix.cols);
  const entropy = (matrix, i) =>
    row(matrix, i).reduce((sum, x) => (x > 0 ? sum - x * Math.log(x) : sum), 0);
  const heaviest = (matrix, i) => {
    const cells = row(matrix, i);
    let best = -1;
    for (let j = 0; j < cells.length; j++)
      if (cells[j] > 0 && (best < 0 || cells[j] > cells[best])) best = j;
    return best;
  };
  return { read, faces, face, entropy, heaviest, row };
})();
