// sentence: the meaning of a cell of a sheet (heatmap.js), as a sentence.
//
// Sentence.of(sheet, row, col) -> text, with the exact weight of the response, or "<0.001".
// Sentence.query(sheet, row), Sentence.key(sheet, col) -> "query 2, “it”,": a number, and the word
// if there is one.
// needs: format
const Sentence = (() => {
  const LONGEST = 60;
  const named = (kind, words, i) => (words[i] === String(i) ? `${kind} ${i}`
    : `${kind} ${i}, “${words[i].slice(0, LONGEST)}”`);
  const query = ({ rows }, row) => named("query", rows, row);
  const key = ({ cols }, col) => named("key", cols, col);

  const segment = ({ cuts, segments }, row, col) => {
    const i = cuts.findIndex((end) => col < end);
    const weight = i >= 0 && segments ? segments.data[row * segments.cols + i] : null;
    return i < 0 ? "" : `, segment ${i}` + (weight === null ? "" : ` ${Format.float(weight)}`);
  };
  const of = (sheet, row, col) => {
    const { matrix, seen, even, label } = sheet, at = row * matrix.cols + col;
    const weight = matrix.data[at], exact = weight > 0 && weight < 0.0005 ? Format.weight(weight) : Format.float(weight);
    const first = query(sheet, row).replace("query", "Query");
    const comma = first.endsWith("”") ? "," : "";
    const end = `(${label}${segment(sheet, row, col)})`;
    if (seen[at] === 2)
      return `${first}${comma} has no unmasked key, so all keys have the same weight: ${exact} ${end}`;
    if (!seen[at] && !(weight > 0)) return `${first}${comma} cannot attend to ${key(sheet, col)}: it is masked ${end}`;
    return even ? `${first}${comma} has weight ${exact} on ${key(sheet, col)} ${end}`
      : `${first}${comma} gives ${Format.percent(weight)} of its weight to ${key(sheet, col)}: `
        + `${exact} ${end}`;
  };
  return { of, query, key };
})();
