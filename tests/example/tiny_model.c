/* tiny_model: the formulas of the model, and their derivatives in reverse order. */
#include "tests/example/tiny_model.h"

#include <math.h>
#include <stdlib.h>
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

float tiny_exp(float x) {
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

/* --- memory --- */

struct tiny_places tiny_places(const struct tiny_form *form) {
  const size_t d = form->width, up = form->forward;
  struct tiny_places p = {0};
  p.in_bias = p.in + d * 3 * d;
  p.out = p.in_bias + 3 * d;
  p.out_bias = p.out + d * d;
  p.up = p.out_bias + d;
  p.up_bias = p.up + d * up;
  p.down = p.up_bias + up;
  p.down_bias = p.down + up * d;
  p.norm_self = p.down_bias + d;
  p.norm_forward = p.norm_self + 2 * d;
  p.layer_size = p.norm_forward + 2 * d;
  p.position = p.token + form->vocabulary * d;
  p.layer = p.position + form->longest * d;
  p.size = p.layer + form->layers * p.layer_size;
  return p;
}

static size_t round_up(size_t n) { return (n + 7) / 8 * 8; }

/* The next `count` numbers of a block; without one, counts them only. */
static void *take(struct tiny_work *w, size_t *used, size_t count, size_t size) {
  void *at = w->memory ? (char *)w->memory + *used : NULL;
  *used += round_up(count * size);
  return at;
}

static float *take_floats(struct tiny_work *w, size_t *used, size_t count) {
  return take(w, used, count, sizeof(float));
}

/* Gives every array its place, and returns how many bytes all take. */
static size_t place_all(struct tiny_work *w) {
  const struct tiny_form *f = &w->form;
  const size_t rows = w->most, d = f->width, weights = f->longest * w->stride;
  const size_t matrix = d * (f->forward > 3 * d ? f->forward : 3 * d);
  const size_t tied = f->tied ? w->score_stride : 0;
  size_t used = 0;
  w->batch.at = take(w, &used, f->items + 1, sizeof *w->batch.at);
  w->batch.token = take(w, &used, rows, sizeof(int));
  w->batch.right = take(w, &used, rows, sizeof(int));
  w->batch.offers = take(w, &used, rows, sizeof(int));
  w->batch.asks = take(w, &used, rows, sizeof(int));
  w->batch.want = take_floats(w, &used, f->taught * rows * w->stride);
  w->kept = take(w, &used, f->layers, sizeof *w->kept);
  for (size_t l = 0; l < f->layers; l++) {
    struct tiny_kept k;
    k.norm_self.row = take_floats(w, &used, rows * d);
    k.norm_self.factor = take_floats(w, &used, rows);
    k.norm_forward.row = take_floats(w, &used, rows * d);
    k.norm_forward.factor = take_floats(w, &used, rows);
    k.self = take_floats(w, &used, rows * d);
    k.forward = take_floats(w, &used, rows * d);
    k.in = take_floats(w, &used, rows * 3 * d);
    k.context = take_floats(w, &used, rows * d);
    k.up = take_floats(w, &used, rows * f->forward);
    k.weight = take_floats(w, &used, f->items * f->heads * weights);
    if (w->kept) w->kept[l] = k;
  }
  w->rows = take_floats(w, &used, rows * d);
  w->scores = take_floats(w, &used, rows * tied);
  w->branch = take_floats(w, &used, rows * d);
  w->wide = take_floats(w, &used, rows * 3 * d);
  w->wider = take_floats(w, &used, rows * f->forward);
  w->turned = take_floats(w, &used, matrix > d * tied ? matrix : d * tied);
  w->slope = take_floats(w, &used, weights);
  w->gradient = take_floats(w, &used, w->places.size);
  return used;
}

struct tiny_work *tiny_work_new(const struct tiny_form *form) {
  struct tiny_work *w = calloc(1, sizeof *w);
  if (!w) abort();
  w->form = *form;
  w->places = tiny_places(form);
  w->most = form->items * form->longest;
  w->stride = round_up(form->longest);
  w->score_stride = round_up(form->vocabulary);
  w->memory = calloc(1, place_all(w));
  if (!w->memory) abort();
  place_all(w);
  return w;
}

void tiny_work_free(struct tiny_work *w) {
  if (w) free(w->memory);
  free(w);
}

size_t tiny_append(struct tiny_work *w, size_t n) {
  struct tiny_batch *b = &w->batch;
  const size_t first = b->rows;
  b->at[b->items++] = first;
  b->at[b->items] = b->rows += n;
  for (size_t head = 0; head < w->form.taught; head++)
    memset(tiny_want(w, head, first), 0, n * w->stride * sizeof(float));
  return first;
}

float *tiny_want(const struct tiny_work *w, size_t head, size_t row) {
  return w->batch.want + (head * w->most + row) * w->stride;
}

const float *tiny_weights(const struct tiny_work *w, size_t layer, size_t head, size_t item,
                          size_t row_of_item) {
  const size_t block = item * w->form.heads + head;
  return w->kept[layer].weight + (block * w->form.longest + row_of_item) * w->stride;
}

const float *tiny_scores(const struct tiny_work *w, size_t row) {
  return w->form.tied ? w->scores + row * w->score_stride : w->rows + row * w->form.width;
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

enum branch { IN, OUT, UP, DOWN };

static struct linear linear_at(const struct tiny_work *w, size_t layer, enum branch branch) {
  const struct tiny_places *p = &w->places;
  const size_t d = w->form.width, up = w->form.forward;
  const struct linear all[] = {[IN] = {p->in, d, 3 * d},
                               [OUT] = {p->out, d, d},
                               [UP] = {p->up, d, up},
                               [DOWN] = {p->down, up, d}};
  struct linear s = all[branch];
  s.at += p->layer + layer * p->layer_size;
  return s;
}

static void linear_forward(const float *model, struct linear s, size_t rows, const float *x,
                           float *y) {
  const float *matrix = model + s.at, *bias = matrix + s.in * s.out;
  for (size_t r = 0; r < rows; r++) memcpy(y + r * s.out, bias, s.out * sizeof *y);
  add_product(table_of(y, rows, s.out, s.out), table_of(x, rows, s.in, s.in),
              table_of(matrix, s.in, s.out, s.out));
}

/* The input, the gradient of the output, and (out) the gradient of the input. */
struct passage {
  const float *x, *dy;
  float *dx;
};

static void linear_backward(const float *model, struct tiny_work *w, struct linear s,
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

static void norm_forward(const float *norm, const struct tiny_work *w, const float *x,
                         const struct tiny_normed *n, float *y) {
  const size_t d = w->form.width;
  const float part = 1.0f / (float)d;
  for (size_t r = 0; r < w->batch.rows; r++) {
    lanes all = {0}, squares = {0};
    for (size_t c = 0; c < d; c += 8) all += load(x + r * d + c);
    const float mean = sum(all) * part;
    for (size_t c = 0; c < d; c += 8) {
      const lanes apart = load(x + r * d + c) - mean;
      squares += apart * apart;
    }
    n->factor[r] = 1 / sqrtf(sum(squares) * part + 1e-5f);
    for (size_t c = 0; c < d; c++) {
      n->row[r * d + c] = (x[r * d + c] - mean) * n->factor[r];
      y[r * d + c] = n->row[r * d + c] * norm[c] + norm[d + c];
    }
  }
}

/* Takes the gradient of the rows back through the norm at `at`. */
static void norm_backward(const float *model, struct tiny_work *w, size_t at,
                          const struct tiny_normed *n) {
  const size_t d = w->form.width;
  const float share = 1.0f / (float)d;
  float *gradient = w->gradient + at, *scaled = w->turned;
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
    const float mean = sum(all) * share, part = sum(along) * share;
    for (size_t c = 0; c < d; c++) slope[c] = n->factor[r] * (scaled[c] - mean - row[c] * part);
  }
}

/* --- attention --- */

/* A head of an item: its rows, its columns, and its share of a table of `down` columns. */
struct head {
  size_t item, number, first, n, size;
};

static struct head head_at(const struct tiny_work *w, size_t index) {
  const size_t heads = w->form.heads, item = index / heads, *at = w->batch.at + item;
  return (struct head){item, index % heads, at[0], at[1] - at[0], w->form.width / heads};
}

static struct table share(struct head h, const float *rows, size_t down, size_t column) {
  return table_of(rows + h.first * down + column + h.number * h.size, h.n, h.size, down);
}

/* The rows of a table as columns: `stride` of them, those after the last row being 0. */
static struct table write_columns(const struct tiny_work *w, struct table x) {
  memset(w->turned, 0, x.columns * w->stride * sizeof(float));
  struct table columns = write_turned(x, w->turned, w->stride);
  columns.columns = w->stride;
  return columns;
}

static void softmax(float *row, size_t n, float scale) {
  float top = row[0], all = 0;
  for (size_t j = 1; j < n; j++) top = row[j] > top ? row[j] : top;
  for (size_t j = 0; j < n; j++) all += row[j] = tiny_exp((row[j] - top) * scale);
  for (size_t j = 0; j < n; j++) row[j] /= all;
}

static void attend(struct tiny_work *w, const struct tiny_kept *k, struct head h) {
  const size_t d = w->form.width, stride = w->stride;
  const struct table query = share(h, k->in, 3 * d, 0);
  const struct table keys = write_columns(w, share(h, k->in, 3 * d, d));
  const struct table value = share(h, k->in, 3 * d, 2 * d), context = share(h, k->context, d, 0);
  float *weight = k->weight + (h.item * w->form.heads + h.number) * w->form.longest * stride;
  memset(weight, 0, h.n * stride * sizeof *weight);
  add_product(table_of(weight, h.n, stride, stride), query, keys);
  for (size_t i = 0; i < h.n; i++) {
    const size_t n = w->form.causal ? i + 1 : h.n;
    softmax(weight + i * stride, n, 1 / sqrtf((float)h.size));
    memset(weight + i * stride + n, 0, (stride - n) * sizeof *weight);
    memset(context.at + i * d, 0, h.size * sizeof(float));
  }
  add_product(context, table_of(weight, h.n, h.n, stride), value);
}

/* From the gradients of n weights to those of the scores; a head that is taught adds its own. */
static void softmax_backward(const float *weight, float *slope, size_t n, const float *want,
                             float scale) {
  float along = 0;
  for (size_t j = 0; j < n; j++) along += weight[j] * slope[j];
  for (size_t j = 0; j < n; j++) slope[j] = weight[j] * (slope[j] - along);
  for (size_t j = 0; want && j < n; j++) slope[j] += weight[j] - want[j];
  for (size_t j = 0; j < n; j++) slope[j] *= scale;
}

/* w->branch has the gradient of the context; that of queries, keys and values is added to w->wide.
 */
static void attend_backward(struct tiny_work *w, const struct tiny_kept *k, struct head h) {
  const size_t d = w->form.width, stride = w->stride;
  const bool taught = k == &w->kept[w->form.layers - 1] && h.number < w->form.taught;
  const struct table context = share(h, w->branch, d, 0);
  const float *weight = k->weight + (h.item * w->form.heads + h.number) * w->form.longest * stride;
  memset(w->slope, 0, h.n * stride * sizeof *w->slope);
  add_product(table_of(w->slope, h.n, stride, stride), context,
              write_columns(w, share(h, k->in, 3 * d, 2 * d)));
  for (size_t i = 0; i < h.n; i++) {
    const size_t n = w->form.causal ? i + 1 : h.n;
    softmax_backward(weight + i * stride, w->slope + i * stride, n,
                     taught ? tiny_want(w, h.number, h.first + i) : NULL, 1 / sqrtf((float)h.size));
    memset(w->slope + i * stride + n, 0, (stride - n) * sizeof *w->slope);
  }
  const struct table weights = table_of(weight, h.n, h.n, stride);
  const struct table slopes = table_of(w->slope, h.n, h.n, stride);
  add_product(share(h, w->wide, 3 * d, 2 * d), turn(weights), context);
  add_product(share(h, w->wide, 3 * d, 0), slopes, share(h, k->in, 3 * d, d));
  add_product(share(h, w->wide, 3 * d, d), turn(slopes), share(h, k->in, 3 * d, 0));
}

/* Adds the slopes of the named numbers' squares to w->wide. */
static void name_numbers(struct tiny_work *w) {
  const struct tiny_form *f = &w->form;
  const size_t d = f->width;
  const float *in = w->kept[f->layers - 1].in;
  for (size_t r = 0; r < w->batch.rows; r++)
    for (size_t i = 0; i < f->named; i++) {
      const size_t query = r * 3 * d + i, key = query + d;
      const float asked = w->batch.asks[r] == (int)i ? f->query_size : 0;
      const float offered = w->batch.offers[r] == (int)i ? f->key_size : 0;
      w->wide[query] += 2 * f->naming * (in[query] - asked);
      w->wide[key] += 2 * f->naming * (in[key] - offered);
    }
}

/* --- all of it, forwards --- */

static void embed(const float *model, struct tiny_work *w) {
  const struct tiny_batch *b = &w->batch;
  const size_t d = w->form.width;
  for (size_t item = 0; item < b->items; item++)
    for (size_t r = b->at[item]; r < b->at[item + 1]; r++) {
      memcpy(w->rows + r * d, model + w->places.token + (size_t)b->token[r] * d, d * sizeof *model);
      add(w->rows + r * d, model + w->places.position + (r - b->at[item]) * d, d);
    }
}

/* The scores of a tied model: the products of rows with all embeddings. */
static void score(const float *model, struct tiny_work *w) {
  const size_t rows = w->batch.rows, d = w->form.width, stride = w->score_stride;
  memset(w->turned, 0, d * stride * sizeof *w->turned);
  struct table words =
      write_turned(table_of(model + w->places.token, w->form.vocabulary, d, d), w->turned, stride);
  words.columns = stride;
  memset(w->scores, 0, rows * stride * sizeof *w->scores);
  add_product(table_of(w->scores, rows, stride, stride), table_of(w->rows, rows, d, d), words);
}

void tiny_forward(const float *model, struct tiny_work *w) {
  const size_t rows = w->batch.rows, d = w->form.width, up = w->form.forward;
  embed(model, w);
  for (size_t l = 0; l < w->form.layers; l++) {
    const struct tiny_kept *k = &w->kept[l];
    const float *layer = model + w->places.layer + l * w->places.layer_size;
    memcpy(k->self, w->rows, rows * d * sizeof *k->self);
    linear_forward(model, linear_at(w, l, IN), rows, k->self, k->in);
    for (size_t i = 0; i < w->batch.items * w->form.heads; i++) attend(w, k, head_at(w, i));
    linear_forward(model, linear_at(w, l, OUT), rows, k->context, w->branch);
    add(w->rows, w->branch, rows * d);
    norm_forward(layer + w->places.norm_self, w, w->rows, &k->norm_self, k->forward);
    linear_forward(model, linear_at(w, l, UP), rows, k->forward, k->up);
    for (size_t i = 0; i < rows * up; i++) k->up[i] = k->up[i] > 0 ? k->up[i] : 0;
    linear_forward(model, linear_at(w, l, DOWN), rows, k->up, w->rows);
    add(w->rows, k->forward, rows * d);
    norm_forward(layer + w->places.norm_forward, w, w->rows, &k->norm_forward, w->rows);
  }
  if (w->form.tied) score(model, w);
}

/* --- and backwards --- */

/* From a row's scores to the gradient of their cross entropy with the right class: of the first
 * `classes` numbers, the others being 0. */
static void slope_of_scores(float *row, size_t n, size_t classes, int right) {
  float top = row[0], all = 0;
  for (size_t c = 1; c < classes; c++) top = row[c] > top ? row[c] : top;
  for (size_t c = 0; c < n; c++) {
    row[c] = c < classes ? tiny_exp(row[c] - top) : 0;
    all += row[c];
  }
  for (size_t c = 0; c < n; c++) row[c] = row[c] / all - (c == (size_t)right ? 1 : 0);
}

static void score_backward(const float *model, struct tiny_work *w) {
  const size_t rows = w->batch.rows, d = w->form.width, words = w->form.vocabulary;
  const size_t n = w->form.tied ? w->score_stride : d;
  float *scores = w->form.tied ? w->scores : w->rows;
  for (size_t r = 0; r < rows; r++)
    slope_of_scores(scores + r * n, n, w->form.tied ? words : w->form.classes, w->batch.right[r]);
  if (!w->form.tied) return;
  const struct table slopes = table_of(scores, rows, words, n);
  add_product(table_of(w->gradient + w->places.token, words, d, d), turn(slopes),
              table_of(w->rows, rows, d, d));
  memset(w->rows, 0, rows * d * sizeof *w->rows);
  add_product(table_of(w->rows, rows, d, d), slopes,
              table_of(model + w->places.token, words, d, d));
}

static void embed_backward(struct tiny_work *w) {
  const struct tiny_batch *b = &w->batch;
  const size_t d = w->form.width;
  for (size_t item = 0; item < b->items; item++)
    for (size_t r = b->at[item]; r < b->at[item + 1]; r++) {
      add(w->gradient + w->places.token + (size_t)b->token[r] * d, w->rows + r * d, d);
      add(w->gradient + w->places.position + (r - b->at[item]) * d, w->rows + r * d, d);
    }
}

void tiny_backward(const float *model, struct tiny_work *w) {
  const size_t rows = w->batch.rows, d = w->form.width, up = w->form.forward;
  memset(w->gradient, 0, w->places.size * sizeof *w->gradient);
  score_backward(model, w);
  for (size_t l = w->form.layers; l-- > 0;) {
    const struct tiny_kept *k = &w->kept[l];
    const size_t layer = w->places.layer + l * w->places.layer_size;
    norm_backward(model, w, layer + w->places.norm_forward, &k->norm_forward);
    linear_backward(model, w, linear_at(w, l, DOWN), (struct passage){k->up, w->rows, w->wider});
    for (size_t i = 0; i < rows * up; i++) w->wider[i] = k->up[i] > 0 ? w->wider[i] : 0;
    linear_backward(model, w, linear_at(w, l, UP),
                    (struct passage){k->forward, w->wider, w->branch});
    add(w->rows, w->branch, rows * d);
    norm_backward(model, w, layer + w->places.norm_self, &k->norm_self);
    linear_backward(model, w, linear_at(w, l, OUT),
                    (struct passage){k->context, w->rows, w->branch});
    memset(w->wide, 0, rows * 3 * d * sizeof *w->wide);
    for (size_t i = 0; i < w->batch.items * w->form.heads; i++)
      attend_backward(w, k, head_at(w, i));
    if (l == w->form.layers - 1) name_numbers(w);
    linear_backward(model, w, linear_at(w, l, IN), (struct passage){k->self, w->wide, w->branch});
    add(w->rows, w->branch, rows * d);
  }
  embed_backward(w);
}
