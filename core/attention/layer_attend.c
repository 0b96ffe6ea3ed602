/* layer_attend: attention: scores, weights and contexts of queries, tile by tile.
 *
 * A unit is some query rows of an item in one head or several, or several small items. A tile is
 * what the kernel takes at a time: up to l->queries query rows in one head. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"
#include "core/kernel/philox.h"

enum {
  UNIT_WORK = 100000000, /* operations of a unit: about a millisecond */
  UNIT_LEAST = 100000,   /* operations: beginning a unit costs as much as some thousands */
  VISIT_WORK = 20000,    /* operations per head in addition to its scores */
  READ_WORK = 24,        /* operations per number of its keys and values, read from memory */

  /* Rows that are read in place have all heads side by side: that many heads go through them
   * together, in the order of memory. There no query has a uniform row, and no key is sampled. */
  HEADS_TOGETHER = 4
};

/* --- overflow --- */

/* The greatest magnitude of an item's rows in a role; infinity if they are read in place. */
static float magnitude(const struct call *c, size_t item, unsigned role) {
  const uint32_t bits = atomic_load_explicit(role_top(c, item, role), memory_order_relaxed);
  float x;
  memcpy(&x, &bits, sizeof x);
  return bits == TOP_IN_PLACE ? INFINITY : x;
}

/* Returns whether a score could overflow, given the greatest magnitudes of the item's projections.
 * Under the mask, the bias may hold anything, even a NaN. */
static bool scores_may_overflow(const struct layer *l, const struct call *c, size_t item) {
  const double added = c->geometry->sight.item[item].bias_top + relative_bound(l);
  if (l->vector) return !(l->score_bound + added <= FLT_MAX / 4);
  /* The query is scaled first: small keys do not compensate a scaled query that is too large. */
  const double query = magnitude(c, item, ROLE_QUERY) * fabs((double)l->shape.scale);
  const double key = magnitude(c, item, ROLE_KEY);
  const double dot = (double)l->compare_size * query * fmax(1, key);
  return !(dot + disentangled_bound(l, query, key) + added <= FLT_MAX / 4);
}

/* Returns whether a weighted sum of values, or on two levels of keys, could overflow. A weight is
 * less than 256 before it is divided by the sum of all weights. */
static bool sums_may_overflow(const struct call *c, size_t item) {
  const double keys = c->geometry->segment_end ? magnitude(c, item, ROLE_KEY) : 0;
  const double most = fmax(magnitude(c, item, ROLE_VALUE), keys);
  return !(most * 256.0 * (double)(c->geometry->item[item].k + 1) <= FLT_MAX / 4);
}

/* --- tiles --- */

void tile_begin(struct kernel_tile *t, const struct layer_step *s, const struct unit *u) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  const struct item *item = &g->item[u->item];
  const size_t first = item->q_row + u->row;
  *t = (struct kernel_tile){.queries = u->rows,
                            .keys = g->sight.item[u->item].key_end,
                            .head_size = l->compare_size,
                            .query_row = l->compare_size,
                            .vector = l->vector,
                            .scale = l->shape.scale,
                            .cap = l->shape.cap,
                            .sigmoid = l->shape.sigmoid,
                            .from = g->sight.from + first,
                            .to = g->sight.to + first,
                            .mask_row = item->k,
                            .bias_row = item->k,
                            .careful = scores_may_overflow(l, c, u->item),
                            .huge = sums_may_overflow(c, u->item),
                            .select = c->select,
                            .segments = item->segments,
                            .segment_end =
                                g->segment_end ? g->segment_end + item->segments_at : NULL,
                            .context_row = l->shape.heads * l->shape.value_head_size,
                            .weights_row = item->k,
                            .weights_factor = 1.0f};
}

struct tile_kept tile_kept_of(const struct layer_step *s, const struct unit *u, float *gathered) {
  const struct call *c = call_of(s, u->run);
  const struct kept_pair *pair = c->kept ? &c->kept[u->item] : NULL;
  return (struct tile_kept){.keys = kept_rows_of(s->at.layer, c, u->item, ROLE_KEY),
                            .values = kept_rows_of(s->at.layer, c, u->item, ROLE_VALUE),
                            .shared = pair && pair->key.lineage ? pair : NULL,
                            .gathered = gathered};
}

