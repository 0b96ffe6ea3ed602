// tensor: arrays of numbers in the formats of requests: nested lists, base64, safetensors.
//
// A tensor is { shape, data } with a typed array. Tensor.of(value) makes one of a nested list or a
// base64 object; null if it is neither, or ragged. Tensor.list(tensor) is the reverse: nested
// lists, with numbers as short as float32 allows. Tensor.part(value, i) is item i of any form; of a
// tensor it is a view. Tensor.read(buffer) -> { tensors, fields } reads safetensors: tensors by
// name, { dtype, shape, bytes }, and the metadata, parsed; it throws an Error with the reason.
// Tensor.write(tensors, fields) is the reverse, a Blob. Tensors are cached: a value must not change
// after a call.
// needs: format
const Tensor = (() => {
  const KINDS = { __proto__: null,
    F64: [8, (b) => new Float64Array(b)], F32: [4, (b) => new Float32Array(b)],
    I64: [8, (b) => Float64Array.from(new BigInt64Array(b), Number)],
    I32: [4, (b) => new Int32Array(b)], U8: [1, (b) => new Uint8Array(b)],
    BOOL: [1, (b) => new Uint8Array(b)], F16: [2, (b) => Float32Array.from(new Uint16Array(b), half)],
    BF16: [2, (b) => new Float32Array(Uint32Array.from(new Uint16Array(b), (x) => x << 16).buffer)],
  };
  const half = (x) => {
    const sign = x & 0x8000 ? -1 : 1, exponent = (x >> 10) & 31, rest = x & 1023;
    if (exponent === 31) return rest ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
  };

  const size = (shape) => shape.reduce((product, n) => product * n, 1);

  const fromBytes = ({ dtype, shape, bytes }) =>
    KINDS[dtype] ? { shape, data: KINDS[dtype][1](bytes.slice().buffer) } : null;

  const counts = (list) =>
    Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  const fromCoded = (value) => {
    const bytes = Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0));
    const tensor = fromBytes({ ...value, bytes });
    return tensor && tensor.data.length === size(value.shape) ? tensor : null;
  };

  // The most dimensions of any field; a list may be nested deeper.
  const RANK = 8;
  const fits = (value, shape, depth) =>
    depth === shape.length
      ? typeof value === "number" || typeof value === "boolean"
      : Array.isArray(value) && value.length === shape[depth]
        && value.every((part) => fits(part, shape, depth + 1));
  const fromList = (value) => {
    const shape = [];
    for (let at = value; Array.isArray(at) && shape.length < RANK; at = at[0])
      shape.push(at.length);
    return fits(value, shape, 0) ? { shape, data: new Float64Array(value.flat(RANK)) } : null;
  };

  // A zero in the shape counts as 1 here: the other dimensions must be possible as well.
  const MOST = 2 ** 32;
  const make = (value) => {
    if (Array.isArray(value)) return fromList(value);
    if (!counts(value.shape) || size(value.shape.map((n) => n || 1)) > MOST) return null;
    if (ArrayBuffer.isView(value.data)) return value;
    if (ArrayBuffer.isView(value.bytes)) return fromBytes(value);
    return typeof value.base64 === "string" ? fromCoded(value) : null;
  };
  const made = new WeakMap();
  const of = (value) => {
    if (!value || typeof value !== "object") return null;
    try {
      if (!made.has(value)) made.set(value, make(value));
    } catch {
      made.set(value, null); // the base64 is invalid, or its shape exceeds the memory
    }
    return made.get(value);
  };
  const list = ({ shape, data }, at = 0) => {
    if (shape.length === 0) return Number(Format.float(data[at]));
    const inner = { shape: shape.slice(1), data }, step = size(inner.shape);
    return Array.from({ length: shape[0] }, (_, i) => list(inner, at + i * step));
  };
  const part = (value, i) => {
    if (Array.isArray(value)) return value[i];
    const tensor = of(value);
    if (!tensor || tensor.shape.length === 0) return null;
    const shape = tensor.shape.slice(1), step = size(shape);
    return { shape, data: tensor.data.subarray(i * step, (i + 1) * step) };
  };

  const read = (buffer) => {
    if (buffer.byteLength < 8) throw new Error("it has fewer than 8 bytes");
    const length = Number(new DataView(buffer).getBigUint64(0, true));
    if (length > buffer.byteLength - 8) throw new Error("its header is longer than the file");
    const { __metadata__: metadata = {}, ...rest } = headerOf(new Uint8Array(buffer, 8, length));
    const tensors = { __proto__: null }, fields = { __proto__: null };
    const data = new Uint8Array(buffer, 8 + length);
    for (const [name, entry] of Object.entries(rest)) tensors[name] = entryOf(name, entry, data);
    for (const [name, text] of Object.entries(metadata || {})) fields[name] = word(text);
    return { tensors, fields };
  };
  const headerOf = (bytes) => {
    try {
      const header = JSON.parse(new TextDecoder().decode(bytes));
      if (header && typeof header === "object" && !Array.isArray(header)) return header;
    } catch {
      // the error below is thrown
    }
    throw new Error("its header is not a JSON object");
  };
  const entryOf = (name, entry, data) => {
    const { dtype, shape, data_offsets: place } = entry || {};
    if (!counts(shape) || !counts(place) || place.length !== 2)
      throw new Error(`${name} has no shape or no offsets`);
    const [begin, end] = place;
    if (begin > end || end > data.length) throw new Error(`${name} is outside the file`);
    const bytes = data.subarray(begin, end);
    if (KINDS[dtype] && size(shape) * KINDS[dtype][0] !== bytes.length)
      throw new Error(`${name} has ${bytes.length} bytes, which does not match its shape`);
    return { dtype, shape, bytes };
  };
  // A metadata field is JSON; text that is not JSON is a string.
  const word = (text) => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };
  const write = (tensors, fields) => {
    const header = { __proto__: null };
    if (Object.keys(fields).length) header.__metadata__ = { __proto__: null };
    for (const [name, value] of Object.entries(fields))
      header.__metadata__[name] = JSON.stringify(value);
    let at = 0;
    for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
      header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
      at += bytes.length;
    }
    const text = new TextEncoder().encode(JSON.stringify(header));
    const front = new DataView(new ArrayBuffer(8));
    front.setBigUint64(0, BigInt(text.length), true);
    return new Blob([front, text, ...Object.values(tensors).map((t) => t.bytes)]);
  };
  return { of, part, list, read, write, size };
})();
