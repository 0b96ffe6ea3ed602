/* shape_text: the shape of an array in base64, chunk by chunk. */
#include "server/json/shape_text.h"

#include <stdio.h>

#include "server/json/json_skim.h"
#include "server/number/blank.h"

void shape_text_init(struct shape_text *t, struct tensor_form *form, const char *pointer) {
  *t = (struct shape_text){.form = form, .pointer = pointer, .state = SHAPE_FIRST};
}

static bool refuse_dim(const struct shape_text *t, const char *why, struct error *e) {
  char pointer[ERROR_POINTER_SIZE];
  snprintf(pointer, sizeof pointer, "%s/%u", t->pointer, t->form->rank);
  error_at(e, pointer, "%s", why);
  return false;
}

/* The dimension is whole. */
static bool end_dim(struct shape_text *t, struct error *e) {
  int32_t dim;
  const enum number_verdict verdict = number_scan_integer(&t->dim, &dim);
  if (verdict == NUMBER_MALFORMED)
    return refuse_dim(t, "a dimension must be an integer without fraction or exponent", e);
  if (verdict == NUMBER_OK && dim < 0) return refuse_dim(t, "a dimension must not be negative", e);
  if (verdict != NUMBER_OK)
    return refuse_dim(t, "the dimension exceeds the 32-bit integer range", e);
  if (t->form->rank < TENSOR_DEPTH_MAX) t->form->dim[t->form->rank] = (size_t)dim;
  t->form->rank++;
  t->state = SHAPE_BEHIND;
  return true;
}

/* Reads a byte that is no blank. *taken is false if a dimension ends in front of it: it is to be
 * read again. */
static bool read_byte(struct shape_text *t, char c, size_t offset, bool *taken, struct error *e) {
  *taken = true;
  if (t->state == SHAPE_BEHIND) {
    t->state = SHAPE_NEXT;
    return c == ',' || json_unexpected(e, offset, c, "',' or ']'") == STATUS_OK;
  }
  if (t->state != SHAPE_WITHIN) {
    if (!json_starts_value(c)) return json_unexpected(e, offset, c, "an integer") == STATUS_OK;
    if (c != '-' && (c < '0' || c > '9')) return refuse_dim(t, "expected an integer", e);
    number_scan_begin(&t->dim);
    t->state = SHAPE_WITHIN;
  }
  switch (number_scan_byte(&t->dim, c)) {
  case NUMBER_SCAN_TAKEN:
    return true;
  case NUMBER_SCAN_MALFORMED:
    return json_unexpected(e, offset, c, "a digit") == STATUS_OK;
  default:
    *taken = false;
    return end_dim(t, e);
  }
}

const char *shape_text_feed(struct shape_text *t, const char *text, size_t length, size_t offset,
                            bool *complete, struct error *e) {
  for (size_t at = 0; at < length;) {
    const char c = text[at];
    bool taken = true;
    if (c == ']' && (t->state == SHAPE_FIRST || t->state == SHAPE_BEHIND)) {
      *complete = true;
      return text + at + 1;
    }
    if ((t->state == SHAPE_WITHIN || !is_blank(c)) && !read_byte(t, c, offset + at, &taken, e))
      return NULL;
    at += taken;
  }
  return text + length;
}