void tile_set_inputs(struct kernel_tile *t, const struct layer_step *s, const struct unit *u,
                     struct tile_kept *kept, size_t head) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  const struct item *item = &g->item[u->item];
  const size_t shared = head / (l->shape.heads / l->shape.kv_heads), d = l->compare_size;
  t->query = c->space->projected[ROLE_QUERY] + item->q_row * l->shape.heads * d +
             (head * item->q + u->row) * d;
  t->key = kept->keys.row + shared * kept->keys.head_step;
  t->key_row = kept->keys.row_step;
  t->turned = kept->keys.turned;
  t->value = kept->values.row + shared * kept->values.head_step;
  t->value_row = kept->values.row_step;
  if (kept->shared) lineage_set_inputs(t, kept, shared);
  if (g->mask) {
    const size_t plane = g->mask_per_head ? head * item->q : 0;
    t->mask = g->mask + item->mask_at + (plane + u->row) * item->k;
  }
  if (l->relative) t->relative = relative_row(c, u->item, head, u->row);
  if (l->disentangled) t->disentangled = disentangled_tile(l, item, u->row, head);
  if (g->bias) {
    const size_t plane = g->bias_per_head ? head * item->q : 0;
    t->bias = g->bias + item->bias_at + (plane + u->row) * item->k;
  }
  const size_t at = item->q_row * l->shape.heads + head * item->q + u->row;
  if (c->pointers) t->pointers = c->pointers + at;
  if (!c->want_measures) return;
  t->top = c->space->measuring.top + at;
  t->factor = c->space->measuring.factor + at;
  t->greatest = c->space->measuring.greatest + at;
  if (!g->segment_end) return;
  t->segment_top = c->space->measuring.segment_top + at;
  t->segment_factor = c->space->measuring.segment_factor + at;
}

/* The first 24 bits of a word that depends only on the seed, the item, the head and the query. */
void tile_draw_chances(const struct call *c, const struct unit *u, size_t head, float *chance) {
  const uint32_t key[2] = {(uint32_t)c->seed, (uint32_t)(c->seed >> 32)};
  for (size_t i = 0; i < u->rows; i++) {
    const uint32_t counter[4] = {(uint32_t)u->item, (uint32_t)head, (uint32_t)(u->row + i), 0};
    chance[i] = (float)(philox(key, counter).word[0] >> 8) * 0x1p-24f;
  }
}

/* Returns whether query i of the tile attends to any key. The first key of its stretch may be
 * visible only in another head. */
static bool query_sees(const struct kernel_tile *t, size_t i) {
  int32_t j = t->from[i];
  while (t->mask && j < t->to[i] && !t->mask[i * t->mask_row + (size_t)j]) j++;
  return j < t->to[i];
}

void tile_fill_uniform(const struct kernel_tile *t, const struct layer_step *s,
                       const struct unit *u, void *scratch) {
  const struct call *c = call_of(s, u->run);
  const size_t keys = c->geometry->item[u->item].k;
  if (!c->uniform_rows || keys == 0 || !c->geometry->sight.item[u->item].some_blind) return;
  double *mean = scratch; /* [value_head_size], much less than attend needs */
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

static bool wants_weights(const struct call *c, size_t item) {
  return c->want != WEIGHTS_NONE && (!c->want_of || c->want_of[item]);
}

/* Sets where the results of a head go. */
static void tile_set_results(struct kernel_tile *t, const struct layer_step *s,
                             const struct unit *u, size_t head) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct item *item = &c->geometry->item[u->item];
  const size_t row = head * item->q + u->row; /* among the item's rows of all heads */
  t->context =
      c->space->context + (item->q_row + u->row) * t->context_row + head * l->shape.value_head_size;
  t->context_factor = c->head_mask ? c->head_mask[head] : 1.0f;
  /* A masked head that is computed only for its weights has no context. */
  t->value_head_size =
      needed_has(&c->space->needed[ROLE_OUTPUT], head) ? l->shape.value_head_size : 0;
  if (wants_weights(c, u->item)) {
    must(!c->want_of || item->q <= c->want_rows);
    const bool adds = c->want == WEIGHTS_AVERAGE;
    t->weights = c->weights + c->weights_at[u->item] + (adds ? u->row : row) * item->k;
    if (adds) {
      t->weights_factor = 1.0f / (float)l->shape.heads;
      t->weights_add = head > 0;
    }
  }
  if (c->segment_weights)
    t->segment_weights = c->segment_weights + c->segment_weights_at[u->item] + row * item->segments;
}

