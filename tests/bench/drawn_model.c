/* drawn_model: whole models of random weights. */
#include "tests/bench/drawn_model.h"

#include <math.h>

#include "core/base/clock.h"
#include "core/kernel/narrow.h"

uint64_t drawn_state = 88172645463325252u;
enum kernel_form drawn_form = KERNEL_FLOAT32;

const float *drawn_numbers(struct arena *a, size_t count, float middle, float spread) {
  struct error e = {0};
  float *x = arena_alloc(a, count, sizeof *x, &e);
  must(x != NULL);
  for (size_t i = 0; i < count; i++) x[i] = middle + spread * random_float(&drawn_state);
  if (drawn_form != KERNEL_FLOAT32)
    for (size_t i = 0; i < count; i++)
      x[i] = narrow_widen(drawn_form, narrow_number(drawn_form, x[i]));
  return x;
}

static struct layer_matrix draw_matrix(struct arena *a, size_t out, size_t in, bool bias) {
  return (struct layer_matrix){.weight = drawn_numbers(a, out * in, 0, 0.07f),
                               .bias = bias ? drawn_numbers(a, out, 0, 0.09f) : NULL};
}

struct stack_norm drawn_norm(struct arena *a, size_t width) {
  return (struct stack_norm){.factor = drawn_numbers(a, width, 1, 0.17f),
                             .shift = drawn_numbers(a, width, 0, 0.09f)};
}

static struct stack_norm draw_norm(struct arena *a, const struct stack_form *f) {
  struct stack_norm norm = drawn_norm(a, f->width);
  if (f->norm == NORM_RMS) norm.shift = NULL;
  return norm;
}

static void draw_attention(struct arena *a, const struct layer_shape *s, bool bias,
                           struct layer_matrix out[ROLE_COUNT]) {
  const size_t wide = s->heads * s->value_head_size;
  out[ROLE_QUERY] = draw_matrix(a, s->heads * s->head_size, s->query_size, bias);
  out[ROLE_KEY] = draw_matrix(a, s->kv_heads * s->key_head_size, s->key_size, bias);
  out[ROLE_VALUE] = draw_matrix(a, s->kv_heads * s->value_head_size, s->value_size, bias);
  out[ROLE_OUTPUT] = draw_matrix(a, s->output_size, wide, bias);
}

static struct stack_layer draw_layer(struct arena *a, const struct stack_form *f,
                                     const struct drawn_layers *of, size_t index) {
  const size_t full = of->full_first ? 0 : of->full_every - 1; /* of each group of layers */
  struct stack_layer l = {.kind = of->full_every && index % of->full_every != full};
  const struct layer_shape *shape = &f->kind[l.kind].self;
  draw_attention(a, shape, of->biased, l.self);
  const size_t distances = 2 * shape->position_span;
  if (distances > 0) l.self[ROLE_POSITION].weight = drawn_numbers(a, distances * f->width, 0, 1.7f);
  if (f->cross.heads) draw_attention(a, &f->cross, of->biased, l.cross);
  l.norm_self = draw_norm(a, f);
  if (f->cross.heads) l.norm_cross = draw_norm(a, f);
  l.norm_forward = draw_norm(a, f);
  if (of->gemma) {
    l.self[ROLE_NORM_QUERY].weight = drawn_numbers(a, shape->head_size, 1, 0.17f);
    l.self[ROLE_NORM_KEY].weight = drawn_numbers(a, shape->head_size, 1, 0.17f);
    l.after_self = draw_norm(a, f);
    l.after_forward = draw_norm(a, f);
  }
  if (of->gated) l.forward.gate = draw_matrix(a, f->forward_size, f->width, of->biased);
  l.forward.up = draw_matrix(a, f->forward_size, f->width, of->biased);
  l.forward.down = draw_matrix(a, f->width, f->forward_size, of->biased);
  return l;
}

