/* dialect_fields: fields that several dialects have: the model's name, and readers of small values,
 * which fail with invalid-request at the field's place. */
#ifndef SERVER_DIALECT_FIELDS_H
#define SERVER_DIALECT_FIELDS_H

#include "config/document/text.h"
#include "server/body/contract.h"

struct json_t;

enum {
  DIALECT_USER_LONGEST = 16 * 1024 /* bytes of "user", which is ignored */
};

/* The small values of each dialect begin with these. */
struct dialect_values {
  bool names_model;
  char model[MODEL_NAME_SIZE]; /* empty for a name that no model can have */
};

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

/* "logprobs", a number or false, to a struct dialect_logprobs; and "max_tokens", to a size_t. */
enum status dialect_read_logprobs(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);
enum status dialect_read_max_tokens(const struct json_t *value, const struct contract_field *field,
                                    void *to, struct error *e);

/* A contract's plan_cost while the model is not known. Items are those of the first field, texts or
 * tokens. */
uint64_t dialect_plan_cost(const struct contract_reading *r);

#endif
