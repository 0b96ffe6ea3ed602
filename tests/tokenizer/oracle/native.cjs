// native: Hugging Face's library itself, written in Rust, by its own bindings: `node native.cjs TOKENIZER [PACKAGE]`
"use strict";
const { answer } = require("./lines.cjs");
const [file, name = "tokenizers"] = process.argv.slice(2);
const tokenizer = require(name).Tokenizer.fromFile(file);

async function spell(ids) {
  return { text: await tokenizer.decode(ids, true), whole: await tokenizer.decode(ids, false) };
}

answer(async ({ text, pair = null, bare = false, ids }) => {
  if (ids) return spell(ids);
  const found = await tokenizer.encode(text, pair, { addSpecialTokens: !bare });
  return {
    ids: found.getIds(),
    types: found.getTypeIds(),
    special: found.getSpecialTokensMask(),
    texts: found.getSequenceIds(),
    offsets: found.getOffsets(),
    ...(await spell(found.getIds())),
  };
});
