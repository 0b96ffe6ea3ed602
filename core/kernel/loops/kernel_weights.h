/* kernel_weights: the product of some rows with the panels of a matrix that is read from memory.
 *
 * A part of kernel_loops.h. A few rows go down a panel in one pass, and prefetch in every step one
 * line a little further on, which starts the processor's own prefetching. More rows need more
 * passes, and while a second pass reads the panel from the second-level cache, memory would be
 * idle. So a panel is cut into chunks that stay in that cache during all passes, and every pass
 * prefetches its share of the next chunk, line by line. Between chunks, sums are stored in C as
 * float32, as in registers: each is still one chain of multiply-adds. 16-bit numbers are widened
 * when they are loaded; the first pass over a chunk may store them as float32 for the others. */

#include "core/base/size.h"

static const struct kernel_plan plans[] = {
    {.rows = 6, .size = 1 << 20, .pass = 6, .ahead = 8 << 10},
    {.rows = SIZE_MAX, .size = 256 << 10, .pass = 6, .ahead = 64 << 10}};

enum {
  WIDE_BYTES = 32 << 10, /* of a chunk of 16-bit numbers that is stored as float32 */
  WIDE_ROWS_LEAST = 33   /* least rows for which bfloat16 is, since widening it costs little */
};

/* Bytes of one step of the depth. */
INLINE size_t panel_bytes(enum kernel_form form) { return PANEL * narrow_size(form); }

/* --- one pass --- */

/* `wide` receives 16-bit numbers as float32; or NULL. */
typedef void pass_fn(const struct kernel_product *p, float *wide, const char *next, size_t share);

/* The strides of packed panels are constants for the compiler. */
INLINE void weights_pass(const int rows, const int form, const struct kernel_product *p,
                         float *wide, struct product_ask ask) {
  struct kernel_product q = *p;
  q.a_step = 1;
  const struct product_from from = {form, p->b, PANEL, wide};
  product_block(rows, VECTORS, &q, from, p->a, p->start, p->c, ask);
}

#define PASS(rows, form, leaves, lines)                                                          \
  static void pass_##rows##_##form##_##leaves##_##lines(const struct kernel_product *p,          \
                                                        float *wide, const char *next,           \
                                                        size_t share) {                          \
    weights_pass(rows, form, p, leaves ? wide : NULL, (struct product_ask){lines, next, share}); \
  }
#define PASSES(form, leaves, lines) \
  PASS(1, form, leaves, lines)      \
  PASS(2, form, leaves, lines)      \
  PASS(3, form, leaves, lines)      \
  PASS(4, form, leaves, lines)      \
  PASS(5, form, leaves, lines)      \
  PASS(6, form, leaves, lines)
#define NAME(rows, form, leaves, lines) pass_##rows##_##form##_##leaves##_##lines
#define NAMES(form, leaves, lines)                                                               \
  {                                                                                              \
    NAME(1, form, leaves, lines), NAME(2, form, leaves, lines), NAME(3, form, leaves, lines),    \
        NAME(4, form, leaves, lines), NAME(5, form, leaves, lines), NAME(6, form, leaves, lines) \
  }

PASSES(KERNEL_FLOAT32, 0, 1)
PASSES(KERNEL_FLOAT32, 0, 2)
PASSES(KERNEL_BFLOAT16, 0, 1)
PASSES(KERNEL_BFLOAT16, 1, 1)
PASSES(KERNEL_FLOAT16, 0, 1)
PASSES(KERNEL_FLOAT16, 1, 1)
static pass_fn *const asks_2[KERNEL_PASS_MAX] = NAMES(KERNEL_FLOAT32, 0, 2);
static pass_fn *const asks_1[KERNEL_FORMS][KERNEL_PASS_MAX] = {NAMES(KERNEL_FLOAT32, 0, 1),
                                                               NAMES(KERNEL_BFLOAT16, 0, 1),
                                                               NAMES(KERNEL_FLOAT16, 0, 1)};
static pass_fn *const widens[KERNEL_FORMS][KERNEL_PASS_MAX] = {{0},
                                                               NAMES(KERNEL_BFLOAT16, 1, 1),
                                                               NAMES(KERNEL_FLOAT16, 1, 1)};

#undef PASS
#undef PASSES
#undef NAME
#undef NAMES

/* --- one chunk of a panel --- */

/* Returns whether the first pass over a chunk stores it as float32. */
static bool leaves_wide(const struct kernel_product *p) {
  return p->form == KERNEL_FLOAT16 || (p->form == KERNEL_BFLOAT16 && p->rows >= WIDE_ROWS_LEAST);
}

