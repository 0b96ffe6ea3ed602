// metrics: reads Prometheus' text format.
//
// Metrics.parse(text, wanted) -> [{ name, labels, value }] of the lines that the expression `wanted` matches,
//   without NaN and lines that are no samples.
// Metrics.sum(list): the sum of the values. Metrics.buckets(list) -> [[le, count], ...], ascending.
// Metrics.since(now, before): the buckets' growth between two readings.
// Metrics.quantile(buckets, q): interpolated linearly within its bucket; null if all are empty.
const Metrics = (() => {
  const LINE = /^([a-zA-Z_:][\w:]*)\s*(?:\{(.*)\})?\s+([^\s}]+)(?:\s+-?\d+)?\s*$/;
  const LABEL = /(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"/g;
  const plain = (text) => text.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
  const number = (text) => Number(String(text).replace("Inf", "Infinity"));

  const read = (line) => {
    const [, name, labels = "", value] = LINE.exec(line) || ["", "", "", "NaN"];
    return { name, value: number(value),
      labels: Object.fromEntries([...labels.matchAll(LABEL)].map((l) => [l[1], plain(l[2])])) };
  };
  const parse = (text, wanted = /./) => text.split("\n").filter((line) => wanted.test(line)).map(read).filter(({ value }) => !Number.isNaN(value));
  const sum = (list) => list.reduce((total, { value }) => total + value, 0);
  const buckets = (list) => {
    const counts = new Map();
    for (const { labels: { le }, value } of list)
      counts.set(number(le), (counts.get(number(le)) || 0) + value);
    return [...counts].sort(([a], [b]) => a - b);
  };
  const since = (now, before) => {
    const then = new Map(before);
    return now.map(([le, count]) => [le, count - (then.get(le) || 0)]);
  };
  const quantile = (buckets, q) => {
    const rank = buckets.length ? q * buckets[buckets.length - 1][1] : 0;
    if (!(rank > 0)) return null;
    const i = buckets.findIndex(([, count]) => count >= rank);
    const [low, below] = buckets[i - 1] || [0, 0], [high, count] = buckets[i];
    return high === Infinity ? low : low + (high - low) * (rank - below) / (count - below);
  };
  return { parse, sum, buckets, since, quantile };
})();
