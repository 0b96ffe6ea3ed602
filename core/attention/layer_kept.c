/* layer_kept: where an item's keys and values lie: with the caller, in memory of the call's own, or
 * where they came in. */
#include <string.h>

#include "core/attention/layer_parts.h"

/* With so few queries in each item, reading rows as they came in, a slice for each head, costs less
 * than laying each head's rows side by side first. */
enum { IN_PLACE_QUERIES = 8 };

struct kept_rows kept_rows_of(const struct layer *l, const struct call *c, size_t index,
                              unsigned role) {
  const struct item *item = &c->geometry->item[index];
  const size_t size = role_kept_size(l, role), in = role_in(l, role);
  if (c->kept) return role_kept(c, index, role)->rows;
  if (item_is_in_place(c, index)) {
    const float *from = role == ROLE_KEY ? c->keys : c->values;
    return (struct kept_rows){.row = (float *)from + item->k_row * in, /* it is only read */
                              .row_step = in,
                              .head_step = size};
  }
  return (struct kept_rows){.row =
                                c->space->projected[role] + item->k_row * l->shape.kv_heads * size,
                            .row_step = size,
                            .head_step = item->k * size};
}

/* Could an item's inputs be its keys and values as they are? A number that is not finite must come
 * to light in what is computed of it: not so in a value that is not chosen, or in a head's part of
 * a key that only other heads see. Those are found where copies are made. */
bool may_be_in_place(const struct layer *l, const struct call *c) {
  if (c->kept || l->matrix[ROLE_KEY] || l->matrix[ROLE_VALUE] || l->compare[ROLE_KEY] ||
      l->norm[ROLE_KEY] || l->rotary)
    return false;
  if (c->select != SELECT_SOFT || c->geometry->mask_per_head) return false;
  for (size_t i = 0; i < c->geometry->items; i++)
    if (c->geometry->item[i].q > IN_PLACE_QUERIES) return false;
  return true;
}

/* A row that no query sees may hold anything: it is read only as a copy, of zeros. */
bool could_be_in_place(const struct call *c, size_t index) {
  const struct sight *sight = &c->geometry->sight;
  const struct sight_item *item = &sight->item[index];
  if (!c->space->in_place || (c->uniform_rows && item->some_blind)) return false;
  return !memchr(sight->seen + sight_key_at(c->geometry, index), 0, item->key_end);
}

/* --- what is not finite --- */

static bool row_is_finite(const struct layer *l, const struct call *c, unsigned role,
                          const float *row) {
  const size_t size = role_kept_size(l, role);
  const struct needed *needed = &c->space->needed[role];
  for (size_t head = 0; head < l->shape.kv_heads; head++)
    if (needed_has(needed, head) && l->kernel->peak(size, row + head * size) >= KERNEL_NOT_FINITE)
      return false;
  return true;
}

static bool note_bad_row(const struct layer_step *s, const struct unit *u, unsigned role) {
  struct call *c = call_of(s, u->run);
  const struct geometry *g = c->geometry;
  const struct kept_rows rows = kept_rows_of(s->at.layer, c, u->item, role);
  for (size_t i = 0; i < g->sight.item[u->item].key_end; i++)
    if (!row_is_finite(s->at.layer, c, role, rows.row + i * rows.row_step)) {
      run_note_fault(u->run, u->step, attend_fault(role, g->item[u->item].k_row + i));
      return true;
    }
  return false;
}

bool note_bad_inputs(const struct layer_step *s, const struct unit *u) {
  return note_bad_row(s, u, ROLE_KEY) || note_bad_row(s, u, ROLE_VALUE);
}
