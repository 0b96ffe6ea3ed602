/* layer_run: computes spans: rows through a matrix, and attention of query tiles.
 *
 * Everything a span writes is its own: rows of projections, context, outputs and weights. What
 * spans share are the tops and the fault of a call, which do not depend on order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/layer_parts.h"
#include "core/size.h"

/* --- looking --- */

static void run_look(const struct layer *l, const struct unit *u) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  visible_look(&c->space->visible, c, u->item);
  if (!c->bias) return;
  const size_t planes = c->bias_per_head ? l->shape.heads : 1;
  const uint32_t bits = l->kernel->peak(planes * item->q * item->k, c->bias + item->bias_at);
  memcpy(&c->space->tops[u->item].bias, &bits, sizeof bits);
}

/* --- rows through a matrix --- */

/* A row on its way: where it comes from, where its first head goes. */
struct row {
  const float *from;
  float *to;
  size_t head_step; /* floats from one head's place to the next one's */
  struct call *call;
  size_t item, number; /* its number over all items, for faults */
};

/* Rows collected for one product. They may belong to several items and calls. */
struct strip {
  const struct layer *l;
  unsigned role;
  size_t count;
  struct row row[TILE_ROWS_MAX];
  uint32_t top[TILE_ROWS_MAX];
  float *gathered; /* [tile rows, in] */
  float *product;  /* [tile rows, stripe] */
};

static void strip_begin(struct strip *s, const struct layer *l, unsigned role, float *scratch) {
  s->l = l;
  s->role = role;
  s->count = 0;
  s->gathered = scratch;
  s->product = scratch + l->tile_rows[role] * size_round_up(role_in(l, role), 16);
}

/* The rows as one matrix: where they lie if they follow each other, else a copy. */
static const float *strip_input(struct strip *s, size_t in) {
  bool together = true;
  for (size_t i = 1; i < s->count && together; i++)
    together = s->row[i].from == s->row[i - 1].from + in;
  if (together) return s->row[0].from;
  for (size_t i = 0; i < s->count; i++)
    memcpy(s->gathered + i * in, s->row[i].from, in * sizeof(float));
  return s->gathered;
}

/* Columns first .. first + count - 1 of a row to the heads they belong to. */
static void deal_out(const struct strip *s, size_t i, const float *from, size_t first, size_t count,
                     uint32_t *top) {
  const size_t size = role_head_size(s->l, s->role);
  while (count > 0) {
    const size_t head = first / size, column = first % size;
    const size_t n = size_min(size - column, count);
    float *to = s->row[i].to + head * s->row[i].head_step + column;
    const uint32_t most = s->l->kernel->carry(n, from, to);
    *top = most > *top ? most : *top;
    from += n, first += n, count -= n;
  }
}

/* Keeps the item's greatest magnitude for the attention to come; notes what is not finite. */
static void note_top(const struct strip *s, size_t i) {
  const struct row *r = &s->row[i];
  if (s->role != ROLE_OUTPUT) {
    _Atomic uint32_t *top = &r->call->space->tops[r->item].role[s->role];
    uint32_t known = atomic_load_explicit(top, memory_order_relaxed);
    while (s->top[i] > known && !atomic_compare_exchange_weak(top, &known, s->top[i])) {
    }
  }
  if (s->top[i] < KERNEL_NOT_FINITE) return;
  static const enum fault_stage stage[ROLE_PROJECTIONS] = {FAULT_QUERY, FAULT_KEY, FAULT_VALUE,
                                                           FAULT_OUTPUT};
  fault_at(r->call, stage[s->role], r->number);
}

static void strip_flush(struct strip *s) {
  if (s->count == 0) return;
  const struct gemm *g = s->l->matrix[s->role];
  const size_t in = role_in(s->l, s->role);
  const size_t out = role_heads(s->l, s->role) * role_head_size(s->l, s->role);
  memset(s->top, 0, s->count * sizeof *s->top);
  if (g) {
    const size_t stripe = gemm_stripe(g);
    const float *x = strip_input(s, in);
    for (size_t first = 0; first < out; first += stripe) {
      gemm_run(g, first, s->count, x, in, s->product);
      for (size_t i = 0; i < s->count; i++)
        deal_out(s, i, s->product + i * stripe, first, size_min(stripe, out - first), &s->top[i]);
    }
  } else {
    for (size_t i = 0; i < s->count; i++) deal_out(s, i, s->row[i].from, 0, out, &s->top[i]);
  }
  for (size_t i = 0; i < s->count; i++) note_top(s, i);
  s->count = 0;
}

