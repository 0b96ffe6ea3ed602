/* bench_generate: a GPT-2 of random weights through the pool, with one worker and with two: tokens
 * a second of sequences that go on together, as the rate at which the weights are read for them,
 * against the rate at which this machine reads memory in the same run; the same with weights in 16
 * bits, and quantized; and a long text's first token, and its score, against cblas_sgemm. Also the
 * rate at which quantized weights of the sizes of Gemma 3 1B are read.
 *
 * GPT=mini, tiny or gemma computes those alone, instead of base and gemma. Time is the clock's, the
 * best of several turns, taken alternately with the yardstick's. */
#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "tests/bench/drawn_model.h"
#include "tests/bench/sgemm.h"

enum { MODELS = 3, POSITIONS = 1024, TURNS = 3, READS = 4, READ_FLOATS = 64 << 20 };

struct gpt {
  const char *name;
  size_t layers, width, heads, forward, tokens;
};

static const struct gpt gpts[] = {{"base", 12, 768, 12, 3072, 50257},
                                  {"mini", 6, 384, 6, 1536, 50257},
                                  {"tiny", 2, 128, 2, 512, 1000}};

/* The same model in several ways: the numbers of its matrices, and how it computes with them. */
static const struct model {
  const char *name;
  enum kernel_form form;
  enum compute compute;
  const char *expected; /* how many times as fast as the first one it is */
} models[MODELS] = {{"float32", KERNEL_FLOAT32, COMPUTE_FLOAT32, ""},
                    {"bfloat16", KERNEL_BFLOAT16, COMPUTE_FLOAT32, "1.85 of one"},
                    {"int8-block", KERNEL_FLOAT32, COMPUTE_INT8_BLOCK, "-"}};

/* --- the model --- */

static struct stack_form form_of(struct arena *a, const struct gpt *b, enum compute compute) {
  return (
      struct stack_form){.compute = compute,
                         .name = "decoder",
                         .width = b->width,
                         .forward_size = b->forward,
                         .layers = b->layers,
                         .kind = {{.self = plain_shape(b->heads, b->width / b->heads),
                                   .activation = ACTIVATION_GELU_NEW}},
                         .causal = true,
                         .norm = NORM_LAYER,
                         .place = NORM_PRE,
                         .epsilon = 1e-5f,
                         .last = drawn_norm(a, b->width),
                         .output = {.tied = true},
                         .embedding = {.token = drawn_numbers(a, b->tokens * b->width, 0, 0.07f),
                                       .position = drawn_numbers(a, POSITIONS * b->width, 0, 0.07f),
                                       .tokens = b->tokens,
                                       .position_rows = POSITIONS,
                                       .positions = POSITIONS_LEARNED,
                                       .scale = 1}};
}

static struct stack *make_stack(const struct gpt *b, const struct model *m) {
  struct arena a;
  arena_init(&a, NULL);
  drawn_form = m->form;
  const struct stack_form form = form_of(&a, b, m->compute);
  return drawn_stack(&form, &a);
}

/* The sizes of Gemma 3 1B: five of six layers have a window. */
static struct stack *make_gemma(void) {
  enum { WIDTH = 1152, HEADS = 4, HEAD_SIZE = 256, TOKENS = 262144 };
  struct arena a;
  arena_init(&a, NULL);
  struct stack_form form = {.compute = COMPUTE_INT8_BLOCK,
                            .name = "decoder",
                            .width = WIDTH,
                            .forward_size = 6912,
                            .layers = 26,
                            .causal = true,
                            .norm = NORM_RMS,
                            .place = NORM_PRE,
                            .epsilon = 1e-6f,
                            .output = {.tied = true}};
  for (size_t i = 0; i < 2; i++) {
    struct stack_kind *kind = &form.kind[i];
    kind->self = plain_shape(HEADS, HEAD_SIZE);
    kind->self.kv_heads = 1;
    kind->self.query_size = kind->self.key_size = kind->self.value_size = WIDTH;
    kind->self.output_size = WIDTH;
    kind->self.norm_epsilon = form.epsilon;
    kind->self.rope_base = i ? 1e4 : 1e6;
    kind->window = i ? 512 : 0;
    kind->activation = ACTIVATION_GELU_NEW;
  }
  drawn_form = KERNEL_FLOAT32;
  form.last = drawn_norm(&a, WIDTH);
  form.last.shift = NULL;
  form.embedding = (struct stack_embedding){.token = drawn_numbers(&a, TOKENS * WIDTH, 0, 0.07f),
                                            .tokens = TOKENS,
                                            .scale = sqrtf(WIDTH)};
  const struct drawn_layers layers = {.gated = true, .gemma = true, .full_every = 6};
  return drawn_stack_of(&form, &layers, &a);
}

/* --- what is asked of it --- */

