/* kernel_product: the product of some rows with one panel of columns, kept in registers.
 *
 * A part of kernel_loops.h. Every element is one chain of multiply-adds over the depth, in order,
 * whatever the shape of the block around it: so a row's bits depend only on the row. */

#include "core/kernel/narrow.h"

/* Lines that a block prefetches into the second-level cache. */
struct product_ask {
  int lines;        /* in each step; a constant for the compiler. 0: none */
  const char *next; /* the lines of the first step */
  size_t share;     /* bytes from one step's lines to the next one's */
};

/* The columns of a block, and their form. */
struct product_from {
  int form; /* an enum kernel_form, a constant for the compiler */
  const void *b;
  size_t row;  /* numbers */
  float *wide; /* receives them as float32, row after row of VECTORS vectors; or NULL */
};

enum {
  PANEL = VECTORS * LANES, /* most columns */
  PRODUCT_LINE = 64        /* bytes of a line of the caches */
};

/* rows x vectors sums stay in registers over the whole depth. */
INLINE void product_block(const int rows, const int vectors, const struct kernel_product *p,
                          struct product_from from, const float *a, const float *start, float *c,
                          struct product_ask ask) {
  const size_t depth = p->depth, a_row = p->a_row, a_step = p->a_step;
  const size_t step = from.row * narrow_size((enum kernel_form)from.form);
  const char *b = from.b;
  vec sum[32];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++)
      sum[i * vectors + j] = vec_load(start + (size_t)i * p->start_row + j * LANES);
  for (size_t k = 0; k < depth; k++) {
    vec column[4];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) {
      column[j] = vec_load_form(from.form, b, (size_t)j * LANES);
      if (from.wide) vec_store(from.wide + j * LANES, column[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < ask.lines; j++)
      __builtin_prefetch(ask.next + (ptrdiff_t)j * PRODUCT_LINE, 0, 2);
    if (ask.lines > 0) ask.next += ask.share;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      vec factor = vec_all(a[(size_t)i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; j++)
        sum[i * vectors + j] = vec_fma(factor, column[j], sum[i * vectors + j]);
    }
    a += a_step;
    b += step;
    if (from.wide) from.wide += PANEL;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++)
      vec_store(c + (size_t)i * p->c_row + j * LANES, sum[i * vectors + j]);
}

typedef void product_fn(const struct kernel_product *p, const float *a, const float *start,
                        float *c);

#define PRODUCT(rows, vectors)                                                           \
  static void product_##rows##x##vectors(const struct kernel_product *p, const float *a, \
                                         const float *start, float *c) {                 \
    const struct product_from from = {KERNEL_FLOAT32, p->b, p->b_row, NULL};             \
    product_block(rows, vectors, p, from, a, start, c, (struct product_ask){0});         \
  }
#define PRODUCTS_6(v) \
  PRODUCT(1, v) PRODUCT(2, v) PRODUCT(3, v) PRODUCT(4, v) PRODUCT(5, v) PRODUCT(6, v)
#define PRODUCTS_8(v)  PRODUCTS_6(v) PRODUCT(7, v) PRODUCT(8, v)
#define PRODUCTS_12(v) PRODUCTS_8(v) PRODUCT(9, v) PRODUCT(10, v) PRODUCT(11, v) PRODUCT(12, v)
#define NAMES_6(v) \
  product_1x##v, product_2x##v, product_3x##v, product_4x##v, product_5x##v, product_6x##v
#define NAMES_8(v)  NAMES_6(v), product_7x##v, product_8x##v
#define NAMES_12(v) NAMES_8(v), product_9x##v, product_10x##v, product_11x##v, product_12x##v

#if VECTORS == 4
PRODUCTS_12(1) PRODUCTS_12(2) PRODUCTS_8(3) PRODUCTS_6(4) enum { BLOCK_ROWS_MAX = 12 };
static const size_t block_rows[VECTORS + 1] = {0, 12, 12, 8, 6};
static product_fn *const product_of[VECTORS + 1][BLOCK_ROWS_MAX] = {
    {0}, {NAMES_12(1)}, {NAMES_12(2)}, {NAMES_8(3)}, {NAMES_6(4)}};
#else
PRODUCTS_12(1) PRODUCTS_6(2) enum { BLOCK_ROWS_MAX = 12 };
static const size_t block_rows[VECTORS + 1] = {0, 12, 6};
static product_fn *const product_of[VECTORS + 1][BLOCK_ROWS_MAX] = {{0},
                                                                    {NAMES_12(1)},
                                                                    {NAMES_6(2)}};
#endif

