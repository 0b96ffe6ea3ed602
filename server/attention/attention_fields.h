/* attention_fields: the fields of a request: their names, their forms, and their values as read,
 * before they are held against each other. Private to attention. */
#ifndef SERVER_ATTENTION_FIELDS_H
#define SERVER_ATTENTION_FIELDS_H

#include "server/attention/attention_body.h"
#include "server/body/tensor.h"

enum attention_field {
  /* Arrays, which are read from the text straight into memory. */
  FIELD_QUERIES,
  FIELD_KEYS,
  FIELD_VALUES,
  FIELD_VALID_LENS,
  FIELD_MASK,
  FIELD_BIAS,
  FIELD_HEAD_MASK,
  FIELD_SEGMENTS,
  FIELD_GRADIENTS,
  FIELD_CAUSAL_OFFSET, /* or the word "end" */
  FIELD_TENSORS,

  /* Small values, which are collected and then parsed. */
  FIELD_CAUSAL = FIELD_TENSORS,
  FIELD_WINDOW,
  FIELD_SELECT,
  FIELD_SEED,
  FIELD_EMPTY_ROWS,
  FIELD_RETURN_ATTENTION,
  FIELD_RETURN_POINTERS,
  FIELD_ENCODING_FORMAT,
  FIELD_COUNT
};

/* A request as its fields say it. */
struct fields {
  const struct tensor *tensor[FIELD_TENSORS]; /* NULL: absent */
  bool offset_end;                            /* causal_offset is "end" */
  bool causal;
  int64_t window[2];
  enum select select;
  uint64_t seed;
  bool uniform_rows;
  enum weights want;
  bool want_pointers;
  bool base64; /* encoding_format */
};

void fields_init(struct fields *f, const struct model *m);

const char *field_name(enum attention_field field);
const char *field_pointer(enum attention_field field); /* "/keys" */

/* The field whose name is the JSON string `raw`, quotes included, which stands at `offset`. */
enum status field_of_name(const char *raw, size_t length, size_t offset, enum attention_field *out,
                          struct error *e);

/* The field of a name that is no JSON any more; it is UTF-8. */
enum status field_of_word(const char *name, size_t length, enum attention_field *out,
                          struct error *e);

/* Notes that a field is there, a bit each: it may stand once, and gradients only where heads are
 * measured. */
enum status field_note(uint32_t *seen, enum attention_field field, enum body_ask ask,
                       struct error *e);

/* A name that is longer than any known one, of which `raw` is the beginning. */
enum status field_name_too_long(const char *raw, size_t length, struct error *e);

/* What the array of a field may look like. */
struct tensor_rule field_rule(enum attention_field field, const struct model *m,
                              const struct body_limits *limits);

/* Parses the text of a small field and keeps its value. */
enum status field_read(struct fields *out, enum attention_field field, const char *text,
                       size_t length, size_t offset, struct error *e);

/* Parses a small value, of at most JSON_SMALL_MAX bytes, that stands at `offset` of the body and
 * whose JSON Pointer is `pointer`. NULL with an error. */
struct json_t *field_parse(const char *text, size_t length, size_t offset, const char *pointer,
                           struct error *e);

/* The last step: holds the fields against each other, the model and the limits, and makes the
 * call. Takes from the arena only what the limits allow. */
enum status attention_check(const struct fields *f, const struct model *m,
                            const struct body_terms *head, const struct body_limits *limits,
                            struct arena *a, struct attention_request *out, struct error *e);

#endif