/* Computes all rows over one chunk, in passes of nearly equal height, which together prefetch the
 * `bytes` at `next`: each one or two lines per step, possibly some lines again. `wide` receives the
 * chunk as float32 in the first pass; or NULL. */
static void weights_chunk(const struct kernel_product *p, size_t most, float *wide,
                          const char *next, size_t bytes) {
  const size_t passes = (p->rows + most - 1) / most, steps = passes * p->depth;
  const size_t height = p->rows / passes, taller = p->rows % passes;
  const size_t share = size_min((bytes + steps - 1) / steps, 2 * PRODUCT_LINE);
  struct kernel_product q = *p;
  for (size_t i = 0; i < passes; i++) {
    const size_t rows = height + (i < taller);
    const bool two = share > PRODUCT_LINE && q.form == KERNEL_FLOAT32;
    pass_fn *const *pass = wide && i == 0 ? widens[q.form] : two ? asks_2 : asks_1[q.form];
    pass[rows - 1](&q, wide, next, share);
    next += share * p->depth;
    q.a += rows * q.a_row, q.start += rows * q.start_row, q.c += rows * q.c_row;
    if (wide) q.form = KERNEL_FLOAT32, q.b = wide;
  }
}

/* --- one panel --- */

/* Steps of a chunk: the chunks of a panel are nearly equal, and cover whole lines of A. */
static size_t chunk_depth(size_t depth, size_t bytes) {
  const size_t most = bytes / panel_bytes(KERNEL_FLOAT32), chunks = (depth + most - 1) / most;
  return size_round_up((depth + chunks - 1) / chunks, PRODUCT_LINE / sizeof(float));
}

/* After the last chunk, the first one of the next panel is prefetched; without a next panel, the
 * chunk itself. */
static void weights_chunks(const struct kernel_product *p, const struct kernel_plan *plan,
                           const void *next_panel, float *wide) {
  const size_t most = chunk_depth(p->depth, wide ? WIDE_BYTES : plan->ahead);
  struct kernel_product q = *p;
  for (size_t left = p->depth; left > 0;) {
    q.depth = size_min(most, left);
    left -= q.depth;
    const void *behind = numbers_behind(q.form, q.b, q.depth * PANEL);
    const void *next = left > 0 ? behind : next_panel ? next_panel : q.b;
    const size_t next_depth = left > 0 ? size_min(most, left) : most;
    weights_chunk(&q, plan->pass, wide, next, next_depth * panel_bytes(q.form));
    q.a += q.depth * q.a_step, q.b = behind;
    q.start = q.c, q.start_row = q.c_row;
  }
}

static void weights_widened(const struct kernel_product *p, const struct kernel_plan *plan,
                            const void *next_panel) {
  _Alignas(64) float wide[WIDE_BYTES / sizeof(float)];
  weights_chunks(p, plan, next_panel, wide);
}

/* Without a plan the panel is probably in cache. */
static void weights_panel(const struct kernel_product *p, const struct kernel_plan *plan,
                          const void *next_panel) {
  const bool narrow = p->form != KERNEL_FLOAT32;
  if (!plan && narrow) plan = &plans[0];
  if (!plan || p->depth == 0)
    product_panel(p);
  else if (p->rows <= plan->pass)
    asks_1[p->form][p->rows - 1](p, NULL, (const char *)p->b + plan->ahead / (narrow ? 2 : 1),
                                 panel_bytes(p->form));
  else if (leaves_wide(p))
    weights_widened(p, plan, next_panel);
  else
    weights_chunks(p, plan, next_panel, NULL);
}

/* --- all panels --- */

static void weights(const struct kernel_weights *w) {
  struct kernel_product p = w->first;
  if (p.rows == 0) return;
  size_t left = product_side_by_side(&p, w->panels, w->panel_step);
  for (; left > 0; left--, product_move(&p, 1, w->panel_step)) {
    const bool more = left > 1 || w->more;
    weights_panel(&p, w->plan, more ? numbers_behind(p.form, p.b, w->panel_step) : NULL);
  }
}

static void widen(enum kernel_form form, size_t count, const uint16_t *from, float *to) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    vec_store(to + i,
              form == KERNEL_FLOAT16 ? vec_float16(from + i) : (vec)(vec_integers(from + i) << 16));
  for (; i < count; i++) to[i] = narrow_widen(form, from[i]);
}
