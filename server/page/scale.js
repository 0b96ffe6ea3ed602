// scale: turns a weight into a colour.
//
// A straight line through OKLab from dark blue to light yellow: equal steps of weight are equal
// steps to the eye, lightness always grows, and blue and yellow are told apart even by those who
// see red and green as one.
//
// Scale.css(t) -> "rgb(...)" for t from 0 to 1; Scale.bytes is a Uint8Array of 256 colours, three
// bytes each; Scale.index(t) is the index of one. Scale.ink(t): the colour of text on it.
// Scale.bar() -> a node with all colours from left to right. Scale.high(faces, bright): the weight
// for t = 1, the greatest of all faces. `bright`: a lower one, which one weight of a hundred
// exceeds, as most weights of long rows are small.
const Scale = (() => {
  const FROM = [0.27, -0.018, -0.095], TO = [0.93, -0.028, 0.165];

  const channel = (x) => {
    const y = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.max(0, Math.min(255, Math.round(255 * y)));
  };
  const rgb = (t) => {
    const [L, a, b] = FROM.map((from, i) => from + t * (TO[i] - from));
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s].map(channel);
  };
  const bytes = new Uint8Array(768);
  for (let i = 0; i < 256; i++) bytes.set(rgb(i / 255), 3 * i);

  const index = (t) => Math.max(0, Math.min(255, Math.round(255 * t) || 0));
  const css = (t) => `rgb(${bytes.slice(3 * index(t), 3 * index(t) + 3).join(" ")})`;
  const ink = (t) => (index(t) > 112 ? "#000" : "#fff");
  const bar = () => {
    const node = Dom.el("span", { class: "scale" });
    const stops = Array.from({ length: 17 }, (_, i) => css(i / 16));
    node.style.backgroundImage = `linear-gradient(90deg, ${stops})`;
    return node;
  };

  // From some thousands of the weights; an odd distance between them meets every column.
  const common = ({ data }) => {
    const some = [];
    for (let i = 0, step = Math.floor(data.length / 4096) | 1; i < data.length; i += step)
      if (data[i] > 0) some.push(data[i]);
    return some.sort((a, b) => a - b)[Math.floor(0.99 * some.length)] || 0;
  };
  const greatest = new WeakMap();
  const most = ({ data }) => {
    if (greatest.has(data)) return greatest.get(data);
    let high = 0;
    for (let i = 0; i < data.length; i++) if (data[i] > high) high = data[i];
    greatest.set(data, high);
    return high;
  };
  const high = (faces, bright) =>
    Math.max(0, ...faces.map(({ matrix }) => (bright ? common : most)(matrix))) || 1;
  return { css, bytes, index, ink, bar, high };
})();
