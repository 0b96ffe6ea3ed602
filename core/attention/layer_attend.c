/* layer_attend: attention of query tiles. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"
#include "core/kernel/philox.h"

enum {
  UNIT_WORK = 100000000, /* operations: about a millisecond */
  UNIT_LEAST = 100000,   /* to begin a unit costs as much as some thousands */
  VISIT_WORK = 20000,    /* of a head beside its scores, about */
  READ_WORK = 24         /* of a number of its keys and values, which come from far */
};

/* --- the numbers of a tile --- */

static float magnitude(const struct call *c, size_t item, unsigned role) {
  const uint32_t bits = atomic_load_explicit(role_top(c, item, role), memory_order_relaxed);
  float x;
  memcpy(&x, &bits, sizeof x);
  return bits == TOP_IN_PLACE ? INFINITY : x;
}

/* Could a score leave float32, by the greatest magnitudes of the item's projections? The bias may
 * hold anything, even a NaN, where it is not seen. */
static bool scores_may_overflow(const struct layer *l, const struct call *c, size_t item) {
  const double added = c->geometry->sight.item[item].bias_top + relative_bound(l);
  if (l->vector) return !(l->score_bound + added <= FLT_MAX / 4);
  /* The query is scaled first: small keys do not make up for a scaled query that is too large. */
  const double dot = (double)l->compare_size * magnitude(c, item, ROLE_QUERY) *
                     fabs((double)l->shape.scale) * fmax(1, magnitude(c, item, ROLE_KEY));
  return !(dot + added <= FLT_MAX / 4);
}

/* Could a weighted sum leave float32, of values, or on two levels of keys? A weight is less than
 * 256 before it is divided by the sum of all. */
static bool sums_may_overflow(const struct call *c, size_t item) {
  const double keys = c->geometry->segment_end ? magnitude(c, item, ROLE_KEY) : 0;
  const double most = fmax(magnitude(c, item, ROLE_VALUE), keys);
  return !(most * 256.0 * (double)(c->geometry->item[item].k + 1) <= FLT_MAX / 4);
}

/* Does a query of the tile see anything in its head? The first key of its stretch need not tell:
 * with a mask it may be one that only another head sees. */
static bool query_sees(const struct kernel_tile *t, size_t i) {
  int32_t j = t->from[i];
  while (t->mask && j < t->to[i] && !t->mask[i * t->mask_row + (size_t)j]) j++;
  return j < t->to[i];
}

