/* stack_body: the fields of a request to a whole model, and the one check that they lead to. */
#include "server/model/check/stack_body.h"

#include <string.h>

#include "server/model/check/stack_check.h"
#include "server/model/check/stack_tokenize.h"

struct stack_body {
  struct body body;
  const struct whole *whole;
  struct body_terms terms;
  struct body_limits limits;
  struct stack_values values;
};

struct stack_body *stack_body_new(const struct whole *w, const struct body_terms *terms,
                                  const struct body_limits *limits, struct arena *a,
                                  struct error *e) {
  struct stack_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct stack_body){.whole = w, .terms = *terms, .limits = *limits};
  if (stack_fields_init(&b->body.reading, &b->values, terms, w, limits->max_items, a, e))
    return NULL;
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

struct body *stack_body_of(struct stack_body *b) {
  return &b->body;
}

/* What the outputs that a v2 request names ask for. As in an export of the model, no dense layer
 * stands behind its pooler. */
static void read_outputs(struct stack_body *b, const struct body_v2_asked *v2) {
  struct stack_values *v = &b->values;
  v->pool = STACK_POOL_NONE;
  for (size_t i = 0; i < v2->outputs; i++)
    if (v2->output[i].which == STACK_V2_POOLER_OUTPUT) v->pool = STACK_POOL_POOLER;
  v->normalize = false;
}

enum status stack_body_make(struct contract_reading *r, const struct whole *w,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct stack_request *out) {
  if (stack_tokenize(r, w, terms, limits, out)) return r->e->status;
  return stack_check(r, w, terms, limits, out);
}

enum status stack_body_finish(struct stack_body *b, struct stack_request *out) {
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &out->v2)) return b->body.e->status;
  if (b->body.v2) read_outputs(b, &out->v2);
  stack_body_make(&b->body.reading, b->whole, &b->terms, &b->limits, out);
  return body_locate(&b->body);
}
