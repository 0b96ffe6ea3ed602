/* test_stack_ref: the slow twin of whole models beside what the published implementations answer:
 * tests/golden/models, one folder a model. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "config/checkpoint/checkpoint.h"
#include "core/reference/stack_ref.h"

/* Where a family keeps a tensor of a layer: `%zu` is the layer's number. */
struct names {
  const char *folder;
  const char *self[ROLE_PROJECTIONS]; /* of weight and bias, before the last dot; NULL: in the joint
                                         tensor in_proj */
  const char *joint;                  /* "….in_proj_" */
  const char *up, *down, *norm_self, *norm_forward, *last;
  const char *token, *type, *position, *embedded;
};

struct loaded {
  struct arena arena;
  struct checkpoint *file;
  struct stack stack;
  struct stack_layer *layer;
};

static const float *tensor(struct loaded *m, const char *name, const char *end, size_t *rows) {
  struct error e = {0};
  char whole[200];
  snprintf(whole, sizeof whole, "%s%s", name, end);
  const struct checkpoint_entry *t = checkpoint_find(m->file, whole);
  if (!t) fail_msg("no tensor %s", whole);
  float *x = arena_alloc(&m->arena, t->count, sizeof *x, &e);
  assert_int_equal(checkpoint_read_floats(m->file, t, 0, t->count, x, &e), STATUS_OK);
  if (rows) *rows = t->dim[0];
  return x;
}

static const char *of_layer(const char *name, size_t layer, char out[200]) {
  const char *number = strstr(name, "{i}");
  snprintf(out, 200, "%.*s%zu%s", (int)(number - name), name, layer, number + 3);
  return out;
}

static struct layer_matrix matrix(struct loaded *m, const char *name, size_t layer, size_t *rows) {
  char whole[200];
  of_layer(name, layer, whole);
  return (struct layer_matrix){tensor(m, whole, ".weight", rows), tensor(m, whole, ".bias", NULL)};
}

static struct stack_norm norm(struct loaded *m, const char *name, size_t layer) {
  char whole[200];
  snprintf(whole, sizeof whole, "%s", name);
  if (strstr(name, "{i}")) of_layer(name, layer, whole);
  return (struct stack_norm){tensor(m, whole, ".weight", NULL), tensor(m, whole, ".bias", NULL)};
}

static void load_layer(struct loaded *m, const struct names *names, size_t i) {
  struct stack *s = &m->stack;
  struct stack_layer *l = &m->layer[i];
  const size_t d = s->width;
  char whole[200];
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) {
    if (names->self[role]) {
      l->self[role] = matrix(m, names->self[role], i, NULL);
      continue;
    }
    of_layer(names->joint, i, whole);
    l->self[role].weight = tensor(m, whole, "weight", NULL) + role * d * d;
    l->self[role].bias = tensor(m, whole, "bias", NULL) + role * d;
  }
  l->forward.up = matrix(m, names->up, i, &s->forward_size);
  l->forward.down = matrix(m, names->down, i, NULL);
  l->norm_self = norm(m, names->norm_self, i);
  l->norm_forward = norm(m, names->norm_forward, i);
}

static void load(struct loaded *m, const struct names *names, const struct stack *shape,
                 size_t heads) {
  struct error e = {0};
  struct stack *s = &m->stack;
  char path[200];
  *s = *shape;
  snprintf(path, sizeof path, "tests/golden/models/%s/model.safetensors", names->folder);
  arena_init(&m->arena, NULL);
  m->file = checkpoint_open(path, &e);
  if (!m->file) fail_msg("%s", e.detail);
  const size_t d = s->width;
  s->self = (struct layer_shape){.heads = heads,
                                 .kv_heads = heads,
                                 .head_size = d / heads,
                                 .key_head_size = d / heads,
                                 .value_head_size = d / heads,
                                 .query_size = d,
                                 .key_size = d,
                                 .value_size = d,
                                 .output_size = d,
                                 .scale = 1 / sqrtf((float)(d / heads))};
  m->layer = arena_alloc(&m->arena, s->layers, sizeof *m->layer, &e);
  memset(m->layer, 0, s->layers * sizeof *m->layer);
  for (size_t i = 0; i < s->layers; i++) load_layer(m, names, i);
  s->layer = m->layer;
  struct stack_embedding *x = &s->embedding;
  if (names->token) x->token = tensor(m, names->token, "", NULL);
  if (names->type) x->type = tensor(m, names->type, "", NULL);
  if (names->position) x->position = tensor(m, names->position, "", NULL);
  if (names->embedded) x->norm = norm(m, names->embedded, 0);
  if (names->last) s->last = norm(m, names->last, 0);
}

