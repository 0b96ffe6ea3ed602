/* test_encode_answer: answers of whole models: every array that was asked for, in every form, as
 * the run has it, and zeros behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/size.h"
#include "tests/support/short_memory.h"
#include "tests/support/whole_answer.h"

enum { D = WHOLE_MADE_WIDTH, H = WHOLE_MADE_HEADS, MANY = 30 };

static struct whole_made few, many;

static int make_models(void **state) {
  (void)state;
  whole_made_init(&few, &(struct whole_made_how){.pooler = true, .dense_size = 3});
  whole_made_init(&many, &(struct whole_made_how){.layers = MANY});
  return 0;
}

static int free_models(void **state) {
  (void)state;
  whole_made_free(&few);
  whole_made_free(&many);
  return 0;
}

/* --- what the arrays must hold --- */

/* An array of the run: of each item [heads][rows][width], at its place. */
struct array {
  const void *data;
  size_t number;             /* bytes of one */
  size_t heads, rows, width; /* of the rectangle */
  size_t (*place)(const struct stack_run *r, const struct array *a, size_t item);
  size_t (*side)(const struct stack_run *r, const struct array *a, size_t item); /* rows there */
  bool square;
  const size_t *at;
};

static size_t place_of_rows(const struct stack_run *r, const struct array *a, size_t item) {
  return r->geometry.item[item].q_row * a->width;
}
static size_t place_listed(const struct stack_run *r, const struct array *a, size_t item) {
  (void)r;
  return a->at[item];
}
static size_t side_of_rows(const struct stack_run *r, const struct array *a, size_t item) {
  (void)a;
  return r->geometry.item[item].q;
}
static size_t side_of_thumbnail(const struct stack_run *r, const struct array *a, size_t item) {
  return size_min(a->rows, r->geometry.item[item].q);
}

/* The array of this name, as the request says it. */
static struct array find_array(const struct stack_request *q, const char *group, const char *name) {
  const struct stack_run *r = q->main.run;
  struct array a = {.number = 4,
                    .heads = 1,
                    .rows = q->main.widest,
                    .width = D,
                    .place = place_of_rows,
                    .side = side_of_rows};
  size_t number = 0;
  sscanf(name, "encoder.%zu", &number);
  if (strcmp(group, "") == 0) {
    a.data = r->outputs;
  } else if (strcmp(group, "hidden") == 0 && strstr(name, "input")) {
    a.data = r->shown[number].input;
  } else if (strcmp(group, "hidden") == 0) {
    a.data = number ? r->shown[number - 1].hidden : r->embedding;
  } else {
    const struct stack_shown *s = &r->shown[number];
    a.square = true;
    a.heads = r->wish[number].weights == STACK_WEIGHTS_AVERAGE ? 1 : H;
    a.data = s->weights;
    a.at = s->weights_at;
    a.place = place_listed;
    if (strcmp(group, "thumbnails") == 0) {
      a.number = 1;
      a.data = s->thumbnails;
      a.at = s->thumbnails_at;
      a.side = side_of_thumbnail;
      a.rows = size_min(r->wish[number].thumbnail, q->main.widest);
    }
    a.width = a.rows;
  }
  return a;
}

/* The whole rectangle; the caller frees it. */
static unsigned char *rectangle_of(const struct stack_request *q, const struct array *a,
                                   size_t *size) {
  const size_t items = q->main.run->geometry.items;
  *size = items * a->heads * a->rows * a->width * a->number;
  unsigned char *all = calloc(1, *size + 1), *to = all;
  assert_non_null(all);
  for (size_t i = 0; i < items; i++) {
    const size_t rows = a->side(q->main.run, a, i), width = a->square ? rows : a->width;
    const unsigned char *from =
        (const unsigned char *)a->data + a->place(q->main.run, a, i) * a->number;
    for (size_t h = 0; h < a->heads; h++)
      for (size_t row = 0; row < a->rows; row++, to += a->width * a->number) {
        if (row >= rows) continue;
        memcpy(to, from, width * a->number);
        from += width * a->number;
      }
  }
  return all;
}