struct stack *drawn_stack_of(const struct stack_form *form, const struct drawn_layers *layers,
                             struct arena *a) {
  struct error e = {0};
  struct stack *s = stack_new(form, &e);
  must(s != NULL);
  arena_free(a);
  for (size_t i = 0; i < form->layers; i++) {
    const struct stack_layer l = draw_layer(a, form, layers, i);
    must(stack_set_layer(s, &l, &e) == STATUS_OK);
    arena_free(a);
  }
  return s;
}

struct stack *drawn_stack(const struct stack_form *form, struct arena *a) {
  return drawn_stack_of(form, &(struct drawn_layers){.biased = true}, a);
}

struct stack_run *drawn_run(const struct stack *s, size_t items, size_t length, struct arena *a) {
  struct error e = {0};
  struct stack_run *r = stack_run_new(s, a, &e);
  struct item *item = arena_alloc(a, items, sizeof *item, &e);
  int32_t *token = arena_alloc(a, items * length, sizeof *token, &e);
  must(r && item && token);
  for (size_t i = 0; i < items; i++)
    item[i] = (struct item){.q = length, .k = length, .q_row = i * length, .k_row = i * length};
  for (size_t i = 0; i < items * length; i++)
    token[i] = (int32_t)random_below(&drawn_state, stack_form(s)->embedding.tokens);
  r->geometry.items = items;
  r->geometry.item = item;
  r->geometry.q_rows = r->geometry.k_rows = items * length;
  r->tokens = token;
  return r;
}

void drawn_go_on(struct stack_run *r, size_t each, bool search, size_t most, struct arena *a) {
  struct error e = {0};
  struct stack_generation *g = arena_alloc(a, 1, sizeof *g, &e);
  must(g != NULL);
  *g = (struct stack_generation){.choice = {.top_p = 1,
                                            .repetition_penalty = 1,
                                            .forced_begin = -1,
                                            .forced_end = -1,
                                            .beams = search ? each : 1,
                                            .length_penalty = 1},
                                 .each = each};
  g->sequence = arena_alloc(a, r->geometry.items, sizeof *g->sequence, &e);
  must(g->sequence != NULL);
  for (size_t i = 0; i < r->geometry.items; i++)
    g->sequence[i] = (struct stack_sequence){.item = (uint32_t)(i / each),
                                             .sample = (uint32_t)(i % each),
                                             .most = most};
  r->generation = g;
}

struct pool *drawn_pool(const struct stack *s, size_t workers) {
  return drawn_pool_of(stack_scratch_bytes(s), workers);
}

struct pool *drawn_pool_of(size_t scratch_bytes, size_t workers) {
  struct error e = {0};
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .max_queue = 1,
                                                   .scratch_bytes = scratch_bytes,
                                                   .merge = true},
                            &e);
  must(p != NULL);
  return p;
}

static void ignore(struct job *job) { (void)job; }

double drawn_time(struct pool *p, struct run *first) {
  struct job job = {.run = first, .done = ignore};
  const uint64_t start = clock_now();
  pool_submit(p, &job);
  must(pool_drain(p, clock_now() + 600000ull * CLOCK_MS));
  const double took = (double)(clock_now() - start);
  must(job.error.status == STATUS_OK);
  return took;
}

/* When the first token was there, and the last one. */
static struct {
  size_t moves;
  uint64_t first, last;
} rounds;

static void note_round(struct stack_generation *g) {
  if (g->chosen == 0) return;
  rounds.last = clock_now();
  if (rounds.moves++ == 0) rounds.first = rounds.last;
}

void drawn_generate(struct pool *p, struct stack_run *r, struct drawn_taken *best) {
  rounds.moves = 0;
  r->generation->next_round = note_round;
  best->whole = fmin(best->whole, drawn_time(p, r->source ? &r->source->run : &r->run));
  must(rounds.moves > 1);
  best->step = fmin(best->step, (double)(rounds.last - rounds.first) / (double)(rounds.moves - 1));
}
