/* bench_stack: a BERT of random weights through the pool, with one worker and with two, against
 * cblas_sgemm on as many threads in one run: floating-point operations on visible rows and pairs
 * per second. Then the same with the weights of all heads wanted, and with quantized matrices.
 * Sparse embeddings, which go through a masked language modeling head, are compared with the mean
 * of the rows and the head's product alone, one after the other. Last a ModernBERT of random
 * weights, two thirds of whose layers have a window, against the same with no windows.
 *
 * BERT=mini or tiny computes those instead of base. Time is the clock's, the best of several turns,
 * taken alternately with the yardstick's. With ATTEND_CPU=avx2 the yardstick is OpenBLAS's
 * Haswell. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/kernel/gathered.h"
#include "tests/bench/drawn_model.h"
#include "tests/bench/sgemm.h"

enum { VOCABULARY = 30522, POSITIONS = 512, TYPES = 2, ITEMS_MOST = 32, TURNS = 2 };

static const uint64_t turn_ns = 400 * CLOCK_MS;

struct bert {
  const char *name;
  size_t layers, width, heads, forward;
};

enum { WINDOW = 65 /* 64 tokens on each side */ };

static const struct bert modern_base = {"base", 22, 768, 12, 1152};
static const struct bert berts[] = {{"base", 12, 768, 12, 3072},
                                    {"mini", 6, 384, 12, 1536},
                                    {"tiny", 2, 128, 2, 512}};

/* --- the model --- */

static struct stack_form form_of(struct arena *a, const struct bert *b, enum compute compute) {
  return (struct stack_form){
      .compute = compute,
      .name = "encoder",
      .width = b->width,
      .forward_size = b->forward,
      .layers = b->layers,
      .kind = {{.self = plain_shape(b->heads, b->width / b->heads), .activation = ACTIVATION_GELU}},
      .norm = NORM_LAYER,
      .place = NORM_POST,
      .epsilon = 1e-12f,
      .embedding = {.token = drawn_numbers(a, VOCABULARY * b->width, 0, 0.07f),
                    .type = drawn_numbers(a, TYPES * b->width, 0, 0.07f),
                    .position = drawn_numbers(a, POSITIONS * b->width, 0, 0.07f),
                    .tokens = VOCABULARY,
                    .types = TYPES,
                    .position_rows = POSITIONS,
                    .positions = POSITIONS_LEARNED,
                    .scale = 1,
                    .norm = drawn_norm(a, b->width)}};
}

/* DeBERTa-v3: the same sizes, and disentangled positions instead of the table of positions. */
static void set_disentangled(struct stack_form *f) {
  struct layer_shape *s = &f->kind->self;
  f->embedding.positions = POSITIONS_NONE;
  s->position_span = 256, s->position_reach = POSITIONS;
  s->position_keys = s->position_queries = true;
  s->scale = (float)(1 / sqrt(3.0 * (double)s->head_size));
}

static struct stack *make_stack(const struct bert *b, enum compute compute, bool headed,
                                bool disentangled) {
  struct arena a;
  arena_init(&a, NULL);
  struct stack_form form = form_of(&a, b, compute);
  if (disentangled) set_disentangled(&form);
  form.output.tied = headed;
  if (headed) {
    form.output.dense.weight = drawn_numbers(&a, b->width * b->width, 0, 0.07f);
    form.output.activation = ACTIVATION_GELU;
    form.output.norm = drawn_norm(&a, b->width);
    form.output.scale = 1;
  }
  return drawn_stack(&form, &a);
}

static struct stack *make_modern(const struct bert *b, bool windows) {
  const struct drawn_layers layers = {
      .biased = true, .gated = true, .full_every = 3, .full_first = true};
  struct arena a;
  arena_init(&a, NULL);
  struct stack_form form = form_of(&a, b, COMPUTE_FLOAT32);
  form.place = NORM_PRE;
  form.epsilon = 1e-5f;
  form.last = drawn_norm(&a, b->width);
  form.embedding.type = form.embedding.position = NULL;
  form.embedding.types = form.embedding.position_rows = 0;
  form.embedding.positions = POSITIONS_NONE;
  form.kind[1] = form.kind[0];
  form.kind[0].self.rope_base = 160000;
  form.kind[1].self.rope_base = 10000;
  form.kind[1].window = windows ? WINDOW : 0;
  return drawn_stack_of(&form, &layers, &a);
}

