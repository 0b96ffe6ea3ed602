/* stack_names: readers of fields that name parts of a model, attentions and hidden states.
 *
 * A name has a layer's number, from 0, or `*` for all layers, or `-1` for the last:
 * "encoder.3.self" is an attention, "encoder.3" the hidden state that enters layer 3 and leaves
 * layer 2, "encoder.3.self.input" the rows that the attention reads. */
#ifndef SERVER_STACK_NAMES_H
#define SERVER_STACK_NAMES_H

#include "server/body/contract.h"

/* Readers of small values: each sets the wishes of both sides in `to`, a struct stack_values. A
 * name that matches nothing fails with invalid-request at its place. */

/* return_hidden: false, true, "all" or a list of names. */
enum status stack_names_hidden(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* return_attention: false, true, "average", a list of names, or {"of": names, "as": form}. */
enum status stack_names_attention(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* attentions: a list of names of the attentions whose heads are measured. */
enum status stack_names_ablation(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);

/* head_mask: {name: [a number for each head]}. */
enum status stack_names_head_mask(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* trace: {"attention": the name of one attention, "item": i, "head": h, "query": q}. */
enum status stack_names_trace(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

#endif
