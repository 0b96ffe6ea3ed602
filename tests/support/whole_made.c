/* whole_made: a small whole model of random weights, made without a file. */
#include "tests/support/whole_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { D = WHOLE_MADE_WIDTH, F = 16, NUMBERS_MAX = WHOLE_MADE_TOKENS * D };

/* The next numbers of a sequence, which stay until the next call with the same place. */
struct draw {
  uint32_t state;
  size_t used;
  float number[64][NUMBERS_MAX];
};

static const float *draw(struct draw *d, size_t count) {
  assert_true(d->used < 64 && count <= NUMBERS_MAX);
  float *to = d->number[d->used++];
  for (size_t i = 0; i < count; i++) {
    d->state = d->state * 1664525 + 1013904223;
    to[i] = ((float)(d->state >> 8) / (float)(1 << 24) - 0.5f) * 0.7f;
  }
  return to;
}

static struct layer_matrix draw_matrix(struct draw *d, size_t out, size_t in) {
  return (struct layer_matrix){draw(d, out * in), draw(d, out)};
}

static struct stack_norm draw_norm(struct draw *d) {
  float *factor = (float *)draw(d, D);
  for (size_t i = 0; i < D; i++) factor[i] += 1;
  return (struct stack_norm){factor, draw(d, D)};
}

static struct stack_form make_form(const struct whole_made_how *how, struct draw *d) {
  const size_t head = D / WHOLE_MADE_HEADS;
  struct stack_form f = {.name = how->decoder ? "decoder" : "encoder",
                         .causal = how->decoder,
                         .output.tied = how->decoder && !how->mute,
                         .width = D,
                         .forward_size = F,
                         .layers = how->layers ? how->layers : WHOLE_MADE_LAYERS,
                         .kind = {{.self = {.heads = WHOLE_MADE_HEADS,
                                            .kv_heads = WHOLE_MADE_HEADS,
                                            .head_size = head,
                                            .key_head_size = head,
                                            .value_head_size = head,
                                            .query_size = D,
                                            .key_size = D,
                                            .value_size = D,
                                            .output_size = D,
                                            .scale = 0.5f},
                                   .activation = ACTIVATION_GELU}},
                         .epsilon = 1e-5f,
                         .embedding = {.scale = 1, .norm = draw_norm(d)},
                         .last_aside = how->last_aside};
  if (!how->bare) {
    f.embedding.token = draw(d, WHOLE_MADE_TOKENS * D);
    f.embedding.tokens = WHOLE_MADE_TOKENS;
    f.embedding.type = draw(d, WHOLE_MADE_TYPES * D);
    f.embedding.types = WHOLE_MADE_TYPES;
    f.embedding.position = draw(d, WHOLE_MADE_POSITIONS * D);
    f.embedding.position_rows = WHOLE_MADE_POSITIONS;
    f.embedding.positions = POSITIONS_LEARNED;
  }
  if (how->last_aside) f.last = draw_norm(d);
  if (how->pooler) f.pooling.pooler = draw_matrix(d, D, D);
  if (how->dense_size) f.pooling.dense[0].matrix = draw_matrix(d, how->dense_size, D);
  f.pooling.dense[0].size = how->dense_size;
  if (how->classes) {
    f.classifier = (struct stack_classifier){.vectors = STACK_VECTORS_FIRST,
                                             .first = draw_matrix(d, D, D),
                                             .tanh = true,
                                             .classes = draw_matrix(d, how->classes, D),
                                             .count = how->classes};
  }
  return f;
}

/* The decoder of a pair: it has tables of its own, and does not depend on types. */
static struct stack_form make_target_form(struct draw *d) {
  struct stack_form f = make_form(&(struct whole_made_how){.decoder = true}, d);
  f.layers = WHOLE_MADE_TARGET_LAYERS;
  f.embedding.tokens = WHOLE_MADE_TARGET_TOKENS;
  f.embedding.position_rows = WHOLE_MADE_TARGET_POSITIONS;
  f.embedding.type = NULL;
  f.embedding.types = 0;
  f.cross = f.kind->self;
  f.cross.heads = f.cross.kv_heads = WHOLE_MADE_CROSS_HEADS;
  f.cross.head_size = f.cross.key_head_size = f.cross.value_head_size = D / WHOLE_MADE_CROSS_HEADS;
  return f;
}

