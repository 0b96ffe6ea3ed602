/* method_text: the methods of texts. */
#include "config/template/call/method_text.h"

#include <string.h>

#include "config/template/value/buffer.h"
#include "config/template/value/iterate.h"
#include "config/template/value/letters.h"
#include "config/tokenizer/pattern/unicode.h"

/* --- finding --- */

/* The last occurrence, as Rabin and Karp have it: a sum over as many bytes as `of` has rolls from
 * the end to the begin, and the bytes are compared where the sums are equal. */
static const char *search_last(struct bounds *b, const char *text, size_t length, struct value of) {
  enum { BASE = 257 };
  uint64_t sum = 0, wanted = 0, power = 1;
  size_t at = length - of.length;
  for (size_t i = of.length; i-- > 0; power *= BASE) {
    sum = sum * BASE + (unsigned char)text[at + i];
    wanted = wanted * BASE + (unsigned char)of.text[i];
  }
  for (;; at--) {
    if (sum == wanted) {
      if (!bounds_text(b, of.length)) return NULL;
      if (memcmp(text + at, of.text, of.length) == 0) return text + at;
    }
    if (at == 0) return NULL;
    sum =
        sum * BASE + (unsigned char)text[at - 1] - power * (unsigned char)text[at - 1 + of.length];
  }
}

/* The first occurrence from byte `from` on that ends by `end`, or, `last`, the last one. The steps
 * to read the text are the caller's to take. NULL: there is none, or after a failure. */
static const char *search(struct bounds *b, struct value text, size_t from, size_t end,
                          struct value of, bool last) {
  if (end < from || of.length > end - from) return NULL;
  return last ? search_last(b, text.text + from, end - from, of)
              : memmem(text.text + from, end - from, of.text, of.length);
}

/* The bytes from `first` to `last`, positions in characters as of a slice, either of which may be
 * absent. *within is false if `first` is beyond the text. */
static bool bytes_between(struct bounds *b, struct value text, const struct value *bound,
                          size_t *from, size_t *to, bool *within) {
  int64_t first = 0, last, count;
  size_t length;
  const struct value start = bound[0].kind == VALUE_NONE ? VALUE_FAILED : bound[0],
                     stop = bound[1].kind == VALUE_NONE ? VALUE_FAILED : bound[1];
  *within = true, *from = 0, *to = text.length;
  if (!start.kind && !stop.kind) return true;
  if (!value_length(b, text, &length)) return false;
  last = count = (int64_t)length;
  if (!arguments_integer(b, start, 0, &first) || !arguments_integer(b, stop, count, &last))
    return false;
  if (first < 0) first = first + count < 0 ? 0 : first + count;
  if (last < 0) last = last + count < 0 ? 0 : last + count;
  *within = first <= count;
  if (last > count) last = count;
  *within = *within && first <= last;
  *from = value_skip(text.text, text.length, (size_t)first);
  *to = value_skip(text.text, text.length, (size_t)last);
  return true;
}

/* The position of an occurrence in characters; -1: there is none; -2: a failure. */
static int64_t position_of(struct bounds *b, struct value text, const struct value *a, bool last) {
  size_t from, to;
  bool within;
  struct value of;
  if (!arguments_text(b, a[0], a[0], &of) || !bytes_between(b, text, a + 1, &from, &to, &within) ||
      !bounds_text(b, text.length))
    return -2;
  const char *found = within ? search(b, text, from, to, of, last) : NULL;
  if (b->e->status) return -2;
  return found ? (int64_t)value_characters(text.text, (size_t)(found - text.text)) : -1;
}

static struct value found_at(struct bounds *b, int64_t at, bool must_be) {
  if (at == -1 && must_be) bounds_fail(b, "substring not found");
  return at < -1 || (at == -1 && must_be) ? VALUE_FAILED : value_integer(at);
}

static struct value text_find(struct bounds *b, struct value self, const struct value *a) {
  return found_at(b, position_of(b, self, a, false), false);
}
static struct value text_rfind(struct bounds *b, struct value self, const struct value *a) {
  return found_at(b, position_of(b, self, a, true), false);
}
static struct value text_index(struct bounds *b, struct value self, const struct value *a) {
  return found_at(b, position_of(b, self, a, false), true);
}
static struct value text_rindex(struct bounds *b, struct value self, const struct value *a) {
  return found_at(b, position_of(b, self, a, true), true);
}

