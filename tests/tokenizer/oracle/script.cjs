// script: Hugging Face's library in JavaScript, which has no offsets: `node script.cjs TOKENIZER`
"use strict";
const fs = require("fs");
const { Tokenizer } = require("@huggingface/tokenizers");
const { answer } = require("./lines.cjs");
const json = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
// What it else tidies up by itself after decoding belongs to another file, tokenizer_config.json.
const tokenizer = new Tokenizer(json, { clean_up_tokenization_spaces: false });

function spell(ids) {
  const decode = (skip) => (ids.length ? tokenizer.decode(ids, { skip_special_tokens: skip }) : "");
  return { text: decode(true), whole: decode(false) };
}

answer(({ text, pair = null, bare = false, ids }) => {
  if (ids) return spell(ids);
  const found = tokenizer.encode(text, { text_pair: pair, add_special_tokens: !bare, return_token_type_ids: true });
  return { ids: found.ids, types: found.token_type_ids, ...spell(found.ids) };
});
