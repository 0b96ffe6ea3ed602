/* dialect_fields: fields that several dialects have: the model's name, and readers of small values,
 * which fail with invalid-request at the field's place. */
#ifndef SERVER_DIALECT_FIELDS_H
#define SERVER_DIALECT_FIELDS_H

#include <stddef.h>

#include "config/document/text.h"
#include "server/body/contract.h"

struct json_t;

enum {
  DIALECT_USER_LONGEST = 16 * 1024 /* bytes of "user", which is ignored */
};

/* The small values that dialects have, each some of them. Those of completions begin with them. */
struct dialect_values {
  bool names_model;
  char model[MODEL_NAME_SIZE]; /* empty for a name that no model can have */

  size_t truncate; /* as in stack_values */
  struct contract_text prompt, prompt_name;

  /* Embeddings have these. */
  bool base64, normalize;
  size_t dimensions; /* 0: all */

  bool special; /* whether special tokens are added to texts, or left out of them */

  /* Rankings have these; `raw` classes, too. */
  struct contract_text query;
  size_t best;      /* documents that are returned, at most; 0: all */
  bool shows_texts; /* whether the response has the documents' texts */
  bool raw;         /* whether scores of a classifier are without its function */
};

/* Rows of a table of fields: a field whose value goes to a member, and those that are alike in all
 * dialects. */
#define DIALECT_NAMED(name) .pointer = "/" name, .name_length = sizeof name - 1
#define DIALECT_VALUE(name, reader, member) \
  DIALECT_NAMED(name), .read = reader, .at = offsetof(struct dialect_values, member)
#define DIALECT_MODEL \
  { DIALECT_NAMED("model"), .read = dialect_read_model, .nullable = true }
#define DIALECT_USER                                                    \
  {                                                                     \
    DIALECT_NAMED("user"), .read = dialect_pass_text, .nullable = true, \
                           .longest = DIALECT_USER_LONGEST              \
  }

/* Texts, or lists of tokens. */
#define DIALECT_TEXTS_OR_TOKENS                                                        \
  .rule = {.type = TENSOR_INTEGER, .depth_min = 1, .depth_max = 2, .ragged_depth = 2}, \
  .texts = true, .texts_form = TEXTS_ALONE

/* The members of a contract with the tables `fields` and `strays`. */
#define DIALECT_CONTRACT                                                      \
  .field = fields, .fields = sizeof fields / sizeof *fields, .stray = strays, \
  .strays = sizeof strays / sizeof *strays

/* Whether the log probability of each token is returned, and how many of the most likely tokens in
 * its place. */
struct dialect_logprobs {
  bool wanted;
  size_t top;
};

/* The model's name, to a struct dialect_values; and a text that is ignored. */
enum status dialect_read_model(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);
enum status dialect_pass_text(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* An unsupported option, which must be off: 0, false, or empty. And "stream_options", whose
 * "include_usage" goes to a bool. */
enum status dialect_pass_nothing(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);
enum status dialect_read_stream_options(const struct json_t *value,
                                        const struct contract_field *field, void *to,
                                        struct error *e);

/* "logprobs", a number or false, to a struct dialect_logprobs; "top_logprobs", its number alone, to
 * a size_t; and "max_tokens", to a size_t. */
enum status dialect_read_top_logprobs(const struct json_t *value,
                                      const struct contract_field *field, void *to,
                                      struct error *e);
enum status dialect_read_logprobs(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);
enum status dialect_read_max_tokens(const struct json_t *value, const struct contract_field *field,
                                    void *to, struct error *e);

/* A contract's plan_cost while the model is not known. Items are those of the first field, texts or
 * tokens. */
uint64_t dialect_plan_cost(const struct contract_reading *r);

#endif