static struct value text_count(struct bounds *b, struct value self, const struct value *a) {
  size_t from, to;
  bool within;
  struct value of;
  int64_t count = 0;
  if (!arguments_text(b, a[0], a[0], &of) || !bytes_between(b, self, a + 1, &from, &to, &within) ||
      !bounds_text(b, self.length))
    return VALUE_FAILED;
  if (within && of.length == 0)
    return value_integer((int64_t)value_characters(self.text + from, to - from) + 1);
  while (within) {
    const char *found = search(b, self, from, to, of, false);
    if (!found) break;
    from = (size_t)(found - self.text) + of.length;
    count++;
  }
  return value_integer(count);
}

static bool is_at_side(struct bounds *b, struct value self, size_t from, size_t to, struct value of,
                       bool end) {
  return of.length <= to - from && bounds_text(b, of.length) &&
         memcmp(self.text + (end ? to - of.length : from), of.text, of.length) == 0;
}

/* Does it begin, or end, with a text, or with one of a tuple? */
static struct value has_side(struct bounds *b, struct value self, const struct value *a, bool end) {
  size_t from, to;
  bool within, has = false;
  if (!bytes_between(b, self, a + 1, &from, &to, &within)) return VALUE_FAILED;
  const size_t count = a[0].kind == VALUE_TUPLE ? a[0].list->count : 1;
  for (size_t i = 0; i < count && !has && bounds_step(b, 1); i++) {
    const struct value of = a[0].kind == VALUE_TUPLE ? a[0].list->item[i] : a[0];
    if (of.kind != VALUE_TEXT)
      return bounds_fail(b, "%swith needs a string or a tuple of strings, got '%s'",
                         end ? "ends" : "starts", value_type(of)),
             VALUE_FAILED;
    has = within && is_at_side(b, self, from, to, of, end);
  }
  return b->e->status ? VALUE_FAILED : value_bool(has);
}

static struct value text_startswith(struct bounds *b, struct value self, const struct value *a) {
  return has_side(b, self, a, false);
}
static struct value text_endswith(struct bounds *b, struct value self, const struct value *a) {
  return has_side(b, self, a, true);
}

/* --- cutting --- */

static struct value part(struct bounds *b, struct value text, size_t from, size_t to) {
  return value_copy(b, text.text + from, to - from);
}

static bool is_space_at(struct value text, size_t at, size_t *length) {
  return letters_is_space(unicode_read(text.text + at, length));
}

/* Splits at spaces, from the left. */
static struct value split_spaces(struct bounds *b, struct value text, int64_t most) {
  const struct value list = value_list(b, VALUE_LIST);
  for (size_t at = 0, length; list.kind;) {
    while (at < text.length && is_space_at(text, at, &length)) at += length;
    if (at == text.length) break;
    const size_t from = at;
    if (most-- == 0)
      at = text.length; /* the rest, with the spaces at its end */
    else
      while (at < text.length && !is_space_at(text, at, &length)) at += length;
    const struct value word = part(b, text, from, at);
    if (!word.kind || !value_append(b, list, word)) return VALUE_FAILED;
  }
  return list;
}

static struct value reversed(struct value list) {
  for (size_t i = 0, n = list.kind ? list.list->count : 0; i < n / 2; i++) {
    const struct value item = list.list->item[i];
    list.list->item[i] = list.list->item[n - 1 - i];
    list.list->item[n - 1 - i] = item;
  }
  return list;
}

/* Splits at spaces, from the right. */
static struct value rsplit_spaces(struct bounds *b, struct value text, int64_t most) {
  const struct value list = value_list(b, VALUE_LIST);
  for (size_t end = text.length, length; list.kind;) {
    while (end > 0 && letters_is_space(unicode_read_before(text.text, end, &length))) end -= length;
    if (end == 0) break;
    size_t from = end;
    if (most-- == 0) from = 0;
    while (from > 0 && !letters_is_space(unicode_read_before(text.text, from, &length)))
      from -= length;
    const struct value word = part(b, text, from, end);
    if (!word.kind || !value_append(b, list, word)) return VALUE_FAILED;
    end = from;
  }
  return reversed(list);
}

