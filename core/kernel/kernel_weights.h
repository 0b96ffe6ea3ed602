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

static void weights(const struct kernel_weights *w) {
  struct kernel_product p = w->first;
  if (p.rows == 0) return;
  size_t left = product_side_by_side(&p, w->panels, w->panel_step);
  for (; left > 0; left--, product_move(&p, 1, w->panel_step)) {
    const bool more = left > 1 || w->more;
    weights_panel(&p, w->plan, more ? p.b + w->panel_step : NULL);
  }
}
