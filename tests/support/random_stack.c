/* random_stack: whole models and requests to them of every kind, drawn from a seed. */
#include "tests/support/random_stack.h"

#include <math.h>
#include <string.h>

#include "core/base/size.h"
#include "core/kernel/narrow.h"

/* A scale of 1 is for queries that are so much less, as T5's are. */
static void draw_queries(struct random_stack *s, const struct layer_shape *h,
                         struct layer_matrix *m, bool bias, uint64_t *state) {
  const size_t d = s->form.width, out = h->heads * h->head_size;
  float size = sqrtf(6.0f / (float)(d + out));
  if (h->scale == 1) size /= sqrtf((float)h->head_size);
  m->weight = random_floats(&s->arena, state, out * d, size);
  m->bias = bias ? random_floats(&s->arena, state, out, 0.1f) : NULL;
}

static struct layer_matrix draw_matrix(struct random_stack *s, size_t out, size_t in, bool bias,
                                       uint64_t *state) {
  struct layer_matrix m = {
      .weight = random_floats(&s->arena, state, out * in, sqrtf(6.0f / (float)(in + out)))};
  if (bias) m.bias = random_floats(&s->arena, state, out, 0.1f);
  return m;
}

/* --- forms --- */

static struct stack_norm draw_norm(struct random_stack *s, bool shift, uint64_t *state) {
  const size_t d = s->form.width;
  float *factor = random_floats(&s->arena, state, d, 0.3f);
  for (size_t i = 0; i < d; i++) factor[i] += 1;
  return (struct stack_norm){factor, shift ? random_floats(&s->arena, state, d, 0.2f) : NULL};
}

/* Now and then longer waves: all of them, or those that a model of some tens of rows would not
 * have seen whole, or a base that follows the length of an item. */
static void draw_stretch(struct layer_shape *h, uint64_t state) {
  if (random_often(&state, 60)) return;
  h->rope_stretch.factor = 1 + (double)random_below(&state, 30) / 4;
  if (h->head_size > 2 && random_often(&state, 40)) {
    h->rope_stretch.trained = 1 + random_below(&state, 20);
    return;
  }
  if (random_often(&state, 30)) return;
  h->rope_stretch.low = 1;
  h->rope_stretch.high = 2 + (double)random_below(&state, 3);
  h->rope_stretch.positions = 10 + (double)random_below(&state, 60);
}

/* Now and then scores are capped, so much that most of them change. */
static void draw_cap(struct layer_shape *h, uint64_t state) {
  if (random_often(&state, 25)) h->cap = 0.5f + (float)random_below(&state, 20) / 4;
}

/* Now and then positions are disentangled, in one term or both. */
static void draw_disentangled(struct layer_shape *h, uint64_t state) {
  const unsigned terms = 1 + (unsigned)random_below(&state, 3);
  if (random_often(&state, 75)) return;
  h->position_keys = terms & 1, h->position_queries = terms & 2;
  h->position_span = 2 + 2 * random_below(&state, 15);
  if (random_often(&state, 60))
    h->position_reach = h->position_span / 2 + 2 + random_below(&state, 100);
}

/* All layers have the same table, whose norm may be theirs, and so may its projections. */
static void draw_positions(struct random_stack *s, size_t index, bool bias, uint64_t state) {
  const struct layer_shape *h = &s->form.kind->self;
  struct stack_layer *l = &s->layer[index];
  const size_t d = s->form.width, size = h->head_size;
  if (h->position_span == 0) return;
  l->self[ROLE_POSITION] = s->layer[0].self[ROLE_POSITION];
  if (index == 0)
    l->self[ROLE_POSITION].weight = random_floats(&s->arena, &state, 2 * h->position_span * d, 1);
  if (random_often(&state, 60)) l->norm_positions = draw_norm(s, true, &state);
  if (random_often(&state, 50))
    l->self[ROLE_POSITION_KEY] = draw_matrix(s, h->kv_heads * size, d, bias, &state);
  if (random_often(&state, 50))
    l->self[ROLE_POSITION_QUERY] = draw_matrix(s, h->heads * size, d, bias, &state);
}

