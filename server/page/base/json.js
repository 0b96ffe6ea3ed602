// json: finds the place of a JSON pointer or of a byte offset in a JSON text. The text may be invalid
// or truncated anywhere; nothing here throws, and each character is read once.
//
// Json.find(text, pointer) -> [begin, end] of the value; without such a value, of the opening bracket
//   of the list or object that would contain it.
// Json.at(text, offset) -> [begin, end] of the character that has this byte in UTF-8; both are the
//   text's length if the offset exceeds it.
// Json.keys(pointer): its parts. Json.place(text, i) -> { line, column }, from 1.
const Json = (() => {
  const BLANK = ` \t\n\ufeff${String.fromCharCode(13)}`, ENDS = BLANK + ",:]}[{\"", OVER = ["]", "}", undefined];

  const blank = (text, at) => {
    while (at < text.length && BLANK.includes(text[at])) at++;
    return at;
  };
  const stringEnd = (text, at) => {
    for (at++; at < text.length && text[at] !== "\""; at++) if (text[at] === "\\") at++;
    return Math.min(at + 1, text.length);
  };
  const valueEnd = (text, at) => {
    let depth = 0;
    do {
      const c = text[at];
      if (c === "\"") at = stringEnd(text, at) - 1;
      else if (c === "[" || c === "{") depth++;
      else if (c === "]" || c === "}") depth--;
      else if (depth === 0)
        while (at + 1 < text.length && !ENDS.includes(text[at + 1])) at++;
      at++;
    } while (depth > 0 && at < text.length);
    return Math.min(at, text.length);
  };

  const word = (raw) => {
    try {
      return JSON.parse(raw);
    } catch {
      return null;
    }
  };
  // The offset of the key's value, or -1. If two members have the same name, the server has rejected
  // the last one for it, or has found an error within the first.
  const child = (text, at, key, isLast) => {
    const isObject = text[at] === "{", index = /^(0|[1-9]\d*)$/.test(key) ? Number(key) : -1;
    let found = -1, i = 0;
    for (at = blank(text, at + 1); !OVER.includes(text[at]); at = blank(text, at)) {
      if (text[at] === ",") {
        at++;
        i++;
        continue;
      }
      let isIt = i === index;
      if (isObject) {
        const end = valueEnd(text, at);
        isIt = word(text.slice(at, end)) === key;
        at = blank(text, end);
        if (text[at] === ":") at = blank(text, at + 1);
        if (",]}".includes(text[at])) continue;
      }
      if (isIt) found = at;
      if (isIt && !(isObject && isLast)) break;
      at = valueEnd(text, at);
    }
    return found;
  };

  const keys = (pointer) => String(pointer).split("/").slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const find = (text, pointer) => {
    const path = keys(pointer);
    let at = blank(text, 0);
    for (const [i, key] of path.entries()) {
      const isList = text[at] === "{" || text[at] === "[";
      const next = isList ? child(text, at, key, i === path.length - 1) : -1;
      if (next < 0) return [at, isList ? at + 1 : valueEnd(text, at)];
      at = next;
    }
    return [at, valueEnd(text, at)];
  };

  const width = (text, i) => (text.codePointAt(i) > 0xffff ? 2 : 1);
  const at = (text, offset) => {
    for (let i = 0, bytes = 0; i < text.length; i += width(text, i)) {
      const code = text.codePointAt(i);
      bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code > 0xffff ? 4 : 3;
      if (bytes > offset) return [i, i + width(text, i)];
    }
    return [text.length, text.length];
  };
  const place = (text, i) => {
    let line = 1, column = 1;
    for (let at = 0; at < i; at += width(text, at)) {
      column++;
      if (text[at] === "\n") [line, column] = [line + 1, 1];
    }
    return { line, column };
  };
  return { find, at, keys, place };
})();
