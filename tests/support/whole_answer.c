/* whole_answer: answers of whole models, from the body of a request to their bytes. */
#include "tests/support/whole_answer.h"

#include "core/base/size.h"
#include "server/model/check/stack_body.h"
#include "tests/support/answer_join.h"

const struct body_limits whole_answer_wide = {1000, 1 << 24, 1 << 26, 1000, 1000, 0};

enum status whole_answer_read(struct whole_answer *a, const struct whole_made *m, enum body_ask ask,
                              const char *body, enum answer_form form) {
  const struct body_terms terms = {.ask = ask,
                                   .form = form == ANSWER_V2 ? BODY_V2 : BODY_JSON,
                                   .body_bytes = BODY_UNKNOWN,
                                   .json_bytes = BODY_UNKNOWN,
                                   .wants_binary = form == ANSWER_SAFETENSORS};
  struct stack_body *b =
      stack_body_new(&m->whole, &terms, &whole_answer_wide, &a->arena, &a->error);
  if (!b || body_feed(stack_body_of(b), body, strlen(body)) || stack_body_finish(b, &a->request))
    return a->error.status;
  return stack_request_prepare(&a->request, &a->arena, &a->error);
}

enum status whole_answer_plan(struct whole_answer *a, const struct whole_made *m,
                              enum answer_form form, const struct body_limits *limits) {
  return stack_answer_plan(&a->answer, form, m->model.name, &a->request, limits, &a->arena,
                           &a->error);
}

static void compute(struct whole_answer *a, const struct whole_made *m) {
  const struct stack *encoder = m->whole.encoder, *decoder = m->whole.decoder;
  const size_t least = size_max(encoder ? stack_scratch_bytes(encoder) : 0,
                                decoder ? stack_scratch_bytes(decoder) : 0);
  void *scratch = aligned_alloc(64, size_round_up(least, 64));
  assert_non_null(scratch);
  for (struct run *run = stack_request_run(&a->request); run; run = run_next_round(run)) {
    run_compute(run, 1e5, scratch);
    assert_int_equal(run_fault(run, &a->error), STATUS_OK);
  }
  free(scratch);
}

void whole_answer_write(struct whole_answer *a) {
  assert_true(a->answer.pieces <= ANSWER_PIECES_MAX);
  a->bytes = answer_join_written(&a->answer);
  a->size = answer_bytes(&a->answer);
}

void whole_answer_ask(struct whole_answer *a, const struct whole_made *m, enum body_ask ask,
                      const char *body, enum answer_form form) {
  memset(a, 0, sizeof *a);
  if (whole_answer_read(a, m, ask, body, form) || whole_answer_plan(a, m, form, &whole_answer_wide))
    fail_msg("%s: %s (%s)", body, a->error.detail, a->error.pointer);
  compute(a, m);
  whole_answer_write(a);
}

void whole_answer_just_fits(struct whole_answer *a, const struct whole_made *m,
                            enum answer_form form) {
  struct body_limits limits = {.max_answer_bytes = a->size - 1};
  assert_int_equal(whole_answer_plan(a, m, form, &limits), STATUS_TOO_LARGE);
  assert_string_equal(a->error.limit, "max_answer_bytes");
  limits.max_answer_bytes++;
  a->error = (struct error){0};
  assert_int_equal(whole_answer_plan(a, m, form, &limits), STATUS_OK);
}

void whole_answer_done(struct whole_answer *a) {
  free(a->bytes);
  arena_free(&a->arena);
}

json_t *whole_answer_json(const struct whole_answer *a) {
  json_t *answer = json_loads(a->bytes, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(answer);
  return answer;
}

unsigned char *whole_answer_base64(const json_t *object, size_t *size) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *text = json_string_value(json_object_get(object, "base64"));
  assert_non_null(text);
  unsigned char *out = aligned_alloc(16, size_round_up(strlen(text) + 1, 16));
  uint32_t bits = 0;
  unsigned have = 0;
  assert_non_null(out);
  *size = 0;
  for (; *text && *text != '='; text++) {
    bits = bits << 6 | (uint32_t)(strchr(letters, *text) - letters);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out[(*size)++] = (unsigned char)(bits >> have);
  }
  return out;
}

json_t *whole_answer_header(const struct whole_answer *a, const char **data) {
  uint64_t length;
  memcpy(&length, a->bytes, sizeof length);
  json_t *header = json_loadb(a->bytes + sizeof length, (size_t)length, 0, NULL);
  assert_non_null(header);
  *data = a->bytes + sizeof length + length;
  return header;
}

const char *whole_answer_tensor(const json_t *tensor, const char *data, size_t *size) {
  const json_t *offsets = json_object_get(tensor, "data_offsets");
  const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
  *size = (size_t)json_integer_value(json_array_get(offsets, 1)) - begin;
  return data + begin;
}
