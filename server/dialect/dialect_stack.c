/* dialect_stack: a request in another service's API as a request of our own. */
#include "server/dialect/dialect_stack.h"

#include <stdio.h>
#include <string.h>

#include "server/model/check/stack_body.h"

enum status dialect_stack_init(struct dialect_stack *s, const struct whole *w,
                               const struct body_terms *terms, const struct body_limits *limits,
                               const struct contract_reading *read) {
  *s = (struct dialect_stack){.whole = w, .terms = terms, .limits = limits};
  if (stack_fields_init(&s->reading, &s->values, terms, w, limits->max_items, read->arena, read->e))
    return read->e->status;
  s->reading.arena = read->arena;
  s->reading.patience = read->patience;
  s->reading.e = read->e;
  return STATUS_OK;
}

void dialect_stack_truncate(struct dialect_stack *s, size_t said, size_t otherwise) {
  if (said != STACK_TRUNCATE_UNSAID)
    s->values.truncate = said;
  else if (!s->whole->truncates)
    s->values.truncate = otherwise;
}

void dialect_stack_prompt(struct dialect_stack *s, const struct contract_text *prompt,
                          const struct contract_text *name) {
  if (prompt->bytes) {
    s->values.prompt = *prompt;
    dialect_stack_mark(s, STACK_FIELD_PROMPT);
  }
  if (name->bytes) {
    s->values.prompt_name = *name;
    dialect_stack_mark(s, STACK_FIELD_PROMPT_NAME);
  }
}

enum status dialect_stack_pool(struct dialect_stack *s) {
  if (s->values.pool == STACK_POOL_NONE) s->values.pool = STACK_POOL_MEAN;
  if (stack_pool_is_dense(s->values.pool)) return STATUS_OK;
  return error_at(s->reading.e, "/model",
                  "the embeddings of this model are %s: use POST /v1/models/NAME/encode",
                  s->values.pool == STACK_POOL_SPARSE ? "sparse" : "multi-vector");
}

void dialect_stack_mark(struct dialect_stack *s, enum stack_field field) {
  s->reading.seen |= UINT64_C(1) << field;
}

void dialect_stack_set_items(struct dialect_stack *s, const struct contract_reading *read,
                             unsigned field) {
  s->reading.texts = read->texts;
  s->reading.tensor[STACK_FIELD_TOKENS] = read->tensor[field];
  dialect_stack_mark(s, read->texts ? STACK_FIELD_TEXT : STACK_FIELD_TOKENS);
}

void dialect_stack_locate(const struct dialect_name *names, struct error *e) {
  char native[ERROR_POINTER_SIZE];
  const size_t length = *e->pointer ? 1 + strcspn(e->pointer + 1, "/") : 0;
  memcpy(native, e->pointer, sizeof native);
  for (const struct dialect_name *n = names; n->native; n++)
    if (strlen(n->native) == length && memcmp(n->native, native, length) == 0)
      snprintf(e->pointer, sizeof e->pointer, "%.40s%.50s", n->here, native + length);
}

enum status dialect_stack_check(struct dialect_stack *s, const struct dialect_name *names,
                                struct stack_request *out) {
  memset(out, 0, sizeof *out);
  stack_body_make(&s->reading, s->whole, s->terms, s->limits, out);
  if (s->reading.e->status) dialect_stack_locate(names, s->reading.e);
  return s->reading.e->status;
}
