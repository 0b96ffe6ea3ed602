/* fuzz_json: whoever reads JSON, held against the grammar, against Jansson and against strtof; and
 * the same in one piece as in many.
 *
 * The first byte says who reads (`b`, `h`: a request, `s`: a value of any kind, `f`, `i`, `m`: an
 * array of floats, integers or flags), the second how the text is cut; the text follows. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/json/json_skim.h"
#include "server/json/json_small.h"
#include "server/json/tensor_json.h"
#include "server/number/number.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rfc8259.h"

/* Is a refusal as "not JSON" right, at this byte? Brackets beyond `depth` may be called so. */
static void refusal_must_be_right(const struct error *e, struct input text, size_t depth) {
  const struct rfc8259 judge = rfc8259_check(text.bytes, text.size);
  if (!judge.json && judge.offset == e->offset) return;
  const struct rfc8259 before = rfc8259_check(text.bytes, e->offset + 1);
  must(strstr(e->detail, "nested") && e->offset < text.size && before.depth > depth);
}

/* --- a request --- */

static bool begins_object(struct input text) {
  size_t at = 0;
  while (at < text.size && is_blank(text.bytes[at])) at++;
  return at < text.size && text.bytes[at] == '{';
}

static void read_request(struct input text, enum body_ask ask, unsigned cut) {
  const struct model *m = fuzz_model(cut);
  const struct body_terms terms = {.ask = ask,
                                   .body_bytes = BODY_UNKNOWN,
                                   .json_bytes = BODY_UNKNOWN};
  struct fuzz_body whole, pieces;
  fuzz_body_run(&whole, m, &terms, text, 0);
  fuzz_body_run(&pieces, m, &terms, text, cut);
  fuzz_body_must_agree(&whole, &pieces, m);
  if (whole.error.status) error_must_be_told(&whole.error);
  const struct rfc8259 judge = rfc8259_check(text.bytes, text.size);
  if (!whole.error.status) must(judge.json);
  /* What is no object is read to its end for this alone. */
  if (!judge.json && !begins_object(text) && text.size <= JSON_SMALL_MAX)
    must(whole.error.status == STATUS_INVALID_JSON);
  if (whole.error.status == STATUS_INVALID_JSON)
    refusal_must_be_right(&whole.error, text, 1 + TENSOR_DEPTH_MAX);
  fuzz_body_end(&whole);
  fuzz_body_end(&pieces);
}

/* --- a value of any kind --- */

/* Reads a value and what is behind it, which may be blanks. False: refused, `e` says where. */
static bool skim(struct input text, unsigned cut, struct error *e) {
  struct json_skim s;
  struct cutter cutter = cutter_of(cut);
  bool complete = false;
  size_t at = 0;
  json_skim_begin(&s);
  while (at < text.size && !complete && !e->status) {
    const size_t size = cutter_next(&cutter, text.size - at);
    char *chunk = input_copy((struct input){text.bytes + at, size});
    const size_t used = json_skim_feed(&s, chunk, size, at, &complete, e);
    must(used <= size && (complete || e->status || used == size));
    at += used;
    free(chunk);
  }
  if (!complete && !e->status) {
    json_skim_feed(&s, " ", 1, at, &complete, e); /* a number's end */
    if (!complete) {
      *e = (struct error){0};
      error_json(e, text.size, "truncated");
    }
  }
  while (!e->status && at < text.size && is_blank(text.bytes[at])) at++;
  if (!e->status && at < text.size) error_json(e, at, "the text goes on");
  return !e->status;
}

