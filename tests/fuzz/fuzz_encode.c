/* fuzz_encode: a request to encode from its bytes to the bytes of its answer, however it is cut.
 *
 * The first byte is the form of the body: `j` JSON, `s` a header of safetensors and behind
 * FUZZ_PART the data, `v` Open Inference Protocol with binary data behind FUZZ_PART. The second
 * byte: bit 0: a binary answer is wanted, the others: the model. The third is how the body is cut
 * the second time. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/safetensors.h"
#include "config/model/whole.h"
#include "server/stack/stack_answer.h"
#include "server/stack/stack_body.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rfc8259.h"

enum { MODELS = 3, LAYERS = 2, HEADS = 2, WIDTH = 4, BUDGET = 32 << 20 };

/* Small spans, so that a run is cut into many. */
static const double work = 1e3;

#define RANDOM                                                                                \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"kind\":\"encoder\",\"layers\":2,\"width\":4," \
  "\"heads\":2,\"feed_forward\":8,\"vocabulary\":9"

static const struct model *model_at(unsigned index) {
  static const char *const definitions[MODELS] = {
      RANDOM "}", RANDOM ",\"pool\":\"mean\",\"normalize\":true}",
      RANDOM ",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":5,\"gated\":true}"};
  static const struct model *models[MODELS];
  index %= MODELS;
  if (!models[index]) {
    struct error e = {0};
    json_t *definition = json_loads(definitions[index], 0, NULL);
    models[index] = model_load("m", definition, ".", GEMM_PACKED, &e);
    must(models[index]);
    json_decref(definition);
  }
  return models[index];
}

/* --- reading --- */

struct encoded {
  struct budget budget;
  struct arena arena;
  struct stack_request request;
  struct error error;
};

static void read_body(struct encoded *d, const struct model *m, const struct body_terms *terms,
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

static void end_body(struct encoded *d) {
  arena_free(&d->arena);
  must(d->budget.used == 0);
}

static bool agree(const void *a, const void *b, size_t size) {
  if (!a || !b) return !a == !b;
  return size == 0 || memcmp(a, b, size) == 0;
}

static void wishes_must_agree(const struct stack_run *a, const struct stack_run *b) {
  must(!a->wish == !b->wish);
  for (size_t l = 0; l < LAYERS && a->wish; l++) {
    const struct stack_wish *x = &a->wish[l], *y = &b->wish[l];
    must(x->weights == y->weights && x->thumbnail == y->thumbnail && x->hidden == y->hidden &&
         x->input == y->input && !x->trace == !y->trace &&
         agree(x->head_mask, y->head_mask, HEADS * sizeof(float)));
  }
}

static void traces_must_agree(const struct trace *a, const struct trace *b) {
  must(!a == !b);
  must(!a || (a->item == b->item && a->head == b->head && a->row == b->row));
}

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  const struct stack_run *x = a->run, *y = b->run;
  const size_t rows = x->geometry.q_rows;
  must(a->unbatched == b->unbatched && a->base64 == b->base64 && a->widest == b->widest &&
       a->rectangular == b->rectangular && a->v2.outputs == b->v2.outputs);
  must(x->geometry.items == y->geometry.items && rows == y->geometry.q_rows);
  must(agree(a->lens, b->lens, x->geometry.items * sizeof *a->lens));
  must(agree(x->tokens, y->tokens, rows * sizeof *x->tokens));
  must(agree(x->types, y->types, rows * sizeof *x->types));
  must(agree(x->embeddings, y->embeddings, rows * WIDTH * sizeof *x->embeddings));
  must(x->embedded == y->embedded && x->pool == y->pool && x->dimensions == y->dimensions &&
       x->normalize == y->normalize);
  traces_must_agree(a->trace, b->trace);
  wishes_must_agree(x, y);
}

/* --- answering --- */

static json_t *json_of(struct input text) {
  must(rfc8259_check(text.bytes, text.size).json);
  json_t *json = json_loadb(text.bytes, text.size, JSON_REJECT_DUPLICATES, NULL);
  must(json_is_object(json));
  return json;
}

