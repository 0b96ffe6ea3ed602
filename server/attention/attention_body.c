/* attention_body: which reader a body has, and the one check that all of them lead to. */
#include "server/attention/attention_body.h"

#include <string.h>

#include "server/body/body_json.h"
#include "server/body/body_safetensors.h"
#include "server/body/body_v2.h"

struct decoder {
  const struct model *model;
  struct decode_head head;
  struct decode_limits limits;
  struct arena *arena;
  struct error failure;     /* the first one of the reader */
  struct decode_json *json; /* the reader of the body's form: one of these */
  struct decode_safetensors *safetensors;
  struct decode_v2 *v2;
};

/* Copies the first failure, in terms of this body. */
static enum status report(struct decoder *d, struct error *e) {
  if (d->v2) decode_v2_locate(d->v2, &d->failure);
  if (d->failure.status && !e->status) *e = d->failure;
  return d->failure.status;
}

struct decoder *decoder_new(const struct model *m, const struct decode_head *head,
                            const struct decode_limits *limits, struct arena *a, struct error *e) {
  struct decoder *d = arena_alloc(a, 1, sizeof *d, e);
  if (!d) return NULL;
  *d = (struct decoder){.model = m, .head = *head, .limits = *limits, .arena = a};
  if (head->form == BODY_SAFETENSORS)
    d->safetensors = decode_safetensors_new(m, head, limits, a, &d->failure);
  else if (head->form == BODY_V2)
    d->v2 = decode_v2_new(m, head, limits, a, &d->failure);
  else
    d->json = decode_json_new(m, head, limits, a, &d->failure);
  return report(d, e) ? NULL : d;
}

enum status decoder_feed(struct decoder *d, const char *bytes, size_t size, struct error *e) {
  if (d->failure.status) return report(d, e);
  if (d->safetensors)
    decode_safetensors_feed(d->safetensors, bytes, size);
  else if (d->v2)
    decode_v2_feed(d->v2, bytes, size);
  else
    decode_json_feed(d->json, bytes, size);
  return report(d, e);
}

static const struct fields *finish(struct decoder *d, struct decoded *out) {
  if (d->safetensors) return decode_safetensors_finish(d->safetensors);
  if (d->v2) return decode_v2_finish(d->v2, &out->v2);
  return decode_json_finish(d->json);
}

enum status decoder_finish(struct decoder *d, struct decoded *out, struct error *e) {
  memset(out, 0, sizeof *out);
  if (!d->failure.status) {
    const struct fields *fields = finish(d, out);
    if (!d->failure.status)
      decode_check(fields, d->model, &d->head, &d->limits, d->arena, out, &d->failure);
  }
  return report(d, e);
}
