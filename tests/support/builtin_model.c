/* builtin_model: finds the tensors by their names. */
#include "tests/support/builtin_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/checkpoint/builtin.h"
#include "config/checkpoint/checkpoint.h"

struct reading {
  struct builtin_model *m;
  struct checkpoint *file;
  char prefix[48]; /* of the names */
};

/* The numbers of a tensor that must have `count` of them. */
static const float *tensor(const struct reading *r, const char *name, size_t count) {
  struct error e = {0};
  char whole[100];
  snprintf(whole, sizeof whole, "%s%s", r->prefix, name);
  const struct checkpoint_entry *t = checkpoint_find(r->file, whole);
  if (!t || t->count != count) fail_msg("%s is missing, or of another size", whole);
  float *x = arena_alloc(&r->m->arena, count, sizeof *x, &e);
  assert_int_equal(checkpoint_read_floats(r->file, t, 0, count, x, &e), STATUS_OK);
  return x;
}

static void load_layer(const struct reading *r, struct stack_layer *l, size_t d, size_t f) {
  const float *weight = tensor(r, "self_attn.in_proj_weight", 3 * d * d);
  const float *bias = tensor(r, "self_attn.in_proj_bias", 3 * d);
  for (size_t role = 0; role < ROLE_OUTPUT; role++)
    l->self[role] = (struct layer_matrix){weight + role * d * d, bias + role * d};
  l->self[ROLE_OUTPUT].weight = tensor(r, "self_attn.out_proj.weight", d * d);
  l->self[ROLE_OUTPUT].bias = tensor(r, "self_attn.out_proj.bias", d);
  l->forward.up.weight = tensor(r, "linear1.weight", f * d);
  l->forward.up.bias = tensor(r, "linear1.bias", f);
  l->forward.down.weight = tensor(r, "linear2.weight", d * f);
  l->forward.down.bias = tensor(r, "linear2.bias", d);
  l->norm_self.factor = tensor(r, "norm1.weight", d);
  l->norm_self.shift = tensor(r, "norm1.bias", d);
  l->norm_forward.factor = tensor(r, "norm2.weight", d);
  l->norm_forward.shift = tensor(r, "norm2.bias", d);
}

void builtin_model_load(struct builtin_model *m, const struct builtin_sizes *sizes) {
  const size_t d = sizes->width, head = d / sizes->heads;
  struct error e = {0};
  struct builtin files;
  *m = (struct builtin_model){0};
  arena_init(&m->arena, NULL);
  assert_true(builtin_find(sizes->name, &files));
  struct reading r = {.m = m,
                      .file = checkpoint_view(files.name, files.tensors, files.tensors_size, &e)};
  if (!r.file) fail_msg("%s", e.detail);
  m->form = (struct stack_form){.width = d,
                                .forward_size = sizes->forward,
                                .layers = sizes->layers,
                                .causal = sizes->causal,
                                .place = NORM_POST,
                                .epsilon = 1e-5f,
                                .layer = m->layer};
  m->form.kind->self = (struct layer_shape){.heads = sizes->heads,
                                            .kv_heads = sizes->heads,
                                            .head_size = head,
                                            .key_head_size = head,
                                            .value_head_size = head,
                                            .query_size = d,
                                            .key_size = d,
                                            .value_size = d,
                                            .output_size = d,
                                            .scale = 1 / sqrtf((float)head)};
  m->form.kind->activation = ACTIVATION_RELU;
  m->form.embedding =
      (struct stack_embedding){.token = tensor(&r, "embedding.weight", sizes->vocabulary * d),
                               .position = tensor(&r, "positions.weight", sizes->longest * d),
                               .tokens = sizes->vocabulary,
                               .position_rows = sizes->longest,
                               .positions = POSITIONS_LEARNED,
                               .scale = 1};
  if (sizes->causal) m->form.output = (struct stack_output){.tied = true};
  for (size_t i = 0; i < sizes->layers; i++) {
    snprintf(r.prefix, sizeof r.prefix, "%slayers.%zu.", sizes->causal ? "" : "encoder.", i);
    load_layer(&r, &m->layer[i], d, sizes->forward);
  }
  assert_int_equal(checkpoint_count(r.file), 2 + 12 * sizes->layers);
  checkpoint_free(r.file);
}

void builtin_model_free(struct builtin_model *m) { arena_free(&m->arena); }

void builtin_model_run(const struct builtin_model *m, const int32_t *token, size_t n,
                       const float *const *head_mask, struct builtin_view *out) {
  static double hidden[(BUILTIN_LAYERS + 1) * BUILTIN_LONGEST * BUILTIN_WIDTH];
  double *weights[BUILTIN_LAYERS], *input[BUILTIN_LAYERS];
  struct error e = {0};
  for (size_t l = 0; l < BUILTIN_LAYERS; l++) {
    weights[l] = out->weight[l];
    input[l] = out->input[l];
  }
  assert_int_equal(
      stack_ref(&m->form, &(struct ref_text){.n = n, .token = token, .head_mask = head_mask},
                &(struct ref_hidden){.state = hidden, .weights = weights, .input = input}, &e),
      STATUS_OK);
  memcpy(out->output, hidden + m->form.layers * n * m->form.width,
         n * m->form.width * sizeof *hidden);
}
