/* fuzz_exchange: a request from its bytes to the bytes of its answer, which has the shape that was
 * asked for.
 *
 * The first byte is the form of the body: `j` JSON, `s` a header of safetensors and behind
 * FUZZ_PART the data, `v` Open Inference Protocol with binary data behind FUZZ_PART; as capitals
 * the measures of heads. The second byte: bit 0: a binary answer is wanted, the others: the model.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention/trace.h"
#include "server/attention/attention_answer.h"
#include "server/text/base64.h"
#include "tests/fuzz/asked.h"

/* Small spans, so that a call is cut into many. */
static const double work = 1e3;

static void *scratch_of(const struct model *m) {
  static void *scratch;
  static size_t size;
  const size_t needed = (layer_scratch_bytes(m->layer) + 63) / 64 * 64;
  if (needed > size) {
    free(scratch);
    scratch = aligned_alloc(64, needed);
    size = needed;
  }
  must(scratch);
  return scratch;
}

/* --- what an answer holds --- */

/* How many numbers the tensor of this name should have; false if there should be none. */
static bool numbers_asked(const struct model *m, const struct attention_request *d,
                          const char *name, size_t *count) {
  const struct layer_run *c = &d->asked;
  if (strcmp(name, "outputs") == 0) {
    *count = c->geometry.q_rows * m->shape.output_size;
  } else if (strcmp(name, "attention_weights") == 0) {
    *count = c->call.weight_count;
    return c->call.want != WEIGHTS_NONE;
  } else if (strcmp(name, "segment_weights") == 0) {
    *count = c->call.segment_weight_count;
    return c->call.segment_weights != NULL;
  } else {
    *count = c->geometry.q_rows * m->shape.heads;
    return c->call.want_pointers && strcmp(name, "pointers") == 0;
  }
  return true;
}

static size_t product_of(const json_t *shape) {
  size_t count = 1, i;
  json_t *dim;
  must(json_is_array(shape));
  json_array_foreach(shape, i, dim) {
    must(json_is_integer(dim) && json_integer_value(dim) >= 0);
    count *= (size_t)json_integer_value(dim);
  }
  return count;
}

/* The numbers of an array, or of base64, or of a list of that. */
static size_t numbers_in(const json_t *value) {
  if (json_is_object(value)) {
    const size_t count = product_of(json_object_get(value, "shape"));
    const json_t *text = json_object_get(value, "base64");
    must(json_string_length(text) == base64_length(count * sizeof(float)));
    return count;
  }
  if (!json_is_array(value)) {
    must(json_is_number(value) && isfinite(json_number_value(value)));
    return 1;
  }
  size_t count = 0, i;
  json_t *element;
  json_array_foreach(value, i, element) count += numbers_in(element);
  return count;
}

static void check_measures(const struct model *m, const json_t *body) {
  const size_t heads = m->shape.heads;
  must(json_array_size(json_object_get(body, "heads")) == heads);
  must(json_array_size(json_object_get(body, "ranking")) == heads);
}

/* A list for each part, and of each key a row. */
static void check_trace(const struct trace *t, const json_t *trace) {
  const struct {
    const char *name;
    size_t rows, width; /* 0: a number each, or null */
  } parts[] = {{"query", t->size, 0},        {"keys", t->keys, t->size},
               {"products", t->keys, 0},     {"scores", t->keys, 0},
               {"weights", t->keys, 0},      {"values", t->keys, t->value_size},
               {"context", t->value_size, 0}};
  must(json_object_size(trace) == sizeof parts / sizeof *parts);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const json_t *list = json_object_get(trace, parts[i].name);
    must(json_is_array(list) && json_array_size(list) == parts[i].rows);
    for (size_t j = 0; j < parts[i].rows; j++) {
      const json_t *row = json_array_get(list, j);
      must(parts[i].width ? numbers_in(row) == parts[i].width : !json_is_array(row));
    }
  }
}

