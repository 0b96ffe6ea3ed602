#!/usr/bin/env python3
"""translate: asks a server to translate, greedily and by beams, and shows where it looks meanwhile.

    python3 tests/example/translate/translate.py [URL [SENTENCE]]

URL is that of a server with tests/example/attend.json. Without a sentence: some sentences, and how well those are
translated that the model has not been trained on. With one, in the words of english.txt: what it becomes, and the
attention of the last layers, the mean of their heads; a row is a word, and the columns are what it looks at.
"""
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from ask import URL, ask, is_url  # noqa: E402  (after the path is known)
from grammar import bleu  # noqa: E402

MODEL = "/v1/models/translate-example"
END = 2
GREEDY = {"beams": 1}
BEAMS = {"beams": 4, "length_penalty": 0.75}
SENTENCES = ["The girl's black cats do not sleep.", "He will never give the children these round apples.",
             "My pretty sister always waits for them.", "Does the young king love the queen?"]
SHADES = [(0.7, "█"), (0.4, "▓"), (0.2, "▒"), (0.05, "░"), (0, " ")]
PICTURES = [("encoder.1.self", "English looks at English"), ("decoder.1.self", "French looks at the French before it"),
            ("decoder.1.cross", "French looks at English")]


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read().splitlines()


ENGLISH, FRENCH = read("english.txt"), read("french.txt")
NUMBER = {word: i for i, word in enumerate(ENGLISH)}


def held_out():
    """[(English, its likeliest French)] that training has left out."""
    return [line.split(" = ") for line in read("held_out.txt")]


def words_of(sentence):
    return re.sub(r"('s|[.?])", r" \1 ", sentence.lower()).split()


def tokens_of(sentence):
    words = words_of(sentence)
    unknown = [word for word in words if word not in NUMBER]
    if unknown:
        sys.exit(f"not in english.txt: {' '.join(unknown)}")
    return [NUMBER[word] for word in words] + [END]


def text_of(tokens):
    return " ".join(FRENCH[token] for token in tokens if token != END)


def generate(url, sentences, how):
    """The sequences of each sentence."""
    request = {"tokens": [tokens_of(sentence) for sentence in sentences], "max_tokens": 24, **how}
    return ask(url, MODEL + "/generate", request)[0]["sequences"]


def quality(url, how):
    """(mean BLEU, how many are right, of how many) on the sentences that training has left out."""
    sources, right = zip(*held_out())
    scores = [bleu(text_of(found[0]["tokens"]).split(), text.split())
              for found, text in zip(generate(url, sources, how), right)]
    return sum(scores) / len(scores), scores.count(1), len(scores)


def looks(url, sentence, tokens):
    """{name of an attention: weights [row][column]} while this translation is made of the sentence."""
    request = {"tokens": [tokens_of(sentence)], "targets": [tokens],
               "return_attention": {"of": [name for name, _ in PICTURES], "as": "average"}}
    return {name: items[0] for name, items in ask(url, MODEL + "/score", request)[0]["attention"].items()}


def picture(weights, rows, columns):
    """Lines: a shade for each weight, as wide as the word that it belongs to."""
    left = max(map(len, rows))
    lines = [" " * (left + 2) + " ".join(columns)]
    for word, line in zip(rows, weights):
        shades = (next(shade for least, shade in SHADES if weight >= least) * len(column)
                  for weight, column in zip(line, columns))
        lines.append(f"{word:>{left}}  {' '.join(shades)}".rstrip())
    return lines


def show(url, sentence):
    best = generate(url, [sentence], BEAMS)[0][0]["tokens"]
    english, french = words_of(sentence) + ["<eos>"], [FRENCH[token] for token in best]
    sides = {"encoder.1.self": (english, english), "decoder.1.self": (french, ["<bos>"] + french[:-1]),
             "decoder.1.cross": (french, english)}
    weights = looks(url, sentence, best)
    print("\n\n".join("\n".join([f"{title} ({name})", *picture(weights[name], *sides[name])])
                      for name, title in PICTURES))


def told(how, sequence):
    probability = math.exp(math.fsum(sequence["log_probabilities"]))
    print(f"  {how}  {100 * probability:5.1f} %  {text_of(sequence['tokens'])}")


def main(url):
    greedy = generate(url, SENTENCES, GREEDY)
    beams = generate(url, SENTENCES, {**BEAMS, "returns": 3})
    for sentence, first, several in zip(SENTENCES, greedy, beams):
        print(sentence)
        told("greedy", first[0])
        for sequence in several[:3 if sentence.endswith("?") else 1]:
            told("beams ", sequence)
    print()
    for title, how in (("greedy", GREEDY), ("beams ", BEAMS)):
        score, right, count = quality(url, how)
        print(f"{title}  BLEU {score:.3f}, {right} of {count} sentences as they should be")


if __name__ == "__main__":
    server, *words = sys.argv[1:] or [URL]
    if not is_url(server) or (words and not words_of(" ".join(words))):
        sys.exit(f"usage: translate.py [URL [SENTENCE]], such as {URL} 'The girl sleeps.'")
    if words:
        show(server, " ".join(words))
    else:
        main(server)
