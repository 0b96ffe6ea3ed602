/* layer_kept: where an item's keys and values lie: in the caller's KV cache, in memory of the call,
 * or in place in the inputs.
 *
 * Hypotheses of a beam search share rows (struct kept_lineage). Complete blocks are read in place.
 * Each of the rows after them, up to KERNEL_KEYS, may belong to another member: they are copied end
 * to end for the current head, which reads them anyway. */
#include <string.h>

#include "core/attention/layer_parts.h"
#include "core/base/size.h"

/* With at most this many queries in each item, reading rows in place, a slice for each head, costs
 * less than copying each head's rows side by side first. */
enum { IN_PLACE_QUERIES = 8 };

struct kept_rows kept_rows_of(const struct layer *l, const struct call *c, size_t index,
                              unsigned role) {
  const struct item *item = &c->geometry->item[index];
  const size_t size = role_kept_size(l, role), in = role_in(l, role);
  if (c->kept) return role_kept(c, index, role)->rows;
  if (item_is_in_place(c, index)) {
    const float *from = role == ROLE_KEY ? c->keys : c->values;
    return (struct kept_rows){.row = (float *)from + item->k_row * in, /* only read */
                              .row_step = in,
                              .head_step = size};
  }
  return (struct kept_rows){.row =
                                c->space->projected[role] + item->k_row * l->shape.kv_heads * size,
                            .row_step = size,
                            .head_step = item->k * size};
}

/* --- in place --- */

/* A number that is not finite must show in the results. In place it would not if its value is not
 * chosen, or if it is in a part of a key that is visible only in other heads: such calls copy. */
bool may_be_in_place(const struct layer *l, const struct call *c) {
  if (c->kept || l->matrix[ROLE_KEY] || l->matrix[ROLE_VALUE] || l->compare[ROLE_KEY] ||
      l->norm[ROLE_KEY] || l->rotary)
    return false;
  if (c->select != SELECT_SOFT || c->geometry->mask_per_head) return false;
  for (size_t i = 0; i < c->geometry->items; i++)
    if (c->geometry->item[i].q > IN_PLACE_QUERIES) return false;
  return true;
}

/* A masked row may hold anything: an item with one is copied, with zeros in its place. */
bool could_be_in_place(const struct call *c, size_t index) {
  const struct sight *sight = &c->geometry->sight;
  const struct sight_item *item = &sight->item[index];
  if (!c->space->in_place || (c->uniform_rows && item->some_blind)) return false;
  return !memchr(sight->seen + sight_key_at(c->geometry, index), 0, item->key_end);
}

bool record_bad_inputs(const struct layer_step *s, const struct unit *u) {
  const struct layer *l = s->at.layer;
  struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  for (unsigned role = ROLE_KEY; role <= ROLE_VALUE; role++) {
    const struct kept_rows rows = kept_rows_of(l, c, u->item, role);
    const size_t size = role_kept_size(l, role);
    for (size_t i = 0; i < g->sight.item[u->item].key_end; i++)
      for (size_t head = 0; head < l->shape.kv_heads; head++) {
        const float *row = rows.row + i * rows.row_step + head * size;
        if (!needed_has(&c->space->needed[role], head) ||
            l->kernel->peak(size, row) < KERNEL_NOT_FINITE)
          continue;
        run_record_fault(u->run, u->step, attend_fault(role, g->item[u->item].k_row + i));
        return true;
      }
  }
  return false;
}

/* --- shared rows --- */

size_t lineage_floats(const struct layer *l) {
  return size_round_up(KERNEL_KEYS * (l->compare_size + l->shape.value_head_size), 16);
}

/* The first member's rows of a head. */
static float *first_row(const struct kept *k, size_t head) {
  return k->rows.row - k->lineage->own * k->member_step + head * k->rows.head_step;
}

void kept_gather(const struct kept *k, size_t head, size_t rows, float *to) {
  const struct kept_lineage *lineage = k->lineage;
  const size_t size = k->rows.row_step;
  const float *from = first_row(k, head) + (lineage->whole + KERNEL_KEYS) * size;
  for (size_t first = 0, end; first < rows; first = end) {
    const uint32_t member = lineage->row[first];
    for (end = first + 1; end < rows && lineage->row[end] == member;) end++;
    memcpy(to + first * size, from + member * k->member_step + first * size,
           (end - first) * size * sizeof *to);
  }
}

void lineage_set_inputs(struct kernel_tile *t, struct tile_kept *kept, size_t head) {
  const struct kept *key = &kept->shared->key, *value = &kept->shared->value;
  const struct kept_lineage *lineage = key->lineage;
  const size_t rows = t->keys - size_min(lineage->whole, t->keys);
  float *values = kept->gathered + KERNEL_KEYS * key->rows.row_step;
  kept_gather(key, head, rows, kept->gathered);
  kept_gather(value, head, rows, values);
  kept->blocks = (struct kernel_blocks){.place = lineage->block,
                                        .key_step = key->member_step,
                                        .value_step = value->member_step,
                                        .key = kept->gathered,
                                        .value = values};
  t->key = first_row(key, head);
  t->value = first_row(value, head);
  t->turned = lineage->whole;
  t->blocks = &kept->blocks;
}
