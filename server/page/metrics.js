// metrics: reads Prometheus' text.
//
// Metrics.parse(text) -> a Map: name -> [{ labels, value }]; lines that are none are left out.
// Metrics.sum(map, name, wanted) adds the values whose labels `wanted` likes; undefined: no such.
// Metrics.buckets(map, name, wanted) -> [[le, count], ...] of a histogram, ascending.
// Metrics.since(now, before): what came into the buckets between two readings.
// Metrics.quantile(buckets, q): in a straight line within its bucket; null where nothing is.
const Metrics = (() => {
  const LINE = /^([a-zA-Z_:][\w:]*)\s*(?:\{(.*)\})?\s+([^\s}]+)(?:\s+-?\d+)?\s*$/;
  const LABEL = /([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"/g;
  const ESCAPES = { "\\n": "\n", "\\\"": "\"", "\\\\": "\\" };
  const plain = (text) => text.replace(/\\./g, (pair) => ESCAPES[pair] || pair);
  const number = (text) => Number(text.replace(/^([+-]?)inf$/i, "$1Infinity"));

  const parse = (text) => {
    const map = new Map();
    for (const line of text.split("\n")) {
      const found = LINE.exec(line);
      if (!found) continue;
      const [, name, inside = "", value] = found;
      const labels = Object.fromEntries([...inside.matchAll(LABEL)].map((l) => [l[1], plain(l[2])]));
      if (!map.has(name)) map.set(name, []);
      map.get(name).push({ labels, value: number(value) });
    }
    return map;
  };
  const those = (map, name, wanted) =>
    (map.get(name) || []).filter((one) => wanted(one.labels) && !Number.isNaN(one.value));
  const sum = (map, name, wanted = () => true) => {
    const list = those(map, name, wanted);
    return list.length ? list.reduce((total, { value }) => total + value, 0) : undefined;
  };
  const buckets = (map, name, wanted) => {
    const counts = new Map();
    for (const { labels, value } of those(map, `${name}_bucket`, wanted))
      counts.set(number(labels.le), (counts.get(number(labels.le)) || 0) + value);
    return [...counts].sort(([a], [b]) => a - b);
  };
  const since = (now, before) => {
    const then = new Map(before);
    return now.map(([le, count]) => [le, count - (then.get(le) || 0)]);
  };
  const quantile = (buckets, q) => {
    const total = buckets.length ? buckets[buckets.length - 1][1] : 0;
    if (!(total > 0)) return null;
    const i = buckets.findIndex(([, count]) => count >= q * total);
    const [low, below] = i > 0 ? buckets[i - 1] : [0, 0];
    const [high, count] = buckets[i];
    return high === Infinity ? low : low + (high - low) * (q * total - below) / (count - below);
  };
  return { parse, sum, buckets, since, quantile };
})();