/* --- what is asked of it --- */

struct bench_case {
  const char *name;
  size_t items, length[ITEMS_MOST];
};

/* The lengths are those of tests/bench/bert.py. */
static struct bench_case case_of(const char *name, size_t items, size_t length) {
  struct bench_case c = {.name = name, .items = items};
  for (size_t i = 0; i < items; i++)
    c.length[i] = length > 0 ? length : 8 + 120 * (11 * i % ITEMS_MOST) / (ITEMS_MOST - 1);
  return c;
}

static double operations_of(const struct bert *b, const struct bench_case *c) {
  const double d = (double)b->width, f = (double)b->forward;
  double operations = 0;
  for (size_t i = 0; i < c->items; i++) {
    const double n = (double)c->length[i];
    operations += 2 * n * (4 * d * d + 2 * d * f) + 4 * n * n * d;
  }
  return (double)b->layers * operations;
}

/* A run that pools each item, prepared. */
static struct stack_run *ask(const struct stack *s, const struct bench_case *c,
                             enum stack_pool pool, enum stack_weights weights, struct arena *a) {
  const size_t layers = stack_form(s)->layers;
  struct error e = {0};
  struct stack_run *r = stack_run_new(s, a, &e);
  must(r != NULL);
  struct geometry *g = &r->geometry;
  struct item *item = g->item = arena_alloc(a, c->items, sizeof *item, &e);
  must(item != NULL);
  for (g->items = 0; g->items < c->items; g->items++) {
    const size_t n = c->length[g->items];
    item[g->items] = (struct item){.q = n, .k = n, .q_row = g->q_rows, .k_row = g->q_rows};
    g->q_rows = g->k_rows += n;
  }
  int32_t *token = arena_alloc(a, g->q_rows, sizeof *token, &e);
  struct stack_wish *wish = arena_alloc(a, layers, sizeof *wish, &e);
  must(token != NULL && wish != NULL);
  for (size_t i = 0; i < g->q_rows; i++) token[i] = (int32_t)random_below(&drawn_state, VOCABULARY);
  for (size_t i = 0; i < layers; i++) wish[i] = (struct stack_wish){.weights = weights};
  r->tokens = token;
  stack_set_pool(r, pool);
  r->wish = weights == STACK_WEIGHTS_NONE ? NULL : wish;
  must(stack_prepare(s, r, a, &e) == STATUS_OK);
  return r;
}

/* --- time, in nanoseconds --- */

struct asked {
  struct pool *pool;
  struct stack_run *run;
};

static void compute(void *context) {
  const struct asked *asked = context;
  drawn_time(asked->pool, &asked->run->run);
}

typedef void work_fn(void *context);

static double shortest(work_fn *work, void *context) {
  double best = INFINITY;
  const uint64_t end = clock_now() + turn_ns;
  do {
    const uint64_t start = clock_now();
    work(context);
    best = fmin(best, (double)(clock_now() - start));
  } while (clock_now() < end);
  return best;
}

/* OpenBLAS's threads watch for more work for a while, which would take a core from us. */
static double sgemm_time(size_t threads) {
  openblas_set_num_threads((int)threads);
  const double best = shortest(sgemm_multiply, NULL);
  openblas_set_num_threads(1);
  nanosleep(&(struct timespec){.tv_nsec = 200 * CLOCK_MS}, NULL);
  return best;
}

/* --- all of it --- */

