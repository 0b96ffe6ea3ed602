/* fuzz_decode: a request to score or to generate, from its bytes to the bytes of its answer and to
 * the events of a stream, however it is cut.
 *
 * The first byte is the form of the body: `j` JSON, `s` a header of safetensors and behind
 * FUZZ_PART the data. The second byte: bit 0: a binary answer is wanted, bit 1: generate instead of
 * score, the others: the model. The third is how the body, and what is written of a stream, is cut
 * the second time. */
#include <stdlib.h>
#include <string.h>

#include "config/build/whole.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_stream.h"
#include "tests/fuzz/asked.h"

enum { MODELS = 4, HEADS = 2, WIDTH = 4, VOCABULARY = 9, EVENTS = 1 << 20 };

/* Small spans, so that a run is cut into many. */
static const double work = 1e3;

#define RANDOM                                                                       \
  "{\"transformer\":{\"random\":{\"seed\":1}},\"layers\":2,\"width\":4,\"heads\":2," \
  "\"feed_forward\":8,\"vocabulary\":9,\"kind\":"

static const struct model *model_at(unsigned index) {
  static const char *const definitions[MODELS] = {
      RANDOM "\"decoder\"}",
      RANDOM "\"decoder\",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":14,"
             "\"generate\":{\"temperature\":1,\"top_k\":3,\"banned_tokens\":[2]}}",
      RANDOM "\"seq2seq\"}",
      RANDOM "\"seq2seq\",\"norm\":\"pre\",\"positions\":\"learned\",\"max_positions\":14,"
             "\"decoder\":{\"layers\":1},\"generate\":{\"beams\":3,\"length_penalty\":0.5}}"};
  static const struct model *models[MODELS];
  return asked_model(definitions[index % MODELS], &models[index % MODELS]);
}

/* --- reading --- */