/* Heads whose sizes need not divide the width; with positions of their own, or not. */
static void draw_attention(struct random_stack *s, bool wide, uint64_t *state) {
  struct layer_shape *h = &s->form.kind->self;
  const size_t d = s->form.width;
  h->kv_heads = 1 + random_below(state, wide ? 8 : 4);
  h->heads = h->kv_heads * (random_often(state, 60) ? 1 : 1 + random_below(state, 3));
  h->head_size = h->key_head_size = 1 + random_below(state, wide ? 100 : 20);
  h->value_head_size = random_often(state, 80) ? h->head_size : 1 + random_below(state, 20);
  h->query_size = h->key_size = h->value_size = h->output_size = d;
  h->scale = random_often(state, 80) ? 1.0f / sqrtf((float)h->head_size) : 1.0f;
  draw_cap(h, *state + 1);
  draw_disentangled(h, *state + 2);
  if (random_often(state, 25)) {
    h->head_size = h->key_head_size += h->head_size % 2;
    h->rope_base = random_often(state, 70) ? 10000 : 500000;
    draw_stretch(h, *state);
  }
  if (random_often(state, 75)) return;
  uint64_t own = *state;
  h->alibi = random_often(&own, 35);
  if (h->alibi) return;
  h->relative_both = random_often(state, 70);
  h->relative_buckets = (1 + random_below(state, 16)) * (h->relative_both ? 2 : 1);
  h->relative_distance = h->relative_buckets + 1 + random_below(state, 100);
}

/* Now and then heads are normalised: those of queries, of keys, or both. */
static void draw_head_norms(struct random_stack *s, struct stack_layer *l, uint64_t state) {
  const size_t size = s->form.kind->self.head_size;
  if (random_often(&state, 75)) return;
  for (unsigned role = ROLE_NORM_QUERY; role <= ROLE_NORM_KEY; role++) {
    float *factor = random_floats(&s->arena, &state, size, 0.3f);
    for (size_t i = 0; i < size; i++) factor[i] += 1;
    if (random_often(&state, 80)) l->self[role].weight = factor;
  }
}

/* Now and then what a branch gives is normalized: that of the attention, of the feed-forward, or
 * both. */
static void draw_norms_after(struct random_stack *s, struct stack_layer *l, bool shift,
                             uint64_t state) {
  if (random_often(&state, 70)) return;
  if (random_often(&state, 80)) l->after_self = draw_norm(s, shift, &state);
  if (random_often(&state, 80)) l->after_forward = draw_norm(s, shift, &state);
}

/* T5 has one table for all layers. */
static void draw_layer(struct random_stack *s, size_t index, bool bias, bool gated, bool shift,
                       uint64_t *state) {
  const struct stack_form *f = &s->form;
  const struct layer_shape *h = &f->kind->self;
  struct stack_layer *l = &s->layer[index];
  const size_t d = f->width, keys = h->kv_heads * h->head_size,
               values = h->kv_heads * h->value_head_size, wide = h->heads * h->value_head_size;
  draw_queries(s, h, &l->self[ROLE_QUERY], bias, state);
  l->self[ROLE_KEY] = draw_matrix(s, keys, d, bias && random_often(state, 80), state);
  l->self[ROLE_VALUE] = draw_matrix(s, values, d, bias, state);
  l->self[ROLE_OUTPUT] = draw_matrix(s, d, wide, bias, state);
  if (h->relative_buckets && index > 0 && random_often(state, 50))
    l->self[ROLE_RELATIVE] = s->layer[0].self[ROLE_RELATIVE];
  else if (h->relative_buckets)
    l->self[ROLE_RELATIVE].weight =
        random_floats(&s->arena, state, h->relative_buckets * h->heads, 1.5f);
  if (gated) l->forward.gate = draw_matrix(s, f->forward_size, d, bias, state);
  l->forward.up = draw_matrix(s, f->forward_size, d, bias, state);
  l->forward.down = draw_matrix(s, d, f->forward_size, bias, state);
  if (random_often(state, 95)) l->norm_self = draw_norm(s, shift, state);
  if (random_often(state, 95)) l->norm_forward = draw_norm(s, shift, state);
  draw_head_norms(s, l, *state);
  draw_positions(s, index, bias, *state + 2);
  draw_norms_after(s, l, shift, *state + 1);
}

