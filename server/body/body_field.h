/* body_field: the value of one field in a JSON text, chunk by chunk: an array of numbers, an array
 * in base64, texts, or a small value. */
#ifndef SERVER_BODY_FIELD_H
#define SERVER_BODY_FIELD_H

#include "server/body/contract.h"
#include "server/json/json_small.h"

enum body_field_form {
  BODY_FIELD_LIST,   /* behind the '[' of floats: of numbers, or of objects with base64 */
  BODY_FIELD_EITHER, /* before what says whether these are texts or numbers */
  BODY_FIELD_ARRAY,
  BODY_FIELD_BASE64,
  BODY_FIELD_TEXTS,
  BODY_FIELD_SMALL
};

enum { BODY_FIELD_OPENED = 2 }; /* brackets before a number, or a text, of a list of lists */

struct body_field {
  struct contract_reading *into;
  struct arena *arena;
  struct small_text *small; /* the reader's, for small values */
  bool base64;              /* may an array be base64? */
  unsigned index;           /* the field in its contract */
  enum body_field_form form;
  size_t list_offset; /* of the '[' before BODY_FIELD_LIST */
  unsigned opened;    /* brackets of BODY_FIELD_EITHER, which are here: */
  size_t opened_at[BODY_FIELD_OPENED];
  struct tensor_json *array;
  struct tensor_base64 *objects;
  struct texts_json *texts;
};

static inline const struct contract_field *body_field_row(const struct body_field *v) {
  return &v->into->contract->field[v->index];
}

/* The value of the field `index` begins at `text`, which may be a value's first byte. Returns how
 * many bytes were used; what is left goes to body_field_feed. Fails with an error. */
size_t body_field_begin(struct body_field *v, unsigned index, const char *text, size_t length,
                        size_t offset, struct error *e);

/* As json_skim_feed. A complete value is stored in v->into, unless it is small and v->small has
 * lost some of it: the caller refuses that. */
size_t body_field_feed(struct body_field *v, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

#endif
