/* attention_body: reads the fields of an attention request, then checks them. */
#include "server/attention/attention_body.h"

#include <string.h>

#include "server/attention/attention_checking.h"

struct attention_body {
  struct body body;
  const struct model *model;
  struct body_terms terms;
  struct body_limits limits;
  struct arena *arena;
  struct attention_values values;
};

struct attention_body *attention_body_new(const struct model *m, const struct body_terms *terms,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e) {
  struct attention_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct attention_body){.model = m, .terms = *terms, .limits = *limits, .arena = a};
  attention_fields_init(&b->body.reading, &b->values, terms->ask, m, limits->max_items);
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

struct body *attention_body_of(struct attention_body *b) {
  return &b->body;
}

enum status attention_body_finish(struct attention_body *b, struct attention_request *out) {
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &out->v2)) return b->body.e->status;
  for (size_t i = 0; i < out->v2.outputs; i++)
    if (out->v2.output[i].which == OUTPUT_WEIGHTS) b->values.want = WEIGHTS_PER_HEAD;
  attention_check(&b->body.reading, b->model, &b->terms, &b->limits, b->arena, out, b->body.e);
  return body_locate(&b->body);
}