/* Is the row seen by anyone? A row that is not is not projected: zeros stand for it. */
static bool row_is_live(const struct unit *u, size_t row) {
  const struct visible *v = &u->call->space->visible;
  const struct item *item = &u->call->item[u->item];
  switch (u->role) {
  case ROLE_QUERY:
    return v->from[item->q_row + row] < v->to[item->q_row + row];
  case ROLE_KEY:
    return v->seen[item->k_row + row];
  case ROLE_VALUE:
    return v->seen[item->k_row + row] || (u->call->uniform_rows && v->item[u->item].some_blind);
  default:
    return true;
  }
}

static struct row row_of(const struct layer *l, const struct unit *u, size_t row) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const bool of_keys = u->role == ROLE_KEY || u->role == ROLE_VALUE;
  const size_t number = (of_keys ? item->k_row : item->q_row) + row;
  const float *const input[ROLE_PROJECTIONS] = {c->queries, c->keys, c->values, c->space->context};
  const size_t size = role_head_size(l, u->role);
  struct row r = {.from = input[u->role] + number * role_in(l, u->role),
                  .call = u->call,
                  .item = u->item,
                  .number = number};
  if (u->role == ROLE_OUTPUT) {
    r.to = u->call->outputs + number * size;
  } else {
    const size_t rows = of_keys ? item->k : item->q;
    r.to =
        c->space->projected[u->role] + (number - row) * role_heads(l, u->role) * size + row * size;
    r.head_step = rows * size;
  }
  return r;
}

static void clear_row(const struct layer *l, unsigned role, const struct row *r) {
  const size_t size = role_head_size(l, role);
  for (size_t h = 0; h < role_heads(l, role); h++)
    memset(r->to + h * r->head_step, 0, size * sizeof(float));
}

static void run_rows(struct strip *s, const struct unit *u) {
  for (size_t i = u->row; i < u->row + u->rows; i++) {
    const struct row r = row_of(s->l, u, i);
    if (!row_is_live(u, i)) {
      clear_row(s->l, u->role, &r);
      continue;
    }
    s->row[s->count++] = r;
    if (s->count == s->l->tile_rows[s->role]) strip_flush(s);
  }
  if (!s->l->rows_independent[s->role]) strip_flush(s);
}

/* --- attention --- */

static float magnitude(const struct item_tops *tops, unsigned role) {
  const uint32_t bits = atomic_load_explicit(&tops->role[role], memory_order_relaxed);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Could a score leave float32, by the greatest magnitudes of the item's projections? */
static bool scores_may_overflow(const struct layer *l, const struct call *c, size_t item) {
  const struct item_tops *tops = &c->space->tops[item];
  /* The query is scaled first: small keys do not make up for a scaled query that is too large. */
  const double dot = (double)l->shape.head_size * magnitude(tops, ROLE_QUERY) *
                     fabs((double)l->shape.scale) * fmax(1, magnitude(tops, ROLE_KEY));
  return dot + tops->bias > FLT_MAX / 4;
}

/* A power of two that keeps sums of weighted values inside float32. */
static float shrink_for(const struct call *c, size_t item) {
  const double most = magnitude(&c->space->tops[item], ROLE_VALUE);
  const double sum = most * 256.0 * (double)(c->item[item].k + 1);
  return sum < FLT_MAX / 4 ? 1.0f : (float)exp2(-ceil(log2(sum / (FLT_MAX / 4))));
}

/* A query that sees nothing may be given every key alike: the mean of all the item's values. */
static void fill_uniform(const struct kernel_tile *t, size_t keys, void *scratch) {
  double *mean = scratch; /* [value_head_size], well within what attend needs of it */
  const float weight = t->weights_factor / (float)keys;
  memset(mean, 0, t->value_head_size * sizeof *mean);
  for (size_t j = 0; j < keys; j++)
    for (size_t x = 0; x < t->value_head_size; x++) mean[x] += t->value[j * t->value_row + x];
  for (size_t i = 0; i < t->queries; i++) {
    if (t->from[i] < t->to[i]) continue;
    for (size_t x = 0; x < t->value_head_size; x++)
      t->context[i * t->context_row + x] = (float)(mean[x] / (double)keys) * t->context_factor;
    float *w = t->weights ? t->weights + i * t->weights_row : NULL;
    for (size_t j = 0; w && j < keys; j++) w[j] = t->weights_add ? w[j] + weight : weight;
  }
}

struct kernel_tile tile_of(const struct layer *l, const struct unit *u) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const size_t first = item->q_row + u->row;
  return (struct kernel_tile){.queries = u->rows,
                              .keys = c->space->visible.item[u->item].key_end,
                              .head_size = l->shape.head_size,
                              .value_head_size = l->shape.value_head_size,
                              .query_row = l->shape.head_size,
                              .key_row = l->shape.head_size,
                              .value_row = l->shape.value_head_size,
                              .scale = l->shape.scale,
                              .from = c->space->visible.from + first,
                              .to = c->space->visible.to + first,
                              .mask = c->mask ? c->mask + item->mask_at + u->row * item->k : NULL,
                              .mask_row = item->k,
                              .bias_row = item->k,
                              .careful = scores_may_overflow(l, c, u->item),
                              .shrink = shrink_for(c, u->item),
                              .context_row = l->shape.heads * l->shape.value_head_size,
                              .weights_row = item->k,
                              .weights_factor = 1.0f};
}