#undef PRODUCT
#undef PRODUCTS_6
#undef PRODUCTS_8
#undef PRODUCTS_12
#undef NAMES_6
#undef NAMES_8
#undef NAMES_12

/* Cuts the rows into blocks of nearly equal height. */
static void product_panel(const struct kernel_product *p) {
  const size_t most = block_rows[p->vectors];
  if (p->rows <= most) {
    product_of[p->vectors][p->rows - 1](p, p->a, p->start, p->c);
    return;
  }
  const size_t blocks = (p->rows + most - 1) / most;
  const size_t height = p->rows / blocks, taller = p->rows % blocks;
  for (size_t i = 0, row = 0; i < blocks; i++) {
    size_t rows = height + (i < taller);
    product_of[p->vectors][rows - 1](p, p->a + row * p->a_row, p->start + row * p->start_row,
                                     p->c + row * p->c_row);
    row += rows;
  }
}

static void product(const struct kernel_product *p) {
  if (p->rows > 0) product_panel(p);
}

static const float no_sums[KERNEL_PANEL_MAX] = {0}; /* the start of sums that begin with 0 */

/* --- whole panels side by side --- */

static const void *numbers_behind(enum kernel_form form, const void *b, size_t count) {
  return (const char *)b + count * narrow_size(form);
}

/* Moves a product to the right by some panels, which are `step` numbers apart in B. */
static void product_move(struct kernel_product *p, size_t panels, size_t step) {
  p->b = numbers_behind(p->form, p->b, panels * step);
  p->start += panels * PANEL;
  p->c += panels * PANEL;
}

/* Several panels at a time for few rows: with one panel the multipliers would wait for the sums.
 * The processor prefetches several streams well. */
#if VECTORS == 2
INLINE void product_wide(const int rows, const int panels, const int form,
                         const struct kernel_product *p, size_t step) {
  const float *a = p->a;
  const char *b = p->b;
  const size_t b_step = p->b_row * narrow_size((enum kernel_form)form);
  vec sum[4 * VECTORS * 2];
  const int wide = panels * VECTORS;
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++)
      sum[i * wide + j] = vec_load(p->start + (size_t)i * p->start_row + j * LANES);
  for (size_t k = 0; k < p->depth; k++, a += p->a_step, b += b_step)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++) {
      const size_t at = (size_t)(j / VECTORS) * step + (size_t)(j % VECTORS) * LANES;
      const vec column = vec_load_form(form, b, at);
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

typedef void wide_fn(const struct kernel_product *p, size_t step);
#define WIDE(rows, panels, form)                                                  \
  static void wide_##rows##_##form(const struct kernel_product *p, size_t step) { \
    product_wide(rows, panels, form, p, step);                                    \
  }
#define WIDES(form) WIDE(1, 4, form) WIDE(2, 2, form) WIDE(3, 2, form)
#define NAMES(form) \
  { wide_1_##form, wide_2_##form, wide_3_##form }

enum { WIDE_ROWS = 3 };
WIDES(KERNEL_FLOAT32)
WIDES(KERNEL_BFLOAT16)
WIDES(KERNEL_FLOAT16)
static wide_fn *const wide_of[KERNEL_FORMS][WIDE_ROWS] = {NAMES(KERNEL_FLOAT32),
                                                          NAMES(KERNEL_BFLOAT16),
                                                          NAMES(KERNEL_FLOAT16)};
#undef WIDE
#undef WIDES
#undef NAMES
static const size_t wide_panels[WIDE_ROWS] = {4, 2, 2};
#else
enum { WIDE_ROWS = 0 };
static void (*const wide_of[1][1])(const struct kernel_product *p, size_t step) = {{NULL}};
static const size_t wide_panels[1] = {SIZE_MAX};
#endif

/* Computes as many panels as possible several at a time, for few rows. Returns how many are left,
 * to which the product has been moved. */
static size_t product_side_by_side(struct kernel_product *p, size_t panels, size_t step) {
  while (p->rows <= WIDE_ROWS && panels >= wide_panels[p->rows - 1]) {
    const size_t wide = wide_panels[p->rows - 1];
    wide_of[WIDE_ROWS ? p->form : 0][p->rows - 1](p, step);
    product_move(p, wide, step);
    panels -= wide;
  }
  return panels;
}

/* Computes `panels` whole panels for one or more rows. */
static void product_panels(struct kernel_product p, size_t panels, size_t step) {
  panels = product_side_by_side(&p, panels, step);
  for (; panels > 0; panels--, product_move(&p, 1, step)) product_panel(&p);
}
