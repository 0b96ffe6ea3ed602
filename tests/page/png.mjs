// png: pictures made smaller: Chromium's PNG with at most 256 colours, the most frequent in it that
// can be told apart; and read.
import zlib from "node:zlib";

const HEAD = Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), MOST = 256, APART = 30;

const chunks = function* (file) {
  for (let at = HEAD.length; at < file.length;) {
    const size = file.readUInt32BE(at);
    yield [file.toString("latin1", at + 4, at + 8), file.subarray(at + 8, at + 8 + size)];
    at += 12 + size;
  }
};
const chunk = (name, data) => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]), ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE(crc(body), 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
};
const crc = (bytes) => {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
};

const paeth = (left, up, corner) => {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  return a <= b && a <= c ? left : b <= c ? up : corner;
};
// Undoes the filter of each line, in place: bytes of a pixel, bytes of a line without its filter.
const unfilter = (data, pixel, width) => {
  const lines = [];
  for (let at = 0; at < data.length; at += width + 1) {
    const line = data.subarray(at + 1, at + 1 + width), above = lines.at(-1) || Buffer.alloc(width);
    for (let i = 0; i < width; i++) {
      const left = i < pixel ? 0 : line[i - pixel], corner = i < pixel ? 0 : above[i - pixel];
      line[i] += [0, left, above[i], (left + above[i]) >> 1, paeth(left, above[i], corner)][data[at]];
    }
    lines.push(line);
  }
  return lines;
};

// Of a PNG with 24 or 32 bits: { width, height, pixels }, each of them as 0xrrggbb.
export const pixelsOf = (file) => {
  const parts = [...chunks(file)], [, head] = parts[0];
  const width = head.readUInt32BE(0), pixel = head[9] === 6 ? 4 : 3;
  const data = zlib.inflateSync(Buffer.concat(parts.filter(([name]) => name === "IDAT").map(([, d]) => d)));
  const lines = unfilter(data, pixel, width * pixel);
  return { width, height: lines.length, pixels: Uint32Array.from({ length: width * lines.length }, (_, i) =>
    lines[Math.floor(i / width)].readUIntBE(pixel * (i % width), 3)) };
};

const distance = (a, b) =>
  [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0);
const paletteOf = (pixels) => {
  const count = new Map();
  for (const colour of pixels) count.set(colour, (count.get(colour) || 0) + 1);
  const all = [...count.keys()].sort((a, b) => count.get(b) - count.get(a)), kept = [];
  for (const colour of all)
    if (kept.length < MOST && kept.every((one) => distance(one, colour) > APART)) kept.push(colour);
  const near = (colour) => kept.reduce((best, one, i) =>
    distance(one, colour) < distance(kept[best], colour) ? i : best, 0);
  return { kept, index: new Map(all.map((colour) => [colour, near(colour)])) };
};

export const smaller = (file) => {
  const { width, height, pixels } = pixelsOf(file), { kept, index } = paletteOf(pixels);
  const data = Buffer.alloc((width + 1) * height), colours = Buffer.alloc(3 * kept.length);
  pixels.forEach((colour, i) => { data[i + Math.floor(i / width) + 1] = index.get(colour); });
  kept.forEach((colour, i) => colours.writeUIntBE(colour, 3 * i, 3));
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0]);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  return Buffer.concat([HEAD, chunk("IHDR", head), chunk("PLTE", colours),
    chunk("IDAT", zlib.deflateSync(data, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
};
