// speed: how fast a library makes tokens of the lines of a file, in one thread:
// `node speed.cjs native|script TOKENIZER TEXT` prints MB/s, of the best of several turns, and how many tokens.
"use strict";
const fs = require("fs");
const [library, file, path] = process.argv.slice(2);
const TURNS = { native: 3, script: 2 }[library];
const text = fs.readFileSync(path, "utf8");
const lines = text.split("\n");
const seconds = () => Number(process.hrtime.bigint()) / 1e9;

// The native one takes a whole list, one line after the other where it is told to use one thread.
async function native() {
  process.env.TOKENIZERS_PARALLELISM = "false";
  const tokenizer = require("tokenizers").Tokenizer.fromFile(file);
  return async () => (await tokenizer.encodeBatch(lines)).reduce((sum, one) => sum + one.getLength(), 0);
}

async function script() {
  const { Tokenizer } = require("@huggingface/tokenizers");
  const tokenizer = new Tokenizer(JSON.parse(fs.readFileSync(file, "utf8")), {});
  return async () => lines.reduce((sum, line) => sum + tokenizer.encode(line).ids.length, 0);
}

(async () => {
  const encode = await { native, script }[library]();
  let best = Infinity, tokens = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const start = seconds();
    tokens = await encode();
    best = Math.min(best, seconds() - start);
  }
  console.log(`${(Buffer.byteLength(text) / best / 1e6).toFixed(2)} MB/s ${tokens} tokens`);
})();
