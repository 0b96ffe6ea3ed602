/* print: values as Python's str(), repr() and json.dumps() write them. */
#include "config/template/value/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/template/value/iterate.h"
#include "config/tokenizer/pattern/unicode.h"

enum { NUMBER = 40 };

/* --- numbers --- */

/* The shortest digits of a finite real, as "d.ddde+xx". */
static void shortest_digits(double real, char out[NUMBER]) {
  enum { MOST = 17 };
  for (int digits = 1; digits <= MOST; digits++) {
    snprintf(out, NUMBER, "%.*e", digits - 1, real);
    if (strtod(out, NULL) == real) break;
  }
}

/* Python writes an exponent below 1e-4 and from 1e16 on, and always a point or an exponent. */
bool print_real(struct bounds *b, struct buffer *to, double real) {
  char text[NUMBER], plain[NUMBER];
  if (isnan(real)) return buffer_word(b, to, "nan");
  if (isinf(real)) return buffer_word(b, to, real < 0 ? "-inf" : "inf");
  shortest_digits(real, text);
  const char *e = strchr(text, 'e');
  const int exponent = (int)strtol(e + 1, NULL, 10);
  const int digits = (int)(e - text) - (text[0] == '-') - (strchr(text, '.') != NULL);
  if (exponent < -4 || exponent >= 16) return buffer_word(b, to, text);
  const int decimals = digits - 1 - exponent;
  snprintf(plain, sizeof plain, "%.*f", decimals > 1 ? decimals : 1, real);
  return buffer_word(b, to, plain);
}

/* --- str() and repr() --- */