struct bench_case {
  const char *name;
  size_t items, text, most;
};

static struct stack_run *ask(const struct stack *s, const struct bench_case *c, bool scores,
                             struct arena *a) {
  struct error e = {0};
  struct stack_run *r = drawn_run(s, c->items, c->text, a);
  if (scores)
    r->targets = r->tokens;
  else
    drawn_go_on(r, 1, false, c->most, a);
  must(stack_prepare(s, r, a, &e) == STATUS_OK);
  return r;
}

/* --- time, in nanoseconds --- */

/* From the submit to the end of a run that is prepared anew. */
static double time_of(const struct stack *s, struct pool *p, const struct bench_case *c,
                      bool scores) {
  struct arena a;
  arena_init(&a, NULL);
  const double took = drawn_time(p, &ask(s, c, scores, &a)->run);
  arena_free(&a);
  return took;
}

/* --- the memory --- */

typedef float lanes __attribute__((vector_size(16)));
enum { SUMS = 8, HUGE_PAGE = 2 << 20 };

static const float *memory;
static volatile float seen; /* so that what is read is needed */

/* A part of the memory, as fast as the processor can: sums that do not wait for each other. */
static void *read_part(void *of) {
  const size_t threads = (uintptr_t)of >> 1, half = (uintptr_t)of & 1;
  const size_t part = READ_FLOATS / threads / 4;
  const lanes *at = (const lanes *)memory + half * part;
  lanes sum[SUMS] = {0};
  for (size_t i = 0; i < part; i += SUMS)
    for (size_t j = 0; j < SUMS; j++) sum[j] += at[i + j];
  for (size_t j = 1; j < SUMS; j++) sum[0] += sum[j];
  seen = sum[0][0];
  return NULL;
}

/* Bytes in a nanosecond. */
static double read_rate(size_t threads) {
  double best = INFINITY;
  for (int turn = 0; turn < READS; turn++) {
    pthread_t other;
    const uint64_t start = clock_now();
    if (threads > 1)
      must(!pthread_create(&other, NULL, read_part, (void *)(uintptr_t)(threads << 1 | 1)));
    read_part((void *)(uintptr_t)(threads << 1));
    if (threads > 1) pthread_join(other, NULL);
    best = fmin(best, (double)(clock_now() - start));
  }
  return READ_FLOATS * sizeof(float) / best;
}

static double sgemm_time(size_t threads) {
  openblas_set_num_threads((int)threads);
  double best = INFINITY;
  for (int i = 0; i < 3; i++) {
    const uint64_t start = clock_now();
    sgemm_multiply(NULL);
    best = fmin(best, (double)(clock_now() - start));
  }
  openblas_set_num_threads(1);
  nanosleep(&(struct timespec){.tv_nsec = 200 * CLOCK_MS}, NULL);
  return best;
}

/* Numbers that a token reads, but for keys and values. */
static double weights_of(const struct gpt *b) {
  const double d = (double)b->width, f = (double)b->forward;
  return (double)b->layers * (4 * d * d + 2 * d * f) + (double)b->tokens * d;
}

static void decode_once(const struct stack *s, const struct bench_case *c, size_t workers,
                        struct drawn_taken *best) {
  struct pool *p = drawn_pool(s, workers);
  struct arena a;
  arena_init(&a, NULL);
  drawn_generate(p, ask(s, c, false, &a), best);
  arena_free(&a);
  pool_free(p);
}

static void decode(const struct gpt *b, struct stack *const stack[MODELS],
                   const struct bench_case *c, size_t workers) {
  struct drawn_taken best[MODELS];
  double read = 0;
  for (size_t i = 0; i < MODELS; i++) best[i] = (struct drawn_taken){INFINITY, INFINITY};
  for (int turn = 0; turn < TURNS; turn++) {
    read = fmax(read, read_rate(workers));
    for (size_t i = 0; i < MODELS; i++) decode_once(stack[i], c, workers, &best[i]);
  }
  const double bytes = sizeof(float) * weights_of(b), step = best[0].step, whole = best[0].whole;
  printf("gpt2-%s x%zu after %zu, %zu worker%s | %.2f ms a step, %.1f tokens/s; weights at %.2f "
         "GB/s | memory read: %.2f GB/s | %.2f | -\n",
         b->name, c->items, c->text, workers, workers == 1 ? "" : "s", step / 1e6,
         (double)c->items / step * 1e9, bytes / step, read, bytes / step / read);
  printf("gpt2-%s x%zu after %zu, %zu worker%s, with the texts | %.1f tokens/s | - | - | -\n",
         b->name, c->items, c->text, workers, workers == 1 ? "" : "s",
         (double)(c->items * c->most) / whole * 1e9);
  for (size_t i = 1; i < MODELS; i++)
    printf("gpt2-%s x%zu after %zu, %zu worker%s, %s | %.2f ms a step, %.1f tokens/s | float32: "
           "%.1f tokens/s | %.2f | %s\n",
           b->name, c->items, c->text, workers, workers == 1 ? "" : "s", models[i].name,
           best[i].step / 1e6, (double)c->items / best[i].step * 1e9, (double)c->items / step * 1e9,
           step / best[i].step, models[i].expected);
  fflush(stdout);
}

