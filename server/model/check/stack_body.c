/* stack_body: the body of a request to a model, and the check at its end. */
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

enum status stack_body_make(struct contract_reading *r, const struct whole *w,
                            const struct body_terms *terms, const struct body_limits *limits,
                            struct stack_request *out) {
  if (stack_tokenize(r, w, terms, limits, out)) return r->e->status;
  return stack_check(r, w, terms, limits, out);
}

enum status stack_body_finish(struct stack_body *b, struct stack_request *out) {
  struct stack_values *v = &b->values;
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &out->v2)) return b->body.e->status;
  /* The outputs that a v2 request names replace the model's defaults. As in an export of the model,
   * its pooler has no dense layer after it. */
  if (b->body.v2) {
    v->pool = STACK_POOL_NONE;
    v->normalize = false;
    for (size_t i = 0; i < out->v2.outputs; i++)
      if (out->v2.output[i].which == STACK_V2_POOLER_OUTPUT) v->pool = STACK_POOL_POOLER;
  }
  stack_body_make(&b->body.reading, b->whole, &b->terms, &b->limits, out);
  return body_locate(&b->body);
}