/* One character of a text within quotes. */
static bool represent_character(struct bounds *b, struct buffer *to, uint32_t c, char quote,
                                const char *bytes, size_t length) {
  switch (c) {
  case '\n':
    return buffer_word(b, to, "\\n");
  case '\r':
    return buffer_word(b, to, "\\r");
  case '\t':
    return buffer_word(b, to, "\\t");
  case '\\':
    return buffer_word(b, to, "\\\\");
  default:
    if (c == (unsigned char)quote) return buffer_print(b, to, "\\%c", quote);
    if (unicode_is_printable(c)) return buffer_add(b, to, bytes, length);
    return buffer_print(b, to, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
  }
}

static bool represent_text(struct bounds *b, struct buffer *to, struct value v) {
  const bool doubled =
      memchr(v.text, '\'', v.length) != NULL && memchr(v.text, '"', v.length) == NULL;
  const char quote = doubled ? '"' : '\'';
  if (!buffer_add(b, to, &quote, 1)) return false;
  for (size_t i = 0, length; i < v.length; i += length) {
    const uint32_t c = unicode_read(v.text + i, &length);
    if (!represent_character(b, to, c, quote, v.text + i, length)) return false;
  }
  return buffer_add(b, to, &quote, 1);
}

/* The items of a list, or "key: value" of a dict. */
static bool represent_items(struct bounds *b, struct buffer *to, struct value v, bool pairs) {
  struct value items = v;
  if (pairs) items.kind = VALUE_VIEW, items.part = VALUE_ITEMS;
  struct iterator *i = iterate_value(b, items);
  struct value item;
  for (bool first = true; i && (item = iterate_next(b, i)).kind; first = false) {
    if (!first && !buffer_word(b, to, ", ")) return false;
    if (!pairs) {
      if (!print_represented(b, to, item)) return false;
    } else if (!print_represented(b, to, value_at(item, 0)) || !buffer_word(b, to, ": ") ||
               !print_represented(b, to, value_at(item, 1))) {
      return false;
    }
  }
  return !b->e->status;
}

static bool represent_range(struct bounds *b, struct buffer *to, const struct value_range *r) {
  return buffer_print(b, to, "range(%" PRId64 ", %" PRId64, r->start, r->stop) &&
         (r->step == 1 || buffer_print(b, to, ", %" PRId64, r->step)) && buffer_word(b, to, ")");
}

static bool represent_group(struct bounds *b, struct buffer *to, struct value v) {
  static const struct {
    const char *begin, *end;
  } frames[] = {[VALUE_LIST] = {"[", "]"},
                [VALUE_TUPLE] = {"(", ")"},
                [VALUE_DICT] = {"{", "}"},
                [VALUE_NAMESPACE] = {"<Namespace {", "}>"}};
  if (v.kind == VALUE_VIEW)
    return buffer_print(b, to, "%s([", value_type(v)) && represent_items(b, to, v, false) &&
           buffer_word(b, to, "])");
  const bool pairs = v.kind == VALUE_DICT || v.kind == VALUE_NAMESPACE;
  return buffer_word(b, to, frames[v.kind].begin) && represent_items(b, to, v, pairs) &&
         (v.kind != VALUE_TUPLE || v.list->count != 1 || buffer_word(b, to, ",")) &&
         buffer_word(b, to, frames[v.kind].end);
}

bool print_represented(struct bounds *b, struct buffer *to, struct value v) {
  switch (v.kind) {
  case VALUE_UNDEFINED:
    return buffer_word(b, to, "Undefined");
  case VALUE_NONE:
    return buffer_word(b, to, "None");
  case VALUE_BOOL:
    return buffer_word(b, to, v.truth ? "True" : "False");
  case VALUE_INTEGER:
    return buffer_print(b, to, "%" PRId64, v.integer);
  case VALUE_REAL:
    return print_real(b, to, v.real);
  case VALUE_TEXT:
    return represent_text(b, to, v);
  case VALUE_RANGE:
    return represent_range(b, to, v.range);
  case VALUE_LIST:
  case VALUE_TUPLE:
  case VALUE_DICT:
  case VALUE_VIEW:
  case VALUE_NAMESPACE: {
    if (!bounds_step(b, 1) || !bounds_enter(b)) return false;
    const bool done = represent_group(b, to, v);
    bounds_leave(b);
    return done;
  }
  case VALUE_ITERATOR:
    return bounds_fail(b, "an iterator has no text: add the filter \"list\" or \"join\"");
  default:
    return bounds_fail(b, "a value of the type '%s' has no text", value_type(v));
  }
}

bool print_value(struct bounds *b, struct buffer *to, struct value v) {
  if (v.kind == VALUE_TEXT) return buffer_add(b, to, v.text, v.length);
  return v.kind == VALUE_UNDEFINED || print_represented(b, to, v);
}

struct value print_text(struct bounds *b, struct value v) {
  struct buffer text = {0};
  if (v.kind == VALUE_TEXT) return v;
  return print_value(b, &text, v) ? buffer_value(b, &text) : VALUE_FAILED;
}

/* --- json.dumps() --- */

static bool dump_text(struct bounds *b, struct buffer *to, struct value v, bool ascii) {
  static const char *const names[0x20] = {
      ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t", ['\b'] = "\\b", ['\f'] = "\\f"};
  bool done = buffer_word(b, to, "\"");
  size_t plain = 0; /* where bytes begin that need no escape */
  for (size_t i = 0, length; done && i < v.length; i += length) {
    const uint32_t c = unicode_read(v.text + i, &length);
    if (c >= 0x20 && c != '"' && c != '\\' && !(ascii && c > 0x7e)) continue;
    done = buffer_add(b, to, v.text + plain, i - plain);
    plain = i + length;
    if (!done) break;
    if (c < 0x20 && names[c])
      done = buffer_word(b, to, names[c]);
    else if (c == '"' || c == '\\')
      done = buffer_print(b, to, "\\%c", (char)c);
    else if (c < 0x10000)
      done = buffer_print(b, to, "\\u%04x", c);
    else
      done = buffer_print(b, to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                          0xdc00 + (c & 0x3ff));
  }
  return done && buffer_add(b, to, v.text + plain, v.length - plain) && buffer_word(b, to, "\"");
}

static bool dump_real(struct bounds *b, struct buffer *to, double real) {
  if (isnan(real)) return buffer_word(b, to, "NaN");
  if (isinf(real)) return buffer_word(b, to, real < 0 ? "-Infinity" : "Infinity");
  return print_real(b, to, real);
}

static bool dump_break(struct bounds *b, struct buffer *to, const struct print_json *how,
                       int level) {
  return !how->indent || (buffer_word(b, to, "\n") &&
                          buffer_repeat(b, to, how->indent, strlen(how->indent), level));
}

static bool dump_of(struct bounds *b, struct buffer *to, struct value v,
                    const struct print_json *how, int level);

static bool dump_key(struct bounds *b, struct buffer *to, struct value key,
                     const struct print_json *how) {
  if (key.kind == VALUE_TEXT) return dump_text(b, to, key, how->ascii);
  if (key.kind != VALUE_NONE && !value_is_number(key))
    return bounds_fail(b, "keys must be str, int, float, bool or None, not %s", value_type(key));
  return buffer_word(b, to, "\"") && dump_of(b, to, key, how, 0) && buffer_word(b, to, "\"");
}

/* Appends a list, or the items of a dict. */
static bool dump_group(struct bounds *b, struct buffer *to, struct value items, bool pairs,
                       const struct print_json *how, int level) {
  struct iterator *i = iterate_value(b, items);
  struct value item, comma = how->item_separator, colon = how->key_separator;
  if (!comma.kind) comma = value_word(how->indent ? "," : ", ");
  if (!colon.kind) colon = value_word(": ");
  bool any = false, done = i && buffer_word(b, to, pairs ? "{" : "[");
  while (done && (item = iterate_next(b, i)).kind) {
    done =
        (!any || buffer_add(b, to, comma.text, comma.length)) && dump_break(b, to, how, level + 1);
    if (done && pairs) {
      done = dump_key(b, to, value_at(item, 0), how) && buffer_add(b, to, colon.text, colon.length);
      item = value_at(item, 1);
    }
    done = done && dump_of(b, to, item, how, level + 1);
    any = true;
  }
  return done && !b->e->status && (!any || dump_break(b, to, how, level)) &&
         buffer_word(b, to, pairs ? "}" : "]");
}

static int order_entries(const void *x, const void *y) {
  const struct value first = value_at(*(const struct value *)x, 0),
                     second = value_at(*(const struct value *)y, 0);
  return strcmp(first.text, second.text);
}

/* The items of a dict, by their keys if that is wanted. MISSING after a failure. */
static struct value dump_items(struct bounds *b, struct value v, bool sorted) {
  v.kind = VALUE_VIEW;
  v.part = VALUE_ITEMS;
  if (!sorted) return v;
  struct iterator *i = iterate_value(b, v);
  const struct value list = i ? iterate_list(b, i, VALUE_LIST) : VALUE_FAILED;
  if (!list.kind || !list.list->count) return list;
  for (size_t n = 0; n < list.list->count; n++)
    if (value_at(list.list->item[n], 0).kind != VALUE_TEXT)
      return bounds_fail(b, "only keys that are texts can be sorted"), VALUE_FAILED;
  qsort(list.list->item, list.list->count, sizeof *list.list->item, order_entries);
  return list;
}

static bool dump_of(struct bounds *b, struct buffer *to, struct value v,
                    const struct print_json *how, int level) {
  switch (v.kind) {
  case VALUE_NONE:
    return buffer_word(b, to, "null");
  case VALUE_BOOL:
    return buffer_word(b, to, v.truth ? "true" : "false");
  case VALUE_INTEGER:
    return buffer_print(b, to, "%" PRId64, v.integer);
  case VALUE_REAL:
    return dump_real(b, to, v.real);
  case VALUE_TEXT:
    return dump_text(b, to, v, how->ascii);
  case VALUE_LIST:
  case VALUE_TUPLE:
  case VALUE_DICT: {
    const bool pairs = v.kind == VALUE_DICT;
    if (!bounds_enter(b)) return false;
    const struct value items = pairs ? dump_items(b, v, how->sorted) : v;
    const bool done = items.kind && dump_group(b, to, items, pairs, how, level);
    bounds_leave(b);
    return done;
  }
  default:
    return bounds_fail(b, "Object of type %s is not JSON serializable", value_type(v));
  }
}

bool print_json(struct bounds *b, struct buffer *to, struct value v, const struct print_json *how) {
  return dump_of(b, to, v, how, 0);
}