void tile_set_head(struct kernel_tile *t, const struct layer *l, const struct unit *u,
                   size_t head) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const size_t shared = head / (l->shape.heads / l->shape.kv_heads);
  const size_t d = l->shape.head_size, d_v = l->shape.value_head_size;
  t->query = c->space->projected[ROLE_QUERY] + item->q_row * l->shape.heads * d +
             (head * item->q + u->row) * d;
  t->key =
      c->space->projected[ROLE_KEY] + item->k_row * l->shape.kv_heads * d + shared * item->k * d;
  t->value = c->space->projected[ROLE_VALUE] + item->k_row * l->shape.kv_heads * d_v +
             shared * item->k * d_v;
  t->context = c->space->context + (item->q_row + u->row) * t->context_row + head * d_v;
  t->context_factor = c->head_mask ? c->head_mask[head] : 1.0f;
  if (c->bias)
    t->bias =
        c->bias + item->bias_at + ((c->bias_per_head ? head * item->q : 0) + u->row) * item->k;
  if (c->want == WEIGHTS_PER_HEAD)
    t->weights = c->weights + item->weights_at + (head * item->q + u->row) * item->k;
  if (c->want == WEIGHTS_AVERAGE) {
    t->weights = c->weights + item->weights_at + u->row * item->k;
    t->weights_factor = 1.0f / (float)l->shape.heads;
    t->weights_add = head > 0;
  }
  if (c->want_measures) {
    const size_t at = item->q_row * l->shape.heads + head * item->q + u->row;
    t->top = c->space->measuring.top + at;
    t->factor = c->space->measuring.factor + at;
  }
}

/* Keys that nobody sees weigh nothing. */
static void clear_weights_behind(const struct kernel_tile *t) {
  for (size_t i = 0; t->weights && !t->weights_add && i < t->queries; i++)
    memset(t->weights + i * t->weights_row + t->keys, 0,
           (t->weights_row - t->keys) * sizeof(float));
}

static void run_attention(const struct layer *l, const struct unit *u, float *scratch) {
  const struct item *item = &u->call->item[u->item];
  const bool uniform =
      u->call->uniform_rows && item->k > 0 && u->call->space->visible.item[u->item].some_blind;
  struct kernel_tile t = tile_of(l, u);
  for (size_t head = u->head; head < u->head + u->heads; head++) {
    tile_set_head(&t, l, u, head);
    clear_weights_behind(&t);
    if (!l->kernel->attend(&t, scratch))
      fault_at(u->call, FAULT_SCORE, item->q_row);
    else if (uniform)
      fill_uniform(&t, item->k, scratch);
  }
}

/* --- spans --- */

void layer_run(const struct layer *l, const struct span *span, void *scratch) {
  const unsigned mode = kernel_enter();
  struct cursor at = span->from;
  struct strip strip;
  struct unit u;
  strip_begin(&strip, l, at.role, scratch);
  for (size_t i = 0; i < span->units; i++) {
    must(unit_next(l, &at, &u));
    if (call_is_over(u.call, u.phase)) continue;
    if (u.phase == PHASE_LOOK) {
      run_look(l, &u);
      continue;
    }
    if (u.phase == PHASE_ATTEND) {
      run_attention(l, &u, scratch);
      continue;
    }
    if (u.phase == PHASE_MEASURE) {
      run_measure(l, &u, scratch);
      continue;
    }
    if (u.phase == PHASE_SUM) {
      run_measure_sum(l, &u);
      continue;
    }
    if (u.role != strip.role) {
      strip_flush(&strip);
      strip_begin(&strip, l, u.role, scratch);
    }
    run_rows(&strip, &u);
  }
  strip_flush(&strip);
  kernel_leave(mode);
}

void layer_compute(const struct layer *l, struct call *first, double work, void *scratch) {
  for (enum phase phase = PHASE_LOOK; phase < PHASE_DONE; phase++) {
    struct cursor at = layer_begin(l, first, phase);
    struct span span;
    while (layer_cut(l, &at, work, &span)) layer_run(l, &span, scratch);
  }
}