static void unload(struct loaded *m) {
  checkpoint_free(m->file);
  arena_free(&m->arena);
}

/* --- what is expected --- */

static void compare(const json_t *expected, const double **found, const char *what) {
  if (json_is_array(expected)) {
    size_t i;
    json_t *part;
    json_array_foreach((json_t *)expected, i, part) compare(part, found, what);
    return;
  }
  const double right = json_number_value(expected);
  if (!(fabs(**found - right) <= 1e-6 + 1e-6 * fabs(right)))
    fail_msg("%s: %.12g, not %.12g", what, **found, right);
  ++*found;
}

static double *numbers_of(struct loaded *m, const json_t *rows) {
  struct error e = {0};
  const size_t n = json_array_size(rows), d = m->stack.width;
  double *x = arena_alloc(&m->arena, n * d, sizeof *x, &e);
  for (size_t i = 0; i < n * d; i++)
    x[i] = json_number_value(json_array_get(json_array_get(rows, i / d), i % d));
  return x;
}

static int32_t *integers_of(struct loaded *m, const json_t *list) {
  struct error e = {0};
  int32_t *x = arena_alloc(&m->arena, json_array_size(list), sizeof *x, &e);
  for (size_t i = 0; i < json_array_size(list); i++)
    x[i] = (int32_t)json_integer_value(json_array_get(list, i));
  return x;
}

static void check_item(struct loaded *m, const json_t *one, size_t item) {
  struct error e = {0};
  const struct stack *s = &m->stack;
  const json_t *tokens = json_array_get(json_object_get(one, "tokens"), item);
  const json_t *types = json_array_get(json_object_get(one, "token_types"), item);
  const json_t *rows = json_array_get(json_object_get(one, "input_hidden_states"), item);
  const json_t *expected = json_object_get(one, "expected");
  const size_t n = json_array_size(tokens ? tokens : rows);
  const struct ref_text text = {.n = n,
                                .token = tokens ? integers_of(m, tokens) : NULL,
                                .embedding = rows ? numbers_of(m, rows) : NULL,
                                .token_type = types ? integers_of(m, types) : NULL};
  double **weights = arena_alloc(&m->arena, s->layers, sizeof *weights, &e);
  for (size_t l = 0; l < s->layers; l++)
    weights[l] = arena_alloc(&m->arena, s->self.heads * n * n, sizeof(double), &e);
  double *state = arena_alloc(&m->arena, (s->layers + 1) * n * s->width, sizeof *state, &e);
  assert_int_equal(stack_ref(s, &text, &(struct ref_hidden){state, weights}, &e), STATUS_OK);
  for (size_t l = 0; l <= s->layers; l++) {
    const double *found = state + l * n * s->width;
    compare(json_array_get(json_array_get(json_object_get(expected, "hidden_states"), l), item),
            &found, "hidden state");
    assert_ptr_equal(found, state + (l + 1) * n * s->width);
  }
  for (size_t l = 0; l < s->layers; l++) {
    const double *found = weights[l];
    compare(json_array_get(json_array_get(json_object_get(expected, "attentions"), l), item),
            &found, "weight");
    assert_ptr_equal(found, weights[l] + s->self.heads * n * n);
  }
}

