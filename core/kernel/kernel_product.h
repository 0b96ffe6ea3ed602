/* kernel_product: the product of some rows with one panel of columns, kept in registers.
 *
 * A part of kernel_loops.h. Every element is one chain of multiply-adds over the depth, in order,
 * whatever the shape of the block around it: that is why a row's bits depend on nothing but the
 * row. */

/* rows x vectors sums live in registers while the depth goes by. */
INLINE void product_block(const int rows, const int vectors, const struct kernel_product *p,
                          const float *a, const float *start, float *c) {
  const size_t depth = p->depth, a_row = p->a_row, a_step = p->a_step, b_row = p->b_row;
  const float *b = p->b;
  vec sum[32];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++)
      sum[i * vectors + j] = vec_load(start + (size_t)i * p->start_row + j * LANES);
  for (size_t k = 0; k < depth; k++) {
    vec column[4];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) column[j] = vec_load(b + j * LANES);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      vec factor = vec_all(a[(size_t)i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; j++)
        sum[i * vectors + j] = vec_fma(factor, column[j], sum[i * vectors + j]);
    }
    a += a_step;
    b += b_row;
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
    product_block(rows, vectors, p, a, start, c);                                        \
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

/* --- few rows and panels side by side --- */

/* One panel would leave the multipliers waiting for the sums of so few rows. */
#if VECTORS == 2
INLINE void product_wide(const int rows, const int panels, const struct kernel_product *p) {
  const float *a = p->a, *b = p->b;
  vec sum[4 * VECTORS * 2];
  const int wide = panels * VECTORS;
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++)
      sum[i * wide + j] = vec_load(p->start + (size_t)i * p->start_row + j * LANES);
  for (size_t k = 0; k < p->depth; k++, a += p->a_step, b += p->b_row)
#pragma GCC unroll 8
    for (int j = 0; j < wide; j++) {
      const vec column = vec_load(b + (size_t)(j / VECTORS) * p->b_panel + j % VECTORS * LANES);
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

static void product_1_wide(const struct kernel_product *p) { product_wide(1, 4, p); }
static void product_2_wide(const struct kernel_product *p) { product_wide(2, 2, p); }
static void product_3_wide(const struct kernel_product *p) { product_wide(3, 2, p); }

enum { WIDE_ROWS = 3 };
static void (*const wide_of[WIDE_ROWS])(const struct kernel_product *p) = {product_1_wide,
                                                                           product_2_wide,
                                                                           product_3_wide};
static const size_t wide_panels[WIDE_ROWS] = {4, 2, 2};
#else
enum { WIDE_ROWS = 0 };
static void (*const wide_of[1])(const struct kernel_product *p) = {NULL};
static const size_t wide_panels[1] = {SIZE_MAX};
#endif

/* The same further to the right. */
static void product_move(struct kernel_product *p, size_t panels) {
  p->b += panels * p->b_panel;
  p->start += panels * VECTORS * LANES;
  p->c += panels * VECTORS * LANES;
  p->panels -= panels;
}

static void product(const struct kernel_product *p) {
  if (p->rows == 0) return;
  if (p->panels == 0) {
    product_panel(p);
    return;
  }
  struct kernel_product left = *p;
  while (p->rows <= WIDE_ROWS && left.panels >= wide_panels[p->rows - 1]) {
    wide_of[p->rows - 1](&left);
    product_move(&left, wide_panels[p->rows - 1]);
  }
  for (; left.panels > 0; product_move(&left, 1)) product_panel(&left);
}