static void assert_array(const struct stack_request *q, const char *group, const char *name,
                         const void *bytes, size_t size) {
  const struct array a = find_array(q, group, name);
  size_t expected;
  unsigned char *right = rectangle_of(q, &a, &expected);
  assert_int_equal(size, expected);
  if (memcmp(bytes, right, size) != 0) fail_msg("%s.%s differs", group, name);
  free(right);
}

/* --- forms --- */

/* The arrays that a request of rows asks for. */
static size_t count_asked(const struct stack_request *q) {
  const struct stack_run *r = q->main.run;
  size_t count = 1 + r->embedded;
  for (size_t l = 0; r->wish && l < q->main.form->layers; l++)
    count += r->wish[l].hidden + r->wish[l].input + (r->wish[l].weights != STACK_WEIGHTS_NONE);
  return count;
}

static const char *const everything[] = {
    "{\"tokens\":[[1,2,3],[4],[],[5,6]],\"return_hidden\":[\"encoder.*\",\"encoder.*.self.input\"],"
    "\"return_attention\":true}",
    "{\"tokens\":[[1,2,3],[4,5,6]],\"return_hidden\":\"all\",\"return_attention\":\"average\"}",
    "{\"tokens\":[[1,2,3,9],[4,5,6,9]],\"valid_lens\":[3,3],\"return_hidden\":\"all\","
    "\"return_attention\":{\"of\":[\"encoder.*.self\"],\"as\":{\"thumbnails\":2}}}",
    "{\"tokens\":[[1,2,3,9],[4]],\"return_attention\":{\"of\":[\"encoder.-1.self\"],"
    "\"as\":{\"thumbnails\":64}}}",
    "{\"tokens\":[1,2,3,9],\"valid_lens\":2,\"return_hidden\":\"all\",\"return_attention\":true}",
    "{\"tokens\":[],\"return_hidden\":\"all\",\"return_attention\":true}",
};
enum { REQUESTS = sizeof everything / sizeof *everything };

static size_t product_of(const json_t *shape) {
  size_t product = 1;
  for (size_t i = 0; i < json_array_size(shape); i++)
    product *= (size_t)json_integer_value(json_array_get(shape, i));
  return product;
}

static void check_tensor(const struct whole_answer *a, const char *name, const json_t *tensor,
                         const char *data) {
  size_t size;
  const char *bytes = whole_answer_tensor(tensor, data, &size);
  const char *type = json_string_value(json_object_get(tensor, "dtype"));
  const size_t number = strcmp(type, "U8") == 0 ? 1 : 4;
  assert_int_equal(product_of(json_object_get(tensor, "shape")) * number, size);
  if (strcmp(name, "valid_lens") == 0) {
    assert_string_equal(type, "I32");
    assert_memory_equal(bytes, a->request.main.lens, size);
    return;
  }
  char group[16] = "";
  const char *dot = strcmp(name, "outputs") == 0 ? NULL : strchr(name, '.');
  if (dot) snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
  assert_array(&a->request, group, dot ? dot + 1 : "", bytes, size);
}

static void tensors_are_the_runs(void **state) {
  (void)state;
  const struct whole_made *const models[] = {&few, &many};
  for (size_t m = 0; m < 2; m++)
    for (size_t i = 0; i < REQUESTS; i++) {
      struct whole_answer a;
      whole_answer_ask(&a, models[m], ASK_ENCODE, everything[i], ANSWER_SAFETENSORS);
      const char *name, *data;
      json_t *header = whole_answer_header(&a, &data), *tensor;
      json_object_foreach(header, name, tensor) if (strcmp(name, "__metadata__") != 0)
          check_tensor(&a, name, tensor, data);
      /* beside those asked for, the metadata and valid_lens */
      assert_int_equal(json_object_size(header), 2 + count_asked(&a.request));
      json_decref(header);
      whole_answer_done(&a);
    }
}

static void check_object(const struct whole_answer *a, const char *group, const char *name,
                         const json_t *object) {
  size_t size;
  unsigned char *bytes = whole_answer_base64(object, &size);
  assert_array(&a->request, group, name, bytes, size);
  free(bytes);
}