static struct value split_at(struct bounds *b, struct value text, struct value by, int64_t most,
                             bool right) {
  const struct value list = value_list(b, VALUE_LIST);
  size_t from = 0, to = text.length;
  if (by.length == 0) return bounds_fail(b, "empty separator"), VALUE_FAILED;
  while (list.kind && most-- != 0) {
    const char *found = search(b, text, from, to, by, right);
    if (b->e->status) return VALUE_FAILED;
    if (!found) break;
    const size_t at = (size_t)(found - text.text);
    const struct value word = right ? part(b, text, at + by.length, to) : part(b, text, from, at);
    if (!word.kind || !value_append(b, list, word)) return VALUE_FAILED;
    if (right)
      to = at;
    else
      from = at + by.length;
  }
  const struct value rest = list.kind ? part(b, text, from, to) : list;
  if (!rest.kind || !value_append(b, list, rest)) return VALUE_FAILED;
  return right ? reversed(list) : list;
}

static struct value split(struct bounds *b, struct value self, const struct value *a, bool right) {
  int64_t most;
  struct value by;
  if (!arguments_integer(b, a[1], -1, &most) || !bounds_text(b, self.length)) return VALUE_FAILED;
  if (!a[0].kind || a[0].kind == VALUE_NONE)
    return right ? rsplit_spaces(b, self, most) : split_spaces(b, self, most);
  return arguments_text(b, a[0], a[0], &by) ? split_at(b, self, by, most, right) : VALUE_FAILED;
}

static struct value text_split(struct bounds *b, struct value self, const struct value *a) {
  return split(b, self, a, false);
}
static struct value text_rsplit(struct bounds *b, struct value self, const struct value *a) {
  return split(b, self, a, true);
}

static struct value text_splitlines(struct bounds *b, struct value self, const struct value *a) {
  const struct value list = bounds_text(b, self.length) ? value_list(b, VALUE_LIST) : VALUE_FAILED;
  for (size_t at = 0, end; list.kind && at < self.length;) {
    const size_t length = letters_line(self, at, &end);
    const struct value line =
        part(b, self, at, at + length + (arguments_truth(a[0], false) ? end : 0));
    if (!line.kind || !value_append(b, list, line)) return VALUE_FAILED;
    at += length + end;
  }
  return list;
}

static struct value partition(struct bounds *b, struct value self, struct value by, bool right) {
  if (by.kind != VALUE_TEXT || by.length == 0)
    return bounds_fail(b, "a separator that is not empty is needed"), VALUE_FAILED;
  if (!bounds_text(b, self.length)) return VALUE_FAILED;
  const char *found = search(b, self, 0, self.length, by, right);
  if (b->e->status) return VALUE_FAILED;
  const size_t at = found ? (size_t)(found - self.text) : 0;
  const struct value empty = value_word(""),
                     rest = found ? part(b, self, at + by.length, self.length) : empty;
  const struct value list = value_list(b, VALUE_TUPLE);
  const struct value first = found ? part(b, self, 0, at) : right ? empty : self;
  return list.kind && first.kind && rest.kind && value_append(b, list, first) &&
                 value_append(b, list, found ? by : empty) &&
                 value_append(b, list, found || !right ? rest : self)
             ? list
             : VALUE_FAILED;
}

static struct value text_partition(struct bounds *b, struct value self, const struct value *a) {
  return partition(b, self, a[0], false);
}
static struct value text_rpartition(struct bounds *b, struct value self, const struct value *a) {
  return partition(b, self, a[0], true);
}

/* --- stripping and filling --- */

static struct value strip(struct bounds *b, struct value self, const struct value *a, bool left,
                          bool right) {
  struct value set = a[0].kind == VALUE_NONE ? VALUE_FAILED : a[0];
  return arguments_text(b, set, set, &set) ? letters_strip(b, self, set, left, right)
                                           : VALUE_FAILED;
}

static struct value text_strip(struct bounds *b, struct value self, const struct value *a) {
  return strip(b, self, a, true, true);
}
static struct value text_lstrip(struct bounds *b, struct value self, const struct value *a) {
  return strip(b, self, a, true, false);
}
static struct value text_rstrip(struct bounds *b, struct value self, const struct value *a) {
  return strip(b, self, a, false, true);
}

static struct value text_removeprefix(struct bounds *b, struct value self, const struct value *a) {
  struct value of;
  if (!arguments_text(b, a[0], a[0], &of)) return VALUE_FAILED;
  if (is_at_side(b, self, 0, self.length, of, false)) return part(b, self, of.length, self.length);
  return b->e->status ? VALUE_FAILED : self;
}
static struct value text_removesuffix(struct bounds *b, struct value self, const struct value *a) {
  struct value of;
  if (!arguments_text(b, a[0], a[0], &of)) return VALUE_FAILED;
  if (is_at_side(b, self, 0, self.length, of, true))
    return part(b, self, 0, self.length - of.length);
  return b->e->status ? VALUE_FAILED : self;
}