static void draw_embedding(struct random_stack *s, bool shift, bool tokens, uint64_t *state) {
  struct stack_embedding *m = &s->form.embedding;
  const size_t d = s->form.width;
  m->scale = random_often(state, 60) ? 1.0f : sqrtf((float)d);
  m->tokens = tokens || random_often(state, 80) ? 1 + random_below(state, 40) : 0;
  if (m->tokens) m->token = random_floats(&s->arena, state, m->tokens * d, 1.5f / m->scale);
  m->types = random_often(state, 40) ? 1 + random_below(state, 3) : 0;
  if (m->types) m->type = random_floats(&s->arena, state, m->types * d, 0.7f);
  m->first_position =
      random_often(state, 60) ? 0 : 1 + random_below(state, random_often(state, 80) ? 3 : 1030);
  m->positions = (enum positions)random_below(state, 5);
  if (d % 2 && m->positions >= POSITIONS_INTERLEAVED) m->positions = POSITIONS_LEARNED;
  if (m->positions == POSITIONS_LEARNED) {
    m->position_rows = m->first_position + s->longest;
    m->position = random_floats(&s->arena, state, m->position_rows * d, 0.7f);
  }
  if (random_often(state, 50)) m->norm = draw_norm(s, shift, state);
}

static void draw_pooling(struct random_stack *s, uint64_t *state) {
  struct stack_pooling *p = &s->form.pooling;
  const size_t d = s->form.width;
  if (random_often(state, 50)) p->pooler = draw_matrix(s, d, d, random_often(state, 80), state);
  uint64_t own = *state;
  p->ends = !p->pooler.weight && s->form.embedding.tokens && random_often(&own, 50);
  p->end = random_often(&own, 50) ? -1 : (int32_t)random_below(&own, s->form.embedding.tokens + 1);
  if (random_often(state, 65)) return;
  const size_t count = random_often(state, 60) ? 1 : STACK_DENSE_MOST;
  for (size_t i = 0, in = d; i < count; in = p->dense[i++].size) {
    struct stack_dense *l = &p->dense[i];
    l->residual = random_often(state, 40);
    l->size = l->residual && random_often(state, 50) ? in : 1 + random_below(state, 2 * d);
    l->matrix = draw_matrix(s, l->size, in, random_often(state, 60), state);
    l->tanh = random_often(state, 50);
    if (l->residual && l->size != in) l->skip = draw_matrix(s, l->size, in, false, state);
  }
}

/* Behind the pooler, a layer of its own, or none; of the rows, or of a vector that is made of them.
 */
static void draw_classifier(struct random_stack *s, uint64_t state) {
  static const enum stack_vectors vectors[] = {STACK_VECTORS_EACH, STACK_VECTORS_FIRST,
                                               STACK_VECTORS_LAST, STACK_VECTORS_MEAN,
                                               STACK_VECTORS_LATE};
  struct stack_classifier *c = &s->form.classifier;
  const size_t d = s->form.width;
  if (random_often(&state, 50)) return;
  c->count = 1 + random_below(&state, random_often(&state, 80) ? 6 : 300);
  c->vectors = vectors[random_below(&state, sizeof vectors / sizeof *vectors)];
  c->pooler = s->form.pooling.pooler.weight && random_often(&state, 50);
  c->tanh = random_often(&state, 50);
  c->activation = (enum activation)random_below(&state, ACTIVATION_QUICK_GELU + 1);
  if (!c->pooler && random_often(&state, 70))
    c->first = draw_matrix(s, d, d, random_often(&state, 80), &state);
  if (random_often(&state, 30)) c->norm = draw_norm(s, random_often(&state, 50), &state);
  c->classes = draw_matrix(s, c->count, d, random_often(&state, 80), &state);
}

