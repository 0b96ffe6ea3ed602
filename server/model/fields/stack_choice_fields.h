/* stack_choice_fields: readers of the fields that say how tokens are chosen, and how many. A reader
 * of a list or of texts writes to the whole struct stack_values, the others to one of its values.
 * Each fails with invalid-request at the field's place. For stack_fields and dialects. */
#ifndef SERVER_STACK_CHOICE_FIELDS_H
#define SERVER_STACK_CHOICE_FIELDS_H

#include "server/body/contract.h"

struct json_t;

/* An integer of at least 0, or of at least 1, to a size_t. */
enum status stack_read_count(const struct json_t *value, const struct contract_field *field,
                             void *to, struct error *e);
enum status stack_read_number(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* An option of config/describe/whole_choice.h, which has the field's name. */
enum status stack_read_option(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* A stop sequence, or a list of them. */
enum {
  STACK_STOPS_MAX = 16,
  STACK_STOP_LONGEST = 1024,      /* bytes */
  STACK_STOPS_LONGEST = 32 * 1024 /* bytes of JSON of all */
};
enum status stack_read_stop_texts(const struct json_t *value, const struct contract_field *field,
                                  void *values, struct error *e);

/* {"TOKEN": BIAS, …}: numbers that are added to the logits of tokens. Whether the model has these
 * tokens is checked later: it may not be known yet. */
enum { STACK_BIAS_LONGEST = 32 * 1024 /* bytes of JSON */ };
enum status stack_read_bias(const struct json_t *value, const struct contract_field *field,
                            void *values, struct error *e);

/* Lists of tokens of the model. Banned tokens are added to those that the model bans. */
enum status stack_read_stops(const struct json_t *value, const struct contract_field *field,
                             void *values, struct error *e);
enum status stack_read_banned(const struct json_t *value, const struct contract_field *field,
                              void *values, struct error *e);

#endif
