/* asked: a request to a whole model, and the bytes of an answer. */
#include "tests/fuzz/asked.h"

#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/check/stack_body.h"
#include "tests/fuzz/rfc8259.h"

enum { BUDGET = 32 << 20 };

const struct model *asked_model(const char *definition, const struct model **place) {
  if (!*place) {
    struct error e = {0};
    json_t *json = json_loads(definition, 0, NULL);
    *place = model_load("m", json, ".", GEMM_PACKED, COMPUTE_FLOAT32, &e);
    must(*place);
    json_decref(json);
  }
  return *place;
}

const struct model *asked_model_of_words(const char *definition, const char *words,
                                         const struct model **place) {
  if (*place) return *place;
  struct error e = {0};
  struct whole *w = asked_model(definition, place)->whole;
  json_t *json = json_loads(words, 0, NULL);
  w->tokenizer = tokenizer_new(json, &e);
  must(w->tokenizer);
  w->mask = tokenizer_mask(w->tokenizer);
  json_decref(json);
  return *place;
}

void asked_read(struct asked *d, const struct model *m, const struct body_terms *terms,
                struct input body, unsigned cut) {
  memset(d, 0, sizeof *d);
  budget_init(&d->budget, BUDGET);
  arena_init(&d->arena, &d->budget);
  struct stack_body *b = stack_body_new(m->whole, terms, &fuzz_limits, &d->arena, &d->error);
  if (!b) {
    must(d->error.status);
    return;
  }
  fuzz_feed(stack_body_of(b), body, cut, &d->error);
  const enum status status = stack_body_finish(b, &d->request);
  must(status == d->error.status);
}

void asked_end(struct asked *d) {
  arena_free(&d->arena);
  must(d->budget.used == 0);
}

void asked_answer(const struct asked_target *t, const struct model *m,
                  const struct body_terms *terms, struct input body, unsigned cut) {
  struct asked whole, parts;
  asked_read(&whole, m, terms, body, 0);
  asked_read(&parts, m, terms, body, cut);
  error_must_agree(&whole.error, &parts.error);
  if (!whole.error.status) {
    const bool binary = terms->wants_binary && stack_request_has_binary(&whole.request);
    t->must_agree(&whole.request, &parts.request);
    t->compute(m, &whole,
               terms->form == BODY_V2 ? ANSWER_V2
               : binary               ? ANSWER_SAFETENSORS
                                      : ANSWER_JSON,
               cut);
  }
  if (whole.error.status) error_must_be_told(&whole.error);
  asked_end(&whole);
  asked_end(&parts);
}

void *asked_scratch(const struct model *m) {
  const struct whole *w = m->whole;
  const size_t least = size_max(stack_scratch_bytes(whole_reader(w)),
                                whole_is_pair(w) ? stack_scratch_bytes(w->decoder) : 0);
  void *scratch = aligned_alloc(64, size_round_up(least, 64));
  must(scratch);
  return scratch;
}

struct run *asked_compute(struct asked *d, struct run *run, double work, void *scratch) {
  run_compute(run, work, scratch);
  return run_fault(run, &d->error) ? NULL : run_next_round(run);
}

struct input answer_text(struct answer *a) {
  for (size_t i = a->pieces; i-- > 0;) answer_write_piece(a, i);
  must(a->pieces <= ANSWER_PIECES_MAX && answer_bytes(a) <= fuzz_limits.max_answer_bytes);
  char *text = malloc(answer_bytes(a) + 1), *at = text;
  must(text);
  for (size_t i = 0; i < a->pieces; i++) {
    memcpy(at, a->piece[i].iov_base, a->piece[i].iov_len);
    at += a->piece[i].iov_len;
  }
  return (struct input){text, answer_bytes(a)};
}

json_t *answer_json(struct input text) {
  must(rfc8259_check(text.bytes, text.size).json);
  json_t *json = json_loadb(text.bytes, text.size, JSON_REJECT_DUPLICATES, NULL);
  must(json_is_object(json));
  return json;
}

struct safetensors *answer_safetensors(struct input text) {
  struct error e = {0};
  size_t header;
  must(!safetensors_measure(text.bytes, text.size, text.size, &header, &e));
  const size_t front = SAFETENSORS_PREFIX + header;
  struct safetensors *s =
      safetensors_parse(text.bytes + SAFETENSORS_PREFIX, header, text.size - front, &e);
  must(s);
  return s;
}

static void check_answer(const struct asked_checks *c, const struct stack_request *r,
                         struct answer *a) {
  const struct input text = answer_text(a);
  const size_t json_bytes = atomic_load(&a->json_bytes);
  if (a->form == ANSWER_SAFETENSORS && c->tensors)
    c->tensors(r, text);
  else if (a->form == ANSWER_SAFETENSORS)
    safetensors_free(answer_safetensors(text));
  else if (a->form == ANSWER_V2)
    json_decref(answer_json((struct input){text.bytes, json_bytes ? json_bytes : text.size}));
  else
    c->json(r, text);
  free((char *)text.bytes);
}

void asked_compute_answer(const struct asked_checks *c, const struct model *m, struct asked *d,
                          enum answer_form form) {
  static const double work = 1e3; /* a run is cut into many spans */
  struct answer a = {0};
  if (stack_request_prepare(&d->request, &d->arena, &d->error) ||
      stack_answer_plan(&a, form, m->name, &d->request, &fuzz_limits, &d->arena, &d->error))
    return;
  void *scratch = asked_scratch(m);
  for (struct run *run = stack_request_run(&d->request); run;)
    run = asked_compute(d, run, work, scratch);
  free(scratch);
  if (!d->error.status) check_answer(c, &d->request, &a);
}
