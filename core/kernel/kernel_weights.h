/* kernel_weights: the product of some rows with the panels of a matrix, which come from memory.
 *
 * A part of kernel_loops.h. A few rows go down a panel in one pass, and ask in every step for one
 * line of what lies a little further on: the processor reads ahead by itself, and needs no more
 * than to be led. More rows need more passes, and while a second one takes the panel from the
 * second cache, memory would rest. So a panel is cut into chunks that stay there while pass after
 * pass goes over them, and every pass asks for its share of the next chunk, line by line. In
 * between sums lie in C, as float32, which is what they are in registers: each is one chain of
 * multiply-adds still. */

#include "core/run/size.h"

enum { PANEL_BYTES = PANEL * 4 }; /* of one step of the depth */

static const struct kernel_plan plans[] = {
    {.rows = 6, .size = 1 << 20, .pass = 6, .ahead = 8 << 10},
    {.rows = SIZE_MAX, .size = 256 << 10, .pass = 6, .ahead = 64 << 10}};

/* --- one chunk of a panel --- */

typedef void pass_fn(const struct kernel_product *p, const char *next, size_t share);

/* Rows lie as they are, panels as they were packed: the compiler may know that. */
INLINE void weights_pass(const int rows, const struct kernel_product *p, struct product_ask ask) {
  struct kernel_product q = *p;
  q.a_step = 1, q.b_row = PANEL;
  product_block(rows, VECTORS, &q, p->a, p->start, p->c, ask);
}

#define PASS(rows, lines)                                                                  \
  static void pass_##rows##_asks_##lines(const struct kernel_product *p, const char *next, \
                                         size_t share) {                                   \
    weights_pass(rows, p, (struct product_ask){lines, next, share});                       \
  }
#define PASSES(lines) \
  PASS(1, lines)      \
  PASS(2, lines)      \
  PASS(3, lines)      \
  PASS(4, lines)      \
  PASS(5, lines)      \
  PASS(6, lines)
#define NAMES(lines)                                                                    \
  {                                                                                     \
    pass_1_asks_##lines, pass_2_asks_##lines, pass_3_asks_##lines, pass_4_asks_##lines, \
        pass_5_asks_##lines, pass_6_asks_##lines                                        \
  }

PASSES(1)
PASSES(2)
static pass_fn *const asks_1[KERNEL_PASS_MAX] = NAMES(1);
static pass_fn *const asks_2[KERNEL_PASS_MAX] = NAMES(2);

#undef PASS
#undef PASSES
#undef NAMES

/* All rows over one chunk, in passes of nearly equal height, which ask for the `bytes` at `next`
 * together: each for one or two lines a step, if need be for some of them again. */
static void weights_chunk(const struct kernel_product *p, size_t most, const char *next,
                          size_t bytes) {
  const size_t passes = (p->rows + most - 1) / most, steps = passes * p->depth;
  const size_t height = p->rows / passes, taller = p->rows % passes;
  const size_t share = size_min((bytes + steps - 1) / steps, 2 * PRODUCT_LINE);
  pass_fn *const *pass = share > PRODUCT_LINE ? asks_2 : asks_1;
  struct kernel_product q = *p;
  for (size_t i = 0; i < passes; i++) {
    const size_t rows = height + (i < taller);
    pass[rows - 1](&q, next, share);
    next += share * p->depth;
    q.a += rows * q.a_row, q.start += rows * q.start_row, q.c += rows * q.c_row;
  }
}

/* --- one panel --- */

/* Steps of a chunk: the panel's chunks are nearly equal, and hold whole lines of A. */
static size_t chunk_depth(size_t depth, const struct kernel_plan *plan) {
  const size_t most = plan->ahead / PANEL_BYTES, chunks = (depth + most - 1) / most;
  return size_round_up((depth + chunks - 1) / chunks, PRODUCT_LINE / sizeof(float));
}

/* The chunk behind the last is the first of the next panel; where there is none, the passes ask for
 * what they have. */
