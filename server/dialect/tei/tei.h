/* tei: what the dialects of text-embeddings-inference share (in tei_embed.c). Their responses are
 * lists, without an object around them. */
#ifndef SERVER_TEI_H
#define SERVER_TEI_H

#include "server/dialect/dialect.h"

/* Readers of "truncate", true or false, to a size_t with the meaning of stack_values.truncate; and
 * of "truncation_direction", which must be "right". */
enum status tei_read_truncate(const struct json_t *value, const struct contract_field *field,
                              void *to, struct error *e);
enum status tei_pass_direction(const struct json_t *value, const struct contract_field *field,
                               void *to, struct error *e);

/* Plans a response that is this section, which has no name. Fails as answer_plan does. */
enum status tei_answer(struct answer *a, const struct answer_section *list,
                       const struct contract_reading *read, const struct stack_request *r,
                       size_t max_bytes);

#endif
