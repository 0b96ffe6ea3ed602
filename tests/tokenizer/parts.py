"""parts: a tokenizer.json for each thing that one may hold, alone, so that nothing hides what it does.

Behind a normalizer the model has the bytes for pieces, so that ids are the text that it made; behind
a pre-tokenizer it knows no piece, so that offsets are the cuts.
"""
from vocabularies import WRITTEN, model

SPACE = "\u2581"


def typed(kind, **more):
    return {"type": kind, **more}


def holding(model, **more):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **more}


def bytes_behind(normalizer):
    level = typed("ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    return holding(typed("BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                         byte_fallback=False, vocab={piece: byte for byte, piece in WRITTEN.items()}, merges=[]),
                   normalizer=normalizer, pre_tokenizer=level, decoder=level)


def cuts_of(pre_tokenizer):
    return holding(typed("WordLevel", unk_token="?", vocab={"?": 0}), pre_tokenizer=pre_tokenizer)


def split(pattern, behavior="Isolated", invert=False):
    return typed("Split", pattern=pattern, behavior=behavior, invert=invert)


BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
BERTS = {"clean": (True, False, False, False), "chinese": (False, True, False, False), "accents": (False, False, True, False),
         "lower": (False, False, False, True), "none": (False, False, False, False), "lower-null": (True, True, None, True),
         "cased-null": (True, True, None, False)}
NORMALIZERS = {
    **{name.lower(): typed(name) for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")},
    **{"bert-" + name: typed("BertNormalizer", clean_text=clean, handle_chinese_chars=chinese, strip_accents=accents,
                             lowercase=lower) for name, (clean, chinese, accents, lower) in BERTS.items()},
    "strip-left": typed("Strip", strip_left=True, strip_right=False),
    "strip-right": typed("Strip", strip_left=False, strip_right=True),
    "strip-both": typed("Strip", strip_left=True, strip_right=True),
    "prepend": typed("Prepend", prepend=SPACE),
    "replace-longer": typed("Replace", pattern={"String": "a"}, content="\u4e2d\u6587"),
    "replace-nothing": typed("Replace", pattern={"String": " "}, content=""),
    "replace-spaces": typed("Replace", pattern={"Regex": " {2,}"}, content=SPACE),
    "replace-empty": typed("Replace", pattern={"Regex": "x*"}, content="-"),
    "replace-marks": typed("Replace", pattern={"Regex": r"\p{M}+|\s$"}, content="<>"),
    "decompose-strip": typed("Sequence", normalizers=[typed("NFD"), typed("StripAccents"), typed("NFC")]),
    "compose-lower": typed("Sequence", normalizers=[typed("NFKC"), typed("Lowercase"), typed("NFD"), typed("NFC"), typed("Prepend", prepend="=")]),
}
PRE_TOKENIZERS = {
    "bert": typed("BertPreTokenizer"),
    "whitespace": typed("Whitespace"),
    "whitespace-split": typed("WhitespaceSplit"),
    "scripts": typed("UnicodeScripts"),
    "delimiter": typed("CharDelimiterSplit", delimiter="a"),
    "fixed": typed("FixedLength", length=3),
    "digits": typed("Digits", individual_digits=False),
    "digits-each": typed("Digits", individual_digits=True),
    **{"punctuation-" + behavior.lower(): typed("Punctuation", behavior=behavior) for behavior in BEHAVIORS},
    **{"spaces-" + behavior.lower(): split({"String": " "}, behavior) for behavior in BEHAVIORS},
    **{"letters-" + behavior.lower() + ("-not" if invert else ""): split({"Regex": r"\p{L}+"}, behavior, invert)
       for behavior in BEHAVIORS for invert in (False, True)},
    **{f"metaspace-{scheme}" + ("" if whole else "-cut"): typed("Metaspace", replacement=SPACE, prepend_scheme=scheme, split=not whole)
       for scheme in ("always", "first", "never") for whole in (False, True)},
    **{f"byte-level{'-prefix' * prefix}{'-whole' * whole}": typed("ByteLevel", add_prefix_space=prefix, trim_offsets=False, use_regex=not whole)
       for prefix in (False, True) for whole in (False, True)},
    **{"class-" + name: split({"Regex": pattern}) for name, pattern in {
        **{name: rf"\p{{{name}}}" for name in ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "N", "Nd", "P", "S", "Z", "C", "Han", "Hiragana")},
        "space": r"\s", "word": r"\w", "digit": r"\d", "border": r"\b", "any": ".", "fold": "(?i:s|k|\u00e9|\u03c3|ss)", "cluster": r"\X",
        "punct": "[[:punct:]]", "alnum": "[[:alnum:]]", "hex": r"\h"}.items()},
}
PARTS = {
    **{"normal-" + name: lambda made=made: bytes_behind(made) for name, made in NORMALIZERS.items()},
    "normal-precompiled": lambda: bytes_behind(typed("Precompiled", precompiled_charsmap=model("unigram")[2])),
    **{"cut-" + name: lambda made=made: cuts_of(made) for name, made in PRE_TOKENIZERS.items()},
}