static void weights_chunks(const struct kernel_product *p, const struct kernel_plan *plan,
                           const float *next_panel) {
  const size_t most = chunk_depth(p->depth, plan);
  struct kernel_product q = *p;
  for (size_t left = p->depth; left > 0;) {
    q.depth = size_min(most, left);
    left -= q.depth;
    const float *next = left > 0 ? q.b + q.depth * PANEL : next_panel ? next_panel : q.b;
    const size_t next_depth = left > 0 ? size_min(most, left) : most;
    weights_chunk(&q, plan->pass, (const char *)next, next_depth * PANEL_BYTES);
    q.a += q.depth * q.a_step, q.b += q.depth * PANEL;
    q.start = q.c, q.start_row = q.c_row;
  }
}

static void weights_panel(const struct kernel_product *p, const struct kernel_plan *plan,
                          const float *next_panel) {
  if (!plan || p->depth == 0)
    product_panel(p);
  else if (p->rows <= plan->pass)
    asks_1[p->rows - 1](p, (const char *)p->b + plan->ahead, PANEL_BYTES);
  else
    weights_chunks(p, plan, next_panel);
}

/* --- all panels --- */

/* The same further to the right. */
static void weights_move(struct kernel_weights *w, size_t panels) {
  w->first.b += panels * w->panel_step;
  w->first.start += panels * PANEL;
  w->first.c += panels * PANEL;
  w->panels -= panels;
}

/* One panel would leave the multipliers waiting for the sums of so few rows. Of several streams the
 * processor reads ahead well enough. */
#if VECTORS == 2
INLINE void weights_wide(const int rows, const int panels, const struct kernel_weights *w) {
  const struct kernel_product *p = &w->first;
  const float *a = p->a, *b = p->b;
  vec sum[4 * VECTORS * 2];
  const int wide = panels * VECTORS;
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++)
      sum[i * wide + j] = vec_load(p->start + (size_t)i * p->start_row + j * LANES);
  for (size_t k = 0; k < p->depth; k++, a += p->a_step, b += PANEL)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++) {
      const vec column = vec_load(b + (size_t)(j / VECTORS) * w->panel_step + j % VECTORS * LANES);
#pragma GCC unroll 4
      for (int i = 0; i < rows; i++)
        sum[i * wide + j] = vec_fma(vec_all(a[(size_t)i * p->a_row]), column, sum[i * wide + j]);
    }
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++)
      vec_store(p->c + (size_t)i * p->c_row + j * LANES, sum[i * wide + j]);
}

static void weights_1_wide(const struct kernel_weights *w) { weights_wide(1, 4, w); }
static void weights_2_wide(const struct kernel_weights *w) { weights_wide(2, 2, w); }
static void weights_3_wide(const struct kernel_weights *w) { weights_wide(3, 2, w); }

enum { WIDE_ROWS = 3 };
static void (*const wide_of[WIDE_ROWS])(const struct kernel_weights *w) = {weights_1_wide,
                                                                           weights_2_wide,
                                                                           weights_3_wide};
static const size_t wide_panels[WIDE_ROWS] = {4, 2, 2};
#else
enum { WIDE_ROWS = 0 };
static void (*const wide_of[1])(const struct kernel_weights *w) = {NULL};
static const size_t wide_panels[1] = {SIZE_MAX};
#endif

static void weights(const struct kernel_weights *w) {
  const size_t rows = w->first.rows;
  struct kernel_weights left = *w;
  if (rows == 0) return;
  while (rows <= WIDE_ROWS && left.panels >= wide_panels[rows - 1]) {
    wide_of[rows - 1](&left);
    weights_move(&left, wide_panels[rows - 1]);
  }
  for (; left.panels > 0; weights_move(&left, 1)) {
    const bool more = left.panels > 1 || left.more;
    weights_panel(&left.first, left.plan, more ? left.first.b + left.panel_step : NULL);
  }
}