static void base64_is_the_runs(void **state) {
  (void)state;
  for (size_t i = 0; i < REQUESTS; i++) {
    char body[400];
    struct whole_answer a;
    snprintf(body, sizeof body, "{\"encoding_format\":\"base64\",%s", everything[i] + 1);
    whole_answer_ask(&a, &many, ASK_ENCODE, body, ANSWER_JSON);
    json_t *answer = json_loads(a.bytes, JSON_REJECT_DUPLICATES, NULL), *object;
    assert_non_null(answer);
    check_object(&a, "", "", json_object_get(answer, "outputs"));
    static const char *const groups[] = {"hidden", "attention"};
    size_t members = 1 + json_object_size(json_object_get(answer, "thumbnails"));
    for (size_t g = 0; g < 2; g++) {
      const char *name;
      members += json_object_size(json_object_get(answer, groups[g]));
      json_object_foreach(json_object_get(answer, groups[g]), name, object)
          check_object(&a, groups[g], name, object);
    }
    assert_int_equal(members, count_asked(&a.request));
    assert_int_equal(json_is_integer(json_object_get(answer, "valid_lens")), a.request.unbatched);
    json_decref(answer);
    whole_answer_done(&a);
  }
}

/* To the letter, where it is short. */
static void small_answers(void **state) {
  (void)state;
  struct whole_answer a;
  whole_answer_ask(&a, &few, ASK_ENCODE,
                   "{\"tokens\":[],\"return_hidden\":true,\"return_attention\":true}", ANSWER_JSON);
  assert_string_equal(a.bytes, "{\"model\":\"made\",\"outputs\":[],\"hidden\":{\"encoder.3\":[]},"
                               "\"attention\":{\"encoder.0.self\":[],\"encoder.1.self\":[],"
                               "\"encoder.2.self\":[]},"
                               "\"usage\":{\"tokens\":0,\"cached\":0,\"generated\":0}}");
  whole_answer_done(&a);
  whole_answer_ask(&a, &few, ASK_ENCODE,
                   "{\"tokens\":[[],[]],\"return_attention\":{\"of\":[\"encoder.0.self\"],"
                   "\"as\":{\"thumbnails\":3}},\"encoding_format\":\"base64\"}",
                   ANSWER_JSON);
  assert_string_equal(a.bytes,
                      "{\"model\":\"made\",\"outputs\":{\"dtype\":\"F32\",\"shape\":[2,0,8],"
                      "\"base64\":\"\"},\"thumbnails\":{\"encoder.0.self\":[{\"shape\":[2,0,0],"
                      "\"base64\":\"\"},{\"shape\":[2,0,0],\"base64\":\"\"}]},\"valid_lens\":[0,0],"
                      "\"usage\":{\"tokens\":0,\"cached\":0,\"generated\":0}}");
  whole_answer_done(&a);
  whole_answer_ask(&a, &few, ASK_ENCODE, "{\"tokens\":[],\"pool\":\"pooler\"}", ANSWER_SAFETENSORS);
  assert_non_null(strstr(a.bytes + 8, "\"outputs\":{\"dtype\":\"F32\",\"shape\":[0,3],"));
  assert_non_null(strstr(a.bytes + 8, "\"usage\":\"{\\\"tokens\\\":0,"));
  whole_answer_done(&a);
  whole_answer_ask(
      &a, &few, ASK_ENCODE,
      "{\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\",\"shape\":[0,4],\"data\":[]}],"
      "\"outputs\":[{\"name\":\"pooler_output\"},{\"name\":\"last_hidden_state\"}],\"id\":\"x\"}",
      ANSWER_V2);
  assert_string_equal(a.bytes,
                      "{\"model_name\":\"made\",\"model_version\":\"1\",\"id\":\"x\",\"outputs\":["
                      "{\"name\":\"pooler_output\",\"datatype\":\"FP32\",\"shape\":[0,8],"
                      "\"data\":[]},{\"name\":\"last_hidden_state\",\"datatype\":\"FP32\","
                      "\"shape\":[0,4,8],\"data\":[]}]}");
  whole_answer_done(&a);
}

