/* fuzz_encode: a request to encode or to classify from its bytes to the bytes of its answer,
 * however it is cut.
 *
 * The first byte is the form of the body, a letter of input_body. The second byte: bit 0: a binary
 * answer is wanted, the others: the model, of which the last one is asked to classify. The third is
 * how the body is cut the second time. */
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "tests/fuzz/asked.h"

enum { MODELS = 5, SORTS = 4, LAYERS = 2, HEADS = 2, WIDTH = 4 };

#define SIZES                                                                        \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"layers\":2,\"width\":4,\"heads\":2," \
  "\"feed_forward\":8,\"vocabulary\":9,\"kind\":"
#define RANDOM SIZES "\"encoder\""

static const struct model *model_at(unsigned index) {
  static const char *const definitions[MODELS] = {
      RANDOM "}", RANDOM ",\"pool\":\"mean\",\"normalize\":true}",
      RANDOM ",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":5,\"gated\":true}",
      SIZES "\"seq2seq\"}", RANDOM ",\"labels\":[\"a\",\"\\\"b\"]}"};
  static const struct model *models[MODELS];
  return asked_model(definitions[index % MODELS], &models[index % MODELS]);
}

/* --- reading --- */

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

static void sides_must_agree(const struct stack_side *a, const struct stack_side *b) {
  const struct stack_run *x = a->run, *y = b->run;
  must(!x == !y);
  if (!x) return;
  const size_t rows = x->geometry.q_rows;
  must(a->widest == b->widest && a->rectangular == b->rectangular);
  must(x->geometry.items == y->geometry.items && rows == y->geometry.q_rows);
  must(agree(a->lens, b->lens, x->geometry.items * sizeof *a->lens));
  must(agree(x->tokens, y->tokens, rows * sizeof *x->tokens));
  must(agree(x->types, y->types, rows * sizeof *x->types));
  must(agree(x->embeddings, y->embeddings, rows * WIDTH * sizeof *x->embeddings));
  must(x->embedded == y->embedded && x->vectors == y->vectors && x->after == y->after &&
       x->dimensions == y->dimensions && x->normalize == y->normalize &&
       x->function == y->function && x->want_logits == y->want_logits);
  wishes_must_agree(x, y);
}

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  must(a->unbatched == b->unbatched && a->base64 == b->base64 && a->v2.outputs == b->v2.outputs);
  sides_must_agree(&a->source, &b->source);
  sides_must_agree(&a->main, &b->main);
  traces_must_agree(a->trace, b->trace);
}

/* --- answering --- */

static void check_json(const struct stack_request *r, struct input answer) {
  json_t *body = answer_json(answer);
  const json_t *outputs = json_object_get(body, "outputs");
  const json_t *usage = json_object_get(body, "usage");
  must((size_t)json_integer_value(json_object_get(usage, "tokens")) ==
       r->main.run->geometry.q_rows);
  must(outputs);
  if (!r->base64 && !r->unbatched) must(json_array_size(outputs) == r->main.run->geometry.items);
  must(!json_object_get(body, "valid_lens") == !r->base64);
  must(!json_object_get(body, "trace") == !r->trace);
  must(json_array_size(json_object_get(body, "labels")) == (r->classes_of ? 2 : 0));
  must(!json_object_get(body, "hidden") || r->main.run->embedded || r->main.run->wish);
  json_decref(body);
}

static void check_safetensors(const struct stack_request *r, struct input answer) {
  struct safetensors *s = answer_safetensors(answer);
  bool outputs = false;
  for (size_t i = 0; i < safetensors_count(s); i++) {
    const struct safetensors_entry *t = safetensors_at(s, i);
    if (strcmp(t->name, "valid_lens") == 0) must(t->count == r->main.run->geometry.items);
    outputs = outputs || strcmp(t->name, "outputs") == 0;
  }
  must(outputs);
  safetensors_free(s);
}

static void compute(const struct model *m, struct asked *d, enum answer_form form, unsigned cut) {
  static const struct asked_checks checks = {check_json, check_safetensors};
  (void)cut;
  asked_compute_answer(&checks, m, d, form);
}

static const struct asked_target target = {requests_must_agree, compute};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = model_at(how >> 1);
  const bool sorts = (how >> 1) % MODELS == SORTS && form != 'v';
  struct body_terms terms = {.ask = sorts ? ASK_CLASSIFY : ASK_ENCODE,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN};
  terms.wants_binary = form != 'v' && (how & 1);
  const struct input body = input_body(in, (char)form, &terms);
  asked_answer(&target, m, &terms, body, cut);
  free((char *)body.bytes);
  return 0;
}