/* The mean of all the item's values. */
void tile_fill_uniform(const struct kernel_tile *t, const struct layer_step *s,
                       const struct unit *u, void *scratch) {
  const struct call *c = call_of(s, u->run);
  const size_t keys = c->geometry->item[u->item].k;
  if (!c->uniform_rows || keys == 0 || !c->geometry->sight.item[u->item].some_blind) return;
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

static bool wants_weights(const struct call *c, size_t item) {
  return c->want != WEIGHTS_NONE && (!c->want_of || c->want_of[item]);
}

static void tile_set_weights(struct kernel_tile *t, const struct layer_step *s,
                             const struct unit *u, size_t head) {
  const struct call *c = call_of(s, u->run);
  const struct item *item = &c->geometry->item[u->item];
  const bool adds = c->want == WEIGHTS_AVERAGE;
  const size_t row = (adds ? 0 : head * item->q) + u->row;
  if (!wants_weights(c, u->item)) return;
  must(!c->want_of || item->q <= c->want_rows);
  t->weights = c->weights + c->weights_at[u->item] + row * item->k;
  if (!adds) return;
  t->weights_factor = 1.0f / (float)s->at.layer->shape.heads;
  t->weights_add = head > 0;
}

static void tile_set_answer(struct kernel_tile *t, const struct layer_step *s, const struct unit *u,
                            size_t head) {
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  const struct item *item = &c->geometry->item[u->item];
  const size_t row = head * item->q + u->row; /* among the item's rows of all heads */
  t->context =
      c->space->context + (item->q_row + u->row) * t->context_row + head * l->shape.value_head_size;
  t->context_factor = c->head_mask ? c->head_mask[head] : 1.0f;
  /* A masked head may be computed for its weights alone: it has no context. */
  t->value_head_size =
      needed_has(&c->space->needed[ROLE_OUTPUT], head) ? l->shape.value_head_size : 0;
  tile_set_weights(t, s, u, head);
  if (c->segment_weights)
    t->segment_weights = c->segment_weights + c->segment_weights_at[u->item] + row * item->segments;
}

/* The first 24 bits of a word each, which depends on the seed, the item, the head and the query
 * alone. */
void tile_draw_chances(const struct call *c, const struct unit *u, size_t head, float *chance) {
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

static bool contexts_are_finite(const struct layer *l, size_t heads, const struct kernel_tile *t) {
  bool finite = true;
  for (; heads > 0; heads--, t++)
    for (size_t i = 0; i < t->queries; i++)
      finite &=
          l->kernel->peak(t->value_head_size, t->context + i * t->context_row) < KERNEL_NOT_FINITE;
  return finite;
}

/* Rows that are read in place have all heads side by side: some heads go through them together, so
 * that memory is read as it lies. There a query has no uniform row, and no key is drawn. */
enum { HEADS_TOGETHER = 4 };

/* Sets the tiles of the next needed heads, from `head` on. Returns how many; 0: none is left. */
static size_t set_tiles(const struct layer_step *s, const struct unit *u, struct tile_kept *kept,
                        size_t *head, size_t most, struct kernel_tile *t) {
  const struct call *c = call_of(s, u->run);
  size_t tiles = 0;
  for (; *head < u->head + u->heads && tiles < most; ++*head) {
    if (!needed_has(&c->space->needed[ROLE_QUERY], *head)) continue;
    tile_set_inputs(&t[tiles], s, u, kept, *head);
    tile_set_answer(&t[tiles], s, u, *head);
    clear_weights_behind(&t[tiles++]);
  }
  return tiles;
}

/* Has a query of the unit a score beyond float32, in one of the heads? It is attended to alone. */
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

/* A score exceeds the float32 range by itself, or because of a key that was read in place. Which
 * query has it is looked for one by one: the kernel tells of all together. */
static void note_bad_score(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct call *c = call_of(s, u->run);
  struct unit one = *u;
  if (item_is_in_place(c, u->item) && note_bad_inputs(s, u)) return;
  one.rows = 1;
  while (one.row + 1 < u->row + u->rows && !has_bad_score(s, &one, scratch)) one.row++;
  run_note_fault(u->run, u->step,
                 attend_fault(ATTEND_SCORE, c->geometry->item[u->item].q_row + one.row));
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
      note_bad_score(s, u, all);
      return;
    }
    if (in_place && !contexts_are_finite(l, heads, t))
      note_bad_inputs(s, u);
    else
      tile_fill_uniform(t, s, u, scratch);
  }
}

/* --- units --- */

/* Query rows of a unit whose rows cost `row` operations each: as many as share their keys, but
 * fewer where the unit would hold a worker for long. */
static size_t attend_rows(const struct layer *l, double row) {
  size_t rows = l->queries;
  while (rows > l->kernel->lanes && row * (double)rows > UNIT_WORK) rows /= 2;
  return rows;
}

/* Heads of a unit: all where they add up to an average, several where they are small. */
static size_t attend_heads(const struct layer *l, const struct call *c, double work, size_t item,
                           size_t head) {
  const size_t left = l->shape.heads - head;
  if (c->want == WEIGHTS_AVERAGE && wants_weights(c, item)) return left;
  return work * (double)left <= UNIT_LEAST ? left : (size_t)fmax(1, UNIT_LEAST / work);
}