/* --- attention of a unit --- */

/* Sets the tiles of the next needed heads, from `head` on, and moves `head` after them. Returns how
 * many; 0: none is left. */
static size_t set_tiles(const struct layer_step *s, const struct unit *u, struct tile_kept *kept,
                        size_t *head, size_t most, struct kernel_tile *t) {
  const struct call *c = call_of(s, u->run);
  size_t tiles = 0;
  for (; *head < u->head + u->heads && tiles < most; ++*head) {
    if (!needed_has(&c->space->needed[ROLE_QUERY], *head)) continue;
    struct kernel_tile *one = &t[tiles++];
    tile_set_inputs(one, s, u, kept, *head);
    tile_set_results(one, s, u, *head);
    /* Keys after the last visible one have a weight of 0. */
    for (size_t i = 0; one->weights && !one->weights_add && i < one->queries; i++)
      memset(one->weights + i * one->weights_row + one->keys, 0,
             (one->weights_row - one->keys) * sizeof(float));
  }
  return tiles;
}

/* Returns whether the unit's only query has a score that overflows, in one of the heads. */
static bool has_bad_score(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct call *c = call_of(s, u->run);
  struct tile_kept kept = tile_kept_of(s, u, scratch);
  struct kernel_tile t;
  float chance;
  scratch += lineage_floats(s->at.layer);
  tile_begin(&t, s, u);
  t.chance = &chance;
  for (size_t head = u->head; set_tiles(s, u, &kept, &head, 1, &t) > 0;) {
    if (c->select == SELECT_SAMPLE) tile_draw_chances(c, u, head - 1, &chance);
    if (!s->at.layer->kernel->attend(1, &t, scratch)) return true;
  }
  return false;
}

/* A score overflows by itself, or because of a key that was read in place. The kernel reports the
 * tile as a whole, so the query is searched one by one. */
static void record_bad_score(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct call *c = call_of(s, u->run);
  struct unit one = *u;
  if (item_is_in_place(c, u->item) && record_bad_inputs(s, u)) return;
  one.rows = 1;
  while (one.row + 1 < u->row + u->rows && !has_bad_score(s, &one, scratch)) one.row++;
  run_record_fault(u->run, u->step,
                   attend_fault(ATTEND_SCORE, c->geometry->item[u->item].q_row + one.row));
}

static bool contexts_are_finite(const struct layer *l, size_t heads, const struct kernel_tile *t) {
  bool finite = true;
  for (; heads > 0; heads--, t++)
    for (size_t i = 0; i < t->queries; i++)
      finite &=
          l->kernel->peak(t->value_head_size, t->context + i * t->context_row) < KERNEL_NOT_FINITE;
  return finite;
}

static void attend(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const bool in_place = item_is_in_place(c, u->item);
  const size_t most = in_place ? HEADS_TOGETHER : 1;
  struct tile_kept kept = tile_kept_of(s, u, scratch);
  struct kernel_tile t[HEADS_TOGETHER];
  float *const all = scratch;
  scratch += lineage_floats(l);
  tile_begin(&t[0], s, u);
  if (c->select == SELECT_SAMPLE) {
    t[0].chance = scratch;
    scratch += size_round_up(l->queries, 16);
  }
  for (size_t i = 1; i < most; i++) t[i] = t[0];
  for (size_t head = u->head, heads; (heads = set_tiles(s, u, &kept, &head, most, t)) > 0;) {
    if (c->select == SELECT_SAMPLE) tile_draw_chances(c, u, head - 1, (float *)t[0].chance);
    if (!l->kernel->attend(heads, t, scratch)) {
      record_bad_score(s, u, all);
      return;
    }
    if (in_place && !contexts_are_finite(l, heads, t))
      record_bad_inputs(s, u);
    else
      tile_fill_uniform(t, s, u, scratch);
  }
}

/* --- units --- */