void random_stack_draw_output(struct random_stack *s, uint64_t state, size_t tokens) {
  struct stack_embedding *m = &s->form.embedding;
  struct stack_output *o = &s->form.output;
  const size_t d = s->form.width;
  if (!m->token || (!tokens && random_often(&state, 50))) return;
  if (tokens) {
    m->tokens = tokens;
    m->token = random_floats(&s->arena, &state, tokens * d, 1.5f / m->scale);
  }
  *o = (struct stack_output){.tied = random_often(&state, 50)};
  if (random_often(&state, 30)) o->scale = 1 / sqrtf((float)d);
  uint64_t apart = state + 1;
  if (random_often(&apart, 30)) o->cap = 0.5f + (float)random_below(&apart, 40) / 4;
  if (o->tied && random_often(&state, 50))
    o->matrix.bias = random_floats(&s->arena, &state, m->tokens, 2);
  if (!o->tied) o->matrix = draw_matrix(s, m->tokens, d, random_often(&state, 50), &state);
}

/* Now and then all matrices, or some, are of numbers that have 16 bits. */
static void narrow_matrix(struct layer_matrix *m, size_t count, enum kernel_form form) {
  float *x = (float *)m->weight;
  for (size_t i = 0; x && i < count; i++) x[i] = narrow_widen(form, narrow_number(form, x[i]));
}

static void draw_form(struct random_stack *s, uint64_t state) {
  const struct stack_form *f = &s->form;
  const size_t d = f->width, wide = f->forward_size;
  if (random_often(&state, 60)) return;
  const enum kernel_form form = random_often(&state, 50) ? KERNEL_BFLOAT16 : KERNEL_FLOAT16;
  narrow_matrix(&(struct layer_matrix){f->embedding.token, NULL}, f->embedding.tokens * d, form);
  if (f->output.matrix.weight) narrow_matrix(&s->form.output.matrix, f->embedding.tokens * d, form);
  for (size_t l = 0; l < f->layers; l++) {
    struct stack_layer *of = &s->layer[l];
    const struct layer_shape *h = &f->kind->self;
    narrow_matrix(&of->self[ROLE_QUERY], h->heads * h->head_size * d, form);
    narrow_matrix(&of->self[ROLE_KEY], h->kv_heads * h->head_size * d, form);
    if (random_often(&state, 80))
      narrow_matrix(&of->self[ROLE_OUTPUT], h->heads * h->value_head_size * d, form);
    narrow_matrix(&of->forward.gate, wide * d, form);
    narrow_matrix(&of->forward.up, wide * d, form);
    narrow_matrix(&of->forward.down, wide * d, form);
  }
}

void random_stack_make(struct random_stack *s) {
  struct error e = {0};
  if (s->form.causal || s->form.place == NORM_PRE)
    s->form.convolution = (struct stack_convolution){0}; /* they cannot have one */
  s->stack = stack_new(&s->form, &e);
  must(s->stack != NULL);
  for (size_t l = 0; l < s->form.layers; l++)
    must(stack_set_layer(s->stack, &s->layer[l], &e) == STATUS_OK);
}

void random_stack_remake(struct random_stack *s) {
  stack_free(s->stack);
  random_stack_make(s);
}

/* --- across --- */

static void draw_cross_layer(struct random_stack *s, struct stack_layer *l, uint64_t *state) {
  const struct layer_shape *h = &s->form.cross;
  const bool bias = random_often(state, 65);
  draw_queries(s, h, &l->cross[ROLE_QUERY], bias, state);
  l->cross[ROLE_KEY] = draw_matrix(s, h->kv_heads * h->head_size, h->key_size, bias, state);
  l->cross[ROLE_VALUE] =
      draw_matrix(s, h->kv_heads * h->value_head_size, h->value_size, bias, state);
  l->cross[ROLE_OUTPUT] =
      draw_matrix(s, h->output_size, h->heads * h->value_head_size, bias, state);
  if (random_often(state, 95)) l->norm_cross = draw_norm(s, random_often(state, 70), state);
}

