/* attribute: parts of values: x.name, x[key], x[first:last:step]. */
#include "config/template/call/attribute.h"

#include <string.h>

#include "config/template/call/arguments.h"
#include "config/template/call/loop.h"
#include "config/template/call/method.h"
#include "config/template/value/buffer.h"
#include "config/template/value/compare.h"
#include "config/tokenizer/pattern/unicode.h"

/* Names of Python's own attributes; for these, the sandbox has nothing. */
static bool is_hidden(struct value name) {
  return name.length > 4 && memcmp(name.text, "__", 2) == 0 &&
         memcmp(name.text + name.length - 2, "__", 2) == 0;
}

/* Python's getattr(). MISSING: nothing, or after a failure. */
static struct value own_attribute(struct bounds *b, struct value x, struct value name) {
  bool found;
  if (x.kind == VALUE_NAMESPACE) return compare_find(b, x, name);
  if (x.kind == VALUE_LOOP) {
    const struct value v = loop_attribute(b, (struct loop *)x.object, name, &found);
    if (found) return v;
  }
  return method_get(b, x, name);
}

/* Python's x[key]. MISSING: nothing, or after a failure. */
static struct value own_item(struct bounds *b, struct value x, struct value key) {
  size_t count, index;
  if (x.kind == VALUE_DICT)
    return value_is_hashable(b, key) ? compare_find(b, x, key) : VALUE_FAILED;
  if (!value_is_integer(key)) return VALUE_FAILED;
  if (x.kind == VALUE_TEXT) {
    if (!bounds_text(b, x.length)) return VALUE_FAILED;
    if (!value_index(value_as_integer(key), value_characters(x.text, x.length), &index))
      return VALUE_FAILED;
    const size_t at = value_skip(x.text, x.length, index);
    size_t length;
    unicode_read(x.text + at, &length);
    return value_copy(b, x.text + at, length);
  }
  const bool list = x.kind == VALUE_LIST || x.kind == VALUE_TUPLE || x.kind == VALUE_RANGE;
  return list && value_items(x, &count) && value_index(value_as_integer(key), count, &index)
             ? value_at(x, index)
             : VALUE_FAILED;
}

struct value attribute_get(struct bounds *b, struct value x, struct value name) {
  if (is_hidden(name)) return value_unsafe(b, name, x);
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  struct value found = own_attribute(b, x, name);
  if (!found.kind && !b->e->status) found = own_item(b, x, name);
  return found.kind || b->e->status ? found : value_undefined(b, name, x);
}

struct value attribute_item(struct bounds *b, struct value x, struct value key) {
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  struct value found = own_item(b, x, key);
  if (!found.kind && !b->e->status && key.kind == VALUE_TEXT)
    found = is_hidden(key) ? value_unsafe(b, key, x) : own_attribute(b, x, key);
  return found.kind || b->e->status ? found : value_undefined(b, key, x);
}

/* --- slices --- */

/* A bound of a slice within 0 to `count`, as Python takes it. */
static bool slice_bound(struct bounds *b, struct value v, int64_t count, int64_t step,
                        int64_t otherwise, int64_t *out) {
  *out = otherwise;
  if (!v.kind || v.kind == VALUE_NONE) return true;
  if (!value_is_integer(v))
    return bounds_fail(b, "slice indices must be integers or None, not '%s'", value_type(v));
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? count - 1 : count;
  int64_t at = value_as_integer(v);
  if (at < 0) at += count;
  *out = at < low ? low : at > high ? high : at;
  return true;
}

