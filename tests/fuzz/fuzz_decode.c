/* fuzz_decode: a request to score or to generate, from its bytes to the bytes of its answer and to
 * the events of a stream, however it is cut.
 *
 * The first byte is the form of the body: `j` JSON, `s` a header of safetensors and behind
 * FUZZ_PART the data. The second byte: bit 0: a binary answer is wanted, bit 1: generate instead of
 * score, the others: the model. The third is how the body, and what is written of a stream, is cut
 * the second time. */
#include <stdlib.h>
#include <string.h>

#include "config/model/whole.h"
#include "server/stack/stack_answer.h"
#include "server/stack/stack_stream.h"
#include "tests/fuzz/asked.h"

enum { MODELS = 2, LAYERS = 2, HEADS = 2, WIDTH = 4, VOCABULARY = 9, EVENTS = 1 << 20 };

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
  return asked_model(definitions[index % MODELS], &models[index % MODELS]);
}

/* --- reading --- */

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  const struct stack_run *x = a->main.run, *y = b->main.run;
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

static void is_list_of(const json_t *list, size_t rows, size_t columns) {
  must(json_array_size(list) == rows);
  for (size_t i = 0; i < rows; i++) must(json_array_size(json_array_get(list, i)) == columns);
}

/* A row of each token, and of weights as many columns as the last one sees. */
static void check_parts(const struct stack_request *r, const json_t *sequence, size_t text,
                        size_t count) {
  const char *name;
  json_t *part;
  size_t shown = 0;
  json_object_foreach(json_object_get(sequence, "hidden"), name, part) {
    is_list_of(part, count, WIDTH);
    shown++;
  }
  json_object_foreach(json_object_get(sequence, "attention"), name, part) {
    const bool heads = json_is_array(json_array_get(json_array_get(part, 0), 0));
    must(!heads || json_array_size(part) == HEADS);
    for (size_t h = 0; heads && h < HEADS; h++)
      is_list_of(json_array_get(part, h), count, text + count - 1);
    if (!heads) is_list_of(part, count, text + count - 1);
    shown++;
  }
  size_t wanted = r->main.run->embedded;
  for (size_t l = 0; l < LAYERS && r->main.run->wish; l++) {
    const struct stack_wish *w = &r->main.run->wish[l];
    const bool picture = w->weights == STACK_WEIGHTS_THUMBNAILS;
    wanted += w->hidden + w->input + (w->weights != STACK_WEIGHTS_NONE && !picture);
  }
  must(shown == (r->base64 ? 0 : wanted));
}

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
  for (size_t i = 0; i < r->main.run->geometry.items; i++) {
    const json_t *of = r->unbatched ? all : json_array_get(all, i / r->returns);
    const json_t *sequence = json_array_get(of, i % r->returns);
    const struct stack_sequence *q = &r->generation.sequence[i];
    check_sequence(sequence, q);
    check_parts(r, sequence, q->keys + 1 - q->most, stack_sequence_count(q));
  }
}

static void check_json(const struct stack_request *r, struct input answer) {
  json_t *body = answer_json(answer);
  if (r->generates)
    check_sequences(r, body);
  else
    must(json_object_get(body, "log_probabilities"));
  json_decref(body);
}

static void check_answer(const struct stack_request *r, struct answer *a) {
  const struct input text = answer_text(a);
  if (a->form == ANSWER_SAFETENSORS)
    safetensors_free(answer_safetensors(text));
  else
    check_json(r, text);
  free((char *)text.bytes);
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
  for (size_t i = 0; i < r->main.run->geometry.items; i++)
    tokens += stack_sequence_count(&r->generation.sequence[i]);
  must(count_of(v, ",\"token\":") == tokens);
  must(count_of(v, "\"usage\"") == good && count_of(v, "event: error") == !good);
  must(!good || count_of(v, "\"finish\"") == r->main.run->geometry.items);
  must(v->size >= 2 && !memcmp(v->text + v->size - 2, "\n\n", 2));
}

/* --- the computation --- */

static void generate(struct asked *d, struct run *run, void *scratch, unsigned cut) {
  struct events *v = malloc(sizeof *v);
  must(v);
  v->size = 0;
  v->cutter = cutter_of(cut);
  const bool good = !stack_stream_init(&v->stream, &d->request, &d->arena, &d->error);
  for (bool more = good; more;) {
    run_compute(run, work, scratch);
    struct run *on = run_fault(run, &d->error) ? NULL : run_goes_on(run);
    more = on != NULL;
    run = on ? on : run;
    take_events(v, false, NULL);
  }
  if (good) {
    take_events(v, true, d->error.status ? "{}" : NULL);
    check_events(&d->request, v, !d->error.status);
  }
  free(v);
}

static void compute(const struct model *m, struct asked *d, enum answer_form form, unsigned cut) {
  struct answer a = {0};
  struct run *run = &d->request.main.run->run;
  if (stack_prepare(whole_reader(m->whole), d->request.main.run, &d->arena, &d->error)) return;
  if (!d->request.stream &&
      stack_answer_plan(&a, form, m->name, &d->request, &fuzz_limits, &d->arena, &d->error))
    return;
  void *scratch = asked_scratch(m);
  if (d->request.generates && d->request.main.run->geometry.items > 0)
    generate(d, run, scratch, cut);
  else if (!d->request.generates)
    run_compute(run, work, scratch);
  free(scratch);
  if (!run_fault(run, &d->error) && !d->error.status && !d->request.stream)
    check_answer(&d->request, &a);
}

static void answer_request(const struct model *m, const struct body_terms *terms, struct input body,
                           unsigned cut) {
  struct asked whole, parts;
  asked_read(&whole, m, terms, body, 0);
  asked_read(&parts, m, terms, body, cut);
  error_must_agree(&whole.error, &parts.error);
  if (!whole.error.status) {
    requests_must_agree(&whole.request, &parts.request);
    const bool binary = terms->wants_binary && stack_request_has_binary(&whole.request);
    compute(m, &whole, binary ? ANSWER_SAFETENSORS : ANSWER_JSON, cut);
  }
  if (whole.error.status) error_must_be_told(&whole.error);
  asked_end(&whole);
  asked_end(&parts);
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
