/* kernel_norm: residual connections and norms of rows.
 *
 * A part of kernel_loops.h. The sums of a row have an order that depends only on its length:
 * NORM_SUMS vectors side by side, and then these together. The uniform kernels have 64 lanes side
 * by side at every level. */

#ifdef UNIFORM
enum { NORM_SUMS = 64 / LANES };
#else
enum { NORM_SUMS = 4 };
#endif
enum { NORM_QUARTER = NORM_SUMS / 4 };

/* The sum of the differences from `mean`, or of their squares. */
INLINE float sum_row(const float *x, size_t count, float mean, const bool squares) {
  vec sum[NORM_SUMS] = {{0}};
  for (size_t i = 0; i < count; i += NORM_SUMS * LANES)
#pragma GCC unroll 16
    for (size_t k = 0; k < NORM_SUMS; k++) {
      const size_t at = i + k * LANES;
      if (at >= count) break;
      const vec v = vec_load_some(x + at, count - at) - vec_all(mean);
      /* Lanes past the row would hold -mean. */
      const ivec within =
          lane_numbers() < ivec_all((int32_t)(count - at < LANES ? count - at : LANES));
      const vec taken = (vec)((ivec)v & within);
      sum[k] = squares ? vec_fma(taken, taken, sum[k]) : sum[k] + taken;
    }
#pragma GCC unroll 4
  for (size_t k = 0; k < NORM_QUARTER; k++)
    sum[k] =
        (sum[k] + sum[NORM_QUARTER + k]) + (sum[2 * NORM_QUARTER + k] + sum[3 * NORM_QUARTER + k]);
#pragma GCC unroll 2
  for (size_t n = NORM_QUARTER / 2; n > 0; n /= 2)
#pragma GCC unroll 2
    for (size_t k = 0; k < n; k++) sum[k] += sum[n + k];
  return vec_sum(sum[0]);
}

/* Computes a row whose sums overflow, in double. */
static ivec norm_large_row(const struct kernel_norm *n, const float *x, float *y) {
  double sum = 0, squares = 0;
  ivec most = {0};
  for (size_t i = 0; i < n->count; i++) sum += x[i];
  const double mean = n->rms ? 0 : sum / (double)n->count;
  for (size_t i = 0; i < n->count; i++) squares += (x[i] - mean) * (x[i] - mean);
  const double inverse = 1 / sqrt(squares / (double)n->count + n->epsilon);
  for (size_t i = 0; i < n->count; i++) {
    const double shift = n->shift ? n->shift[i] : 0;
    y[i] = (float)((x[i] - mean) * inverse * n->factor[i] + shift);
    most = vec_max_int(magnitude(vec_all(y[i])), most);
  }
  return most;
}

static ivec norm_row(const struct kernel_norm *n, const float *x, float *y) {
  const float part = 1.0f / (float)n->count;
  const float mean = n->rms ? 0 : sum_row(x, n->count, 0, false) * part;
  const float squares = sum_row(x, n->count, mean, true) * part;
  if (!(squares <= FLT_MAX)) return norm_large_row(n, x, y);
  const float inverse = 1.0f / sqrtf(squares + n->epsilon);
  ivec most = {0};
  for (size_t i = 0; i < n->count; i += LANES) {
    const size_t left = n->count - i;
    vec v = (vec_load_some(x + i, left) - vec_all(mean)) * vec_all(inverse);
    v *= vec_load_some(n->factor + i, left);
    if (n->shift) v += vec_load_some(n->shift + i, left);
    vec_store_some(y + i, v, left);
    most = vec_max_int(magnitude(v), most);
  }
  return most;
}

static ivec add_branch(size_t count, const float *x, const float *branch, float *sum) {
  ivec most = {0};
  for (size_t i = 0; i < count; i += LANES) {
    const size_t left = count - i;
    const vec v = vec_load_some(x + i, left) + vec_load_some(branch + i, left);
    vec_store_some(sum + i, v, left);
    most = vec_max_int(magnitude(v), most);
  }
  return most;
}

static uint32_t norm(const struct kernel_norm *n) {
  ivec most = {0};
  for (size_t i = 0; i < n->rows; i++) {
    const float *x = n->x + i * n->x_row;
    if (n->branch) {
      float *sum = n->sum + i * n->y_row;
      most = vec_max_int(add_branch(n->count, x, n->branch + i * n->x_row, sum), most);
      x = sum;
    }
    if (n->factor) most = vec_max_int(norm_row(n, x, n->y + i * n->y_row), most);
  }
  return (uint32_t)vec_greatest_int(most);
}
