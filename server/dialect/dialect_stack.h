/* dialect_stack: a request in another service's words as a request to a whole model, whose checks
 * are those of our own (server/stack). */
#ifndef SERVER_DIALECT_STACK_H
#define SERVER_DIALECT_STACK_H

#include "config/build/whole.h"
#include "server/body/body_terms.h"
#include "server/model/fields/stack_fields.h"
#include "server/model/fields/stack_request.h"

/* What a field of ours is called in the body: "/text" is "/input". */
struct dialect_name {
  const char *native, *here;
};

/* The request as our own fields would have it. A dialect sets its values, and gives it what it has
 * read, before dialect_stack_check. */
struct dialect_stack {
  struct contract_reading reading;
  struct stack_values values;
  const struct whole *whole;
  const struct body_terms *terms;
  const struct body_limits *limits;
};

/* A request to this model with none of our fields, and the model's defaults. All lives in the arena
 * of what was read. Fails without memory. */
enum status dialect_stack_init(struct dialect_stack *s, const struct whole *w,
                               const struct body_terms *terms, const struct body_limits *limits,
                               const struct contract_reading *read);

/* Gives it the texts, or else the tokens in this field, that were read; and says that it has one of
 * our fields. */
void dialect_stack_give_items(struct dialect_stack *s, const struct contract_reading *read,
                              unsigned field);
void dialect_stack_give(struct dialect_stack *s, enum stack_field field);

/* Sets what texts are cut to, as the request says, else the model's definition, else `otherwise`.
 */
void dialect_stack_truncate(struct dialect_stack *s, size_t said, size_t otherwise);

/* Sets the prompt, or its name, where the request says it. */
void dialect_stack_prompt(struct dialect_stack *s, const struct contract_text *prompt,
                          const struct contract_text *name);

/* Makes an error's pointer to one of our fields one into the body, by `names`, which end with an
 * empty one. */
void dialect_stack_locate(const struct dialect_name *names, struct error *e);

/* Makes texts tokens, and checks all fields: stack_body_make. Where that fails, the error's pointer
 * is one into the body. */
enum status dialect_stack_check(struct dialect_stack *s, const struct dialect_name *names,
                                struct stack_request *out);

#endif
