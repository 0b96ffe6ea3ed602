/* dialect_body: the body of a request in another service's API. */
#include "server/dialect/dialect_body.h"

#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect.h"
#include "server/dialect/dialect_fields.h"

struct dialect_body {
  struct body body;
  const struct dialect *dialect;
  const struct body_terms *terms;
  const struct body_limits *limits;
  struct dialect_stack stack;
};

struct dialect_body *dialect_body_new(const struct body_terms *terms,
                                      const struct body_limits *limits, struct arena *a,
                                      struct error *e) {
  const struct dialect *d = terms->dialect;
  const size_t bytes = size_max(d->values_bytes, sizeof(struct dialect_values));
  struct dialect_body *b = arena_alloc(a, 1, sizeof *b, e);
  struct dialect_values *values = arena_alloc(a, 1, bytes, e);
  if (!b || !values) return NULL;
  memset(values, 0, bytes);
  *values = d->defaults;
  values->truncate = STACK_TRUNCATE_UNSAID;
  values->prompt.arena = values->prompt_name.arena = values->query.arena = a;
  if (d->init) d->init(values, a);
  *b = (struct dialect_body){.dialect = d, .terms = terms, .limits = limits};
  b->body.reading = (struct contract_reading){.contract = d->contract,
                                              .max_items = limits->max_items,
                                              .values = values};
  return body_init(&b->body, terms, a, e) ? NULL : b;
}

void dialect_body_done(struct dialect_body *b) {
  if (b->dialect->done) b->dialect->done(b->body.reading.values);
}

struct body *dialect_body_of(struct dialect_body *b) {
  return &b->body;
}

enum status dialect_body_finish(struct dialect_body *b, const char **model) {
  const struct dialect_values *v = b->body.reading.values;
  struct body_v2_asked none;
  *model = v->names_model ? v->model : NULL;
  return body_finish(&b->body, &none);
}

enum status dialect_body_ask(struct dialect_body *b, const struct whole *w,
                             struct stack_request *out) {
  const struct contract_reading *read = &b->body.reading;
  if (dialect_stack_init(&b->stack, w, b->terms, b->limits, read)) return read->e->status;
  return b->dialect->ask(&b->stack, read, out);
}

enum status dialect_body_answer(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct answer *answer) {
  return b->dialect->answer(answer, &b->body.reading, model, r, b->limits->max_answer_bytes);
}

enum status dialect_body_stream(struct dialect_body *b, const char *model,
                                const struct stack_request *r, struct stack_stream *stream) {
  return b->dialect->stream(stream, &b->body.reading, model, r);
}

enum status dialect_body_tokenize(struct dialect_body *b, const struct whole *w,
                                  struct tokenize_request *out, struct answer *answer) {
  const struct contract_reading *read = &b->body.reading;
  if (b->dialect->tokenize(read, w, b->limits, out)) return read->e->status;
  return b->dialect->answer_tokenized(answer, read, out, b->limits->max_answer_bytes);
}
