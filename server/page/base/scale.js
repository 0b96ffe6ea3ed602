// scale: maps a weight to a color.
//
// A ramp is a straight line through OKLab: equal steps of weight look equal, and lightness is
// monotonic. It runs from paper to blue ink on a light page, so that small weights disappear, and from
// dark blue to light yellow on a dark page, which red-green color blindness does not confuse.
//
// A ramp is { css(t), ink(t), bytes, words }, t from 0 to 1: css: "rgb(...)"; ink: the color of text on
// it; bytes: a Uint8Array of 256 colors, three bytes each; words: the same as pixels. Scale.ramp() is
// the theme's, Scale.paper() is for saved pictures, Scale.apart() is the theme's for differences, with
// zero at t = 0.5. Scale.tint(sheet, isSaved) -> the ramp of a sheet (heatmap.js), on the page or in a saved picture,
// with at(weight), the weight's t. The theme is State.dark. Scale.css, Scale.ink: of Scale.ramp(). Scale.index(t): the
// index of a color. Scale.bar() -> a node with all colors from left to right.
// Scale.hue(i): the color of the i-th of several things, far from the others in both themes.
// Scale.cell(t, text, title) -> a node of that color.
// Scale.high(faces, strong): the weight at t = 1: the maximum of all faces, or with `strong` their 99th
// percentile. Scale.strong(faces): is the percentile better, because most weights of long rows are small?
// needs: dom state
const Scale = (() => {
  const LONG = 48, FAR = 3; // keys of a long row; maximum / percentile from which the latter is better

  const channel = (x) => {
    const y = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.max(0, Math.min(255, Math.round(255 * y)));
  };
  const rgb = (lab) => {
    const [L, a, b] = lab;
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s].map(channel);
  };
  const straight = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) =>
    0.2126 * straight(r) + 0.7152 * straight(g) + 0.0722 * straight(b);
  const index = (t) => Math.max(0, Math.min(255, Math.round(255 * t) || 0));
  const make = (stops) => {
    const bytes = new Uint8Array(768), parts = stops.length - 1;
    for (let i = 0; i < 256; i++) {
      const at = i / 255 * parts, n = Math.min(Math.floor(at), parts - 1), to = stops[n + 1];
      bytes.set(rgb(stops[n].map((x, c) => x + (at - n) * (to[c] - x))), 3 * i);
    }
    const words = Uint32Array.from({ length: 256 }, (_, i) =>
      0xff000000 | (bytes[3 * i + 2] << 16) | (bytes[3 * i + 1] << 8) | bytes[3 * i]);
    const css = (t) => `rgb(${bytes.slice(3 * index(t), 3 * index(t) + 3).join(" ")})`;
    const isDark = (i) => luminance(bytes.subarray(3 * i)) < 0.179;
    return { bytes, words, css, ink: (t) => (isDark(index(t)) ? "#fff" : "#000") };
  };
  // A ramp is made when it is first used.
  const ramp = (...stops) => {
    let made = null;
    return () => (made ||= make(stops));
  };
  const WHITE = [0.9853, 0.0003, 0.0029], INK = [0.27, -0.018, -0.095];
  const paper = ramp(WHITE, INK), night = ramp(INK, [0.93, -0.028, 0.165]);
  const apartOnPaper = ramp([0.42, 0.13, 0.08], WHITE, [0.4, -0.02, -0.14]);
  const apartAtNight = ramp([0.75, 0.12, 0.09], [0.22, 0, -0.004], [0.8, -0.06, -0.1]);

  const wants = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => State.set({ dark: wants.matches });
  const now = () => (State.dark ? night() : paper());
  const apart = () => (State.dark ? apartAtNight() : apartOnPaper());
  const tint = (sheet, isSaved) => (sheet.apart
    ? { ...(isSaved ? apartOnPaper() : apart()), at: (weight) => (1 + weight / sheet.high) / 2 }
    : { ...(isSaved ? paper() : now()), at: (weight) => weight / sheet.high });
  const spread = () => {
    const stops = Array.from({ length: 17 }, (_, i) => now().css(i / 16));
    document.documentElement.style.setProperty("--ramp", `linear-gradient(90deg, ${stops})`);
  };
  State.on(["dark"], spread);
  wants.addEventListener("change", theme);
  theme();
  const hue = (i) => `hsl(${(i * 137.5 + 210) % 360} ${State.dark ? "65% 70%" : "62% 38%"})`;
  const bar = () => el("span.scale");
  const cell = (t, text, title) => {
    const node = el("span.said", { title }, text);
    Object.assign(node.style, { background: now().css(t), color: now().ink(t) });
    return node;
  };

  const kept = (measure) => {
    const known = new WeakMap();
    return ({ matrix }) => {
      const { data } = matrix;
      if (!known.has(data)) known.set(data, measure(matrix));
      return known.get(data);
    };
  };
  const most = kept(({ data }) => {
    let high = 0;
    for (let i = 0; i < data.length; i++) if (data[i] > high) high = data[i];
    return high;
  });
  // The percentile of some thousands of the weights; an odd step meets every column.
  const usual = kept(({ data }) => {
    const some = [];
    for (let i = 0, step = Math.floor(data.length / 4096) | 1; i < data.length; i += step)
      if (data[i] > 0) some.push(data[i]);
    return Float32Array.from(some).sort()[Math.floor(0.99 * some.length)] || 0;
  });
  const high = (faces, strong) => Math.max(0, ...faces.map(strong ? usual : most)) || 1;
  const strong = (faces) => faces.some(({ matrix }) => matrix.cols >= LONG)
    && high(faces, false) > FAR * high(faces, true);
  return { ramp: now, paper, apart, tint, css: (t) => now().css(t), ink: (t) => now().ink(t), index, hue, bar,
    cell, high, strong };
})();
