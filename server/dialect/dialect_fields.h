/* dialect_fields: what the fields of all dialects have in common: the model's name, and readers of
 * small values. */
#ifndef SERVER_DIALECT_FIELDS_H
#define SERVER_DIALECT_FIELDS_H

#include "config/document/text.h"
#include "server/body/contract.h"

struct json_t;

enum {
  DIALECT_USER_LONGEST = 16 * 1024 /* bytes of what is ignored */
};

/* What the small values of each dialect begin with. */
struct dialect_values {
  bool names_model;
  char model[MODEL_NAME_SIZE]; /* empty for a name that no model can have */
};

/* Log probabilities that are wanted of each token, with so many of the likeliest in its place. */
struct dialect_logprobs {
  bool wanted;
  size_t top;
};

/* Readers of small values: a model's name, to a struct dialect_values; a text that is accepted and
 * ignored, to nowhere. */
enum status dialect_read_model(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);
enum status dialect_pass_text(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* Likewise: what another service does and this one does not, where it is not asked for: 0, false,
 * or nothing in it. And an object that may have "include_usage", to a bool. */
enum status dialect_pass_nothing(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);
enum status dialect_read_stream_options(const struct json_t *value,
                                        const struct contract_field *field, void *to,
                                        struct error *e);

/* Likewise: how many of the likeliest tokens are told with the log probabilities, to a struct
 * dialect_logprobs; false: none of either. How many tokens are chosen at most, to a size_t. */
enum status dialect_read_logprobs(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);
enum status dialect_read_max_tokens(const struct json_t *value, const struct contract_field *field,
                                    void *to, struct error *e);

/* How long it takes to prepare a run of a model that is not known yet: a contract's plan_cost. The
 * items are those of the first field, texts or tokens. */
uint64_t dialect_plan_cost(const struct contract_reading *r);

#endif
