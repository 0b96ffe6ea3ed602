// oracle: what the tests of the page know by themselves: numbers, safetensors, requests by chance.
//
// Nothing here shares a line with server/page: a mistake would have to be made twice.

// Numbers by chance, the same each time: random(seed)() is from 0 to 1.
export const random = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
  return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
};
export const dice = (seed) => {
  const chance = random(seed);
  const int = (low, high) => low + Math.floor(chance() * (high - low + 1));
  const number = () => Math.fround(2 * chance() - 1);
  const numbers = (...shape) => shape.length === 0 ? number()
    : Array.from({ length: shape[0] }, () => numbers(...shape.slice(1)));
  return { chance, int, number, numbers, pick: (list) => list[int(0, list.length - 1)],
    yes: (share = 0.5) => chance() < share };
};

// --- numbers of 16 bits, by their definition ---

const parts = (bits, exponentBits, fractionBits) => ({
  sign: bits >> 15 ? -1 : 1, exponent: (bits >> fractionBits) & (2 ** exponentBits - 1),
  fraction: (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits });
const small = (exponentBits, fractionBits) => (bits) => {
  const { sign, exponent, fraction } = parts(bits, exponentBits, fractionBits);
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 * bias + 1) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction) * 2 ** (exponent - bias) : fraction * 2 ** (1 - bias));
};
export const half = small(5, 10);
export const brain = small(8, 7);

// --- bytes ---

const WRITERS = {
  F64: [8, "setFloat64"], F32: [4, "setFloat32"], I32: [4, "setInt32"], U16: [2, "setUint16"],
  U8: [1, "setUint8"], I64: [8, "setBigInt64"] };
export const bytesOf = (kind, numbers) => {
  const [size, write] = WRITERS[{ F16: "U16", BF16: "U16", BOOL: "U8" }[kind] || kind];
  const view = new DataView(new ArrayBuffer(size * numbers.length));
  numbers.forEach((x, i) => view[write](size * i, kind === "I64" ? BigInt(x) : x, true));
  return Buffer.from(view.buffer);
};
export const coded = (shape, numbers) =>
  ({ dtype: "F32", shape, base64: bytesOf("F32", numbers).toString("base64") });

// { name: [kind, shape, bytes] } and words, with so many blanks behind the header.
export const safetensors = (tensors, words = {}, blanks = 0) => {
  const header = { __metadata__: words }, data = [];
  let at = 0;
  for (const [name, [dtype, shape, bytes]] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at += bytes.length] };
    data.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header) + " ".repeat(blanks));
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([front, text, ...data]);
};
export const readSafetensors = (file) => {
  const length = Number(file.readBigUInt64LE(0));
  const { __metadata__: words = {}, ...header } = JSON.parse(file.subarray(8, 8 + length).toString());
  const tensors = Object.entries(header).map(([name, { dtype, shape, data_offsets: [a, b] }]) =>
    [name, { dtype, shape, bytes: file.subarray(8 + length + a, 8 + length + b) }]);
  return { words, tensors: Object.fromEntries(tensors) };
};

export const flat = (list) => Array.isArray(list) ? list.flatMap(flat) : [list];
