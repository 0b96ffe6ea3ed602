/* dialect_stack: a request in another service's API as a request of our own, which is checked as
 * such (server/model/check). */
#ifndef SERVER_DIALECT_STACK_H
#define SERVER_DIALECT_STACK_H

#include "config/build/whole.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

/* The pointer of one of our fields, and of the field in the body that it was set by: "/text" and
 * "/input". */
struct dialect_name {
  const char *native, *here;
};

/* The request in our own fields. A dialect sets its texts or tokens and its values before
 * dialect_stack_check. */
struct dialect_stack {
  struct contract_reading reading;
  struct stack_values values;
  const struct whole *whole;
  const struct body_terms *terms;
  const struct body_limits *limits;
};

/* Begins a request to this model with the model's defaults and none of our fields, in the arena of
 * what was read. Fails without memory. */
enum status dialect_stack_init(struct dialect_stack *s, const struct whole *w,
                               const struct body_terms *terms, const struct body_limits *limits,
                               const struct contract_reading *read);

/* Sets its texts, or else its tokens, which are in this field of what was read. */
void dialect_stack_set_items(struct dialect_stack *s, const struct contract_reading *read,
                             unsigned field);

/* Makes one vector of each item: by the model's pool, or else the mean. Fails for a model whose
 * embeddings are sparse. */
enum status dialect_stack_pool(struct dialect_stack *s);

/* Marks one of our fields as seen: the request says what its value is. */
void dialect_stack_mark(struct dialect_stack *s, enum stack_field field);

/* Sets the length that texts are cut to: the request's, else the model's, else `otherwise`. */
void dialect_stack_truncate(struct dialect_stack *s, size_t said, size_t otherwise);

/* Sets the prompt, or its name, if the request has it. */
void dialect_stack_prompt(struct dialect_stack *s, const struct contract_text *prompt,
                          const struct contract_text *name);

/* Changes an error's pointer to one of our fields into a pointer into the body, by `names`, which
 * end with an empty one: "/text/3" becomes "/input/3". A field of the same name needs no entry. */
void dialect_stack_locate(const struct dialect_name *names, struct error *e);

/* Tokenizes texts, and checks all fields, as stack_body_make does. An error's pointer is one into
 * the body. */
enum status dialect_stack_check(struct dialect_stack *s, const struct dialect_name *names,
                                struct stack_request *out);

#endif