/* All bytes of the stack are read for each token: the table of tokens is the output's matrix. */
static void decode_gemma(const struct stack *s, size_t workers) {
  const struct bench_case c = {.items = 1, .text = 16, .most = 65};
  struct drawn_taken best = {INFINITY, INFINITY};
  double read = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    read = fmax(read, read_rate(workers));
    decode_once(s, &c, workers, &best);
  }
  const double rate = (double)stack_bytes(s) / best.step;
  printf("gemma-3-1b sizes int8-block x1 after %zu, %zu worker%s | %.2f ms a step, %.1f tokens/s; "
         "weights at %.2f GB/s | memory read: %.2f GB/s | %.2f | 0.72\n",
         c.text, workers, workers == 1 ? "" : "s", best.step / 1e6, 1e9 / best.step, rate, read,
         rate / read);
  fflush(stdout);
}

static void text(const struct gpt *b, const struct model *m, const struct stack *s, size_t n,
                 size_t workers) {
  struct pool *p = drawn_pool(s, workers);
  const struct bench_case c = {.items = 1, .text = n, .most = 1};
  double first = INFINITY, score = INFINITY, yardstick = INFINITY;
  for (int turn = 0; turn < TURNS; turn++) {
    yardstick = fmin(yardstick, sgemm_time(workers));
    first = fmin(first, time_of(s, p, &c, false));
    score = fmin(score, time_of(s, p, &c, true));
  }
  const double rows = (double)n, d = (double)b->width, f = (double)b->forward;
  const double layers = 2 * rows * (4 * d * d + 2 * d * f) + 2 * rows * rows * d;
  const double rate = (double)b->layers * layers / first;
  printf(
      "gpt2-%s text of %zu, %zu worker%s, %s | %.1f ms, %.0f tokens/s, %.1f GFLOP/s | sgemm 2048: "
      "%.1f GFLOP/s | %.2f | -\n",
      b->name, n, workers, workers == 1 ? "" : "s", m->name, first / 1e6, rows / first * 1e9, rate,
      sgemm_rate(yardstick), rate / sgemm_rate(yardstick));
  printf("gpt2-%s score of %zu, %zu worker%s | %.0f tokens/s | its text: %.0f tokens/s | %.2f | "
         "0.6\n",
         b->name, n, workers, workers == 1 ? "" : "s", rows / score * 1e9, rows / first * 1e9,
         first / score);
  fflush(stdout);
  pool_free(p);
}

static void bench_gpt(const struct gpt *b) {
  struct stack *stack[MODELS];
  for (size_t i = 0; i < MODELS; i++) stack[i] = make_stack(b, &models[i]);
  for (size_t workers = 1; workers <= 2 && workers <= cpu_quota(); workers++) {
    static const size_t items[] = {1, 8, 16};
    for (size_t i = 0; i < 3; i++)
      decode(b, stack, &(struct bench_case){.items = items[i], .text = 16, .most = 65}, workers);
    decode(b, stack, &(struct bench_case){.items = 1, .text = 512, .most = 65}, workers);
    for (size_t i = 0; i < MODELS; i++) text(b, &models[i], stack[i], 512, workers);
  }
  for (size_t i = 0; i < MODELS; i++) stack_free(stack[i]);
}

static void bench_gemma(void) {
  struct stack *s = make_gemma();
  for (size_t workers = 1; workers <= 2 && workers <= cpu_quota(); workers++)
    decode_gemma(s, workers);
  stack_free(s);
}

int main(int argc, char **argv) {
  (void)argc;
  gemm_blas_init();
  sgemm_correct_kernels(argv);
  const char *name = getenv("GPT");
  const struct gpt *b = &gpts[0];
  for (size_t i = 0; i < 3; i++)
    if (name && !strcmp(name, gpts[i].name)) b = &gpts[i];
  printf("# cpu level %s; OpenBLAS core %s\n", cpu_level_name(cpu_level()), gemm_blas().core);
  float *room = aligned_alloc(HUGE_PAGE, READ_FLOATS * sizeof *room);
  must(room != NULL);
  madvise(room, READ_FLOATS * sizeof *room, MADV_HUGEPAGE);
  memset(room, 1, READ_FLOATS * sizeof *room);
  memory = room;
  const bool gemma = name && !strcmp(name, "gemma");
  if (!gemma) bench_gpt(b);
  if (!name || gemma) bench_gemma();
  free(room);
  return 0;
}
