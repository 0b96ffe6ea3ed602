/* answer_style: how a section's text is laid out: as lists, as base64, or as in the Open Inference
 * Protocol (v2). */
#include "server/answer/answer_style.h"

#include "core/base/size.h"
#include "server/text/base64.h"

static const char ITEM_DTYPE[] = "{\"dtype\":\"F32\",\"shape\":", ITEM_SHAPE[] = "{\"shape\":",
                  ITEM_BYTES[] = ",\"base64\":\"", ITEM_END[] = "\"}";
static const char V2_NAME[] = "{\"name\":\"",
                  V2_SHAPE[] = "\",\"datatype\":\"FP32\",\"shape\":", V2_DATA[] = ",\"data\":",
                  V2_BINARY[] = ",\"parameters\":{\"binary_data_size\":", V2_END[] = "}";

_Static_assert(sizeof ITEM_DTYPE + sizeof ITEM_BYTES + sizeof ITEM_END + SHAPE_ROOM <= OBJECT_ROOM,
               "an object of base64 fits");
_Static_assert((int)BASE64_WRITE_MARGIN <= (int)NUMBER_WRITE_MARGIN,
               "the margin after each piece of text is enough for base64");

/* --- room --- */

size_t answer_style_section_room(const struct answer_section *s) {
  size_t room = BRACKETS_ROOM;
  if (s->name) room += strlen(s->name);
  if (s->group) room += strlen(s->group) + BRACKETS_ROOM;
  if (s->instead) room += strlen(s->instead);
  if (s->style == STYLE_FLAT || s->style == STYLE_BINARY)
    room += sizeof V2_NAME + sizeof V2_SHAPE + SHAPE_ROOM + sizeof V2_DATA + sizeof V2_BINARY +
            COUNT_ROOM + sizeof V2_END;
  return room;
}

/* --- opened and closed --- */

/* Returns whether the section's lists are in a list of items. */
static bool has_items(const struct answer_plan *p, const struct answer_section *s) {
  if (p->content->unbatched) return false;
  return s->style == STYLE_BASE64_ITEMS || (s->style == STYLE_LISTS && s->batch);
}

char *answer_style_open(const struct answer_plan *p, const struct answer_section *s, char *out) {
  if (s->style == STYLE_FLAT || s->style == STYLE_BINARY) {
    out = answer_write_text(out, V2_NAME);
    out = answer_write_text(out, s->name);
    out = answer_write_text(out, V2_SHAPE);
    out = answer_write_shape(out, &s->whole);
    if (s->style == STYLE_FLAT) return answer_write_text(out, V2_DATA);
    out = answer_write_text(out, V2_BINARY);
    out = number_write_integer(out, (int64_t)(s->whole.count * sizeof(float)));
    return answer_write_text(out, V2_END);
  }
  if (s->name) {
    *out++ = '"';
    out = answer_write_text(out, s->name);
    *out++ = '"';
    *out++ = ':';
  }
  if (s->instead) return answer_write_text(out, s->instead);
  if (s->members) *out++ = '{';
  if (has_items(p, s)) *out++ = '[';
  return out;
}

char *answer_style_close(const struct answer_plan *p, const struct answer_section *s, char *out) {
  if (s->style == STYLE_FLAT || s->style == STYLE_BINARY) return answer_write_text(out, V2_END);
  if (has_items(p, s)) *out++ = ']';
  if (s->members) *out++ = '}';
  return out;
}

/* --- rows --- */

static char *write_lists(const struct answer_rows *r, bool last, char *out) {
  const struct answer_section *s = r->section;
  struct answer_rows shown = *r; /* the rows that exist */
  const size_t there = s->there ? s->there(s, r->item) : SIZE_MAX;
  if (there < r->first + r->count) shown.count = there > r->first ? there - r->first : 0;
  if (r->first == 0) {
    if (r->item > 0 || r->head > 0) *out++ = ',';
    if (s->members) {
      must(strlen(s->members[r->item]) + sizeof "\"\":" <= NAME_ROOM);
      *out++ = '"';
      out = answer_write_text(out, s->members[r->item]);
      out = answer_write_text(out, "\":");
    }
    if (s->per_head && r->head == 0) *out++ = '[';
    if (!s->single) *out++ = '[';
  } else if (shown.count > 0) {
    *out++ = ',';
  }
  out = s->write(&shown, out);
  if (last) {
    if (!s->single) *out++ = ']';
    if (s->per_head && r->head + 1 == s->heads) *out++ = ']';
  }
  return out;
}

enum { COPIED = 64 * GROUP }; /* floats of a padded array that are written at a time */

static char *write_groups(const struct answer_rows *r, bool last, char *out) {
  const struct answer_section *s = r->section;
  const struct answer_array a =
      s->style == STYLE_BASE64_WHOLE ? s->whole : answer_section_array(s, r->item);
  const size_t size = answer_section_size(s);
  if (r->first == 0) {
    if (r->item > 0) *out++ = ',';
    out = answer_write_text(out, s->number == NUMBER_BYTE ? ITEM_SHAPE : ITEM_DTYPE);
    out = answer_write_shape(out, &a);
    out = answer_write_text(out, ITEM_BYTES);
  }
  if (r->count > 0) {
    size_t from = r->first * GROUP, count = size_min(r->count * GROUP, a.count - from);
    if (s->style == STYLE_BASE64_WHOLE && s->padded) {
      float copy[COPIED];
      for (size_t n; count > 0; from += n, count -= n) {
        n = size_min(count, COPIED);
        answer_section_copy(s, from, n, copy);
        out = base64_write(out, copy, n * sizeof *copy);
      }
    } else {
      out = base64_write(out, (const char *)a.data + from * size, count * size);
    }
  }
  return last ? answer_write_text(out, ITEM_END) : out;
}

/* Writes numbers as rows, then overwrites the brackets inside the one list. */
static char *write_flat(const struct answer_rows *r, bool last, char *out) {
  const struct answer_section *s = r->section;
  float copy[COPIED];
  size_t from = r->first, left = r->count;
  do {
    const size_t n = s->padded ? size_min(left, COPIED) : left;
    const float *data = n > 0 && !s->padded ? (const float *)s->whole.data + from : copy;
    char *begin = out;
    if (s->padded) answer_section_copy(s, from, n, copy);
    out = number_write_rows(out, n > 0 ? data : NULL, 1, n);
    if (from > 0) *begin = ',';
    from += n;
    left -= n;
    if (left > 0 || !last) out--;
  } while (left > 0);
  return out;
}

char *answer_style_write(const struct answer_rows *r, char *out) {
  const struct answer_section *s = r->section;
  const bool last = r->first + r->count == answer_style_rows(s, r->item);
  if (s->style == STYLE_LISTS) return write_lists(r, last, out);
  return s->style == STYLE_FLAT ? write_flat(r, last, out) : write_groups(r, last, out);
}
