/* sort_model: the formulas of the model, and their derivatives in reverse order. */
#include "tests/example/sort_model.h"

#include <math.h>
#include <string.h>

/* Eight numbers side by side; how many of them an instruction takes changes no bit. */
typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define AT_EACH_LEVEL __attribute__((noinline, target_clones("avx2", "default")))
#else
#define AT_EACH_LEVEL __attribute__((noinline))
#endif

#define INLINE static inline __attribute__((always_inline))

/* Lanes are passed only where the compiler puts one function into the other. */
#pragma GCC diagnostic ignored "-Wpsabi"

INLINE lanes load(const float *x) { return *(const lanes *)x; }

INLINE void store(float *x, lanes v) { *(lanes *)x = v; }

INLINE float sum(lanes v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

float sort_exp(float x) {
  if (x < -80) return 0;
  const int n = (int)(x * 1.44269504f - 0.5f); /* e^x = 2^n e^r */
  const float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  float y = 1.0f / 5040;
  y = y * r + 1.0f / 720;
  y = y * r + 1.0f / 120;
  y = y * r + 1.0f / 24;
  y = y * r + 1.0f / 6;
  y = y * r + 0.5f;
  y = y * r + 1;
  y = y * r + 1;
  const uint32_t bits = (uint32_t)(n + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return y * power;
}

/* --- products --- */

/* A matrix as it lies in memory, or its transpose. */
struct table {
  float *at;
  size_t rows, columns;
  size_t down, across; /* from a row, a column to the next */
};

static struct table table_of(const float *at, size_t rows, size_t columns, size_t down) {
  return (struct table){(float *)at, rows, columns, down, 1};
}

static struct table turn(struct table t) {
  return (struct table){t.at, t.columns, t.rows, t.across, t.down};
}

/* `rows` rows and `words` times 8 columns of a product, from row r and column c on. */
INLINE void add_block(struct table y, struct table x, struct table w, size_t r, size_t c,
                      const int rows, const int words) {
  lanes part[4][2];
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < words; j++)
      part[i][j] = load(y.at + (r + (size_t)i) * y.down + c + 8 * (size_t)j);
  for (size_t k = 0; k < x.columns; k++) {
    lanes row[2];
#pragma GCC unroll 2
    for (int j = 0; j < words; j++) row[j] = load(w.at + k * w.down + c + 8 * (size_t)j);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
      for (int j = 0; j < words; j++)
        part[i][j] += x.at[(r + (size_t)i) * x.down + k * x.across] * row[j];
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < words; j++)
      store(y.at + (r + (size_t)i) * y.down + c + 8 * (size_t)j, part[i][j]);
}

/* y += x w, by the rows of w in their order. The columns are a multiple of 8. */
AT_EACH_LEVEL static void add_product(struct table y, struct table x, struct table w) {
  for (size_t r = 0; r < y.rows; r += r + 4 <= y.rows ? 4 : 1)
    for (size_t c = 0; c < y.columns; c += 16)
      if (r + 4 <= y.rows && c + 16 <= y.columns)
        add_block(y, x, w, r, c, 4, 2);
      else if (c + 16 <= y.columns)
        add_block(y, x, w, r, c, 1, 2);
      else if (r + 4 <= y.rows)
        add_block(y, x, w, r, c, 4, 1);
      else
        add_block(y, x, w, r, c, 1, 1);
}

/* Writes the transpose of x, its rows `down` apart. */
static struct table write_turned(struct table x, float *out, size_t down) {
  for (size_t r = 0; r < x.rows; r++)
    for (size_t c = 0; c < x.columns; c++) out[c * down + r] = x.at[r * x.down + c * x.across];
  return table_of(out, x.columns, x.rows, down);
}

static void add(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += x[i];
}

/* --- a matrix with its bias --- */

struct linear {
  size_t at, in, out; /* where in the model; the bias follows the matrix */
};

static struct linear linear_in(size_t layer) {
  return (struct linear){SORT_LAYER + layer * SORT_LAYER_SIZE + SORT_IN, SORT_WIDTH,
                         3 * SORT_WIDTH};
}

static struct linear linear_out(size_t layer) {
  return (struct linear){SORT_LAYER + layer * SORT_LAYER_SIZE + SORT_OUT, SORT_WIDTH, SORT_WIDTH};
}

static struct linear linear_up(size_t layer) {
  return (struct linear){SORT_LAYER + layer * SORT_LAYER_SIZE + SORT_UP, SORT_WIDTH, SORT_FORWARD};
}

static struct linear linear_down(size_t layer) {
  return (struct linear){SORT_LAYER + layer * SORT_LAYER_SIZE + SORT_DOWN, SORT_FORWARD,
                         SORT_WIDTH};
}

static void linear_forward(const float *model, struct linear s, size_t rows, const float *x,
                           float *y) {
  const float *matrix = model + s.at, *bias = matrix + s.in * s.out;
  for (size_t r = 0; r < rows; r++) memcpy(y + r * s.out, bias, s.out * sizeof *y);
  add_product(table_of(y, rows, s.out, s.out), table_of(x, rows, s.in, s.in),
              table_of(matrix, s.in, s.out, s.out));
}

/* What went in, the gradient of what came out, and (out) that of what went in. */
struct passage {
  const float *x, *dy;
  float *dx;
};

static void linear_backward(const float *model, struct sort_work *w, struct linear s,
                            struct passage p) {
  const size_t rows = w->batch.rows;
  float *gradient = w->gradient + s.at, *bias = gradient + s.in * s.out;
  const struct table dy = table_of(p.dy, rows, s.out, s.out);
  for (size_t r = 0; r < rows; r++) add(bias, p.dy + r * s.out, s.out);
  add_product(table_of(gradient, s.in, s.out, s.out), turn(table_of(p.x, rows, s.in, s.in)), dy);
  memset(p.dx, 0, rows * s.in * sizeof *p.dx);
  add_product(table_of(p.dx, rows, s.in, s.in), dy,
              write_turned(table_of(model + s.at, s.in, s.out, s.out), w->turned, s.in));
}

/* --- norms --- */

static void norm_forward(const float *norm, size_t rows, const float *x, struct sort_normed *n,
                         float *y) {
  const size_t d = SORT_WIDTH;
  for (size_t r = 0; r < rows; r++) {
    lanes all = {0}, squares = {0};
    for (size_t c = 0; c < d; c += 8) all += load(x + r * d + c);
    const float mean = sum(all) * (1.0f / SORT_WIDTH);
    for (size_t c = 0; c < d; c += 8) {
      const lanes apart = load(x + r * d + c) - mean;
      squares += apart * apart;
    }
    n->factor[r] = 1 / sqrtf(sum(squares) * (1.0f / SORT_WIDTH) + 1e-5f);
    for (size_t c = 0; c < d; c++) {
      n->row[r * d + c] = (x[r * d + c] - mean) * n->factor[r];
      y[r * d + c] = n->row[r * d + c] * norm[c] + norm[d + c];
    }
  }
}

/* Takes the gradient of the rows back through the norm at `at`. */
static void norm_backward(const float *model, struct sort_work *w, size_t at,
                          const struct sort_normed *n) {
  const size_t d = SORT_WIDTH;
  float *gradient = w->gradient + at, scaled[SORT_WIDTH];
  for (size_t r = 0; r < w->batch.rows; r++) {
    const float *row = n->row + r * d;
    float *slope = w->rows + r * d;
    lanes all = {0}, along = {0};
    for (size_t c = 0; c < d; c++) {
      gradient[c] += slope[c] * row[c];
      gradient[d + c] += slope[c];
      scaled[c] = slope[c] * model[at + c];
    }
    for (size_t c = 0; c < d; c += 8) {
      all += load(scaled + c);
      along += load(scaled + c) * load(row + c);
    }
    const float mean = sum(all) * (1.0f / SORT_WIDTH), part = sum(along) * (1.0f / SORT_WIDTH);
    for (size_t c = 0; c < d; c++) slope[c] = n->factor[r] * (scaled[c] - mean - row[c] * part);
  }
}

/* --- attention --- */

/* A head's share of an item's rows in a table of `down` columns. */
static struct table head_of(const struct sort_batch *b, size_t item, const float *rows, size_t down,
                            size_t column) {
  const size_t first = b->at[item];
  return table_of(rows + first * down + column, b->at[item + 1] - first, SORT_HEAD, down);
}

static float *weights_of(struct sort_kept *k, size_t item, size_t head) {
  return k->weight + (item * SORT_HEADS + head) * SORT_LONGEST * SORT_LONGEST;
}

static void softmax(float *row, size_t n, float scale) {
  float top = row[0], all = 0;
  for (size_t j = 1; j < n; j++) top = row[j] > top ? row[j] : top;
  for (size_t j = 0; j < n; j++) all += row[j] = sort_exp((row[j] - top) * scale);
  for (size_t j = 0; j < n; j++) row[j] /= all;
}

static void attend(struct sort_work *w, struct sort_kept *k, size_t item, size_t head) {
  enum { WIDE = 3 * SORT_WIDTH };
  const size_t column = head * SORT_HEAD;
  const struct table query = head_of(&w->batch, item, k->in, WIDE, column);
  const struct table key = head_of(&w->batch, item, k->in, WIDE, SORT_WIDTH + column);
  const struct table value = head_of(&w->batch, item, k->in, WIDE, 2 * SORT_WIDTH + column);
  const struct table context = head_of(&w->batch, item, k->context, SORT_WIDTH, column);
  float turned[SORT_HEAD * SORT_LONGEST] = {0}, *weight = weights_of(k, item, head);
  struct table keys = write_turned(key, turned, SORT_LONGEST);
  keys.columns = SORT_LONGEST;
  const size_t n = query.rows;
  memset(weight, 0, n * SORT_LONGEST * sizeof *weight);
  add_product(table_of(weight, n, SORT_LONGEST, SORT_LONGEST), query, keys);
  for (size_t i = 0; i < n; i++) softmax(weight + i * SORT_LONGEST, n, 1 / sqrtf(SORT_HEAD));
  for (size_t i = 0; i < n; i++)
    memset(context.at + i * context.down, 0, SORT_HEAD * sizeof(float));
  add_product(context, table_of(weight, n, n, SORT_LONGEST), value);
}

/* From the gradients of the weights to those of the scores; a head that shall point gets its place.
 */
static void softmax_backward(const float *weight, float *slope, size_t n, const int *place) {
  float along = 0;
  for (size_t j = 0; j < n; j++) along += weight[j] * slope[j];
  for (size_t j = 0; j < n; j++) slope[j] = weight[j] * (slope[j] - along);
  for (size_t j = 0; place && j < n; j++) slope[j] += weight[j] - (j == (size_t)*place ? 1 : 0);
  for (size_t j = 0; j < n; j++) slope[j] *= 1 / sqrtf(SORT_HEAD);
}

/* w->branch has the gradient of the context; that of queries, keys and values is added to w->wide.
 */
static void attend_backward(struct sort_work *w, struct sort_kept *k, size_t item, size_t head) {
  enum { WIDE = 3 * SORT_WIDTH };
  const struct sort_batch *b = &w->batch;
  const size_t column = head * SORT_HEAD, n = b->at[item + 1] - b->at[item];
  const int *place = head == 0 && k == &w->kept[SORT_LAYERS - 1] ? b->place + b->at[item] : NULL;
  const struct table context = head_of(b, item, w->branch, SORT_WIDTH, column);
  float turned[SORT_HEAD * SORT_LONGEST] = {0}, slope[SORT_LONGEST * SORT_LONGEST] = {0};
  const float *weight = weights_of(k, item, head);
  const struct table weights = table_of(weight, n, n, SORT_LONGEST);
  struct table values =
      write_turned(head_of(b, item, k->in, WIDE, 2 * SORT_WIDTH + column), turned, SORT_LONGEST);
  values.columns = SORT_LONGEST;
  add_product(table_of(slope, n, SORT_LONGEST, SORT_LONGEST), context, values);
  for (size_t i = 0; i < n; i++)
    softmax_backward(weight + i * SORT_LONGEST, slope + i * SORT_LONGEST, n,
                     place ? place + i : NULL);
  const struct table slopes = table_of(slope, n, n, SORT_LONGEST);
  add_product(head_of(b, item, w->wide, WIDE, 2 * SORT_WIDTH + column), turn(weights), context);
  add_product(head_of(b, item, w->wide, WIDE, column), slopes,
              head_of(b, item, k->in, WIDE, SORT_WIDTH + column));
  add_product(head_of(b, item, w->wide, WIDE, SORT_WIDTH + column), turn(slopes),
              head_of(b, item, k->in, WIDE, column));
}

/* --- the whole, forwards --- */

static void embed(const float *model, struct sort_work *w) {
  const struct sort_batch *b = &w->batch;
  const size_t d = SORT_WIDTH;
  for (size_t item = 0; item < b->items; item++)
    for (size_t r = b->at[item]; r < b->at[item + 1]; r++) {
      memcpy(w->rows + r * d, model + SORT_TOKEN + (size_t)b->token[r] * d, d * sizeof *model);
      add(w->rows + r * d, model + SORT_POSITION + (r - b->at[item]) * d, d);
    }
}

void sort_forward(const float model[SORT_SIZE], struct sort_work *w) {
  const size_t rows = w->batch.rows;
  embed(model, w);
  for (size_t l = 0; l < SORT_LAYERS; l++) {
    struct sort_kept *k = &w->kept[l];
    const float *layer = model + SORT_LAYER + l * SORT_LAYER_SIZE;
    memcpy(k->self, w->rows, sizeof k->self);
    linear_forward(model, linear_in(l), rows, k->self, k->in);
    for (size_t i = 0; i < w->batch.items * SORT_HEADS; i++)
      attend(w, k, i / SORT_HEADS, i % SORT_HEADS);
    linear_forward(model, linear_out(l), rows, k->context, w->branch);
    add(w->rows, w->branch, rows * SORT_WIDTH);
    norm_forward(layer + SORT_NORM_SELF, rows, w->rows, &k->norm_self, k->forward);
    linear_forward(model, linear_up(l), rows, k->forward, k->up);
    for (size_t i = 0; i < rows * SORT_FORWARD; i++) k->up[i] = k->up[i] > 0 ? k->up[i] : 0;
    linear_forward(model, linear_down(l), rows, k->up, w->rows);
    add(w->rows, k->forward, rows * SORT_WIDTH);
    norm_forward(layer + SORT_NORM_FORWARD, rows, w->rows, &k->norm_forward, w->rows);
  }
}

/* --- and backwards --- */

/* From a row of outputs to the gradient of its cross entropy with the right token. */
static void slope_of_output(float *row, int right) {
  float top = row[0], all = 0;
  for (int c = 1; c < SORT_VOCABULARY; c++) top = row[c] > top ? row[c] : top;
  for (int c = 0; c < SORT_WIDTH; c++) {
    row[c] = c < SORT_VOCABULARY ? sort_exp(row[c] - top) : 0;
    all += row[c];
  }
  for (int c = 0; c < SORT_WIDTH; c++) row[c] = row[c] / all - (c == right ? 1 : 0);
}

static void embed_backward(struct sort_work *w) {
  const struct sort_batch *b = &w->batch;
  const size_t d = SORT_WIDTH;
  for (size_t item = 0; item < b->items; item++)
    for (size_t r = b->at[item]; r < b->at[item + 1]; r++) {
      add(w->gradient + SORT_TOKEN + (size_t)b->token[r] * d, w->rows + r * d, d);
      add(w->gradient + SORT_POSITION + (r - b->at[item]) * d, w->rows + r * d, d);
    }
}

void sort_backward(const float model[SORT_SIZE], struct sort_work *w) {
  const size_t rows = w->batch.rows;
  memset(w->gradient, 0, sizeof w->gradient);
  for (size_t r = 0; r < rows; r++) slope_of_output(w->rows + r * SORT_WIDTH, w->batch.sorted[r]);
  for (size_t l = SORT_LAYERS; l-- > 0;) {
    struct sort_kept *k = &w->kept[l];
    const size_t layer = SORT_LAYER + l * SORT_LAYER_SIZE;
    norm_backward(model, w, layer + SORT_NORM_FORWARD, &k->norm_forward);
    linear_backward(model, w, linear_down(l), (struct passage){k->up, w->rows, w->wider});
    for (size_t i = 0; i < rows * SORT_FORWARD; i++) w->wider[i] = k->up[i] > 0 ? w->wider[i] : 0;
    linear_backward(model, w, linear_up(l), (struct passage){k->forward, w->wider, w->branch});
    add(w->rows, w->branch, rows * SORT_WIDTH);
    norm_backward(model, w, layer + SORT_NORM_SELF, &k->norm_self);
    linear_backward(model, w, linear_out(l), (struct passage){k->context, w->rows, w->branch});
    memset(w->wide, 0, sizeof w->wide);
    for (size_t i = 0; i < w->batch.items * SORT_HEADS; i++)
      attend_backward(w, k, i / SORT_HEADS, i % SORT_HEADS);
    linear_backward(model, w, linear_in(l), (struct passage){k->self, w->wide, w->branch});
    add(w->rows, w->branch, rows * SORT_WIDTH);
  }
  embed_backward(w);
}