static void check_json(const struct model *m, const struct attention_request *d,
                       struct input answer) {
  json_t *body = answer_json(answer), *value;
  const char *name;
  size_t arrays = 0, asked;
  json_object_foreach(body, name, value) {
    if (d->asked.call.want_measures || !numbers_asked(m, d, name, &asked)) continue;
    must(numbers_in(value) == asked);
    if (!d->unbatched && json_is_array(value))
      must(json_array_size(value) == d->asked.geometry.items);
    arrays++;
  }
  if (d->asked.call.trace) check_trace(d->asked.call.trace, json_object_get(body, "trace"));
  if (d->asked.call.want_measures)
    check_measures(m, body);
  else
    must(arrays == 1u + (d->asked.call.want != WEIGHTS_NONE) + d->asked.call.want_pointers +
                       (d->asked.call.segment_weights != NULL));
  json_decref(body);
}

static void check_v2(const struct model *m, const struct attention_request *d, struct input answer,
                     size_t json_bytes) {
  const struct input text = {answer.bytes, json_bytes ? json_bytes : answer.size};
  size_t binary = answer.size - text.size, asked, i;
  json_t *body = answer_json(text), *output;
  const json_t *outputs = json_object_get(body, "outputs");
  must(json_array_size(outputs) == (d->v2.outputs ? d->v2.outputs : 1));
  json_array_foreach(outputs, i, output) {
    must(numbers_asked(m, d, json_string_value(json_object_get(output, "name")), &asked));
    must(product_of(json_object_get(output, "shape")) == asked);
    const json_t *data = json_object_get(output, "data");
    const size_t bytes = data ? 0 : asked * sizeof(float);
    if (data) must(numbers_in(data) == asked);
    must(bytes <= binary);
    binary -= bytes;
  }
  must(binary == 0);
  json_decref(body);
}

static void check_safetensors(const struct model *m, const struct attention_request *d,
                              struct input answer) {
  struct safetensors *s = answer_safetensors(answer);
  size_t asked;
  for (size_t i = 0; i < safetensors_count(s); i++) {
    const struct safetensors_entry *t = safetensors_at(s, i);
    must(numbers_asked(m, d, t->name, &asked) && t->count == asked);
  }
  safetensors_free(s);
}

/* --- the way of a request --- */

static void check_answer(const struct model *m, const struct attention_request *d,
                         struct answer *a) {
  const struct input text = answer_text(a);
  if (a->form == ANSWER_SAFETENSORS)
    check_safetensors(m, d, text);
  else if (a->form == ANSWER_V2)
    check_v2(m, d, text, atomic_load(&a->json_bytes));
  else
    check_json(m, d, text);
  free((char *)text.bytes);
}

static void answer_request(const struct model *m, const struct body_terms *terms,
                           struct input body) {
  struct fuzz_body r;
  struct answer a = {0};
  fuzz_body_run(&r, m, terms, body, 0);
  struct layer_run *c = &r.request.asked;
  enum answer_form form = terms->form == BODY_V2 ? ANSWER_V2 : ANSWER_JSON;
  if (!r.error.status && terms->wants_binary && attention_request_has_binary(&r.request))
    form = ANSWER_SAFETENSORS;
  if (!r.error.status && !layer_prepare(m->layer, c, &r.arena, &r.error) &&
      !attention_answer_plan(&a, form, m, &r.request, &fuzz_limits, &r.arena, &r.error)) {
    run_compute(&c->run, work, scratch_of(m));
    if (!run_fault(&c->run, &r.error)) check_answer(m, &r.request, &a);
  }
  if (r.error.status) error_must_be_told(&r.error);
  fuzz_body_end(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char form = input_byte(&in), how = input_byte(&in);
  const struct model *m = fuzz_model(how >> 1);
  struct body_terms terms = {.ask = isupper(form) ? ASK_HEADS : ASK_ATTENTION,
                             .body_bytes = BODY_UNKNOWN,
                             .json_bytes = BODY_UNKNOWN};
  terms.wants_binary = form != 'v' && (how & 1);
  const struct input body = input_body(in, form == 'S' ? 's' : (char)form, &terms);
  answer_request(m, &terms, body);
  free((char *)body.bytes);
  return 0;
}