static void check_cases(struct loaded *m, const char *folder) {
  char path[200];
  json_error_t fault;
  snprintf(path, sizeof path, "tests/golden/models/%s/cases.json", folder);
  json_t *cases = json_load_file(path, 0, &fault);
  if (!cases) fail_msg("%s: %s", path, fault.text);
  size_t i, items = 0;
  json_t *one;
  json_array_foreach(cases, i, one) {
    const json_t *last = json_object_get(json_object_get(one, "expected"), "last_hidden_state");
    for (size_t item = 0; item < json_array_size(last); item++, items++) check_item(m, one, item);
  }
  assert_true(items > 2);
  json_decref(cases);
}

/* --- the models --- */

static void bert(void **unused) {
  (void)unused;
  static const struct names names = {.folder = "bert-a",
                                     .self = {"encoder.layer.{i}.attention.self.query",
                                              "encoder.layer.{i}.attention.self.key",
                                              "encoder.layer.{i}.attention.self.value",
                                              "encoder.layer.{i}.attention.output.dense"},
                                     .up = "encoder.layer.{i}.intermediate.dense",
                                     .down = "encoder.layer.{i}.output.dense",
                                     .norm_self = "encoder.layer.{i}.attention.output.LayerNorm",
                                     .norm_forward = "encoder.layer.{i}.output.LayerNorm",
                                     .token = "embeddings.word_embeddings.weight",
                                     .type = "embeddings.token_type_embeddings.weight",
                                     .position = "embeddings.position_embeddings.weight",
                                     .embedded = "embeddings.LayerNorm"};
  const struct stack shape = {.width = 32,
                              .layers = 3,
                              .epsilon = 1e-12f,
                              .activation = ACTIVATION_GELU,
                              .embedding = {.positions = POSITIONS_LEARNED, .scale = 1}};
  struct loaded m;
  load(&m, &names, &shape, 4);
  check_cases(&m, names.folder);
  unload(&m);
}

static void torch_with_norms_before(void **unused) {
  (void)unused;
  static const struct names names = {.folder = "torch-encoder-b",
                                     .self = {NULL, NULL, NULL, "layers.{i}.self_attn.out_proj"},
                                     .joint = "layers.{i}.self_attn.in_proj_",
                                     .up = "layers.{i}.linear1",
                                     .down = "layers.{i}.linear2",
                                     .norm_self = "layers.{i}.norm1",
                                     .norm_forward = "layers.{i}.norm2",
                                     .last = "norm"};
  const struct stack shape = {
      .width = 24, .layers = 3, .place = NORM_PRE, .epsilon = 1e-5f, .activation = ACTIVATION_GELU};
  struct loaded m;
  load(&m, &names, &shape, 3);
  check_cases(&m, names.folder);
  unload(&m);
}

/* Only the last layer's second row leaves float32, by a bias. */
static void what_is_beyond_float32_is_told(void **unused) {
  (void)unused;
  static const float one[4] = {1, 0, 0, 1}, zero[4] = {0}, huge[2] = {3e38f, 0};
  const struct stack_layer layer = {
      .self = {{zero, NULL}, {zero, NULL}, {zero, NULL}, {zero, NULL}},
      .forward = {.up = {one, NULL}, .down = {one, huge}}};
  const struct stack s = {.width = 2,
                          .forward_size = 2,
                          .layers = 1,
                          .self = {.heads = 1,
                                   .kv_heads = 1,
                                   .head_size = 2,
                                   .key_head_size = 2,
                                   .value_head_size = 2,
                                   .query_size = 2,
                                   .key_size = 2,
                                   .value_size = 2,
                                   .output_size = 2,
                                   .scale = 1},
                          .causal = true,
                          .layer = &layer};
  const double rows[4] = {0, 0, 1e38, 0};
  double state[8];
  struct error e = {0};
  const struct ref_text text = {.n = 2, .embedding = rows};
  stack_ref(&s, &text, &(struct ref_hidden){state, NULL}, &e);
  assert_int_equal(e.status, STATUS_NOT_FINITE);
  assert_string_equal(e.detail, "row 1 is beyond float32");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bert),
      cmocka_unit_test(torch_with_norms_before),
      cmocka_unit_test(what_is_beyond_float32_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