/* Adds `left` and `right` characters at the sides. */
static struct value pad(struct bounds *b, struct value text, struct value with, int64_t left,
                        int64_t right) {
  struct buffer out = {0};
  size_t count = 0;
  if (with.kind == VALUE_TEXT && !value_length(b, with, &count)) return VALUE_FAILED;
  if (with.kind && count != 1)
    return bounds_fail(b, "the fill character must be exactly one character long"), VALUE_FAILED;
  if (!with.kind) with = value_word(" ");
  return buffer_repeat(b, &out, with.text, with.length, left) &&
                 buffer_add(b, &out, text.text, text.length) &&
                 buffer_repeat(b, &out, with.text, with.length, right)
             ? buffer_value(b, &out)
             : VALUE_FAILED;
}

/* The characters that a text lacks to have a width. False after a failure. */
static bool lacking(struct bounds *b, struct value text, int64_t width, int64_t *lacks) {
  size_t has;
  if (!value_length(b, text, &has)) return false;
  *lacks = width > (int64_t)has ? width - (int64_t)has : 0;
  return true;
}

struct value method_text_center(struct bounds *b, struct value text, int64_t width,
                                struct value with) {
  int64_t lacks;
  if (!lacking(b, text, width, &lacks)) return VALUE_FAILED;
  const int64_t left = lacks / 2 + (lacks & width & 1);
  return pad(b, text, with, left, lacks - left);
}

static struct value text_center(struct bounds *b, struct value self, const struct value *a) {
  int64_t width;
  return arguments_integer(b, a[0], 0, &width) ? method_text_center(b, self, width, a[1])
                                               : VALUE_FAILED;
}
static struct value text_ljust(struct bounds *b, struct value self, const struct value *a) {
  int64_t width, lacks;
  return arguments_integer(b, a[0], 0, &width) && lacking(b, self, width, &lacks)
             ? pad(b, self, a[1], 0, lacks)
             : VALUE_FAILED;
}
static struct value text_rjust(struct bounds *b, struct value self, const struct value *a) {
  int64_t width, lacks;
  return arguments_integer(b, a[0], 0, &width) && lacking(b, self, width, &lacks)
             ? pad(b, self, a[1], lacks, 0)
             : VALUE_FAILED;
}

static struct value text_zfill(struct bounds *b, struct value self, const struct value *a) {
  int64_t width, lacks;
  if (!arguments_integer(b, a[0], 0, &width) || !lacking(b, self, width, &lacks))
    return VALUE_FAILED;
  struct buffer out = {0};
  const size_t sign = self.length > 0 && (self.text[0] == '-' || self.text[0] == '+');
  return buffer_add(b, &out, self.text, sign) && buffer_repeat(b, &out, "0", 1, lacks) &&
                 buffer_add(b, &out, self.text + sign, self.length - sign)
             ? buffer_value(b, &out)
             : VALUE_FAILED;
}

/* --- making others --- */

struct value method_text_replace(struct bounds *b, struct value text, struct value old,
                                 struct value new, int64_t most) {
  struct buffer out = {0};
  size_t at = 0;
  if (!bounds_text(b, text.length)) return VALUE_FAILED;
  while (most != 0 && at <= text.length) {
    const char *found = search(b, text, at, text.length, old, false);
    if (!found) break;
    size_t before = (size_t)(found - text.text) - at, length = 0;
    if (!bounds_step(b, 1) || !buffer_add(b, &out, text.text + at, before) ||
        !buffer_add(b, &out, new.text, new.length))
      return VALUE_FAILED;
    at += before + old.length;
    most--;
    if (old.length > 0) continue;
    if (at == text.length) return buffer_value(b, &out);
    unicode_read(text.text + at, &length); /* nothing is found before each character */
    if (!buffer_add(b, &out, text.text + at, length)) return VALUE_FAILED;
    at += length;
  }
  return buffer_add(b, &out, text.text + at, text.length - at) ? buffer_value(b, &out)
                                                               : VALUE_FAILED;
}

static struct value text_replace(struct bounds *b, struct value self, const struct value *a) {
  struct value old, new;
  int64_t most;
  return arguments_text(b, a[0], a[0], &old) && arguments_text(b, a[1], a[1], &new) &&
                 arguments_integer(b, a[2], -1, &most)
             ? method_text_replace(b, self, old, new, most)
             : VALUE_FAILED;
}

