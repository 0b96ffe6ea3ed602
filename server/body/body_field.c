/* body_field: the value of one field in JSON, chunk by chunk. */
#include "server/body/body_field.h"

#include "server/body/tensor_base64.h"
#include "server/json/tensor_json.h"
#include "server/json/texts_json.h"
#include "server/number/number.h"

/* --- the beginning of a value --- */

/* Only this form of an array does not tell its size in advance: it needs max_count. */
static void begin_array(struct body_field *v, struct tensor_rule rule, struct error *e) {
  const struct contract *c = v->into->contract;
  if (c->max_count) rule.max_count = c->max_count(v->into, v->index);
  v->array = tensor_json_new(&rule, v->arena, e);
  v->form = BODY_FIELD_ARRAY;
}

static void begin_base64(struct body_field *v, const struct tensor_rule *rule, bool list,
                         struct error *e) {
  const struct contract_field *f = body_field_row(v);
  if (rule->type != TENSOR_FLOAT)
    error_at(e, f->pointer, "%s cannot be base64, which is for floats", contract_name(f));
  else if (list && rule->depth_max < rule->ragged_depth)
    error_at(e, f->pointer, "%s must be one object of base64, not a list", contract_name(f));
  else
    v->objects = tensor_base64_new(rule, list, v->arena, e);
  v->form = BODY_FIELD_BASE64;
}

static void begin_texts(struct body_field *v, struct error *e) {
  const struct contract_field *f = body_field_row(v);
  const struct texts_rule rule = {.field = contract_name(f),
                                  .max_items = v->into->max_items,
                                  .form = f->texts_form,
                                  .or_tokens = contract_is_array(v->into->contract, v->index)};
  v->texts = texts_json_new(&rule, v->arena, e);
  v->form = BODY_FIELD_TEXTS;
}

size_t body_field_begin(struct body_field *v, unsigned index, const char *text, size_t length,
                        size_t offset, struct error *e) {
  const char c = *text;
  v->index = index;
  if (body_field_row(v)->texts) {
    v->opened = 0;
    v->form = BODY_FIELD_EITHER;
    if (!contract_is_array(v->into->contract, index)) begin_texts(v, e);
    return 0;
  }
  const bool word = c == '"' && contract_is_small(body_field_row(v));
  if (word || !contract_is_array(v->into->contract, index)) {
    small_text_begin_long(v->small, offset, contract_longest(body_field_row(v)), v->arena);
    v->form = BODY_FIELD_SMALL;
    return 0;
  }
  const struct tensor_rule rule = contract_rule(v->into, index);
  /* The next byte, which mostly is in this chunk, decides the list's form. */
  if (v->base64 && c == '[' && rule.type == TENSOR_FLOAT &&
      (length == 1 || text[1] == '{' || is_blank(text[1]))) {
    v->list_offset = offset;
    v->form = BODY_FIELD_LIST;
    return 1;
  }
  if (v->base64 && c == '{')
    begin_base64(v, &rule, false, e);
  else
    begin_array(v, rule, e);
  return 0;
}

/* --- the rest of a value --- */

static size_t feed_array(struct body_field *v, const char *text, size_t length, size_t offset,
                         bool *complete, struct error *e) {
  size_t used = 0;
  if (tensor_json_feed(v->array, text, length, offset, &used, complete, e)) return used;
  must(*complete || used == length);
  if (*complete) v->into->tensor[v->index] = tensor_json_view(v->array);
  return used;
}

static size_t feed_texts(struct body_field *v, const char *text, size_t length, size_t offset,
                         bool *complete, struct error *e) {
  const size_t used = texts_json_feed(v->texts, text, length, offset, complete, e);
  const bool second = body_field_row(v)->second;
  if (*complete) *(second ? &v->into->second : &v->into->texts) = texts_json_view(v->texts);
  return used;
}

/* The first byte after '[' that is not blank decides the list's form. A reader of numbers reads the
 * bracket again. */
static size_t feed_list(struct body_field *v, const char *text, size_t length, struct error *e) {
  size_t at = 0;
  bool complete = false;
  while (at < length && is_blank(text[at])) at++;
  if (at == length) return at;
  const struct tensor_rule rule = contract_rule(v->into, v->index);
  if (text[at] == '{') {
    begin_base64(v, &rule, true, e);
    return at;
  }
  begin_array(v, rule, e);
  if (!e->status) feed_array(v, "[", 1, v->list_offset, &complete, e);
  return at;
}

/* The first byte after the brackets decides between numbers and texts; their reader reads the
 * brackets again. The reader of texts rejects a number that is in no list. */
static size_t feed_either(struct body_field *v, const char *text, size_t length, size_t offset,
                          struct error *e) {
  size_t at = 0;
  bool complete = false;
  for (; at < length; at++) {
    if (text[at] == '[' && v->opened < BODY_FIELD_OPENED)
      v->opened_at[v->opened++] = offset + at;
    else if (!is_blank(text[at]))
      break;
  }
  if (at == length) return at;
  const char c = text[at];
  const bool numbers =
      v->opened > 0 && ((c >= '0' && c <= '9') || c == '-' || c == ']' || c == '[');
  if (numbers)
    begin_array(v, contract_rule(v->into, v->index), e);
  else
    begin_texts(v, e);
  for (unsigned i = 0; i < v->opened && !e->status; i++)
    (numbers ? feed_array : feed_texts)(v, "[", 1, v->opened_at[i], &complete, e);
  return at;
}

size_t body_field_feed(struct body_field *v, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e) {
  struct small_text *t = v->small;
  size_t used = 0;
  *complete = false;
  switch (v->form) {
  case BODY_FIELD_LIST:
    return feed_list(v, text, length, e);
  case BODY_FIELD_EITHER:
    return feed_either(v, text, length, offset, e);
  case BODY_FIELD_ARRAY:
    return feed_array(v, text, length, offset, complete, e);
  case BODY_FIELD_BASE64:
    if (tensor_base64_feed(v->objects, text, length, offset, &used, complete, e)) return used;
    must(*complete || used == length);
    if (*complete) v->into->tensor[v->index] = tensor_base64_view(v->objects);
    return used;
  case BODY_FIELD_TEXTS:
    return feed_texts(v, text, length, offset, complete, e);
  default:
    used = small_text_feed(t, text, length, offset, complete, e);
    if (*complete && !t->lost && !e->status)
      contract_read_kept(v->into, v->index, t->text, t->length, t->offset, e);
    return used;
  }
}
