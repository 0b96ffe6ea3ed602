/* fuzz_decode: a request to score or to generate, from its bytes to the bytes of its answer and to
 * the events of a stream, however it is cut.
 *
 * The first byte is the form of the body: `j` JSON, `s` a header of safetensors and behind
 * FUZZ_PART the data. The second byte: bit 0: a binary answer is wanted, bit 1: generate instead of
 * score, the others: the model. The third is how the body, and what is written of a stream, is cut
 * the second time. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/checkpoint/safetensors.h"
#include "config/model/whole.h"
#include "server/stack/stack_answer.h"
#include "server/stack/stack_body.h"
#include "server/stack/stack_stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rfc8259.h"

enum { MODELS = 2, VOCABULARY = 9, BUDGET = 32 << 20, EVENTS = 1 << 20 };

/* Small spans, so that a run is cut into many. */
static const double work = 1e3;

#define RANDOM                                                                                \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"kind\":\"decoder\",\"layers\":2,\"width\":4," \
  "\"heads\":2,\"feed_forward\":8,\"vocabulary\":9"

static const struct model *model_at(unsigned index) {
  static const char *const definitions[MODELS] = {
      RANDOM "}", RANDOM ",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":14,"
                         "\"generate\":{\"temperature\":1,\"top_k\":3,\"banned_tokens\":[2]}}"};
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

struct decoded {
  struct budget budget;
  struct arena arena;
  struct stack_request request;
  struct error error;
};

static void read_body(struct decoded *d, const struct model *m, const struct body_terms *terms,
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

static void end_body(struct decoded *d) {
  arena_free(&d->arena);
  must(d->budget.used == 0);
}

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  const struct stack_run *x = a->run, *y = b->run;
  const size_t rows = x->geometry.q_rows;
  must(a->generates == b->generates && a->stream == b->stream && a->returns == b->returns &&
       a->texts == b->texts && a->targets == b->targets && a->top == b->top);
  must(x->geometry.items == y->geometry.items && rows == y->geometry.q_rows);
  must(rows == 0 || !x->tokens || !memcmp(x->tokens, y->tokens, rows * sizeof *x->tokens));
  for (size_t i = 0; a->generates && i < x->geometry.items; i++)
    must(a->generation.sequence[i].most == b->generation.sequence[i].most &&
         a->generation.sequence[i].most <= fuzz_limits.max_tokens);
}

/* --- the answer --- */

static void check_sequence(const json_t *sequence, const struct stack_sequence *q) {
  const json_t *tokens = json_object_get(sequence, "tokens");
  const size_t count = json_array_size(tokens);
  must(count > 0 && count <= q->most && count == stack_sequence_count(q) && q->finish);
  must(json_array_size(json_object_get(sequence, "log_probabilities")) == count);
  for (size_t i = 0; i < count; i++) {
    const json_int_t token = json_integer_value(json_array_get(tokens, i));
    must(token >= 0 && token < VOCABULARY && token == q->token[i]);
  }
}

static void check_sequences(const struct stack_request *r, const json_t *body) {
  const json_t *all = json_object_get(body, "sequences");
  for (size_t i = 0; i < r->run->geometry.items; i++) {
    const json_t *of = r->unbatched ? all : json_array_get(all, i / r->returns);
    check_sequence(json_array_get(of, i % r->returns), &r->generation.sequence[i]);
  }
}

static void check_json(const struct stack_request *r, struct input answer) {
  must(rfc8259_check(answer.bytes, answer.size).json);
  json_t *body = json_loadb(answer.bytes, answer.size, JSON_REJECT_DUPLICATES, NULL);
  must(json_is_object(body));
  if (r->generates)
    check_sequences(r, body);
  else
    must(json_object_get(body, "log_probabilities"));
  json_decref(body);
}

static void check_safetensors(struct input answer) {
  struct error e = {0};
  size_t header;
  must(!safetensors_measure(answer.bytes, answer.size, answer.size, &header, &e));
  const size_t front = SAFETENSORS_PREFIX + header;
  struct safetensors *s =
      safetensors_parse(answer.bytes + SAFETENSORS_PREFIX, header, answer.size - front, &e);
  must(s);
  safetensors_free(s);
}

static void check_answer(const struct stack_request *r, struct answer *a) {
  for (size_t i = a->pieces; i-- > 0;) answer_write_piece(a, i);
  must(answer_bytes(a) <= fuzz_limits.max_answer_bytes);
  char *text = malloc(answer_bytes(a) + 1), *at = text;
  must(text);
  for (size_t i = 0; i < a->pieces; i++) {
    memcpy(at, a->piece[i].iov_base, a->piece[i].iov_len);
    at += a->piece[i].iov_len;
  }
  const struct input answer = {text, answer_bytes(a)};
  if (a->form == ANSWER_SAFETENSORS)
    check_safetensors(answer);
  else
    check_json(r, answer);
  free(text);
}

/* --- the stream --- */

struct events {
  char text[EVENTS];
  size_t size;
  struct stack_stream stream;
  struct cutter cutter;
};

/* What there is, into rooms of any size that holds an event. */
static void take_events(struct events *v, bool done, const char *problem) {
  for (size_t bytes = 1; bytes > 0; v->size += bytes) {
    const size_t room = v->stream.event + 1000 + cutter_next(&v->cutter, 1000);
    must(v->size + room <= EVENTS);
    bytes = stack_stream_write(&v->stream, done, problem, v->text + v->size, room);
    must(bytes <= room);
  }
}

static size_t count_of(const struct events *v, const char *what) {
  size_t count = 0;
  for (const char *at = v->text; (at = strstr(at, what)); at++) count++;
  return count;
}

static void check_events(const struct stack_request *r, struct events *v, bool good) {
  size_t tokens = 0;
  v->text[v->size] = '\0';
  for (size_t i = 0; i < r->run->geometry.items; i++)
    tokens += stack_sequence_count(&r->generation.sequence[i]);
  must(count_of(v, ",\"token\":") == tokens);
  must(count_of(v, "\"usage\"") == good && count_of(v, "event: error") == !good);
  must(!good || count_of(v, "\"finish\"") == r->run->geometry.items);
  must(v->size >= 2 && !memcmp(v->text + v->size - 2, "\n\n", 2));
}

/* --- the computation --- */

static void generate(struct decoded *d, struct run *run, void *scratch, unsigned cut) {
  struct events *v = malloc(sizeof *v);
  must(v);
  v->size = 0;
  v->cutter = cutter_of(cut);
  const bool good = !stack_stream_init(&v->stream, &d->request, &d->arena, &d->error);
  for (bool more = good; more;) {
    run_compute(run, work, scratch);
    more = !run_fault(run, &d->error) && run_again(run);
    take_events(v, false, NULL);
  }
  if (good) {
    take_events(v, true, d->error.status ? "{}" : NULL);
    check_events(&d->request, v, !d->error.status);
  }
  free(v);
}

static void compute(const struct model *m, struct decoded *d, enum answer_form form, unsigned cut) {
  struct answer a = {0};
  struct run *run = &d->request.run->run;
  if (stack_prepare(m->whole->encoder, d->request.run, &d->arena, &d->error)) return;
  if (!d->request.stream &&
      stack_answer_plan(&a, form, m->name, &d->request, &fuzz_limits, &d->arena, &d->error))
    return;
  const size_t bytes = (stack_scratch_bytes(m->whole->encoder) + 63) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  must(scratch);
  if (d->request.generates && d->request.run->geometry.items > 0)
    generate(d, run, scratch, cut);
  else if (!d->request.generates)
    run_compute(run, work, scratch);
  free(scratch);
  if (!run_fault(run, &d->error) && !d->error.status && !d->request.stream)
    check_answer(&d->request, &a);
}

static void answer_request(const struct model *m, const struct body_terms *terms, struct input body,
                           unsigned cut) {
  struct decoded whole, parts;
  read_body(&whole, m, terms, body, 0);
  read_body(&parts, m, terms, body, cut);
  error_must_agree(&whole.error, &parts.error);
  if (!whole.error.status) {
    requests_must_agree(&whole.request, &parts.request);
    const bool binary = terms->wants_binary && stack_request_has_binary(&whole.request);
    compute(m, &whole, binary ? ANSWER_SAFETENSORS : ANSWER_JSON, cut);
  }
  if (whole.error.status) error_must_be_told(&whole.error);
  end_body(&whole);
  end_body(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = model_at(how >> 2);
  struct body_terms terms = {.ask = how & 2 ? ASK_GENERATE : ASK_SCORE,
                             .wants_binary = how & 1,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN};
  if (form == 's') {
    terms.form = BODY_SAFETENSORS;
    const struct input header = input_part(&in), body = input_framed(header, in);
    answer_request(m, &terms, body, cut);
    free((char *)body.bytes);
  } else {
    answer_request(m, &terms, in, cut);
  }
  return 0;
}