/* Over the keys that are seen, or all if a query that sees nothing weighs all alike. */
static double item_query_work(const struct layer *l, const struct call *c, size_t item) {
  return query_work(l, c, &c->geometry->item[item], role_rows(c, item, ROLE_VALUE));
}

/* Queries of the cursor's item in one head or several. Heads that are not needed are passed over.
 */
static bool attend_item(const struct layer *l, const struct call *c, struct cursor *at,
                        struct unit *u) {
  const struct item *item = &c->geometry->item[at->item];
  const struct needed *needed = &c->space->needed[ROLE_QUERY];
  while (at->head < l->shape.heads && !needed_has(needed, at->head)) at->head++;
  if (item->q == 0 || at->head >= l->shape.heads) return false;
  const double query = item_query_work(l, c, at->item);
  u->item = at->item;
  u->head = at->head;
  u->heads = attend_heads(l, c, query * (double)item->q, at->item, at->head);
  u->row = at->row;
  u->rows = size_min(attend_rows(l, (double)u->heads * query), item->q - at->row);
  at->row += u->rows;
  if (at->row < item->q) return true;
  at->row = 0;
  at->head += u->heads;
  return true;
}

/* Several small items, whole. */
static bool attend_items(const struct layer *l, const struct call *c, struct cursor *at,
                         struct unit *u) {
  const size_t items = c->geometry->items;
  if (at->item == items) return false;
  u->item = at->item;
  u->items = size_min(c->space->bunch, items - at->item);
  u->heads = l->shape.heads;
  at->item += u->items;
  return true;
}

static bool attend_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct layer *l = layer_step_of(step)->at.layer;
  const struct call *c = call_of(layer_step_of(step), u->run);
  const struct geometry *g = c->geometry;
  if (c->space->needed[ROLE_QUERY].count == 0 || g->q_rows == 0) return false;
  if (c->space->bunch > 1) return attend_items(l, c, at, u);
  for (; at->item < g->items; at->item++, at->head = at->row = 0)
    if (attend_item(l, c, at, u)) return true;
  return false;
}

/* What a head costs beside its queries: its keys and values are read once, however few these are.
 * It is for the cut alone. */
static double head_work(const struct layer *l, size_t keys) {
  return VISIT_WORK +
         READ_WORK * (double)keys * (double)(l->compare_size + l->shape.value_head_size);
}

static double attend_unit_work(const struct step *step, const struct unit *u) {
  const struct layer_step *s = layer_step_of(step);
  const struct layer *l = s->at.layer;
  const struct call *c = call_of(s, u->run);
  if (u->rows == 0) return c->space->attend_work * (double)u->items;
  const double queries = (double)u->rows * item_query_work(l, c, u->item);
  return (double)u->heads * (queries + head_work(l, role_rows(c, u->item, ROLE_VALUE)));
}

static void attend_to(const struct layer_step *s, const struct unit *u, float *scratch) {
  const struct item *item = call_of(s, u->run)->geometry->item;
  struct unit part = *u;
  if (u->rows > 0) {
    attend(s, u, scratch);
    return;
  }
  for (part.item = u->item; part.item < u->item + u->items; part.item++)
    for (part.row = 0; part.row < item[part.item].q; part.row += part.rows) {
      part.rows = size_min(s->at.layer->queries, item[part.item].q - part.row);
      attend(s, &part, scratch);
    }
}

/* Has `next` other heads of the same rows, which are read in place? */
static bool goes_on(const struct layer_step *s, const struct unit *u, const struct unit *next) {
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
    while ((more = run_next_unit(&left, &next)) && goes_on(s, &u, &next)) u.heads += next.heads;
    attend_to(s, &u, scratch);
  }
  kernel_leave(mode);
}

const struct step step_attend = {.unit = attend_unit,
                                 .work = attend_unit_work,
                                 .compute = compute_attention,
                                 .fault = fault_of_attend};
