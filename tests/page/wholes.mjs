// wholes: whole models for the tests of the page: small ones, whose weights are drawn.
//
// whole(kind, more): the definition of one. wordsFolder() -> a folder with a tokenizer of the words
// of the page's example, which is removed when the program ends.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export const whole = (kind, more = {}) => ({ transformer: { random: { seed: 1 } }, kind, layers: 3,
  width: 32, heads: 4, feed_forward: 64, vocabulary: 22, positions: "learned", max_positions: 300,
  ...more });

const WORDS = "[PAD] [UNK] [CLS] [SEP] the animal did not cross street because it was too tired a cat sat on mat .";
export const wordsFolder = () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attend-test-")), words = WORDS.split(" ");
  process.on("exit", () => fs.rmSync(folder, { recursive: true }));
  const special = (content, id) => ({ id, content, special: true, single_word: false, lstrip: false,
    rstrip: false, normalized: false });
  const piece = (id, type_id) => ({ SpecialToken: { id, type_id } });
  fs.writeFileSync(path.join(folder, "tokenizer.json"), JSON.stringify({ version: "1.0",
    truncation: null, padding: null, added_tokens: words.slice(0, 4).map(special),
    normalizer: { type: "Lowercase" }, pre_tokenizer: { type: "Whitespace" },
    post_processor: { type: "TemplateProcessing",
      single: [piece("[CLS]", 0), { Sequence: { id: "A", type_id: 0 } }, piece("[SEP]", 0)],
      pair: [piece("[CLS]", 0), { Sequence: { id: "A", type_id: 0 } }, piece("[SEP]", 0),
        { Sequence: { id: "B", type_id: 1 } }, piece("[SEP]", 1)],
      special_tokens: Object.fromEntries(["[CLS]", "[SEP]"].map((word) =>
        [word, { id: word, ids: [words.indexOf(word)], tokens: [word] }])) },
    decoder: null, model: { type: "WordLevel", unk_token: "[UNK]",
      vocab: Object.fromEntries(words.map((word, id) => [word, id])) } }));
  return folder;
};
