/* bench_translate: translators of random weights through the pool, with one worker and with two:
 * 32 tokens of each text from a source of 32, greedily and by 4 beams; how long a step takes, and
 * how many tokens a second come, the sources included. A search is told beside 4 greedy sequences
 * of each text, which share their source as beams do: what it takes more is the search's own.
 *
 * All are the Transformer of the textbook, six layers in each half, tied, in each way of computing;
 * the shapes differ in their vocabulary. SHAPE=base computes that one alone, =tiny a small one. Time
 * is the clock's, the best of several turns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "tests/bench/drawn_model.h"

enum { SOURCE = 32, MOST = 32, BEAMS = 4, TURNS = 3, BEGIN = 1 };

struct shape {
  const char *name;
  size_t layers, width, heads, forward, tokens;
};

static const struct shape shapes[] = {{"base", 6, 512, 8, 2048, 8000},
                                      {"t5-small", 6, 512, 8, 2048, 32128},
                                      {"opus-mt", 6, 512, 8, 2048, 58101},
                                      {"tiny", 2, 64, 4, 128, 500}};
enum { SHAPES = sizeof shapes / sizeof *shapes, USUAL = SHAPES - 1 };

/* --- the model --- */

struct translator {
  const struct shape *shape;
  struct stack *encoder, *decoder;
};

static struct stack_form form_of(struct arena *a, const struct shape *m, const struct stack *lender,
                                 const char *name, enum compute compute) {
  struct stack_form form = {.name = name,
                            .compute = compute,
                            .width = m->width,
                            .forward_size = m->forward,
                            .layers = m->layers,
                            .kind = {{.self = plain_shape(m->heads, m->width / m->heads),
                                      .activation = ACTIVATION_RELU}},
                            .norm = NORM_LAYER,
                            .place = NORM_POST,
                            .epsilon = 1e-5f,
                            .last = drawn_norm(a, m->width),
                            .embedding = {.lender = lender,
                                          .tokens = m->tokens,
                                          .positions = POSITIONS_INTERLEAVED,
                                          .scale = sqrtf((float)m->width)}};
  if (!lender) form.embedding.token = drawn_numbers(a, m->tokens * m->width, 0, 0.07f);
  return form;
}

/* The decoder has the one table of tokens, which its output needs. */
static struct translator make_translator(const struct shape *m, enum compute compute) {
  struct translator t = {.shape = m};
  struct arena a;
  arena_init(&a, NULL);
  struct stack_form form = form_of(&a, m, NULL, "decoder", compute);
  form.causal = true;
  form.cross = form.kind->self;
  form.output.tied = true;
  t.decoder = drawn_stack(&form, &a);
  form = form_of(&a, m, t.decoder, "encoder", compute);
  t.encoder = drawn_stack(&form, &a);
  return t;
}

static struct pool *make_pool(const struct translator *t, size_t workers) {
  const size_t encoder = stack_scratch_bytes(t->encoder), decoder = stack_scratch_bytes(t->decoder);
  return drawn_pool_of(encoder > decoder ? encoder : decoder, workers);
}

/* --- what is asked of it --- */

struct bench_case {
  size_t items, each; /* sequences of an item */
  bool search;
};

static struct stack_run *ask(const struct translator *t, const struct bench_case *c,
                             struct arena *a) {
  struct error e = {0};
  struct stack_run *source = drawn_run(t->encoder, c->items, SOURCE, a);
  struct stack_run *r = drawn_run(t->decoder, c->items * c->each, 1, a);
  for (size_t i = 0; i < c->items * c->each; i++) ((int32_t *)r->tokens)[i] = BEGIN;
  drawn_go_on(r, c->each, c->search, MOST, a);
  r->source = source;
  must(stack_prepare(t->encoder, source, a, &e) == STATUS_OK);
  must(stack_prepare(t->decoder, r, a, &e) == STATUS_OK);
  return r;
}

/* --- time --- */

static void translate_once(const struct translator *t, const struct bench_case *c, size_t workers,
                           struct drawn_taken *best) {
  struct pool *p = make_pool(t, workers);
  struct arena a;
  arena_init(&a, NULL);
  struct stack_run *r = ask(t, c, &a);
  drawn_generate(p, r, best);
  must(stack_sequence_count(&r->generation->sequence[0]) == MOST);
  arena_free(&a);
  pool_free(p);
}

static void tell(const struct translator *t, const struct bench_case *c, size_t workers,
                 const struct drawn_taken *took, const struct drawn_taken *plain) {
  char beside[64] = "- | -";
  if (plain)
    snprintf(beside, sizeof beside, "without the search: %.2f ms | %.2f", plain->step / 1e6,
             took->step / plain->step);
  const enum compute compute = stack_form(t->decoder)->compute;
  printf("%s %s x%zu, %zu worker%s%s%s | %.2f ms a step, %.1f ms, %.1f tokens/s | %s | -\n",
         t->shape->name, c->search ? "beams 4" : "greedy", c->items, workers,
         workers == 1 ? "" : "s", compute == COMPUTE_FLOAT32 ? "" : ", ",
         compute == COMPUTE_FLOAT32 ? "" : compute_names[compute], took->step / 1e6,
         took->whole / 1e6, (double)(c->items * MOST) / took->whole * 1e9, beside);
  fflush(stdout);
}

static void measure(const struct translator *t, size_t workers) {
  static const size_t items[] = {1, 8};
  for (size_t i = 0; i < 2; i++) {
    const struct bench_case greedy = {.items = items[i], .each = 1};
    const struct bench_case plain = {.items = items[i], .each = BEAMS};
    const struct bench_case search = {.items = items[i], .each = BEAMS, .search = true};
    struct drawn_taken alone = {INFINITY, INFINITY}, beside = alone, searched = alone;
    for (int turn = 0; turn < TURNS; turn++) {
      translate_once(t, &greedy, workers, &alone);
      translate_once(t, &plain, workers, &beside);
      translate_once(t, &search, workers, &searched);
    }
    tell(t, &greedy, workers, &alone, NULL);
    tell(t, &search, workers, &searched, &beside);
  }
}

int main(void) {
  gemm_blas_init();
  const char *name = getenv("SHAPE");
  printf("# cpu level %s\n", cpu_level_name(cpu_level()));
  for (size_t i = 0; i < SHAPES; i++) {
    if (name && *name ? strcmp(name, shapes[i].name) != 0 : i >= USUAL) continue;
    for (int compute = 0; compute < COMPUTE_COUNT; compute++) {
      const struct translator t = make_translator(&shapes[i], (enum compute)compute);
      for (size_t workers = 1; workers <= 2 && workers <= cpu_quota(); workers++)
        measure(&t, workers);
      stack_free(t.encoder);
      stack_free(t.decoder);
    }
  }
  return 0;
}
