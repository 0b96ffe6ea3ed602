// ranks: OpenAI's library, in Rust compiled for the web, by the name of an encoding: `node ranks.cjs gpt2|cl100k_base|o200k_base`
"use strict";
const { get_encoding } = require("tiktoken");
const { answer } = require("./lines.cjs");
const encoding = get_encoding(process.argv[2]);
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

answer(({ text, ids }) => {
  if (!ids) ids = [...encoding.encode(text, "all")];
  return { ids, whole: decoder.decode(encoding.decode(ids)) };
});
