/* stack_choice_fields: readers of the small values that say how tokens are chosen, and how many.
 * Those of lists and texts get all of struct stack_values, the others the value. For stack_fields
 * and dialects. */
#ifndef SERVER_STACK_CHOICE_FIELDS_H
#define SERVER_STACK_CHOICE_FIELDS_H

#include "server/body/contract.h"

struct json_t;

/* An integer from 0 on, from 1 on, to a size_t. */
enum status stack_read_count(const struct json_t *value, const struct contract_field *field,
                             void *to, struct error *e);
enum status stack_read_number(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* The ways of a search that are followed side by side: from 1 to 64, to a size_t. When it is over:
 * true, false or "never", to an enum stack_early. */
enum status stack_read_beams(const struct json_t *value, const struct contract_field *field,
                             void *to, struct error *e);
enum status stack_read_early(const struct json_t *value, const struct contract_field *field,
                             void *to, struct error *e);

/* Any number, to a double. */
enum status stack_read_power(const struct json_t *value, const struct contract_field *field,
                             void *to, struct error *e);

/* An option of the choice, whose word the field has (config/describe/whole_choice.h). */
enum status stack_read_option(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

/* A text that stops a sequence, or a list of them. */
enum {
  STACK_STOPS_MAX = 16,
  STACK_STOP_LONGEST = 1024,      /* bytes */
  STACK_STOPS_LONGEST = 32 * 1024 /* bytes of JSON of all */
};
enum status stack_read_stop_texts(const struct json_t *value, const struct contract_field *field,
                                  void *values, struct error *e);

/* Numbers that are added to the logits of tokens, by their ids. Whether the model has these is
 * checked later: it may not be known yet. */
enum { STACK_BIAS_LONGEST = 32 * 1024 /* bytes of JSON */ };
enum status stack_read_bias(const struct json_t *value, const struct contract_field *field,
                            void *values, struct error *e);

/* Lists of tokens of the model. Those that are banned join the ones that the model bans. */
enum status stack_read_stops(const struct json_t *value, const struct contract_field *field,
                             void *values, struct error *e);
enum status stack_read_banned(const struct json_t *value, const struct contract_field *field,
                              void *values, struct error *e);

#endif