/* 300 items of 1 to 12 rows, or in v2 a rectangle of them with a mask. */
static void write_long(char *at, bool v2) {
  enum { ITEMS = 300, MOST = 12 };
  at = stpcpy(at, v2 ? "{\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\","
                       "\"shape\":[300,12],\"data\":["
                     : "{\"return_hidden\":\"all\",\"tokens\":[");
  for (size_t i = 0; i < ITEMS; i++) {
    const size_t rows = v2 ? MOST : 1 + i % MOST;
    at = stpcpy(at, i ? ",[" : "[");
    for (size_t n = 0; n < rows; n++) at = stpcpy(at, n ? ",7" : "3");
    at = stpcpy(at, "]");
  }
  if (v2) {
    at = stpcpy(at, "]},{\"name\":\"attention_mask\",\"datatype\":\"INT64\","
                    "\"shape\":[300,12],\"data\":[");
    for (size_t i = 0; i < ITEMS * MOST; i++)
      at = stpcpy(at, i % MOST <= i / MOST % MOST ? ",1" + !i : ",0");
  }
  stpcpy(at, v2 ? "]}]}" : "]}");
}

/* Numbers of a padded list, one by one, also where pieces meet. */
static void check_long_v2(const struct whole_answer *a) {
  json_t *answer = whole_answer_json(a);
  const json_t *output = json_array_get(json_object_get(answer, "outputs"), 0);
  const json_t *data = json_object_get(output, "data");
  const struct array of = find_array(&a->request, "", "");
  size_t size;
  unsigned char *right = rectangle_of(&a->request, &of, &size);
  assert_int_equal(json_array_size(data) * sizeof(float), size);
  for (size_t i = 0; i < json_array_size(data); i++)
    assert_true((float)json_number_value(json_array_get(data, i)) == ((const float *)right)[i]);
  free(right);
  json_decref(answer);
}

static void long_answers_are_cut_into_pieces(void **state) {
  (void)state;
  static char body[1 << 16];
  static const enum answer_form forms[] = {ANSWER_JSON, ANSWER_SAFETENSORS, ANSWER_V2};
  for (size_t i = 0; i < 3; i++) {
    struct whole_answer a;
    write_long(body, forms[i] == ANSWER_V2);
    whole_answer_ask(&a, &few, ASK_ENCODE, body, forms[i]);
    assert_true(a.answer.pieces > 1);
    if (forms[i] == ANSWER_V2) check_long_v2(&a);
    whole_answer_done(&a);
  }
}

/* --- limits and memory --- */

static void the_limit_is_exact_for_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < REQUESTS; i++) {
    struct whole_answer a;
    whole_answer_ask(&a, &few, ASK_ENCODE, everything[i], ANSWER_SAFETENSORS);
    whole_answer_just_fits(&a, &few, ANSWER_SAFETENSORS);
    whole_answer_done(&a);
  }
}

/* Wherever memory ends, nothing is planned, and nothing is kept. */
static void memory_that_ends_anywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < REQUESTS; i++) {
    struct whole_answer a;
    struct short_memory m = {.arena = &a.arena, .limit = 2000};
    while (short_memory_next(&m, 3000)) {
      assert_true(m.limit < 1 << 24);
      a = (struct whole_answer){.arena = a.arena};
      const enum status status =
          whole_answer_read(&a, &few, ASK_ENCODE, everything[i], ANSWER_SAFETENSORS)
              ? a.error.status
              : whole_answer_plan(&a, &few, ANSWER_SAFETENSORS, &whole_answer_wide);
      short_memory_is_enough(&m, status, &a.error);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_the_runs),
      cmocka_unit_test(base64_is_the_runs),
      cmocka_unit_test(small_answers),
      cmocka_unit_test(long_answers_are_cut_into_pieces),
      cmocka_unit_test(the_limit_is_exact_for_bytes),
      cmocka_unit_test(memory_that_ends_anywhere),
  };
  return cmocka_run_group_tests(tests, make_models, free_models);
}
