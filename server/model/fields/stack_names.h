/* stack_names: names of the parts of a model in a request: which attentions and hidden states are
 * meant, and what is asked of them.
 *
 * A name has a number, from 0, or `*` for every one, or `-1` for the last: "encoder.3.self" is an
 * attention, "encoder.3" what enters it and leaves the layer before, "encoder.3.self.input" the
 * rows that the attention reads. */
#ifndef SERVER_STACK_NAMES_H
#define SERVER_STACK_NAMES_H

#include "server/body/contract.h"

/* Readers of small values: each sets what is wished of the layers in struct stack_values, which
 * `to` is. A name that matches nothing is refused, with its place. */

/* return_hidden: false, true, "all" or a list of names. */
enum status stack_names_hidden(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* return_attention: false, true, "average", a list of names, or {"of": names, "as": form}. */
enum status stack_names_attention(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* attentions: a list of names, of those whose heads are measured. */
enum status stack_names_ablation(const struct json_t *value, const struct contract_field *field,
                                 void *to, struct error *e);

/* head_mask: {name: a number for each head}. */
enum status stack_names_head_mask(const struct json_t *value, const struct contract_field *field,
                                  void *to, struct error *e);

/* trace: {"attention": a name that means one, "item": i, "head": h, "query": q}. */
enum status stack_names_trace(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);

#endif