static void measure(const struct bert *b, const struct stack *s, const struct bench_case *c,
                    enum stack_weights weights, size_t workers) {
  struct arena a;
  arena_init(&a, NULL);
  struct asked asked = {drawn_pool(s, workers), ask(s, c, STACK_POOL_MEAN, weights, &a)};
  double best = INFINITY, yardstick = INFINITY;
  compute(&asked); /* its memory is there */
  for (int turn = 0; turn < TURNS; turn++) {
    yardstick = fmin(yardstick, sgemm_time(workers));
    best = fmin(best, shortest(compute, &asked));
  }
  const double operations = operations_of(b, c), rate = operations / best;
  const char *many = workers == 1 ? "" : "s";
  const enum compute compute = stack_form(s)->compute;
  printf("bert-%s %s, %zu worker%s%s%s%s | %.3f ms of %.4g GFLOP, %.1f GFLOP/s | sgemm 2048, %zu "
         "thread%s: %.1f GFLOP/s | %.2f | -\n",
         b->name, c->name, workers, many, compute == COMPUTE_FLOAT32 ? "" : ", ",
         compute == COMPUTE_FLOAT32 ? "" : compute_names[compute],
         weights == STACK_WEIGHTS_NONE ? "" : ", all weights", best / 1e6, operations / 1e9, rate,
         workers, many, sgemm_rate(yardstick), rate / sgemm_rate(yardstick));
  fflush(stdout);
  pool_free(asked.pool);
  arena_free(&a);
}

/* The product of a head with rows, some of them at a time. */
struct head {
  const struct gemm *matrix;
  const float *x;
  float *scratch;
  size_t rows, width;
};

static void multiply(void *context) {
  const struct head *h = context;
  const size_t stripe = gemm_stripe(h->matrix);
  const unsigned mode = kernel_enter();
  for (size_t row = 0, rows; row < h->rows; row += rows) {
    rows = h->rows - row < GATHERED_ROWS ? h->rows - row : GATHERED_ROWS;
    const struct gemm_input in =
        gemm_input(h->matrix, rows, h->x + row * h->width, h->width, h->scratch + rows * stripe);
    for (size_t first = 0; first < VOCABULARY; first += gemm_columns(h->matrix, first))
      gemm_run(h->matrix, first, &in, h->scratch);
  }
  kernel_leave(mode);
}

static void measure_sparse(const struct bert *b, const struct stack *s,
                           const struct bench_case *c) {
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  struct pool *pool = drawn_pool(s, 1);
  struct asked mean = {pool, ask(s, c, STACK_POOL_MEAN, STACK_WEIGHTS_NONE, &a)};
  struct asked sparse = {pool, ask(s, c, STACK_POOL_SPARSE, STACK_WEIGHTS_NONE, &a)};
  const float *weight = drawn_numbers(&a, VOCABULARY * b->width, 0, 0.07f);
  struct gemm *matrix = gemm_new(VOCABULARY, b->width, 1, weight, NULL,
                                 gemm_engine_for(COMPUTE_FLOAT32, GEMM_NARROW), &e);
  must(matrix != NULL);
  struct head head = {.matrix = matrix, .rows = mean.run->geometry.q_rows, .width = b->width};
  head.x = drawn_numbers(&a, head.rows * b->width, 0, 1);
  head.scratch = arena_alloc(&a, gemm_scratch_floats(matrix, GATHERED_ROWS), sizeof(float), &e);
  must(head.scratch != NULL);
  double of_mean = INFINITY, of_sparse = INFINITY, of_head = INFINITY;
  compute(&sparse); /* its memory is there */
  for (int turn = 0; turn < TURNS; turn++) {
    of_mean = fmin(of_mean, shortest(compute, &mean));
    of_head = fmin(of_head, shortest(multiply, &head));
    of_sparse = fmin(of_sparse, shortest(compute, &sparse));
  }
  printf("bert-%s %s, 1 worker, sparse | %.3f ms | mean and the head's product: %.3f + %.3f ms | "
         "%.2f | -\n",
         b->name, c->name, of_sparse / 1e6, of_mean / 1e6, of_head / 1e6,
         (of_mean + of_head) / of_sparse);
  fflush(stdout);
  gemm_free(matrix);
  pool_free(pool);
  arena_free(&a);
}

/* Two models in turns, for the ratio is of two times that neighbors disturb alike: `s`, and one of
 * whose time it should take the `target` at most. */