static struct value text_join(struct bounds *b, struct value self, const struct value *a) {
  struct buffer out = {0};
  struct iterator *i = iterate_value(b, a[0]);
  struct value item;
  for (size_t n = 0; i && (item = iterate_next(b, i)).kind; n++) {
    if (item.kind != VALUE_TEXT)
      return bounds_fail(b, "sequence item %zu: expected str instance, %s found", n,
                         value_type(item)),
             VALUE_FAILED;
    if ((n && !buffer_add(b, &out, self.text, self.length)) ||
        !buffer_add(b, &out, item.text, item.length))
      return VALUE_FAILED;
  }
  return b->e->status ? VALUE_FAILED : buffer_value(b, &out);
}

#define CASE(name, to)                                                                          \
  static struct value text_##name(struct bounds *b, struct value self, const struct value *a) { \
    (void)a;                                                                                    \
    return letters_case(b, self, to);                                                           \
  }
CASE(upper, LETTERS_UPPER)
CASE(lower, LETTERS_LOWER)
CASE(capitalize, LETTERS_CAPITALIZED)
CASE(title, LETTERS_TITLE)
CASE(swapcase, LETTERS_SWAPPED)

#define CLASS(name, is)                                                                         \
  static struct value text_##name(struct bounds *b, struct value self, const struct value *a) { \
    bool are;                                                                                   \
    (void)a;                                                                                    \
    return letters_are(b, self, is, &are) ? value_bool(are) : VALUE_FAILED;                     \
  }
CLASS(isalpha, LETTERS_ALPHA)
CLASS(isalnum, LETTERS_ALNUM)
CLASS(isdecimal, LETTERS_DECIMAL)
CLASS(isdigit, LETTERS_DIGIT)
CLASS(isnumeric, LETTERS_NUMERIC)
CLASS(isspace, LETTERS_SPACE)
CLASS(islower, LETTERS_ARE_LOWER)
CLASS(isupper, LETTERS_ARE_UPPER)
CLASS(isascii, LETTERS_ASCII)

/* --- all --- */

#define METHOD(name, ...)                                              \
  {                                                                    \
    VALUE_TEXT, #name, .apply = text_##name, .wanted = { __VA_ARGS__ } \
  }

static const struct method_row methods[] = {METHOD(strip, {"-"}, 0),
                                            METHOD(lstrip, {"-"}, 0),
                                            METHOD(rstrip, {"-"}, 0),
                                            METHOD(split, {"sep", "maxsplit"}, 0),
                                            METHOD(rsplit, {"sep", "maxsplit"}, 0),
                                            METHOD(splitlines, {"keepends"}, 0),
                                            METHOD(startswith, {"-", "-", "-"}, 1),
                                            METHOD(endswith, {"-", "-", "-"}, 1),
                                            METHOD(replace, {"-", "-", "-"}, 2),
                                            METHOD(upper, {0}, 0),
                                            METHOD(lower, {0}, 0),
                                            METHOD(capitalize, {0}, 0),
                                            METHOD(title, {0}, 0),
                                            METHOD(swapcase, {0}, 0),
                                            METHOD(find, {"-", "-", "-"}, 1),
                                            METHOD(rfind, {"-", "-", "-"}, 1),
                                            METHOD(index, {"-", "-", "-"}, 1),
                                            METHOD(rindex, {"-", "-", "-"}, 1),
                                            METHOD(count, {"-", "-", "-"}, 1),
                                            METHOD(join, {"-"}, 1),
                                            METHOD(partition, {"-"}, 1),
                                            METHOD(rpartition, {"-"}, 1),
                                            METHOD(removeprefix, {"-"}, 1),
                                            METHOD(removesuffix, {"-"}, 1),
                                            METHOD(center, {"-", "-"}, 1),
                                            METHOD(ljust, {"-", "-"}, 1),
                                            METHOD(rjust, {"-", "-"}, 1),
                                            METHOD(zfill, {"-"}, 1),
                                            METHOD(isalpha, {0}, 0),
                                            METHOD(isalnum, {0}, 0),
                                            METHOD(isdecimal, {0}, 0),
                                            METHOD(isdigit, {0}, 0),
                                            METHOD(isnumeric, {0}, 0),
                                            METHOD(isspace, {0}, 0),
                                            METHOD(islower, {0}, 0),
                                            METHOD(isupper, {0}, 0),
                                            METHOD(isascii, {0}, 0)};

const struct method_row *method_text_find(const char *name) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (strcmp(methods[i].name, name) == 0) return &methods[i];
  return NULL;
}