static void requests_must_agree(const struct stack_request *a, const struct stack_request *b) {
  const struct stack_run *x = a->main.run, *y = b->main.run;
  const size_t rows = x->geometry.q_rows;
  must(a->generates == b->generates && a->stream == b->stream && a->returns == b->returns &&
       a->each == b->each && a->search == b->search && a->texts == b->texts &&
       a->targets == b->targets && a->top == b->top);
  must(!a->source.run == !b->source.run &&
       (!a->source.run || a->source.run->geometry.q_rows == b->source.run->geometry.q_rows));
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

/* What is wished of a side's parts, in objects of this name. */
static size_t count_wished(const struct stack_side *s, bool hidden) {
  size_t count = hidden && s->run->embedded;
  for (size_t i = 0; s->run->wish && i < stack_form_attentions(s->form); i++) {
    const struct stack_wish *w = &s->wish[i];
    const bool shown = w->weights != STACK_WEIGHTS_NONE && w->weights != STACK_WEIGHTS_THUMBNAILS;
    count += hidden ? (size_t)w->hidden + w->input : shown;
  }
  return count;
}

/* A row of each token, and of weights as many columns as the last one sees, or as the source has.
 */
static void check_parts(const struct stack_request *r, const json_t *sequence, size_t item,
                        size_t text, size_t count) {
  const char *name;
  json_t *part;
  const json_t *hidden = json_object_get(sequence, "hidden"),
               *attention = json_object_get(sequence, "attention");
  json_object_foreach((json_t *)hidden, name, part) is_list_of(part, count, WIDTH);
  json_object_foreach((json_t *)attention, name, part) {
    const bool across = strstr(name, ".cross") != NULL;
    const size_t columns = across ? stack_request_source_rows(r, item) : text + count - 1;
    const bool heads = json_is_array(json_array_get(json_array_get(part, 0), 0));
    must(!heads || json_array_size(part) == HEADS);
    for (size_t h = 0; heads && h < HEADS; h++) is_list_of(json_array_get(part, h), count, columns);
    if (!heads) is_list_of(part, count, columns);
  }
  must(json_object_size(hidden) == (r->base64 ? 0 : count_wished(&r->main, true)));
  must(json_object_size(attention) == (r->base64 ? 0 : count_wished(&r->main, false)));
}

/* What is the source's stands beside the sequences. */
static void check_source(const struct stack_request *r, const json_t *body) {
  size_t hidden = 0, attention = 0;
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    const struct stack_side *s = stack_request_side(r, i);
    if (!s->run || (s == &r->main && r->generates && !r->base64)) continue;
    hidden += count_wished(s, true);
    attention += count_wished(s, false);
  }
  must(json_object_size(json_object_get(body, "hidden")) == hidden);
  must(json_object_size(json_object_get(body, "attention")) == attention);
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

/* Of a search the ways of each step follow upon those of the step before. */
static void check_search(const struct stack_request *r, const json_t *steps) {
  size_t before = 1, i;
  const json_t *step, *way;
  json_array_foreach((json_t *)steps, i, step) {
    size_t n;
    must(json_array_size(step) <= r->each && before > 0);
    json_array_foreach((json_t *)step, n, way) {
      const json_int_t parent = json_integer_value(json_object_get(way, "parent"));
      must(parent >= 0 && (size_t)parent < before);
    }
    before = json_array_size(step);
  }
}

static void check_sequences(const struct stack_request *r, const json_t *body) {
  const json_t *all = json_object_get(body, "sequences"), *search = json_object_get(body, "search");
  must(r->search == (search != NULL));
  for (size_t text = 0; text < r->texts; text++) {
    const json_t *of = r->unbatched ? all : json_array_get(all, text);
    const size_t found = json_array_size(of), first = text * r->each;
    must(found > 0 && found <= r->returns && (found == r->returns || r->generation.search));
    for (size_t i = 0; i < found; i++) {
      const json_t *sequence = json_array_get(of, i);
      const struct stack_sequence *q = &r->generation.sequence[first + i];
      check_sequence(sequence, q);
      check_parts(r, sequence, first + i, q->keys + 1 - q->most, stack_sequence_count(q));
    }
    if (search) check_search(r, r->unbatched ? search : json_array_get(search, text));
  }
}

static void check_json(const struct stack_request *r, struct input answer) {
  json_t *body = answer_json(answer);
  if (r->generates)
    check_sequences(r, body);
  else
    must(json_object_get(body, "log_probabilities"));
  check_source(r, body);
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

/* With the events of a stream, as if they were asked for, where there are any. */
static void generate(struct asked *d, void *scratch, unsigned cut) {
  struct events *v = malloc(sizeof *v);
  must(v);
  v->size = 0;
  v->cutter = cutter_of(cut);
  const bool good =
      !stack_stream_init(&v->stream, &stack_events, NULL, &d->request, &d->arena, &d->error);
  for (struct run *run = good ? stack_request_run(&d->request) : NULL; run;) {
    run = asked_compute(d, run, work, scratch);
    if (!d->request.generation.search) take_events(v, false, NULL);
  }
  if (good && !d->request.generation.search) {
    take_events(v, true, d->error.status ? "{}" : NULL);
    check_events(&d->request, v, !d->error.status);
  }
  free(v);
}

static void compute(const struct model *m, struct asked *d, enum answer_form form, unsigned cut) {
  struct answer a = {0};
  if (stack_request_prepare(&d->request, &d->arena, &d->error)) return;
  if (!d->request.stream &&
      stack_answer_plan(&a, form, m->name, &d->request, &fuzz_limits, &d->arena, &d->error))
    return;
  void *scratch = asked_scratch(m);
  if (d->request.generates && d->request.texts > 0)
    generate(d, scratch, cut);
  else
    for (struct run *run = d->request.generates ? NULL : stack_request_run(&d->request); run;)
      run = asked_compute(d, run, work, scratch);
  free(scratch);
  if (!d->error.status && !d->request.stream) check_answer(&d->request, &a);
}

static const struct asked_target target = {requests_must_agree, compute};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in), cut = input_byte(&in);
  const struct model *m = model_at(how >> 2);
  struct body_terms terms = {.ask = how & 2 ? ASK_GENERATE : ASK_SCORE,
                             .wants_binary = how & 1,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN};
  const struct input body = input_body(in, form == 's' ? 's' : 'j', &terms);
  asked_answer(&target, m, &terms, body, cut);
  free((char *)body.bytes);
  return 0;
}
