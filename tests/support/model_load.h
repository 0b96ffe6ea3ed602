/* model_load: loads models from definitions that are right, and from wrong ones. For test programs
 * alone: it needs cmocka, which nothing else in this folder does. */
#ifndef TESTS_MODEL_LOAD_H
#define TESTS_MODEL_LOAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/build/layer/parameters.h"
#include "config/build/model.h"
#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "tests/support/place.h"
#include "tests/support/safetensors_make.h"

static inline json_t *json_of(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  if (!json) fail_msg("not JSON: %s", text);
  return json;
}

static inline struct model *load_well(const char *definition, const char *directory) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, COMPUTE_FLOAT32, &e);
  json_decref(json);
  assert_string_equal(e.detail, "");
  assert_non_null(m);
  return m;
}

/* The sizes and numbers that a definition comes to, for the caller to free, without a layer made of
 * them. `path` is its checkpoint, or NULL. */
static inline struct parameters parameters_of(const char *definition, const char *path) {
  struct error e = {0};
  struct definition d;
  struct parameters p;
  struct checkpoint *s = NULL;
  json_t *json = json_of(definition);
  definition_read(&d, json, &e);
  if (path) s = checkpoint_open(path, &e);
  assert_string_equal(e.detail, "");
  parameters_read(&p, &d, s, &e);
  assert_string_equal(e.detail, "");
  checkpoint_free(s);
  json_decref(json);
  return p;
}

/* `detail` is a part of what the refusal says, in one line behind the name of the model. */
static inline void load_ill(const char *definition, const char *directory, const char *detail) {
  struct error e = {0};
  json_t *json = json_of(definition);
  struct model *m = model_load("m", json, directory, GEMM_AUTO, COMPUTE_FLOAT32, &e);
  json_decref(json);
  if (m) fail_msg("%s was taken, but should say \"%s\"", definition, detail);
  assert_int_equal(e.status, STATUS_CONFIG);
  assert_memory_equal(e.detail, "model m: ", 9);
  if (!strstr(e.detail, detail)) fail_msg("\"%s\" does not say \"%s\"", e.detail, detail);
  assert_null(strchr(e.detail, '\n'));
}

/* A definition without a checkpoint. */
static inline void ill(const char *definition, const char *detail) {
  load_ill(definition, ".", detail);
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

/* --- definitions and checkpoints in pieces --- */

#define RANDOM "\"random\":{\"seed\":1}"

static inline void write_made(const struct place *p, struct made *m) {
  made_finish(m);
  made_write(m, p->file);
  made_free(m);
}

/* The four roles of a layer of 4 columns, two heads. */
static inline void add_roles(struct made *m, const char *prefix, const char *const stems[4],
                             const char *end) {
  for (size_t i = 0; i < 4; i++) {
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", prefix, stems[i], end);
    made_add(m, name, 4, strcmp(end, ".bias") == 0 ? 0 : 4);
  }
}

/* A tensor whose name has the numbers of its layer in it. */
__attribute__((format(printf, 4, 5))) static inline void
add_named(struct made *m, size_t rows, size_t columns, const char *format, ...) {
  char name[160];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  made_add(m, name, rows, columns);
}

static const char *const plain[] = {"query", "key", "value", "output"};
static const char *const d2l[] = {"W_q", "W_k", "W_v", "W_o"};

#define W "{\"checkpoint\":\"w.safetensors\",\"heads\":2"

static inline void layout_is(const struct place *p, const char *definition, const char *layout) {
  struct model *m = load_well(definition, p->folder);
  assert_string_equal(m->layout, layout);
  assert_string_equal(m->source, "w.safetensors");
  model_free(m);
}

#endif
