// format: numbers for readers.
//
// Format.float(x): the shortest decimal that reads back as the same float32, as in responses.
// Format.short(x): three digits. Format.even(list) -> a function of x: each number has as many decimals
// as the greatest with three digits. Format.weight(x): three decimals; a smaller weight is "<0.001", and
// none is "0". Format.percent(x): a share. Format.bytes(n), Format.ms(x),
// Format.count(n): with units. Format.whole(n): "12,345", without the browser's tables of languages, which take
// some 30 ms to load. Format.many(2, "key") -> "2 keys"; a third argument is another plural. Format.CR: a carriage return.
const Format = (() => {
  // Floats below a power of two are closer together: the second nearest decimal may be the one that
  // reads back.
  const near = (x, digits) => {
    const first = Number(x.toPrecision(digits));
    const step = Math.sign(x) * 10 ** (Math.floor(Math.log10(Math.abs(x))) + 1 - digits);
    return [first, first + step].find((y) => Math.fround(y) === Math.fround(x));
  };
  const float = (x) => {
    if (!Number.isFinite(x) || (Number.isInteger(x) && Math.abs(x) < 1e9)) return String(x);
    let digits = near(x, 6) === undefined ? 7 : 1;
    while (digits < 9 && near(x, digits) === undefined) digits++;
    return String(Number((near(x, digits) ?? x).toPrecision(digits)));
  };
  const short = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(3))) : "–");
  const weight = (x) => {
    if (!Number.isFinite(x)) return "–";
    return x !== 0 && Math.abs(x) < 0.0005 ? "<0.001" : x === 0 ? "0" : x.toFixed(3);
  };
  const even = (list) => {
    const most = Math.max(0, ...list.filter(Number.isFinite).map(Math.abs));
    const decimals = most > 0 ? Math.max(0, Math.min(20, 2 - Math.floor(Math.log10(most)))) : 0;
    return (x) => (Number.isFinite(x) ? x.toFixed(decimals).replace(/^-(?=[0.]+$)/, "") : "–");
  };
  const percent = (x) => {
    const all = 100 * x;
    if (all > 0 && all < 0.01) return "< 0.01 %";
    return `${x >= 0.1 || !(x > 0) ? Math.round(all) : Number(all.toPrecision(2))} %`;
  };
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
  const whole = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const many = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;
  const CR = String.fromCharCode(13); // minify would write "\r" as a raw byte, which HTML changes
  return { CR, float, short, weight, even, percent, bytes, count, whole, many, ms };
})();
