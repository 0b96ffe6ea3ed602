// json: where in a JSON text a pointer or an offset leads. The text may be broken and cut off
// anywhere; nothing here throws, and each character is looked at once.
//
// Json.find(text, pointer) -> [begin, end] of the value. Of members of one name that stand twice
//   the last one is meant. Where there is no such value: the bracket of what it would be in.
// Json.at(text, offset) -> [begin, end] of the character that the byte of the text as UTF-8 is in;
//   beyond the end both are the text's length.
// Json.keys(pointer): its parts. Json.place(text, i) -> { line, column }, from 1.
const Json = (() => {
  const BLANK = " \t\n\r\ufeff", ENDS = BLANK + ",:]}[{\"";

  const blank = (text, at) => {
    while (at < text.length && BLANK.includes(text[at])) at++;
    return at;
  };
  const stringEnd = (text, at) => {
    for (at++; at < text.length; at++)
      if (text[at] === "\\") at++;
      else if (text[at] === "\"") return at + 1;
    return text.length;
  };
  const bracketEnd = (text, at) => {
    for (let depth = 0; at < text.length;) {
      const c = text[at];
      at = c === "\"" ? stringEnd(text, at) : at + 1;
      if (c === "[" || c === "{") depth++;
      else if ((c === "]" || c === "}") && --depth === 0) return at;
    }
    return at;
  };
  const valueEnd = (text, at) => {
    if (text[at] === "\"") return stringEnd(text, at);
    if (text[at] === "[" || text[at] === "{") return bracketEnd(text, at);
    while (at < text.length && !ENDS.includes(text[at])) at++;
    return at;
  };
  const isOver = (c) => c === undefined || c === "]" || c === "}";

  const word = (raw) => {
    try {
      return JSON.parse(raw);
    } catch {
      return raw.slice(1);
    }
  };
  // Where the value of the member begins, or -1. The server has read up to the first thing that is
  // wrong: what the pointer goes on from is the first member, what it ends at is the last.
  const member = (text, at, key, isLast) => {
    let found = -1;
    for (at = blank(text, at + 1); !isOver(text[at]); at = blank(text, at)) {
      if (text[at] === ",") {
        at++;
        continue;
      }
      const name = at;
      const end = at = valueEnd(text, at);
      at = blank(text, at);
      if (text[at] === ":") at = blank(text, at + 1);
      if (text[name] === "\"" && word(text.slice(name, end)) === key) {
        found = at;
        if (!isLast) break;
      }
      at = valueEnd(text, at);
    }
    return found;
  };
  const element = (text, at, key) => {
    let left = /^(0|[1-9]\d*)$/.test(key) ? Number(key) : Infinity;
    for (at = blank(text, at + 1); !isOver(text[at]); at = blank(text, at)) {
      if (text[at] === ",") left--;
      else if (left === 0) return at;
      at = text[at] === "," ? at + 1 : Math.max(at + 1, valueEnd(text, at));
    }
    return -1;
  };

  const keys = (pointer) => pointer.split("/").slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const find = (text, pointer) => {
    const path = keys(pointer);
    let at = blank(text, 0);
    for (const [i, key] of path.entries()) {
      const isObject = text[at] === "{", isArray = text[at] === "[";
      const next = isObject ? member(text, at, key, i === path.length - 1)
        : isArray ? element(text, at, key) : -1;
      if (next < 0) return [at, isObject || isArray ? at + 1 : valueEnd(text, at)];
      at = next;
    }
    return [at, valueEnd(text, at)];
  };

  const at = (text, offset) => {
    for (let i = 0, bytes = 0; i < text.length;) {
      const code = text.codePointAt(i), length = code > 0xffff ? 2 : 1;
      bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code > 0xffff ? 4 : 3;
      if (bytes > offset) return [i, i + length];
      i += length;
    }
    return [text.length, text.length];
  };

  const place = (text, i) => {
    let line = 1, begin = 0;
    for (let end; (end = text.indexOf("\n", begin)) >= 0 && end < i; line++) begin = end + 1;
    let column = 1;
    for (; begin < i; column++) begin += text.codePointAt(begin) > 0xffff ? 2 : 1;
    return { line, column };
  };
  return { find, at, keys, place };
})();
