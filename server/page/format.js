// format: numbers as people read them.
//
// Format.float(x): the shortest decimal that reads back as the same float32, as answers have it.
// Format.short(x): three digits. Format.bytes(n), Format.ms(x), Format.count(n): with units.
const Format = (() => {
  const magnitude = (x) => Math.floor(Math.log10(Math.abs(x)));
  const float = (x) => {
    if (!Number.isFinite(x)) return String(x);
    for (let digits = 1; digits < 9; digits++) {
      const near = Number(x.toPrecision(digits));
      // Below a power of two floats lie closer: there the second nearest may be the one that fits.
      for (const y of [near, near + Math.sign(x) * 10 ** (magnitude(x) + 1 - digits)])
        if (Math.fround(y) === Math.fround(x)) return String(Number(y.toPrecision(digits)));
    }
    return String(Number(x.toPrecision(9)));
  };
  const short = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(3))) : "–");
  const scaled = (x, units, step) => {
    let unit = 0;
    while (x >= step && unit < units.length - 1) {
      x /= step;
      unit++;
    }
    return (x < 10 && unit > 0 ? x.toFixed(1) : x.toFixed(0)) + units[unit];
  };
  const bytes = (n) => scaled(n, [" B", " kB", " MB", " GB"], 1000);
  const count = (n) => scaled(n, ["", " k", " M", " G"], 1000);
  const ms = (x) => `${Number(x.toPrecision(x < 1 ? 2 : 3))} ms`;
  return { float, short, bytes, count, ms };
})();
