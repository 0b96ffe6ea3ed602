/* body: selects the reader of a body's format. */
#include "server/body/form/body.h"

#include "server/body/form/body_readers.h"
#include "server/body/tensor_base64.h"

enum status body_init(struct body *b, const struct body_terms *terms, struct arena *a,
                      struct error *e) {
  b->reading.arena = a;
  b->reading.e = e;
  b->e = e;
  b->json = NULL;
  b->safetensors = NULL;
  b->v2 = NULL;
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
  return e->status;
}

enum status body_feed(struct body *b, const char *bytes, size_t size) {
  if (b->e->status) return b->e->status;
  if (b->json) return body_json_feed(b->json, bytes, size);
  if (b->safetensors) return body_safetensors_feed(b->safetensors, bytes, size);
  return body_v2_feed(b->v2, bytes, size);
}

uint64_t body_cost(const struct body *b) { return contract_reading_cost(&b->reading); }

enum status body_finish(struct body *b, struct body_v2_asked *asked) {
  if (b->e->status) return b->e->status;
  if (b->json)
    body_json_finish(b->json);
  else if (b->safetensors)
    body_safetensors_finish(b->safetensors);
  else
    body_v2_finish(b->v2, asked);
  for (unsigned i = 0; i < b->reading.contract->arrays && !b->e->status; i++) {
    const struct tensor *t = b->reading.tensor[i];
    if (t && t->late) tensor_base64_convert(t->late, b->e);
  }
  return b->e->status;
}

enum status body_locate(const struct body *b) {
  if (b->e->status && b->v2) body_v2_locate(b->v2, b->e);
  return b->e->status;
}
