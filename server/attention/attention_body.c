/* attention_body: which reader a body has, and the one check that all of them lead to. */
#include "server/attention/attention_body.h"

#include <string.h>

#include "server/body/body_json.h"
#include "server/body/body_safetensors.h"
#include "server/body/body_v2.h"

struct attention_body {
  const struct model *model;
  struct body_terms head;
  struct body_limits limits;
  struct arena *arena;
  struct error failure;   /* the first one of the reader */
  struct body_json *json; /* the reader of the body's form: one of these */
  struct body_safetensors *safetensors;
  struct body_v2 *v2;
};

/* Copies the first failure, in terms of this body. */
static enum status report(struct attention_body *d, struct error *e) {
  if (d->v2) body_v2_locate(d->v2, &d->failure);
  if (d->failure.status && !e->status) *e = d->failure;
  return d->failure.status;
}

struct attention_body *attention_body_new(const struct model *m, const struct body_terms *head,
                                          const struct body_limits *limits, struct arena *a,
                                          struct error *e) {
  struct attention_body *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  *d = (struct attention_body){.model = m, .head = *head, .limits = *limits, .arena = a};
  if (head->form == BODY_SAFETENSORS)
    d->safetensors = body_safetensors_new(m, head, limits, a, &d->failure);
  else if (head->form == BODY_V2)
    d->v2 = body_v2_new(m, head, limits, a, &d->failure);
  else
    d->json = body_json_new(m, head, limits, a, &d->failure);
  return report(d, e) ? NULL : d;
}

enum status attention_body_feed(struct attention_body *d, const char *bytes, size_t size,
                                struct error *e) {
  if (d->failure.status) return report(d, e);
  if (d->safetensors)
    body_safetensors_feed(d->safetensors, bytes, size);
  else if (d->v2)
    body_v2_feed(d->v2, bytes, size);
  else
    body_json_feed(d->json, bytes, size);
  return report(d, e);
}

static const struct fields *finish(struct attention_body *d, struct attention_request *out) {
  if (d->safetensors) return body_safetensors_finish(d->safetensors);
  if (d->v2) return body_v2_finish(d->v2, &out->v2);
  return body_json_finish(d->json);
}

enum status attention_body_finish(struct attention_body *d, struct attention_request *out,
                                  struct error *e) {
  memset(out, 0, sizeof *out);
  if (!d->failure.status) {
    const struct fields *fields = finish(d, out);
    if (!d->failure.status)
      attention_check(fields, d->model, &d->head, &d->limits, d->arena, out, &d->failure);
  }
  return report(d, e);
}