static void measure_beside(const char *name, const struct stack *s, const char *beside,
                           const struct stack *other, const struct bench_case *c,
                           const char *target) {
  enum { PAIRS = 2 };
  const struct stack *const of[2] = {other, s};
  struct arena a;
  arena_init(&a, NULL);
  struct asked asked[2];
  double best[2] = {INFINITY, INFINITY};
  for (size_t i = 0; i < 2; i++) {
    asked[i] = (struct asked){drawn_pool(of[i], 1),
                              ask(of[i], c, STACK_POOL_MEAN, STACK_WEIGHTS_NONE, &a)};
    compute(&asked[i]); /* its memory is there */
  }
  for (int turn = 0; turn < PAIRS * TURNS; turn++)
    for (size_t i = 0; i < 2; i++) best[i] = fmin(best[i], shortest(compute, &asked[i]));
  const enum compute by = stack_form(s)->compute;
  printf("%s %s, 1 worker%s%s | %.3f ms | %s: %.3f ms | %.2f of the time | %s\n", name, c->name,
         by == COMPUTE_FLOAT32 ? "" : ", ", by == COMPUTE_FLOAT32 ? "" : compute_names[by],
         best[1] / 1e6, beside, best[0] / 1e6, best[1] / best[0], target);
  fflush(stdout);
  for (size_t i = 0; i < 2; i++) pool_free(asked[i].pool);
  arena_free(&a);
}

static const struct bert *bert_asked(void) {
  const char *name = getenv("BERT");
  if (!name || !*name) return &berts[0];
  for (size_t i = 0; i < sizeof berts / sizeof *berts; i++)
    if (!strcmp(name, berts[i].name)) return &berts[i];
  fprintf(stderr, "BERT=%s: there are base, mini, tiny\n", name);
  exit(2);
}

int main(int argc, char **argv) {
  (void)argc;
  gemm_blas_init();
  sgemm_correct_kernels(argv);
  const struct bert *b = bert_asked();
  const struct bench_case cases[] = {case_of("b1 s16", 1, 16), case_of("b1 s128", 1, 128),
                                     case_of("b8 s128", 8, 128), case_of("b32 s8..128", 32, 0)};
  const struct bench_case long_cases[] = {case_of("b8 s128", 8, 128), case_of("b1 s16", 1, 16),
                                          case_of("b4 s512", 4, 512)};
  printf("# cpu level %s; OpenBLAS core %s\n", cpu_level_name(cpu_level()), gemm_blas().core);
  for (int compute = 0; compute < COMPUTE_COUNT; compute++) {
    struct stack *s = make_stack(b, (enum compute)compute, false, false);
    struct stack *disentangled = make_stack(b, (enum compute)compute, false, true);
    for (size_t i = 0; i < sizeof long_cases / sizeof *long_cases; i++)
      measure_beside("DeBERTa", disentangled, "BERT of the same sizes", s, &long_cases[i],
                     i == 0 ? "1.35" : "-");
    stack_free(disentangled);
    for (size_t workers = 1; workers <= 2 && workers <= cpu_quota(); workers++)
      for (int weights = 0; weights < (compute == COMPUTE_FLOAT32 ? 2 : 1); weights++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
          measure(b, s, &cases[i], weights ? STACK_WEIGHTS_PER_HEAD : STACK_WEIGHTS_NONE, workers);
    stack_free(s);
  }
  struct stack *s = make_stack(b, COMPUTE_FLOAT32, true, false);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) measure_sparse(b, s, &cases[i]);
  stack_free(s);
  if (b == berts) b = &modern_base;
  struct stack *const modern[] = {make_modern(b, false), make_modern(b, true)};
  const struct bench_case longs[] = {case_of("b1 s2048", 1, 2048), case_of("b1 s4096", 1, 4096)};
  const char *const targets[] = {"0.80", "0.70"};
  for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
    measure_beside("ModernBERT", modern[1], "without windows", modern[0], &longs[i], targets[i]);
  for (size_t i = 0; i < sizeof modern / sizeof *modern; i++) stack_free(modern[i]);
  return 0;
}
