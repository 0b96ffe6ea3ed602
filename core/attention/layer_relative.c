/* layer_relative: T5's relative positions and ALiBi, which are added to the scores.
 *
 * What is added depends only on the head and on how far the key is after the query. So one line of
 * numbers per item and head holds all of it; query row i reads a part of the line that begins one
 * number before the part of row i - 1. The line begins with as many more numbers as a vector has
 * lanes: idle lanes read them. */
#include <math.h>
#include <stdlib.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

struct relative {
  float *slope;    /* [H] of ALiBi; NULL: T5's, with the members below */
  float bound;     /* greatest magnitude in the table. Slopes are below 1 and distances below 2^63:
                      their products are far below the margin of a check for overflow */
  size_t buckets;  /* of the table */
  size_t side;     /* buckets of one direction */
  float *table;    /* [H, buckets] */
  uint64_t *least; /* [side] least distance of each bucket */
};

/* --- the layer --- */

/* The distance at which bucket b > e of n begins: e + floor(ln(r/e) / ln(max/e) (n - e)) reaches b
 * at the first whole r that is not below e (max/e)^((b - e)/(n - e)). If that is a whole number
 * itself, rounding may miss it, by far less than 1e-15 of it. */
static uint64_t least_of(size_t b, size_t n, size_t most) {
  const size_t e = n / 2;
  const long double power = (long double)(b - e) / (long double)(n - e);
  const long double r = (long double)e * powl((long double)most / (long double)e, power);
  const long double whole = roundl(r);
  return (uint64_t)fminl(fabsl(r - whole) <= 1e-15L * r ? whole : ceill(r), 0x1p62L);
}

/* With p heads, p a power of two, the slopes are 2^(-8/p), 2^(-16/p) and so on. More heads, but
 * fewer than 2 p, take the first, third, fifth and so on of the slopes of 2 p heads. */
static void make_slopes(struct relative *r, size_t heads) {
  size_t p = 1;
  while (p <= heads / 2) p *= 2;
  for (size_t h = 0; h < heads; h++) {
    const double step = h < p ? (double)(h + 1) : (double)(h - p) + 0.5;
    r->slope[h] = (float)exp2(-8 * step / (double)p);
  }
}

void relative_make(struct layer *l, const float *table, struct error *e) {
  const struct layer_shape *s = &l->shape;
  size_t count;
  if ((s->relative_buckets == 0 && !s->alibi) || e->status) return;
  struct relative *r = l->relative = calloc(1, sizeof *r);
  if (r && s->alibi) {
    r->slope = calloc(s->heads, sizeof *r->slope);
  } else if (r && size_mul(s->heads, s->relative_buckets, &count)) {
    r->buckets = s->relative_buckets;
    r->side = s->relative_both ? r->buckets / 2 : r->buckets;
    r->table = calloc(count, sizeof *r->table);
    r->least = calloc(r->side, sizeof *r->least);
  }
  if (!r || (!r->slope && (!r->table || !r->least))) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for a layer");
    return;
  }
  if (s->alibi) {
    make_slopes(r, s->heads);
    return;
  }
  for (size_t b = 1; b < r->side; b++) {
    const uint64_t least = b <= r->side / 2 ? b : least_of(b, r->side, s->relative_distance);
    r->least[b] = least > r->least[b - 1] ? least : r->least[b - 1];
  }
  for (size_t h = 0; h < s->heads; h++)
    for (size_t b = 0; b < r->buckets; b++) {
      const float x = table[b * s->heads + h];
      r->table[h * r->buckets + b] = x;
      if (fabsf(x) > r->bound) r->bound = fabsf(x);
    }
}

void relative_free(struct relative *r) {
  if (!r) return;
  free(r->slope);
  free(r->table);
  free(r->least);
  free(r);
}

double relative_bound(const struct layer *l) { return l->relative ? l->relative->bound : 0; }

/* --- the call --- */

/* Numbers of the line of one item in one head. */
static size_t line_floats(const struct item *item) { return item->q + item->k + KERNEL_LANES_MAX; }