/* Jansson reads what is JSON, but for what its own limits forbid; and takes a NUL for the end. */
static void jansson_must_agree(struct input text, bool json) {
  if (text.size && memchr(text.bytes, '\0', text.size)) return;
  json_error_t why;
  json_t *value = json_loadb(text.bytes, text.size,
                             JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
  must(json || !value);
  if (json && !value)
    must(json_error_code(&why) == json_error_numeric_overflow ||
         json_error_code(&why) == json_error_null_byte_in_key);
  json_decref(value);
}

static void read_value(struct input text, unsigned cut) {
  struct error whole = {0}, pieces = {0};
  const bool json = skim(text, 0, &whole);
  skim(text, cut, &pieces);
  error_must_agree(&whole, &pieces);
  const struct rfc8259 judge = rfc8259_check(text.bytes, text.size);
  if (json) must(judge.json);
  if (!json) refusal_must_be_right(&whole, text, JSON_SKIM_DEPTH);
  if (judge.depth <= JSON_SKIM_DEPTH) jansson_must_agree(text, judge.json);
}

/* --- an array --- */

struct reading {
  struct budget budget;
  struct arena arena;
  struct error error;
  const struct tensor *tensor; /* NULL: refused, or not whole */
  size_t used;
};

static void read_pieces(struct reading *r, const struct tensor_rule *rule, struct input text,
                        unsigned cut) {
  *r = (struct reading){0};
  budget_init(&r->budget, SIZE_MAX / 2);
  arena_init(&r->arena, &r->budget);
  struct tensor_json *reader = tensor_json_new(rule, &r->arena, &r->error);
  must(reader);
  struct cutter cutter = cutter_of(cut);
  bool complete = false;
  while (r->used < text.size && !complete && !r->error.status) {
    const size_t size = cutter_next(&cutter, text.size - r->used);
    size_t used = 0;
    char *chunk = input_copy((struct input){text.bytes + r->used, size});
    tensor_json_feed(reader, chunk, size, r->used, &used, &complete, &r->error);
    free(chunk);
    must(r->error.status || (complete ? used <= size : used == size));
    r->used += used;
  }
  if (complete && !r->error.status) r->tensor = tensor_json_view(reader);
}

static void readings_must_agree(const struct reading *a, const struct reading *b, size_t size) {
  error_must_agree(&a->error, &b->error);
  must((a->tensor != NULL) == (b->tensor != NULL));
  if (!a->tensor) return;
  const struct tensor *s = a->tensor, *t = b->tensor;
  must(a->used == b->used && s->null == t->null && s->depth == t->depth);
  must(s->elements == t->elements && s->count == t->count);
  must(s->count == 0 || memcmp(s->data, t->data, s->count * size) == 0);
  must(memcmp(&s->common, &t->common, sizeof s->common) == 0);
  must((s->ragged != NULL) == (t->ragged != NULL));
  must(!s->ragged || memcmp(s->ragged, t->ragged, s->elements * sizeof *s->ragged) == 0);
}

static const char *next_number(const char *at) { return at + strcspn(at, "-0123456789tf"); }
static const char *number_end(const char *at) { return at + strspn(at, "+-.0123456789eEtruefals"); }

/* The numbers of an array's text, one by one, by the C library. */
static void numbers_must_agree(const struct tensor *t, enum tensor_type type, const char *text) {
  size_t count = 0;
  if (t->null) return;
  for (const char *at = next_number(text); *at; at = next_number(number_end(at)), count++) {
    must(count < t->count);
    if (type == TENSOR_FLOAT) {
      const float value = strtof(at, NULL);
      must(isfinite(value) && memcmp(&value, (const float *)t->data + count, sizeof value) == 0);
    } else if (type == TENSOR_INTEGER) {
      must(((const int32_t *)t->data)[count] == strtoll(at, NULL, 10));
    } else {
      must(((const uint8_t *)t->data)[count] == (*at == 't' || *at == '1'));
    }
  }
  must(count == t->count);
}

/* Is there nothing against this text but a number beyond float32? */
static bool is_flat_list(const char *text, bool *beyond) {
  const char *open = strchr(text, '[');
  if (!open || strchr(open + 1, '[') || text[strspn(text, "[],.+-0123456789eE \t\r\n")])
    return false;
  *beyond = false;
  for (const char *at = next_number(text); *at; at = next_number(number_end(at)))
    if (isinf(strtof(at, NULL))) *beyond = true;
  return true;
}

static void read_array(struct input text, enum tensor_type type, unsigned cut) {
  static const size_t sizes[] = {
      [TENSOR_FLOAT] = sizeof(float), [TENSOR_FLAG] = 1, [TENSOR_INTEGER] = sizeof(int32_t)};
  const struct tensor_rule rule = {
      .field = "f", .type = type, .nullable = true, .depth_max = 4, .ragged_depth = 2};
  struct reading whole, pieces;
  read_pieces(&whole, &rule, text, 0);
  read_pieces(&pieces, &rule, text, cut);
  readings_must_agree(&whole, &pieces, sizes[type]);
  const struct input taken = {text.bytes, whole.tensor ? whole.used : text.size};
  char *copy = input_text(taken);
  const bool json = rfc8259_check(taken.bytes, taken.size).json;
  bool beyond;
  if (whole.tensor) {
    must(json);
    numbers_must_agree(whole.tensor, type, copy);
  } else if (type == TENSOR_FLOAT && json && is_flat_list(copy, &beyond)) {
    must(beyond && strstr(whole.error.detail, "float32 range"));
  }
  if (whole.error.status == STATUS_INVALID_JSON)
    refusal_must_be_right(&whole.error, text, TENSOR_DEPTH_MAX);
  free(copy);
  arena_free(&whole.arena);
  arena_free(&pieces.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned char who = input_byte(&in), cut = input_byte(&in);
  switch (who) {
  case 'f':
    read_array(in, TENSOR_FLOAT, cut);
    break;
  case 'i':
    read_array(in, TENSOR_INTEGER, cut);
    break;
  case 'm':
    read_array(in, TENSOR_FLAG, cut);
    break;
  case 's':
    read_value(in, cut);
    break;
  default:
    read_request(in, who == 'h' ? ASK_HEADS : ASK_ATTENTION, cut);
  }
  return 0;
}
