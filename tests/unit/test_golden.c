/* test_golden: the golden vectors through the core: each file is a checkpoint, a request and its
 * answer. Runs at the level that ATTEND_CPU allows, with both engines of the projections. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/build/model.h"
#include "config/checkpoint/checkpoint.h"
#include "tests/support/metadata.h"

struct golden {
  struct arena arena;
  const char *path;
  struct checkpoint *file;
  struct model *model;
  struct layer_run *asked;
};

static const struct checkpoint_entry *entry(const struct golden *g, const char *name) {
  return checkpoint_find(g->file, name);
}

static float *floats(struct golden *g, const char *name) {
  struct error e = {0};
  const struct checkpoint_entry *t = entry(g, name);
  if (!t) return NULL;
  float *x = arena_alloc(&g->arena, t->count, sizeof *x, &e);
  assert_int_equal(checkpoint_read_floats(g->file, t, 0, t->count, x, &e), STATUS_OK);
  return x;
}

/* Bytes of a tensor as they lie in the file. */
static void raw(const struct golden *g, const struct checkpoint_entry *t, size_t at, void *out,
                size_t size) {
  FILE *file = fopen(g->path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, (long)(t->begin + at), SEEK_SET), 0);
  assert_int_equal(fread(out, 1, size, file), size);
  fclose(file);
}

static int64_t whole(const struct golden *g, const struct checkpoint_entry *t, size_t i) {
  int64_t x;
  assert_string_equal(t->dtype, "I64");
  raw(g, t, i * sizeof x, &x, sizeof x);
  return x;
}

static uint8_t *flags(struct golden *g, const char *name) {
  struct error e = {0};
  const struct checkpoint_entry *t = entry(g, name);
  if (!t) return NULL;
  uint8_t *x = arena_alloc(&g->arena, t->count, sizeof *x, &e);
  raw(g, t, 0, x, t->count);
  return x;
}

static void read_lens(struct golden *g, struct layer_run *c) {
  struct error e = {0};
  const struct checkpoint_entry *t = entry(g, "valid_lens");
  if (!t) return;
  int32_t *lens = arena_alloc(&g->arena, c->geometry.q_rows, sizeof *lens, &e);
  for (size_t i = 0; i < c->geometry.items; i++)
    for (size_t r = 0; r < c->geometry.item[i].q; r++) {
      const size_t row = c->geometry.item[i].q_row + r;
      lens[row] = (int32_t)whole(g, t, t->rank == 1 ? i : row);
    }
  c->geometry.lens = lens;
}

static void read_segments(struct golden *g, struct layer_run *c) {
  struct error e = {0};
  const struct checkpoint_entry *t = entry(g, "segments");
  if (!t) return;
  int32_t *end = arena_alloc(&g->arena, t->count, sizeof *end, &e);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const size_t segments = t->dim[1];
    int64_t sum = 0;
    c->geometry.item[i].segments = segments;
    c->geometry.item[i].segments_at = i * segments;
    for (size_t s = 0; s < segments; s++)
      end[i * segments + s] = (int32_t)(sum += whole(g, t, i * segments + s));
  }
  c->geometry.segment_end = end;
}

static void read_fields(struct golden *g, struct layer_run *c) {
  json_t *fields = metadata_json(g->path, "request");
  assert_non_null(fields);
  c->geometry.causal = json_is_true(json_object_get(fields, "causal"));
  const json_t *window = json_object_get(fields, "window");
  c->geometry.window_left = window ? json_integer_value(json_array_get(window, 0)) : -1;
  c->geometry.window_right = window ? json_integer_value(json_array_get(window, 1)) : -1;
  const char *rows = json_string_value(json_object_get(fields, "empty_rows"));
  c->call.uniform_rows = rows && strcmp(rows, "uniform") == 0;
  const char *select = json_string_value(json_object_get(fields, "select"));
  c->call.select = select && strcmp(select, "hard") == 0 ? SELECT_HARD : SELECT_SOFT;
  c->call.want_pointers = json_is_true(json_object_get(fields, "return_pointers"));
  for (size_t i = 0; i < c->geometry.items; i++)
    c->geometry.item[i].offset = json_integer_value(json_object_get(fields, "causal_offset"));
  json_decref(fields);
}