static void set_layer(struct stack *s, struct draw *d) {
  struct error e = {0};
  struct stack_layer l = {.norm_self = draw_norm(d), .norm_forward = draw_norm(d)};
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) l.self[role] = draw_matrix(d, D, D);
  l.forward.up = draw_matrix(d, F, D);
  l.forward.down = draw_matrix(d, D, F);
  if (stack_form(s)->cross.heads) {
    l.norm_cross = draw_norm(d);
    for (unsigned role = 0; role < ROLE_PROJECTIONS; role++) l.cross[role] = draw_matrix(d, D, D);
  }
  assert_int_equal(stack_set_layer(s, &l, &e), STATUS_OK);
}

static struct stack *make_stack(const struct stack_form *form, struct draw *d) {
  struct error e = {0};
  struct stack *s = stack_new(form, &e);
  assert_non_null(s);
  for (size_t l = 0; l < form->layers; l++) {
    d->used = 0; /* what was drawn has been copied */
    set_layer(s, d);
  }
  d->used = 0;
  return s;
}

static char name[] = "made", source[] = "random";
static char labels[WHOLE_MADE_CLASSES_MOST][6] = {"c0", "c\"1", "ç2"};

static void name_classes(struct whole_made *m, size_t count) {
  assert_true(count <= WHOLE_MADE_CLASSES_MOST);
  for (size_t i = 0; i < count; i++) m->label[i] = labels[i];
  m->whole.label = m->label;
  m->whole.classes = count;
  m->whole.function = STACK_FUNCTION_SOFTMAX;
}

void whole_made_init(struct whole_made *m, const struct whole_made_how *how) {
  struct draw *d = calloc(1, sizeof *d);
  assert_non_null(d);
  d->state = 7;
  const struct stack_form form = make_form(how, d);
  memset(m, 0, sizeof *m);
  m->whole = (struct whole){.family = "bert",
                            .vocabulary = how->bare ? 0 : WHOLE_MADE_TOKENS,
                            .types = how->bare ? 0 : WHOLE_MADE_TYPES,
                            .positions = how->bare ? 0 : WHOLE_MADE_POSITIONS,
                            .token = {-1, -1, -1, -1, 0, {0}},
                            .choice = {.top_p = 1,
                                       .repetition_penalty = 1,
                                       .forced_begin = -1,
                                       .forced_end = -1,
                                       .length_penalty = 1},
                            .max_tokens = 64,
                            .pool = how->pool,
                            .normalize = how->normalize};
  m->whole.target_vocabulary = m->whole.vocabulary;
  m->whole.target_positions = m->whole.positions;
  if (how->classes) name_classes(m, how->classes);
  *(how->decoder ? &m->whole.decoder : &m->whole.encoder) = make_stack(&form, d);
  if (how->pair) {
    const struct stack_form target = make_target_form(d);
    m->whole.decoder = make_stack(&target, d);
    m->whole.target_vocabulary = WHOLE_MADE_TARGET_TOKENS;
    m->whole.target_positions = WHOLE_MADE_TARGET_POSITIONS;
    m->whole.token.begin = WHOLE_MADE_BEGIN;
  }
  m->model = (struct model){.name = name,
                            .kind = how->pair      ? MODEL_SEQ2SEQ
                                    : how->decoder ? MODEL_DECODER
                                                   : MODEL_ENCODER,
                            .whole = &m->whole,
                            .source = source};
  free(d);
}

void whole_made_free(struct whole_made *m) {
  stack_free(m->whole.encoder);
  stack_free(m->whole.decoder);
}
