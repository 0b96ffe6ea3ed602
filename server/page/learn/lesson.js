// lesson: facts about the built-in model "words" that its numbers do not tell: which question each
// head was taught, and the meaning of the numbers that were given names.
//
// Lesson.of(model) -> null for any other model, or
//   heads: by attention block, a list of { name, does } for each head
//   named: { part, head, features }: the first numbers of this head's queries and keys, by name
//   nouns: how many output numbers, after number 0, name the noun with that token ID
//   first: the words one of which is chosen first; swaps: last words of the texts that change places
//   texts: sentences to try; taught, limits: sentences about the training
// Lesson.sentence: the first of the texts.
// needs: samples
const Lesson = (() => {
  const LAST = "encoder.1.self";
  const ENDS = [["tired", "wide"], ["big", "small"], ["slow", "fast"]];
  const texts = [
    Samples.SENTENCE,
    "The book did not fit in the box because it was too big",
    "The dog did not catch the cat because it was too slow",
    "The queen did not call the king because she was afraid",
    "The animal was too tired so it did not cross the street",
  ];
  const words = {
    heads: { [LAST]: [
      { name: "Who is meant?", does: "the noun that a word speaks of" },
      { name: "What came before?", does: "the word to the left" },
      { name: "Where did I see this?", does: "the same word, earlier" }] },
    named: { part: LAST, head: 0, features: ["animal", "he", "she", "place", "thing", "holder"] },
    nouns: 31, first: ["it", "she", "he"], swaps: ENDS, texts,
    taught: "The training rewarded naming the noun that each word speaks of, heads of layer 1 that look where they "
      + "say, and the names of six numbers of head 0. Layer 0 was not taught where to look.",
    limits: "It knows 107 words; the others are <unk>. Sentences unlike those of its training may mislead it.",
  };
  const of = (model) => (model && model.builtin === "words" ? words : null);
  return { of, sentence: texts[0] };
})();