static void make_call(struct golden *g) {
  struct error e = {0};
  const struct checkpoint_entry *q = entry(g, "queries"), *k = entry(g, "keys");
  const size_t heads = g->model->shape.heads;
  struct layer_run *c = g->asked = arena_alloc(&g->arena, 1, sizeof *c, &e);
  *c = (struct layer_run){.geometry.items = q->dim[0],
                          .call.want = WEIGHTS_PER_HEAD,
                          .geometry.bias_per_head = true};
  c->geometry.item = arena_alloc(&g->arena, c->geometry.items, sizeof *c->geometry.item, &e);
  for (size_t i = 0; i < c->geometry.items; i++) {
    const size_t rows = q->dim[1], keys = k->dim[1];
    c->geometry.item[i] = (struct item){.q = rows,
                                        .k = keys,
                                        .q_row = i * rows,
                                        .k_row = i * keys,
                                        .mask_at = i * rows * keys,
                                        .bias_at = i * heads * rows * keys};
  }
  c->geometry.q_rows = c->geometry.items * q->dim[1],
  c->geometry.k_rows = c->geometry.items * k->dim[1];
  c->call.queries = floats(g, "queries");
  c->call.keys = floats(g, "keys");
  c->call.values = floats(g, "values");
  c->geometry.bias = floats(g, "bias");
  c->call.head_mask = floats(g, "head_mask");
  c->geometry.mask = flags(g, "mask");
  read_lens(g, c);
  read_segments(g, c);
  read_fields(g, c);
  assert_int_equal(layer_prepare(g->model->layer, c, &g->arena, &e), STATUS_OK);
}

static void near(const char *path, const char *what, const float *got, const float *right,
                 size_t count, double bound) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs((double)got[i] - right[i]) <= bound))
      fail_msg("%s: %s %zu is %.9g, should be %.9g", path, what, i, (double)got[i],
               (double)right[i]);
}

static void check_pointers(const struct golden *g, const char *path) {
  const struct checkpoint_entry *right = entry(g, "expected.pointers");
  if ((right != NULL) != g->asked->call.want_pointers) fail_msg("%s: pointers", path);
  for (size_t i = 0; right && i < right->count; i++)
    if (g->asked->call.pointers[i] != whole(g, right, i)) fail_msg("%s: pointer %zu", path, i);
}

static void check_answer(struct golden *g, const char *path) {
  const struct layer_shape *s = &g->model->shape;
  const double bound = 2e-6 * sqrt((double)(s->heads * s->head_size));
  near(path, "output", g->asked->call.outputs, floats(g, "expected.outputs"),
       entry(g, "expected.outputs")->count, bound);
  near(path, "weight", g->asked->call.weights, floats(g, "expected.attention_weights"),
       g->asked->call.weight_count, 2e-6);
  if (g->asked->geometry.segment_end)
    near(path, "segment weight", g->asked->call.segment_weights,
         floats(g, "expected.segment_weights"), g->asked->call.segment_weight_count, 2e-6);
  check_pointers(g, path);
}

static json_t *definition_of(const char *path) {
  json_t *definition = metadata_json(path, "model");
  assert_non_null(definition);
  const char *name = strrchr(path, '/') + 1;
  json_object_set_new(definition, "checkpoint", json_string(name));
  return definition;
}

static void check_file(const char *path, enum gemm_engine engine) {
  struct golden g = {0};
  struct error e = {0};
  arena_init(&g.arena, NULL);
  g.path = path;
  g.file = checkpoint_open(path, &e);
  assert_non_null(g.file);
  json_t *definition = definition_of(path);
  g.model = model_load("golden", definition, "tests/golden", engine, COMPUTE_FLOAT32, &e);
  if (!g.model) fail_msg("%s: %s", path, e.detail);
  make_call(&g);
  void *scratch = aligned_alloc(64, (layer_scratch_bytes(g.model->layer) + 64) / 64 * 64);
  run_compute(&g.asked->run, 1e9, scratch);
  assert_int_equal(run_fault(&g.asked->run, &e), STATUS_OK);
  check_answer(&g, path);
  free(scratch);
  json_decref(definition);
  model_free(g.model);
  checkpoint_free(g.file);
  arena_free(&g.arena);
}

static void check_all(enum gemm_engine engine) {
  glob_t found;
  assert_int_equal(glob("tests/golden/*.safetensors", 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 20);
  for (size_t i = 0; i < found.gl_pathc; i++) check_file(found.gl_pathv[i], engine);
  globfree(&found);
}

static void packed_kernels_reproduce_the_vectors(void **unused) {
  (void)unused;
  check_all(GEMM_PACKED);
}

static void openblas_reproduces_the_vectors(void **unused) {
  (void)unused;
  check_all(GEMM_OPENBLAS);
}

int main(void) {
  gemm_blas_init();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packed_kernels_reproduce_the_vectors),
      cmocka_unit_test(openblas_reproduces_the_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