static void check_json(const struct stack_request *r, struct input answer) {
  json_t *body = json_of(answer);
  const json_t *outputs = json_object_get(body, "outputs");
  const json_t *usage = json_object_get(body, "usage");
  must((size_t)json_integer_value(json_object_get(usage, "tokens")) == r->run->geometry.q_rows);
  must(outputs);
  if (!r->base64 && !r->unbatched) must(json_array_size(outputs) == r->run->geometry.items);
  must(!json_object_get(body, "valid_lens") == !r->base64);
  must(!json_object_get(body, "trace") == !r->trace);
  must(!json_object_get(body, "hidden") || r->run->embedded || r->run->wish);
  json_decref(body);
}

static void check_safetensors(const struct stack_request *r, struct input answer) {
  struct error e = {0};
  size_t header;
  must(!safetensors_measure(answer.bytes, answer.size, answer.size, &header, &e));
  const size_t front = SAFETENSORS_PREFIX + header;
  struct safetensors *s =
      safetensors_parse(answer.bytes + SAFETENSORS_PREFIX, header, answer.size - front, &e);
  must(s);
  bool outputs = false;
  for (size_t i = 0; i < safetensors_count(s); i++) {
    const struct safetensors_entry *t = safetensors_at(s, i);
    if (strcmp(t->name, "valid_lens") == 0) must(t->count == r->run->geometry.items);
    outputs = outputs || strcmp(t->name, "outputs") == 0;
  }
  must(outputs);
  safetensors_free(s);
}

static void check_answer(const struct stack_request *r, struct answer *a) {
  for (size_t i = a->pieces; i-- > 0;) answer_write_piece(a, i);
  must(a->pieces <= ANSWER_PIECES_MAX && answer_bytes(a) <= fuzz_limits.max_answer_bytes);
  char *text = malloc(answer_bytes(a) + 1), *at = text;
  must(text);
  for (size_t i = 0; i < a->pieces; i++) {
    memcpy(at, a->piece[i].iov_base, a->piece[i].iov_len);
    at += a->piece[i].iov_len;
  }
  const struct input answer = {text, answer_bytes(a)};
  const size_t json_bytes = atomic_load(&a->json_bytes);
  if (a->form == ANSWER_SAFETENSORS)
    check_safetensors(r, answer);
  else if (a->form == ANSWER_V2)
    json_decref(json_of((struct input){text, json_bytes ? json_bytes : answer.size}));
  else
    check_json(r, answer);
  free(text);
}

static void compute(const struct model *m, struct encoded *d, enum answer_form form) {
  struct answer a = {0};
  struct stack_run *run = d->request.run;
  if (stack_prepare(m->whole->encoder, run, &d->arena, &d->error) ||
      stack_answer_plan(&a, form, m->name, &d->request, &fuzz_limits, &d->arena, &d->error))
    return;
  const size_t bytes = (stack_scratch_bytes(m->whole->encoder) + 63) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  must(scratch);
  run_compute(&run->run, work, scratch);
  free(scratch);
  if (!run_fault(&run->run, &d->error)) check_answer(&d->request, &a);
}

static void answer_request(const struct model *m, const struct body_terms *terms, struct input body,
                           unsigned cut) {
  struct encoded whole, parts;
  read_body(&whole, m, terms, body, 0);
  read_body(&parts, m, terms, body, cut);
  error_must_agree(&whole.error, &parts.error);
  if (!whole.error.status) {
    requests_must_agree(&whole.request, &parts.request);
    compute(m, &whole,
            terms->form == BODY_V2                                            ? ANSWER_V2
            : terms->wants_binary && stack_request_has_binary(&whole.request) ? ANSWER_SAFETENSORS
                                                                              : ANSWER_JSON);
  }
  if (whole.error.status) error_must_be_told(&whole.error);
  end_body(&whole);
  end_body(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = model_at(how >> 1);
  struct body_terms terms = {.ask = ASK_ENCODE,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN};
  terms.wants_binary = form != 'v' && (how & 1);
  if (form == 'v') {
    terms.form = BODY_V2;
    char *bytes = input_copy(in);
    const struct input json = input_part(&in);
    if (in.size) memcpy(bytes + json.size, in.bytes, in.size);
    if (in.size) terms.json_bytes = json.size;
    terms.body_bytes = json.size + in.size;
    answer_request(m, &terms, (struct input){bytes, terms.body_bytes}, cut);
    free(bytes);
  } else if (form == 's') {
    terms.form = BODY_SAFETENSORS;
    const struct input header = input_part(&in), body = input_framed(header, in);
    answer_request(m, &terms, body, cut);
    free((char *)body.bytes);
  } else {
    answer_request(m, &terms, in, cut);
  }
  return 0;
}