/* Over the visible keys, or over all if a query without visible keys has equal weights for all. */
static double item_query_work(const struct layer *l, const struct call *c, size_t item) {
  return query_work(l, c, &c->geometry->item[item], role_rows(c, item, ROLE_VALUE));
}

/* Sets a unit of queries of the cursor's item, in one head or several; false: none is left. */
static bool attend_item(const struct layer *l, const struct call *c, struct cursor *at,
                        struct unit *u) {
  const struct item *item = &c->geometry->item[at->item];
  const struct needed *needed = &c->space->needed[ROLE_QUERY];
  while (at->head < l->shape.heads && !needed_has(needed, at->head)) at->head++;
  if (item->q == 0 || at->head >= l->shape.heads) return false;
  /* All heads if they are summed to an average, several if they are small. */
  const size_t left = l->shape.heads - at->head;
  const double query = item_query_work(l, c, at->item), head = query * (double)item->q;
  u->item = at->item;
  u->head = at->head;
  u->heads = left;
  if (!(c->want == WEIGHTS_AVERAGE && wants_weights(c, at->item)) &&
      head * (double)left > UNIT_LEAST)
    u->heads = (size_t)fmax(1, UNIT_LEAST / head);
  /* As many rows as share their keys, but fewer if the unit would take long. */
  size_t rows = l->queries;
  while (rows > l->kernel->lanes && (double)u->heads * query * (double)rows > UNIT_WORK) rows /= 2;
  u->row = at->row;
  u->rows = size_min(rows, item->q - at->row);
  at->row += u->rows;
  if (at->row < item->q) return true;
  at->row = 0;
  at->head += u->heads;
  return true;
}

static bool attend_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer *l = layer_step_of(step)->at.layer;
  const struct call *c = call_of(layer_step_of(step), u->run);
  const struct geometry *g = c->geometry;
  if (c->space->needed[ROLE_QUERY].count == 0 || g->q_rows == 0) return false;
  if (c->space->bunch > 1) { /* several small items, whole */
    if (at->item == g->items) return false;
    u->item = at->item;
    u->items = size_min(c->space->bunch, g->items - at->item);
    u->heads = l->shape.heads;
    at->item += u->items;
    return true;
  }
  for (; at->item < g->items; at->item++, at->head = at->row = 0)
    if (attend_item(l, c, at, u)) return true;
  return false;
}

static double attend_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  if (u->rows == 0) return c->space->attend_work * (double)u->items;
  /* A head reads its keys and values once, however few its queries are. */
  const double keys = (double)role_rows(c, u->item, ROLE_VALUE);
  const double head =
      VISIT_WORK + READ_WORK * keys * (double)(l->compare_size + l->shape.value_head_size);
  return (double)u->heads * ((double)u->rows * item_query_work(l, c, u->item) + head);
}

/* Returns whether `next` has other heads of the same rows, which are read in place. */
static bool continues(const struct layer_step *s, const struct unit *u, const struct unit *next) {
  return next->run == u->run && next->item == u->item && next->row == u->row &&
         next->head == u->head + u->heads && u->rows > 0 &&
         item_is_in_place(call_of(s, u->run), u->item);
}

static void compute_attention(const struct step *step, const struct span *span, void *scratch) {
  const struct layer_step *s = layer_step_of(step);
  const unsigned mode = kernel_enter();
  struct span left = *span;
  struct unit u, next;
  for (bool more = run_next_unit(&left, &u); more; u = next) {
    while ((more = run_next_unit(&left, &next)) && continues(s, &u, &next)) u.heads += next.heads;
    if (u.rows > 0) {
      attend(s, &u, scratch);
      continue;
    }
    /* Several items: all their queries, tile by tile. */
    const struct item *item = call_of(s, u.run)->geometry->item;
    struct unit part = u;
    for (; part.item < u.item + u.items; part.item++)
      for (part.row = 0; part.row < item[part.item].q; part.row += part.rows) {
        part.rows = size_min(s->at.layer->queries, item[part.item].q - part.row);
        attend(s, &part, scratch);
      }
  }
  kernel_leave(mode);
}

const struct step step_attend = {.unit = attend_unit,
                                 .work = attend_unit_work,
                                 .compute = compute_attention,
                                 .fault = fault_of_attend};
