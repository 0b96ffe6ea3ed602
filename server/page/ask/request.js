// request: the body that will be sent: JSON text as it was written, or a safetensors file with its
// fields.
//
// A body is { text } or { name, tensors, fields } and is never changed: Request.change(body,
// { causal: true, mask: undefined }) makes another one (undefined removes a field). If the text is not
// a JSON object, or is nested too deep, fields and change return null. A body from a file has the
// file's name; a large one may be text as well.
//
// Request.asText(body): a file's body as text; null if it has numbers that JSON cannot represent.
// Request.fields(body): all fields by name. Arrays are lists, base64 objects or tensors with bytes,
//   which tensor.js reads.
// Request.wire(body): { type, data } for HTTP. Request.size(body): bytes, roughly.
// Request.batched(fields): does it have the batch dimension? Request.layout(fields): the fields as
//   JSON text, each row of numbers on a line of its own.
// needs: list tensor
const Request = (() => {
  const parsed = new WeakMap();

  const parse = (text) => {
    try {
      const value = JSON.parse(text);
      return value && typeof value === "object" && !Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  };
  const fields = (body) => {
    if (!body) return null;
    if (!parsed.has(body))
      parsed.set(body, "text" in body ? parse(body.text) : { ...body.fields, ...body.tensors });
    return parsed.get(body);
  };

  const without = (object) =>
    Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
  // Arrays become tensors of these types in a file. All else becomes a field, also an array that does
  // not fit its type, which the server will reject.
  const TYPES = { queries: "F32", keys: "F32", values: "F32", bias: "F32", head_mask: "F32",
    gradients: "F32", valid_lens: "I32", segments: "I32", mask: "U8" };
  const ARRAYS = { F32: Float32Array, I32: Int32Array, U8: Uint8Array };
  const bytesOf = (value, dtype) => {
    if (value && ArrayBuffer.isView(value.bytes)) return value;
    const tensor = typeof value === "number" ? { shape: [], data: [value] } : Tensor.of(value);
    if (!tensor) return null;
    const data = ARRAYS[dtype].from(tensor.data);
    if (dtype !== "F32" && data.some((x, i) => x !== tensor.data[i])) return null;
    return { dtype, shape: tensor.shape, bytes: new Uint8Array(data.buffer) };
  };
  const changeFile = (body, changes) => {
    const tensors = { ...body.tensors }, rest = { ...body.fields };
    for (const [name, value] of Object.entries(changes)) {
      const tensor = TYPES[name] ? bytesOf(value, TYPES[name]) : null;
      delete tensors[name];
      delete rest[name];
      if (tensor) tensors[name] = tensor;
      else if (value !== undefined) rest[name] = value;
    }
    return { name: body.name, tensors, fields: rest };
  };
  const change = (body, changes) => {
    if (!("text" in body)) return changeFile(body, changes);
    const now = fields(body);
    try {
      return now && { text: layout(without({ ...now, ...changes })) };
    } catch {
      return null;
    }
  };

  // Lists of lists are broken into lines, rows of numbers are not.
  const lay = (value, indent) => {
    if (!Array.isArray(value)) return JSON.stringify(value);
    if (!value.some((part) => Array.isArray(part)))
      return `[${value.map((part) => JSON.stringify(part)).join(", ")}]`;
    const inner = indent + "  ";
    return `[\n${value.map((part) => inner + lay(part, inner)).join(",\n")}\n${indent}]`;
  };
  const layout = (object) => {
    const lines = Object.entries(object)
      .map(([name, value]) => `  ${JSON.stringify(name)}: ${lay(value, "  ")}`);
    return `{\n${lines.join(",\n")}\n}`;
  };

  const asText = (body) => {
    const lists = {};
    for (const [name, value] of Object.entries(body.tensors)) {
      const tensor = Tensor.of(value);
      if (!tensor || !tensor.data.every((x) => Number.isFinite(x))) return null;
      lists[name] = Tensor.list(tensor);
    }
    return { text: layout({ ...lists, ...body.fields }) };
  };

  const wire = (body) =>
    "text" in body
      ? { type: "application/json", data: body.text }
      : { type: "application/x-safetensors", data: Tensor.write(body.tensors, body.fields) };
  const size = (body) =>
    "text" in body
      ? body.text.length
      : List.sum(Object.values(body.tensors), (t) => t.bytes.length);

  const batched = (object) => {
    const queries = object.queries;
    if (!Array.isArray(queries)) return !queries || !queries.shape || queries.shape.length !== 2;
    const first = queries[0];
    if (!Array.isArray(first)) return true;
    return first.length === 0 || typeof first[0] !== "number";
  };
  return { fields, change, asText, layout, wire, size, batched };
})();