static float *line_of(const struct call *c, size_t item, size_t slot) {
  const struct item *at = &c->geometry->item[item];
  const size_t before =
      at->q_row + sight_key_at(c->geometry, item) + item * KERNEL_LANES_MAX; /* in one head */
  return c->space->relative + before * c->space->needed[ROLE_QUERY].count + slot * line_floats(at);
}

const float *relative_row(const struct call *c, size_t item, size_t head, size_t row) {
  const size_t slot = needed_slot(&c->space->needed[ROLE_QUERY], head);
  return line_of(c, item, slot) + (c->geometry->item[item].q - row + KERNEL_LANES_MAX - 1);
}

enum status relative_prepare(const struct layer *l, struct call *c, struct arena *a,
                             struct error *e) {
  const struct geometry *g = c->geometry;
  size_t count, padding;
  if (!l->relative) return STATUS_OK;
  if (!size_mul(g->items, KERNEL_LANES_MAX, &padding) ||
      !size_add(g->q_rows, g->sight.key_rows, &count) || !size_add(count, padding, &count) ||
      !size_mul(count, c->space->needed[ROLE_QUERY].count, &count))
    return error_set(e, STATUS_TOO_LARGE, "the relative positions exceed the address space");
  c->space->relative = spare_floats(&c->room, count, a, e);
  return e->status;
}

double relative_work(const struct layer *l, const struct call *c, const struct item *item) {
  if (!l->relative) return 0;
  return 30.0 * (double)line_floats(item) * (double)c->space->needed[ROLE_QUERY].count;
}

/* A bucket, and how many consecutive distances from some distance on fall into it. */
struct relative_stretch {
  size_t bucket;
  uint64_t count;
};

/* `r` is how far the key is after the query, negative for a key before it. */
static struct relative_stretch stretch_at(const struct relative *s, bool both, int64_t r) {
  const uint64_t distance = r > 0 ? (both ? (uint64_t)r : 0) : -(uint64_t)r;
  size_t b = 0, end = s->side;
  while (b + 1 < end) { /* the last bucket that does not begin after the distance */
    const size_t middle = (b + end) / 2;
    if (s->least[middle] <= distance)
      b = middle;
    else
      end = middle;
  }
  if (r <= 0) return (struct relative_stretch){b, distance - s->least[b] + 1};
  if (!both) return (struct relative_stretch){0, UINT64_MAX};
  return (struct relative_stretch){s->side + b,
                                   b + 1 < s->side ? s->least[b + 1] - distance : UINT64_MAX};
}

static void fill_slopes(const struct layer *l, const struct call *c, size_t item, int64_t first) {
  const struct needed *needed = &c->space->needed[ROLE_QUERY];
  const size_t count = line_floats(&c->geometry->item[item]);
  for (size_t h = 0; h < l->shape.heads; h++) {
    if (!needed_has(needed, h)) continue;
    const float slope = l->relative->slope[h];
    float *line = line_of(c, item, needed_slot(needed, h));
    for (size_t x = 0; x < count; x++) line[x] = -slope * fabsf((float)(first + (int64_t)x));
  }
}

void relative_fill(const struct layer *l, const struct call *c, size_t item) {
  const struct item *at = &c->geometry->item[item];
  const struct relative *s = l->relative;
  const struct needed *needed = &c->space->needed[ROLE_QUERY];
  const size_t count = line_floats(at);
  /* The number at x is of keys that are x - q - KERNEL_LANES_MAX + 1 rows after the query. */
  const int64_t first = -(int64_t)(at->q + KERNEL_LANES_MAX - 1) - at->offset;
  if (s->slope) {
    fill_slopes(l, c, item, first);
    return;
  }
  for (size_t x = 0, end; x < count; x = end) {
    const struct relative_stretch found = stretch_at(s, l->shape.relative_both, first + (int64_t)x);
    end = found.count < count - x ? x + (size_t)found.count : count;
    for (size_t h = 0; h < l->shape.heads; h++) {
      if (!needed_has(needed, h)) continue;
      float *line = line_of(c, item, needed_slot(needed, h));
      for (size_t i = x; i < end; i++) line[i] = s->table[h * s->buckets + found.bucket];
    }
  }
}
