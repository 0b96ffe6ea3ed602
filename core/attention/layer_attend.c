/* layer_attend: attention of query tiles, and, before it, what each query may see. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/kernel/philox.h"
#include "core/run/size.h"

/* --- looking --- */

/* A head that is not computed has zeros for a context. */
static void clear_contexts(const struct layer *l, const struct call *c, const struct item *item) {
  const size_t row = role_in(l, ROLE_OUTPUT);
  memset(c->space->context + item->q_row * row, 0, item->q * row * sizeof(float));
}

void compute_look(const struct layer *l, const struct unit *u) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  sight_look(&c->space->sight, c, u->item, l->shape.heads, &c->space->needed[ROLE_QUERY]);
  if (c->space->needed[ROLE_OUTPUT].slot) clear_contexts(l, c, item);
  if (l->relative) relative_fill(l, c, u->item);
  if (!c->bias) return;
  const size_t planes = c->bias_per_head ? l->shape.heads : 1;
  const uint32_t bits = l->kernel->peak(planes * item->q * item->k, c->bias + item->bias_at);
  memcpy(&c->space->tops[u->item].bias, &bits, sizeof bits);
}

/* --- the numbers of a tile --- */

static float magnitude(const struct item_tops *tops, unsigned role) {
  const uint32_t bits = atomic_load_explicit(&tops->role[role], memory_order_relaxed);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Could a score leave float32, by the greatest magnitudes of the item's projections? The bias may
 * hold anything, even a NaN, where it is not seen. */
static bool scores_may_overflow(const struct layer *l, const struct call *c, size_t item) {
  const struct item_tops *tops = &c->space->tops[item];
  const double added = tops->bias + relative_bound(l);
  if (l->vector) return !(l->score_bound + added <= FLT_MAX / 4);
  /* The query is scaled first: small keys do not make up for a scaled query that is too large. */
  const double dot = (double)l->compare_size * magnitude(tops, ROLE_QUERY) *
                     fabs((double)l->shape.scale) * fmax(1, magnitude(tops, ROLE_KEY));
  return !(dot + added <= FLT_MAX / 4);
}

/* A power of two that keeps weighted sums inside float32: of values, and on two levels of keys. */
static float shrink_for(const struct call *c, size_t item) {
  const struct item_tops *tops = &c->space->tops[item];
  const double keys = c->segment_end ? magnitude(tops, ROLE_KEY) : 0;
  const double most = fmax(magnitude(tops, ROLE_VALUE), keys);
  const double sum = most * 256.0 * (double)(c->item[item].k + 1);
  return sum < FLT_MAX / 4 ? 1.0f : (float)exp2(-ceil(log2(sum / (FLT_MAX / 4))));
}

/* Does a query of the tile see anything in its head? The first key of its stretch need not tell:
 * with a mask it may be one that only another head sees. */
static bool query_sees(const struct kernel_tile *t, size_t i) {
  int32_t j = t->from[i];
  while (t->mask && j < t->to[i] && !t->mask[i * t->mask_row + (size_t)j]) j++;
  return j < t->to[i];
}

/* A query that sees nothing may be given every key alike: the mean of all the item's values. */
static void fill_uniform(const struct kernel_tile *t, size_t keys, void *scratch) {
  double *mean = scratch; /* [value_head_size], well within what attend needs of it */
  const float weight = t->weights_factor / (float)keys;
  memset(mean, 0, t->value_head_size * sizeof *mean);
  for (size_t j = 0; j < keys; j++)
    for (size_t x = 0; x < t->value_head_size; x++) mean[x] += t->value[j * t->value_row + x];
  for (size_t i = 0; i < t->queries; i++) {
    if (query_sees(t, i)) continue;
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
                              .keys = c->space->sight.item[u->item].key_end,
                              .item_queries = item->q,
                              .head_size = l->compare_size,
                              .query_row = l->compare_size,
                              .key_row = l->compare_size,
                              .value_row = l->shape.value_head_size,
                              .vector = l->vector,
                              .scale = l->shape.scale,
                              .sigmoid = l->shape.sigmoid,
                              .from = c->space->sight.from + first,
                              .to = c->space->sight.to + first,
                              .mask_row = item->k,
                              .bias_row = item->k,
                              .careful = scores_may_overflow(l, c, u->item),
                              .select = c->select,
                              .segments = item->segments,
                              .segment_end =
                                  c->segment_end ? c->segment_end + item->segments_at : NULL,
                              .context_row = l->shape.heads * l->shape.value_head_size,
                              .shrink = shrink_for(c, u->item),
                              .weights_row = item->k,
                              .weights_factor = 1.0f};
}

void tile_set_inputs(struct kernel_tile *t, const struct layer *l, const struct unit *u,
                     size_t head) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const size_t groups = l->shape.kv_heads, shared = head / (l->shape.heads / groups);
  const size_t d = l->compare_size, d_v = l->shape.value_head_size;
  t->query = c->space->projected[ROLE_QUERY] + item->q_row * l->shape.heads * d +
             (head * item->q + u->row) * d;
  t->key = c->space->projected[ROLE_KEY] + (item->k_row * groups + shared * item->k) * d;
  t->value = c->space->projected[ROLE_VALUE] + (item->k_row * groups + shared * item->k) * d_v;
  if (c->mask) {
    const size_t plane = c->mask_per_head ? head * item->q : 0;
    t->mask = c->mask + item->mask_at + (plane + u->row) * item->k;
  }
  if (l->relative) t->relative = relative_row(c, u->item, head, u->row);
  if (c->bias) {
    const size_t plane = c->bias_per_head ? head * item->q : 0;
    t->bias = c->bias + item->bias_at + (plane + u->row) * item->k;
  }
  const size_t at = item->q_row * l->shape.heads + head * item->q + u->row;
  if (c->pointers) t->pointers = c->pointers + at;
  if (!c->want_measures) return;
  t->top = c->space->measuring.top + at;
  t->factor = c->space->measuring.factor + at;
  t->greatest = c->space->measuring.greatest + at;
  if (!c->segment_end) return;
  t->segment_top = c->space->measuring.segment_top + at;
  t->segment_factor = c->space->measuring.segment_factor + at;
}