/* Heads of their own, over rows of a width of their own. */
static void draw_cross(struct random_stack *s, uint64_t state) {
  struct layer_shape *h = &s->form.cross;
  s->source = random_room(&s->arena, 1, sizeof *s->source);
  random_stack_init(s->source, &state,
                    (struct random_stack_kind){.layers_most = 1,
                                               .longest = 150,
                                               .alone = true,
                                               .bytes = s->form.compute != COMPUTE_FLOAT32});
  h->kv_heads = 1 + random_below(&state, 4);
  h->heads = h->kv_heads * (random_often(&state, 70) ? 1 : 2);
  h->head_size = h->key_head_size = 1 + random_below(&state, 24);
  h->value_head_size = random_often(&state, 80) ? h->head_size : 1 + random_below(&state, 24);
  h->query_size = h->output_size = s->form.width;
  h->key_size = h->value_size = s->source->form.width;
  h->scale = random_often(&state, 80) ? 1.0f / sqrtf((float)h->head_size) : 1.0f;
  for (size_t l = 0; l < s->form.layers; l++) draw_cross_layer(s, &s->layer[l], &state);
}

/* A second kind of layers, with another window, other rotary positions and another activation. Now
 * and then one of the kinds has no rotary positions. */
static void draw_kind(struct random_stack *s, uint64_t seed) {
  uint64_t *state = &seed;
  struct stack_form *f = &s->form;
  f->kind[1] = f->kind[0];
  if (!random_often(state, 40)) return;
  f->kind[1].window = random_often(state, 70) ? 1 + random_below(state, 20) : 0;
  f->kind[1].activation = (enum activation)random_below(state, 5);
  if (f->kind[1].self.rope_base > 0) {
    f->kind[1].self.rope_base = 500;
    if (random_often(state, 50)) f->kind[1].self.rope_stretch = (struct layer_stretch){0};
    if (random_often(state, 40)) f->kind[random_often(state, 50)].self.rope_base = 0;
  }
  for (size_t l = 0; l < f->layers; l++) s->layer[l].kind = random_often(state, 50);
}

/* Now and then there is a convolution. */
static void draw_convolution(struct random_stack *s, bool bias, bool shift, uint64_t state) {
  struct stack_convolution *c = &s->form.convolution;
  const size_t d = s->form.width;
  if (random_often(&state, 65)) return;
  c->taps = 1 + 2 * random_below(&state, random_often(&state, 80) ? 3 : 12);
  c->matrix = draw_matrix(s, d, d * c->taps, bias, &state);
  c->tanh = random_often(&state, 50);
  c->activation = (enum activation)random_below(&state, 5);
  if (random_often(&state, 90)) c->norm = draw_norm(s, shift, &state);
}

