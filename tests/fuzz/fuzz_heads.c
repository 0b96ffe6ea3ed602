/* fuzz_heads: a request for masked tokens, sparse embeddings, classes of tokens or answers to
 * questions, from its bytes to the bytes of its answer, however it is cut.
 *
 * The first byte is the form of the body, a letter of input_body. The second byte: bit 0: a binary
 * answer is wanted, the others: the head. The third is how the body is cut the second time. */
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "tests/fuzz/asked.h"

static const char words[] =
    "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,"
    "\"c\":3,\"é\":4,\"\\\"\":5,\" \":6}},\"added_tokens\":[{\"id\":7,\"content\":\"[MASK]\","
    "\"special\":true,\"normalized\":false}],\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":"
    "{\"String\":\"\"},\"behavior\":\"Isolated\",\"invert\":false},\"decoder\":{\"type\":\"Fuse\"}"
    "}";

#define MODEL                                                                                 \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"kind\":\"encoder\",\"layers\":2,\"width\":4," \
  "\"heads\":2,\"feed_forward\":8,\"vocabulary\":9,\"positions\":\"learned\","                \
  "\"max_positions\":14"

static const struct head {
  enum body_ask ask;
  const char *model;
} heads[] = {
    {ASK_FILL, MODEL ",\"tie_output\":true}"},
    {ASK_ENCODE, MODEL ",\"tie_output\":true,\"pool\":\"sparse\"}"},
    {ASK_CLASSIFY_TOKENS,
     MODEL ",\"task\":\"classify_tokens\",\"labels\":[\"B-\\\"\",\"I-\\\"\",\"O\"]}"},
    {ASK_QUESTION, MODEL ",\"task\":\"question\"}"},
};
enum { HEADS = sizeof heads / sizeof *heads };

/* --- reading --- */

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  const struct stack_run *x = a->main.run, *y = b->main.run;
  const struct stack_windows *v = a->windows, *w = b->windows;
  const size_t rows = x->geometry.q_rows;
  must(a->unbatched == b->unbatched && a->base64 == b->base64 && a->grouped == b->grouped &&
       a->group == b->group && a->top == b->top && a->targets == b->targets);
  must(x->geometry.items == y->geometry.items && rows == y->geometry.q_rows &&
       x->want_sparse == y->want_sparse && !x->tokens == !y->tokens);
  must(!x->tokens || rows == 0 || memcmp(x->tokens, y->tokens, rows * sizeof *x->tokens) == 0);
  must(!a->filled == !b->filled && !v == !w);
  for (size_t i = 0; a->filled && i < a->targets; i++) must(a->filled[i] == b->filled[i]);
  must(!v || (v->count == w->count && v->top == w->top && v->max_answer == w->max_answer));
  for (size_t i = 0; v && i < v->count; i++)
    must(memcmp(&v->window[i], &w->window[i], sizeof *v->window) == 0);
}

/* --- answering --- */

static double number_of(const json_t *one, const char *key) {
  const json_t *value = json_object_get(one, key);
  must(json_is_number(value));
  return json_number_value(value);
}

/* A list of probabilities, the greatest first. */
static void check_order(const json_t *list, const char *key) {
  double last = 1;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const double p = number_of(json_array_get(list, i), key);
    must(p >= 0 && p <= last + 1e-6);
    last = p;
  }
}

/* Places in a text: as many code points lie between them as the part of it has. */
static void check_part(const json_t *one) {
  const char *text = json_string_value(json_object_get(one, "text"));
  const double start = number_of(one, "start"), end = number_of(one, "end");
  double points = 0;
  must(text && start >= 0 && start <= end);
  for (; *text; text++) points += (*text & 0xC0) != 0x80;
  must(points == end - start);
}

static void check_masks(const struct stack_request *r, const json_t *masks) {
  double last = -1;
  for (size_t i = 0; i < json_array_size(masks); i++) {
    const json_t *mask = json_array_get(masks, i), *top = json_object_get(mask, "top");
    const double position = number_of(mask, "position");
    must(position > last && position < (double)r->main.widest);
    must(json_array_size(top) > 0 && json_array_size(top) <= r->top);
    check_order(top, "probability");
    last = position;
  }
}

static void check_sparse(const json_t *sparse) {
  const json_t *indices = json_object_get(sparse, "indices"),
               *values = json_object_get(sparse, "values");
  json_int_t last = -1;
  must(json_is_array(values) && json_array_size(indices) == json_array_size(values));
  for (size_t i = 0; i < json_array_size(indices); i++) {
    const json_int_t token = json_integer_value(json_array_get(indices, i));
    must(token > last && json_number_value(json_array_get(values, i)) > 0);
    last = token;
  }
}

/* Checks the part of the response that is about one item. */
static void check_item(const struct stack_request *r, const json_t *item) {
  const bool parts = r->windows || r->grouped;
  if (r->fills_of) check_masks(r, item);
  if (!r->fills_of && r->main.run->want_sparse) check_sparse(item);
  for (size_t i = 0; parts && i < json_array_size(item); i++) {
    check_part(json_array_get(item, i));
    const double score = number_of(json_array_get(item, i), "score");
    must(score >= 0 && score <= 1 + 1e-6);
  }
  if (r->windows) check_order(item, "score");
}

static void check_json(const struct stack_request *r, struct input text) {
  json_t *body = answer_json(text);
  const char *name = r->fills_of                  ? "masks"
                     : r->windows                 ? "answers"
                     : r->grouped                 ? "entities"
                     : stack_request_has_spans(r) ? "start"
                     : r->main.run->want_sparse   ? "sparse"
                                                  : "outputs";
  const json_t *list = json_object_get(body, name);
  const bool alone = r->windows ? r->windows->alone : r->unbatched;
  must(list && json_object_get(body, "usage"));
  if (alone) check_item(r, list);
  if (!alone && !r->base64 && !r->windows)
    must(json_array_size(list) == r->main.run->geometry.items);
  for (size_t i = 0; !alone && i < json_array_size(list); i++)
    check_item(r, json_array_get(list, i));
  json_decref(body);
}

static void compute(const struct model *m, struct asked *d, enum answer_form form, unsigned cut) {
  static const struct asked_checks checks = {check_json, NULL};
  (void)cut;
  asked_compute_answer(&checks, m, d, form);
}

static const struct asked_target target = {requests_must_agree, compute};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct model *models[HEADS];
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in), cut = input_byte(&in);
  const struct head *head = &heads[(how >> 1) % HEADS];
  const struct model *m = asked_model_of_words(head->model, words, &models[head - heads]);
  struct body_terms terms = {.ask = form == 'v' ? ASK_ENCODE : head->ask,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN,
                             .wants_binary = form != 'v' && (how & 1)};
  const struct input body = input_body(in, (char)form, &terms);
  asked_answer(&target, m, &terms, body, cut);
  free((char *)body.bytes);
  return 0;
}