static struct value slice_text(struct bounds *b, struct value x, int64_t first, int64_t step,
                               size_t count) {
  struct buffer out = {0};
  if (step == 1) {
    const size_t begin = value_skip(x.text, x.length, (size_t)first);
    return value_copy(b, x.text + begin, value_skip(x.text + begin, x.length - begin, count));
  }
  size_t at = count ? value_skip(x.text, x.length, (size_t)first) : 0, length;
  for (size_t i = 0; i < count; i++) {
    unicode_read(x.text + at, &length);
    if (!buffer_add(b, &out, x.text + at, length)) return VALUE_FAILED;
    for (int64_t n = 0; i + 1 < count && n < (step < 0 ? -step : step); n++) {
      if (step > 0)
        unicode_read(x.text + at, &length), at += length;
      else
        unicode_read_before(x.text, at, &length), at -= length;
    }
  }
  return buffer_value(b, &out);
}

struct value attribute_slice(struct bounds *b, struct value x, const struct value bound[3]) {
  size_t size;
  int64_t step = 1, first, last;
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  const bool list = x.kind == VALUE_LIST || x.kind == VALUE_TUPLE || x.kind == VALUE_RANGE;
  if (!list && x.kind != VALUE_TEXT)
    return bounds_fail(b, "'%s' object cannot be sliced", value_type(x)), VALUE_FAILED;
  if (!value_length(b, x, &size)) return VALUE_FAILED;
  const int64_t count = (int64_t)size;
  if (bound[2].kind && bound[2].kind != VALUE_NONE && !arguments_integer(b, bound[2], 1, &step))
    return VALUE_FAILED;
  if (step == 0) return bounds_fail(b, "slice step cannot be zero"), VALUE_FAILED;
  if (step == INT64_MIN) step++; /* as large, and it can be negated */
  if (!slice_bound(b, bound[0], count, step, step < 0 ? count - 1 : 0, &first) ||
      !slice_bound(b, bound[1], count, step, step < 0 ? -1 : count, &last))
    return VALUE_FAILED;
  const int64_t far = step > 0 ? last - first : first - last, by = step > 0 ? step : -step;
  const size_t taken = far > 0 ? (size_t)((far - 1) / by + 1) : 0;
  if (x.kind == VALUE_TEXT) return slice_text(b, x, first, step, taken);
  if (x.kind == VALUE_RANGE) {
    const struct value_range *r = x.range;
    const uint64_t by_one = (uint64_t)r->step, start = (uint64_t)r->start;
    return value_range(b, (int64_t)(start + (uint64_t)first * by_one),
                       (int64_t)(start + (uint64_t)last * by_one),
                       (int64_t)(by_one * (uint64_t)step));
  }
  const struct value out = value_list(b, x.kind);
  for (size_t i = 0; out.kind && i < taken; i++)
    if (!value_append(b, out, value_at(x, (size_t)(first + (int64_t)i * step))))
      return VALUE_FAILED;
  return out;
}

/* --- paths --- */

/* A part of a path of digits alone is an index. */
static struct value part_of(struct bounds *b, const char *text, size_t length) {
  enum { DIGITS_MOST = 18 };
  int64_t index = 0;
  size_t i = 0;
  for (; i < length && i < DIGITS_MOST && text[i] >= '0' && text[i] <= '9'; i++)
    index = index * 10 + (text[i] - '0');
  return length > 0 && i == length ? value_integer(index) : value_copy(b, text, length);
}

struct value attribute_path(struct bounds *b, struct value x, struct value path,
                            struct value otherwise) {
  if (!path.kind || path.kind == VALUE_NONE) return x;
  const bool replaces = otherwise.kind && otherwise.kind != VALUE_NONE;
  for (size_t at = 0; x.kind;) {
    size_t length = 0;
    struct value part = path;
    if (path.kind == VALUE_TEXT) {
      const char *dot = memchr(path.text + at, '.', path.length - at);
      length = dot ? (size_t)(dot - path.text) - at : path.length - at;
      part = part_of(b, path.text + at, length);
    }
    if (!part.kind || !bounds_step(b, 1)) return VALUE_FAILED;
    x = attribute_item(b, x, part);
    if (x.kind == VALUE_UNDEFINED && replaces) x = otherwise;
    at += length + 1;
    if (path.kind != VALUE_TEXT || at > path.length) break;
  }
  return x;
}
