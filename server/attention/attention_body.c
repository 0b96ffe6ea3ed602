/* attention_body: the fields of an attention request, and the one check that they lead to. */
#include "server/attention/attention_body.h"

#include <string.h>

#include "server/attention/attention_check.h"

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

/* What the outputs that a v2 request names say besides. */
static void read_outputs(struct attention_body *b, const struct body_v2_asked *v2) {
  for (size_t i = 0; i < v2->outputs; i++)
    if (v2->output[i].which == OUTPUT_WEIGHTS) b->values.want = WEIGHTS_PER_HEAD;
}

enum status attention_body_finish(struct attention_body *b, struct attention_request *out) {
  memset(out, 0, sizeof *out);
  if (body_finish(&b->body, &out->v2)) return b->body.e->status;
  read_outputs(b, &out->v2);
  attention_check(&b->body.reading, b->model, &b->terms, &b->limits, b->arena, out, b->body.e);
  return body_locate(&b->body);
}