void random_stack_init(struct random_stack *s, uint64_t *state, struct random_stack_kind kind) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena, NULL);
  s->longest = kind.longest;
  struct stack_form *f = &s->form;
  f->name = "encoder";
  f->width = kind.wide ? 400 + random_below(state, 200) : 4 + random_below(state, 90);
  f->forward_size = kind.wide ? 2500 + random_below(state, random_often(state, 75) ? 900 : 9000)
                              : 1 + random_below(state, 200);
  f->layers = kind.layers_least + random_below(state, kind.layers_most - kind.layers_least + 1);
  f->causal = random_often(state, 35);
  f->norm = random_often(state, 65) ? NORM_LAYER : NORM_RMS;
  f->place = random_often(state, 50) ? NORM_PRE : NORM_POST;
  f->epsilon = f->kind->self.norm_epsilon = random_often(state, 50) ? 1e-5f : 1e-12f;
  f->kind->activation = (enum activation)random_below(state, 5);
  f->layer = s->layer;
  uint64_t bytes = *state;
  if (kind.bytes) f->compute = (enum compute)random_below(&bytes, COMPUTE_COUNT);
  const bool bias = random_often(state, 65), gated = random_often(state, 40),
             shift = random_often(state, 70);
  draw_attention(s, kind.wide, state);
  draw_embedding(s, shift, kind.tokens, state);
  for (size_t l = 0; l < f->layers; l++) draw_layer(s, l, bias, gated, shift, state);
  if (random_often(state, f->place == NORM_PRE ? 85 : 30)) f->last = draw_norm(s, shift, state);
  f->last_aside = random_often(state, 30);
  draw_convolution(s, bias, shift, *state);
  draw_pooling(s, state);
  draw_classifier(s, *state);
  uint64_t apart = *state;
  if (random_often(&apart, 20)) f->kind->window = 1 + random_below(&apart, 40);
  draw_kind(s, *state);
  random_stack_draw_output(s, *state, 0);
  draw_form(s, *state);
  if (!kind.alone && random_often(&apart, 25)) draw_cross(s, apart);
  random_stack_make(s);
}

void random_stack_done(struct random_stack *s) {
  if (s->source) random_stack_done(s->source);
  stack_free(s->stack);
  arena_free(&s->arena);
}

/* --- requests --- */

static void place_items(struct geometry *g) {
  g->q_rows = 0;
  for (size_t i = 0; i < g->items; i++) {
    g->item[i].q_row = g->item[i].k_row = g->q_rows;
    g->q_rows += g->item[i].q;
  }
  g->k_rows = g->q_rows;
}

/* An empty run with so many items, whose sizes are not known yet. */
static struct stack_run *empty_run(const struct random_stack *s, size_t items, struct arena *a) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(s->stack, a, &e);
  must(r != NULL);
  r->geometry.items = items;
  r->geometry.item = random_room(a, items, sizeof *r->geometry.item);
  memset(r->geometry.item, 0, items * sizeof *r->geometry.item);
  return r;
}

struct stack_run *random_run_of_rows(const struct random_stack *s, size_t rows, struct arena *a) {
  struct stack_run *r = empty_run(s, 1, a);
  r->geometry.item[0].q = r->geometry.item[0].k = rows;
  place_items(&r->geometry);
  return r;
}

static int32_t *draw_integers(uint64_t *state, size_t count, size_t below, struct arena *a) {
  int32_t *x = random_room(a, count, sizeof *x);
  for (size_t i = 0; i < count; i++) x[i] = (int32_t)random_below(state, below);
  return x;
}

struct stack_wish *random_run_wishes(const struct random_stack *s, struct stack_run *r,
                                     struct arena *a) {
  const size_t attentions = stack_form_attentions(&s->form);
  struct stack_wish *wish = random_room(a, attentions, sizeof *wish);
  memset(wish, 0, attentions * sizeof *wish);
  r->wish = wish;
  return wish;
}

void random_run_draw_wishes(const struct random_stack *s, struct stack_run *r, uint64_t *state,
                            struct arena *a) {
  struct stack_wish *wish = random_run_wishes(s, r, a);
  for (size_t i = 0; i < stack_form_attentions(&s->form); i++, wish++) {
    const bool across = i >= s->form.layers;
    const size_t heads = across ? s->form.cross.heads : s->form.kind->self.heads;
    wish->weights = (enum stack_weights)random_below(state, 4);
    wish->thumbnail = 1 + random_below(state, random_often(state, 50) ? 64 : 8);
    wish->hidden = !across && random_often(state, 40);
    wish->input = random_often(state, 40);
    if (random_often(state, 75)) continue;
    float *mask = random_floats(a, state, heads, 1.5f);
    for (size_t h = 0; h < heads; h++)
      if (random_often(state, 40)) mask[h] = 0;
    wish->head_mask = mask;
  }
}

