/* model_load: loads models from definitions that are right, and from wrong ones. For test programs
 * alone: it needs cmocka, which nothing else in this folder does. */
#ifndef TESTS_MODEL_LOAD_H
#define TESTS_MODEL_LOAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/model.h"

static inline json_t *json_of(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  if (!json) fail_msg("not JSON: %s", text);
  return json;
}

static inline struct model *load_well(const char *definition, const char *directory) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, &e);
  json_decref(json);
  assert_string_equal(e.detail, "");
  assert_non_null(m);
  return m;
}

/* `detail` is a part of what the refusal says, in one line behind the name of the model. */
static inline void load_ill(const char *definition, const char *directory, const char *detail) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, &e);
  json_decref(json);
  if (m) fail_msg("%s was taken, but should say \"%s\"", definition, detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_memory_equal(e.detail, "model m: ", 9);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
}

/* `sizes`: of queries, keys, values and outputs. */
static inline void assert_shape(const struct layer_shape *s, size_t heads, size_t kv_heads,
                                size_t size, size_t value_size, const size_t sizes[4]) {
  assert_int_equal(s->heads, heads);
  assert_int_equal(s->kv_heads, kv_heads);
  assert_int_equal(s->head_size, size);
  assert_int_equal(s->value_head_size, value_size);
  assert_int_equal(s->query_size, sizes[0]);
  assert_int_equal(s->key_size, sizes[1]);
  assert_int_equal(s->value_size, sizes[2]);
  assert_int_equal(s->output_size, sizes[3]);
}

#endif
