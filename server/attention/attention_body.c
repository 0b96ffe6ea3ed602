/* attention_body: which reader a body has, and the one check that all of them lead to. */
#include "server/attention/attention_body.h"

#include <string.h>

#include "server/attention/attention_check.h"
#include "server/body/body_json.h"
#include "server/body/body_safetensors.h"
#include "server/body/body_v2.h"
#include "server/body/tensor_base64.h"

struct attention_body {
  const struct model *model;
  struct body_terms terms;
  struct body_limits limits;
  struct arena *arena;
  struct error *e;        /* the first failure */
  struct body_json *json; /* the reader of the body's form: one of these */
  struct body_safetensors *safetensors;
  struct body_v2 *v2;
  struct contract_reading reading;
  struct attention_values values;
};

struct attention_body *attention_body_new(const struct model *m, const struct body_terms *terms,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e) {
  struct attention_body *b = arena_alloc(a, 1, sizeof *b, e);
  if (!b) return NULL;
  *b = (struct attention_body){.model = m, .terms = *terms, .limits = *limits, .arena = a, .e = e};
  attention_fields_init(&b->reading, &b->values, terms->ask, m, limits->max_items);
  switch (terms->form) {
  case BODY_JSON:
    b->json = body_json_new(&b->reading, a, e);
    break;
  case BODY_SAFETENSORS:
    b->safetensors = body_safetensors_new(&b->reading, terms, a, e);
    break;
  case BODY_V2:
    b->v2 = body_v2_new(&b->reading, terms, a, e);
    break;
  }
  return e->status ? NULL : b;
}

enum status attention_body_feed(struct attention_body *b, const char *bytes, size_t size) {
  if (b->e->status) return b->e->status;
  if (b->json) return body_json_feed(b->json, bytes, size);
  if (b->safetensors) return body_safetensors_feed(b->safetensors, bytes, size);
  return body_v2_feed(b->v2, bytes, size);
}

uint64_t attention_body_cost(const struct attention_body *b) {
  return contract_reading_cost(&b->reading);
}

static enum status finish_v2(struct attention_body *b, struct attention_request *out) {
  if (body_v2_finish(b->v2, &out->v2)) return b->e->status;
  for (size_t i = 0; i < out->v2.outputs; i++)
    if (out->v2.output[i].which == OUTPUT_WEIGHTS) b->values.want = WEIGHTS_PER_HEAD;
  return STATUS_OK;
}

static enum status finish_reading(struct attention_body *b, struct attention_request *out) {
  if (b->json) return body_json_finish(b->json);
  if (b->safetensors) return body_safetensors_finish(b->safetensors);
  return finish_v2(b, out);
}

static enum status settle_arrays(struct attention_body *b) {
  for (unsigned i = 0; i < b->reading.contract->arrays && !b->e->status; i++) {
    const struct tensor *t = b->reading.tensor[i];
    if (t && t->late) tensor_base64_settle(t->late, b->e);
  }
  return b->e->status;
}

enum status attention_body_finish(struct attention_body *b, struct attention_request *out) {
  memset(out, 0, sizeof *out);
  if (b->e->status || finish_reading(b, out) || settle_arrays(b)) return b->e->status;
  if (attention_check(&b->reading, b->model, &b->terms, &b->limits, b->arena, out, b->e) && b->v2)
    body_v2_locate(b->v2, b->e);
  return b->e->status;
}