struct stack_run *random_source(const struct random_stack *s, uint64_t state, size_t items,
                                struct arena *a) {
  const struct random_stack *of = s->source;
  if (!of) return NULL;
  struct stack_run *r = empty_run(of, items, a);
  for (size_t i = 0; i < items; i++)
    r->geometry.item[i].q = r->geometry.item[i].k =
        random_below(&state, random_often(&state, 70) ? 20 : 150);
  place_items(&r->geometry);
  r->embeddings = random_floats(a, &state, r->geometry.q_rows * of->form.width, 1.5f);
  return r;
}

struct stack_run *random_source_of(const struct random_stack *s, const struct stack_run *source,
                                   const size_t *item, size_t items, struct arena *a) {
  return source ? random_run_of(s->source, source, item, items, a) : NULL;
}

static struct stack_run *source_again(const struct random_stack *s, const struct stack_run *r,
                                      struct arena *a) {
  return r->source ? random_run_again(s->source, r->source, a) : NULL;
}

static void draw_pool(const struct random_stack *s, struct stack_run *r, uint64_t *state) {
  const struct stack_pooling *p = &s->form.pooling;
  const bool bare = random_often(state, 25); /* without the dense layers */
  const size_t size = bare ? s->form.width : stack_form_pooled(&s->form);
  stack_set_pool(r, (enum stack_pool)(1 + random_below(state, p->pooler.weight ? 7 : 6)));
  if (bare) r->after &= ~(unsigned)STACK_AFTER_DENSE;
  if (random_often(state, 40)) r->dimensions = 1 + random_below(state, size);
  r->normalize = random_often(state, 50);
}

/* Rows of each item that are not pooled: some of them, of most runs none. */
static void draw_left_out(struct stack_run *r, uint64_t state, struct arena *a) {
  if (stack_has_rows(r) || random_often(&state, 60)) return;
  size_t *rows = random_room(a, r->geometry.items, sizeof *rows);
  for (size_t i = 0; i < r->geometry.items; i++)
    rows[i] = random_below(&state, r->geometry.item[i].q);
  r->left_out = rows;
}

/* The scores of classes instead of vectors, or rows that go through the dense layers. */
static void draw_after(const struct random_stack *s, struct stack_run *r, uint64_t state) {
  const struct stack_classifier *c = &s->form.classifier;
  const bool rows = stack_has_rows(r);
  if (random_often(&state, 50)) return;
  if (!c->count || rows != (c->vectors == STACK_VECTORS_EACH)) {
    if (rows) r->after = STACK_AFTER_DENSE, r->normalize = random_often(&state, 50);
    return;
  }
  r->vectors = c->vectors;
  r->after = STACK_AFTER_CLASSES;
  r->function = (enum stack_function)random_below(&state, 3);
  r->dimensions = 0, r->normalize = false;
}

/* A token for most rows; or all logits; or neither. */
static void draw_targets(const struct random_stack *s, struct stack_run *r, uint64_t state,
                         struct arena *a) {
  const size_t rows = r->geometry.q_rows;
  if (!stack_has_output(s->stack) || rows == 0) return;
  if (random_often(&state, 30)) {
    r->want_logits = random_often(&state, 60);
    return;
  }
  int32_t *targets = draw_integers(&state, rows, s->form.embedding.tokens, a);
  for (size_t i = 0; i < rows; i++)
    if (random_often(&state, 25)) targets[i] = -1;
  r->targets = targets;
  r->top = random_often(&state, 40) ? 0 : 1 + random_below(&state, 64);
  r->logit_lens = random_often(&state, 60) ? 0 : 1 + random_below(&state, 64);
}

