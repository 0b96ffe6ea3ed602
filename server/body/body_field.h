/* body_field: the value of one field in JSON, chunk by chunk: an array of numbers, an array in
 * base64, texts, or a small value. */
#ifndef SERVER_BODY_FIELD_H
#define SERVER_BODY_FIELD_H

#include "server/body/contract.h"
#include "server/json/json_small.h"

enum body_field_form {
  BODY_FIELD_LIST,   /* after '[': a list of floats, or of objects with base64 */
  BODY_FIELD_EITHER, /* texts or numbers, not yet known */
  BODY_FIELD_ARRAY,
  BODY_FIELD_BASE64,
  BODY_FIELD_TEXTS,
  BODY_FIELD_SMALL
};

enum { BODY_FIELD_OPENED = 2 }; /* most brackets before a number or text */

struct body_field {
  struct contract_reading *into;
  struct arena *arena;
  struct small_text *small; /* the reader's, for small values */
  bool base64;              /* whether an array may be base64 */
  unsigned index;           /* the field in its contract */
  enum body_field_form form;
  size_t list_offset;                  /* BODY_FIELD_LIST: offset of its '[' in the body */
  unsigned opened;                     /* BODY_FIELD_EITHER: brackets so far, */
  size_t opened_at[BODY_FIELD_OPENED]; /* and their offsets */
  struct tensor_json *array;
  struct tensor_base64 *objects;
  struct texts_json *texts;
};

static inline const struct contract_field *body_field_row(const struct body_field *v) {
  return &v->into->contract->field[v->index];
}

/* Begins the value of the field `index` at text[0], which a value may begin with. Returns how many
 * bytes were read; the rest goes to body_field_feed. Failures are in `e`. */
size_t body_field_begin(struct body_field *v, unsigned index, const char *text, size_t length,
                        size_t offset, struct error *e);

/* As json_skim_feed. Stores a complete value in v->into, except a small value that v->small has
 * lost: the caller rejects that. */
size_t body_field_feed(struct body_field *v, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

#endif