static void tile_set_answer(struct kernel_tile *t, const struct layer *l, const struct unit *u,
                            size_t head) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const size_t row = head * item->q + u->row; /* among the item's rows of all heads */
  t->context =
      c->space->context + (item->q_row + u->row) * t->context_row + head * l->shape.value_head_size;
  t->context_factor = c->head_mask ? c->head_mask[head] : 1.0f;
  /* A masked head may be computed for its weights alone: it has no context. */
  t->value_head_size =
      needed_has(&c->space->needed[ROLE_OUTPUT], head) ? l->shape.value_head_size : 0;
  if (c->want == WEIGHTS_PER_HEAD) t->weights = c->weights + item->weights_at + row * item->k;
  if (c->want == WEIGHTS_AVERAGE) {
    t->weights = c->weights + item->weights_at + u->row * item->k;
    t->weights_factor = 1.0f / (float)l->shape.heads;
    t->weights_add = head > 0;
  }
  if (c->segment_weights)
    t->segment_weights = c->segment_weights + item->segment_weights_at + row * item->segments;
}

/* One number in [0, 1) for each query of the tile, the first 24 bits of a word: it depends on the
 * seed, the item, the head and the query alone. */
static void draw_chances(const struct call *c, const struct unit *u, size_t head, float *chance) {
  const uint32_t key[2] = {(uint32_t)c->seed, (uint32_t)(c->seed >> 32)};
  for (size_t i = 0; i < u->rows; i++) {
    const uint32_t counter[4] = {(uint32_t)u->item, (uint32_t)head, (uint32_t)(u->row + i), 0};
    chance[i] = (float)(philox(key, counter).word[0] >> 8) * 0x1p-24f;
  }
}

/* Keys behind the last one that is seen weigh nothing. */
static void clear_weights_behind(const struct kernel_tile *t) {
  for (size_t i = 0; t->weights && !t->weights_add && i < t->queries; i++)
    memset(t->weights + i * t->weights_row + t->keys, 0,
           (t->weights_row - t->keys) * sizeof(float));
}

void compute_attention(const struct layer *l, const struct unit *u, float *scratch) {
  const struct call *c = u->call;
  const struct item *item = &c->item[u->item];
  const bool uniform = c->uniform_rows && item->k > 0 && c->space->sight.item[u->item].some_blind;
  struct kernel_tile t = tile_of(l, u);
  if (c->select == SELECT_SAMPLE) {
    t.chance = scratch;
    scratch += size_round_up(l->queries, 16);
  }
  for (size_t head = u->head; head < u->head + u->heads; head++) {
    if (!needed_has(&c->space->needed[ROLE_QUERY], head)) continue;
    tile_set_inputs(&t, l, u, head);
    tile_set_answer(&t, l, u, head);
    clear_weights_behind(&t);
    if (c->select == SELECT_SAMPLE) draw_chances(c, u, head, (float *)t.chance);
    if (!l->kernel->attend(&t, scratch))
      fault_note(u->call, FAULT_SCORE, item->q_row);
    else if (uniform)
      fill_uniform(&t, item->k, scratch);
  }
}