struct stack_run *random_run(const struct random_stack *s, uint64_t *state, size_t items,
                             size_t most, struct arena *a) {
  const struct stack_embedding *m = &s->form.embedding;
  struct stack_run *r = empty_run(s, random_below(state, items + 1), a);
  struct geometry *g = &r->geometry;
  r->embedded = random_often(state, 40);
  if (random_often(state, 50)) draw_pool(s, r, state);
  draw_after(s, r, *state);
  for (size_t i = 0; i < g->items; i++) {
    const size_t below = size_min(random_often(state, 30) ? 4 : most, s->longest) + 1;
    const size_t least = !stack_has_rows(r);
    g->item[i].q = g->item[i].k = least + random_below(state, below - least);
  }
  place_items(g);
  draw_left_out(r, *state, a);
  if (m->token && random_often(state, 70))
    r->tokens = draw_integers(state, g->q_rows, m->tokens, a);
  else
    r->embeddings = random_floats(a, state, g->q_rows * s->form.width, 1.5f);
  if (r->tokens && s->form.pooling.ends && r->vectors == STACK_VECTORS_FIRST &&
      !(r->after & STACK_AFTER_CLASSES))
    r->after |= STACK_AFTER_POOLER;
  if (m->type && random_often(state, 70)) r->types = draw_integers(state, g->q_rows, m->types, a);
  if (random_often(state, 75)) random_run_draw_wishes(s, r, state, a);
  draw_targets(s, r, *state, a);
  r->source = random_source(s, *state, g->items, a);
  return r;
}

/* The same wishes, for a run that has its items already. */
static void copy_wishes(struct stack_run *to, const struct stack_run *r) {
  to->embedded = r->embedded;
  to->wish = r->wish;
  to->vectors = r->vectors;
  to->after = r->after;
  to->function = r->function;
  to->dimensions = r->dimensions;
  to->normalize = r->normalize;
  to->top = r->top;
  to->logit_lens = r->logit_lens;
  to->want_logits = r->want_logits;
}

struct stack_run *random_run_again(const struct random_stack *s, const struct stack_run *r,
                                   struct arena *a) {
  struct stack_run *copy = empty_run(s, r->geometry.items, a);
  for (size_t i = 0; i < r->geometry.items; i++)
    copy->geometry.item[i].q = copy->geometry.item[i].k = r->geometry.item[i].q;
  place_items(&copy->geometry);
  copy->tokens = r->tokens;
  copy->embeddings = r->embeddings;
  copy->types = r->types;
  copy->targets = r->targets;
  copy->left_out = r->left_out;
  copy->source = source_again(s, r, a);
  copy_wishes(copy, r);
  return copy;
}

/* Rows of some items, one after the other. */
static const void *gather(const struct stack_run *r, const void *all, size_t size,
                          const size_t *item, size_t items, size_t rows, struct arena *a) {
  if (!all) return NULL;
  char *some = random_room(a, rows, size), *to = some;
  for (size_t i = 0; i < items; i++) {
    const struct item *from = &r->geometry.item[item[i]];
    memcpy(to, (const char *)all + from->q_row * size, from->q * size);
    to += from->q * size;
  }
  return some;
}

struct stack_run *random_run_of(const struct random_stack *s, const struct stack_run *r,
                                const size_t *item, size_t items, struct arena *a) {
  struct stack_run *some = empty_run(s, items, a);
  struct geometry *g = &some->geometry;
  size_t *left_out = r->left_out ? random_room(a, items, sizeof *left_out) : NULL;
  for (size_t i = 0; i < items; i++) {
    g->item[i].q = g->item[i].k = r->geometry.item[item[i]].q;
    if (left_out) left_out[i] = r->left_out[item[i]];
  }
  some->left_out = left_out;
  place_items(g);
  some->tokens = gather(r, r->tokens, sizeof *r->tokens, item, items, g->q_rows, a);
  some->targets = gather(r, r->targets, sizeof *r->targets, item, items, g->q_rows, a);
  some->types = gather(r, r->types, sizeof *r->types, item, items, g->q_rows, a);
  some->embeddings =
      gather(r, r->embeddings, s->form.width * sizeof *r->embeddings, item, items, g->q_rows, a);
  some->source = random_source_of(s, r->source, item, items, a);
  copy_wishes(some, r);
  return some;
}
