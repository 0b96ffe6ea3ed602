"""texts: what others have written, out of Debian packages: prose, names, code, emoji, tables of Unicode.

Nobody who writes a tokenizer here has chosen these texts. What is not installed lies unpacked in
build/tokenizer/packages (`make deps-tokenizer`); a package that is nowhere leaves its texts out.
"""
import bz2
import functools
import glob
import os
import re
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "tokenizer")
PLACES = ("/", os.path.join(BUILD, "packages"))


def files(pattern):
    """The files of a pattern below /, installed or unpacked, each once."""
    found = {}
    for place in PLACES:
        for path in glob.glob(os.path.join(glob.escape(place), pattern)):
            if os.path.isfile(path):
                found.setdefault(os.path.relpath(path, place), path)
    return [found[name] for name in sorted(found)]


def read(path):
    opened = bz2.open if path.endswith(".bz2") else open
    with opened(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def rows(name):
    """The fields of each line of a table of Unicode's, without its comments."""
    for path in files(f"usr/share/unicode/{name}"):
        for line in read(path).split("\n"):
            line = line.partition("#")[0].strip()
            if line and not line.startswith("@"):
                yield [field.strip() for field in line.split(";")]


def characters(field):
    """"1F468 200D" as a text. Surrogates alone are no characters."""
    codes = [int(code, 16) for code in field.split()]
    return "" if any(0xD800 <= code < 0xE000 for code in codes) else "".join(map(chr, codes))


def messages(path):
    """The texts of a catalogue of gettext's, in the order of their keys; empty where it is not UTF-8."""
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, keys, texts = struct.unpack_from(order + "3I", data, 8)

    def text(table, index):
        length, at = struct.unpack_from(order + "2I", data, table + 8 * index)
        return data[at:at + length]

    try:
        return [part for index in range(count) if text(keys, index)
                for part in text(texts, index).decode().split("\0") if part]
    except UnicodeDecodeError:
        return []


def translations(*domains):
    """{language: what programs say in it}."""
    found = {}
    for domain in domains:
        for path in files(f"usr/share/locale/*/LC_MESSAGES/{domain}.mo"):
            found.setdefault(path.split("/")[-3], []).extend(messages(path))
    return {language: texts for language, texts in sorted(found.items()) if texts}


@functools.cache
def prose():
    """{language: messages of several lines}."""
    return translations("coreutils", "gnupg2", "bash", "wget")


@functools.cache
def windows():
    """The same of programs that more languages have: Arabic, Hindi and Thai are among them."""
    return translations("glib20", "gtk30", "Linux-PAM", "apt", "dpkg")


@functools.cache
def names():
    """{language: names of countries, languages and scripts}: more writing systems than prose has."""
    return translations("iso_3166-1", "iso_639-2", "iso_639-3", "iso_15924")


@functools.cache
def english():
    """Paragraphs."""
    found = []
    for path in files("usr/share/common-licenses/*"):
        found += re.split(r"\n\s*\n", read(path))
    for path in files("usr/share/games/fortunes/*"):
        if not path.endswith((".dat", ".u8")):
            found += read(path).split("\n%\n")
    return [text for text in found if text.strip()]


@functools.cache
def code():
    """Pieces of some lines, of Python, C and what else its tests are made of."""
    found = []
    for path in files("usr/lib/python3.*/test/test_[a-u]*.py") + files("usr/lib/python3.*/test/*.cpp"):
        lines = read(path).split("\n")
        found += ["\n".join(lines[at:at + 12]) for at in range(0, len(lines), 12)]
    return [text for text in found if text.strip()]


@functools.cache
def east_asian():
    """Lines in Chinese, Japanese and Korean."""
    return [line for path in files("usr/lib/python3.*/test/cjkencodings/*-utf8.txt")
            for line in read(path).split("\n") if line.strip()]


@functools.cache
def emoji():
    """Whole sequences, also those that nothing should show, and those of letters and a selector."""
    return [text for row in rows("emoji/emoji-test.txt") for text in [characters(row[0])] if text]


@functools.cache
def normalization():
    """The source and the four forms of each case of Unicode's own test."""
    return [text for row in rows("NormalizationTest.txt*") if len(row) > 4
            for text in dict.fromkeys(map(characters, row[:5])) if text]


@functools.cache
def breaks():
    """Cases of grapheme clusters, words and sentences: characters of every class beside each other."""
    found = []
    for name in ("Grapheme", "Word", "Sentence"):
        for path in files(f"usr/share/unicode/auxiliary/{name}BreakTest.txt"):
            for line in read(path).split("\n"):
                line = re.sub("[÷×]", " ", line.partition("#")[0]).strip()
                found += [text for text in [characters(line)] if text]
    return found


@functools.cache
def assigned():
    """{general category: code points}, of every character that has a name; of ranges (ideographs, syllables) some."""
    found, begin = {}, None
    for row in rows("UnicodeData.txt"):
        point, name, category = int(row[0], 16), row[1], row[2]
        if name.endswith(", First>"):
            begin = point
        elif name.endswith(", Last>") and category != "Cs":
            found.setdefault(category, []).extend(range(begin, point + 1, 7))
        elif category != "Cs":
            found.setdefault(category, []).append(point)
    return found


@functools.cache
def ages():
    """[(first, last, version)] of all code points that are something, surrogates aside."""
    found = []
    for row in rows("DerivedAge.txt"):
        first, _, last = row[0].partition("..")
        if int(first, 16) != 0xD800:
            found.append((int(first, 16), int(last or first, 16), tuple(map(int, row[1].split(".")))))
    return found


@functools.cache
def beyond(version):
    """An expression that finds a character that a version of Unicode, such as "8.0", does not have."""
    limit = tuple(map(int, version.split(".")))
    had = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last, age in ages() if age <= limit)
    return re.compile(f"[^{had}]")


if __name__ == "__main__":
    for made in (prose, windows, names, english, code, east_asian, emoji, normalization, breaks, assigned):
        texts = made()
        if isinstance(texts, dict):
            print(f"{made.__name__}: {len(texts)} groups of {sum(map(len, texts.values()))}")
        else:
            print(f"{made.__name__}: {len(texts)}, {sum(len(text.encode()) for text in texts) / 1e6:.2f} MB")
