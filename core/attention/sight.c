/* sight: lengths, causal, window and mask of a geometry -> which keys each query attends to. */
#include "core/attention/sight.h"

#include <string.h>

#include "core/base/size.h"

static const uint8_t *mask_row(const struct geometry *g, const struct item *item, size_t head,
                               size_t i) {
  const size_t plane = g->mask_per_head ? head * item->q : 0;
  return g->mask + item->mask_at + (plane + i) * item->k;
}

bool sight_allows(const struct geometry *g, const struct item *item, size_t head, size_t i,
                  size_t j) {
  const int64_t position = (int64_t)i + item->offset, key = (int64_t)j;
  if (g->lens && key >= g->lens[item->q_row + i]) return false;
  if (g->causal && key > position) return false;
  if (g->window_left >= 0 && key < position - g->window_left) return false;
  if (g->window_right >= 0 && key > position + g->window_right) return false;
  return !g->mask || mask_row(g, item, head, i)[j];
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* Sets the stretch of keys that lengths, causal and window leave to query row `i`. */
static void find_stretch(const struct geometry *g, const struct item *item, size_t i, int32_t *from,
                         int32_t *to) {
  const int64_t position = (int64_t)i + item->offset;
  int64_t low = 0, high = (int64_t)item->k;
  if (g->lens) high = lesser(high, g->lens[item->q_row + i]);
  if (g->causal) high = lesser(high, position + 1);
  if (g->window_right >= 0) high = lesser(high, position + g->window_right + 1);
  if (g->window_left >= 0 && position - g->window_left > 0) low = position - g->window_left;
  if (low >= high) low = high = 0;
  *from = (int32_t)low;
  *to = (int32_t)high;
}

/* Narrows the stretch to the smallest one that contains the unmasked keys of all needed heads, and
 * marks these keys in `seen`. Returns false if one of these heads masks all keys. */
static bool apply_masks(const struct geometry *g, const struct item *item, size_t i, uint8_t *seen,
                        int32_t *from, int32_t *to) {
  const size_t masks = g->mask_per_head ? g->sight.heads : 1;
  int32_t least = *to, most = *from;
  bool all_see = true;
  for (size_t head = 0; head < masks; head++) {
    if (g->mask_per_head && !needed_has(&g->sight.needed, head)) continue;
    const uint8_t *mask = mask_row(g, item, head, i);
    int32_t first = *from, end = *to;
    while (first < end && !mask[first]) first++;
    while (first < end && !mask[end - 1]) end--;
    for (int32_t j = first; j < end; j++) seen[j] |= mask[j] != 0;
    if (first == end) {
      all_see = false;
      continue;
    }
    least = first < least ? first : least;
    most = end > most ? end : most;
  }
  *from = least < most ? least : 0;
  *to = least < most ? most : 0;
  return all_see;
}

void sight_look(const struct geometry *g, size_t index) {
  const struct sight *s = &g->sight;
  const struct item *item = &g->item[index];
  struct sight_item *out = &s->item[index];
  uint8_t *seen = s->seen + sight_key_at(g, index);
  int32_t *reach = s->reach + sight_key_at(g, index);
  if (!g->mask) memset(reach, 0, item->k * sizeof *reach);
  for (size_t i = 0; i < item->q; i++) {
    int32_t from, to;
    find_stretch(g, item, i, &from, &to);
    if (g->mask)
      out->some_blind |= !apply_masks(g, item, i, seen, &from, &to);
    else if (from < to && to > reach[from])
      reach[from] = to;
    if (from == to) {
      out->some_blind = true;
      from = to = 0;
    }
    s->from[item->q_row + i] = from;
    s->to[item->q_row + i] = to;
    out->key_end = size_max(out->key_end, (size_t)to);
  }
  if (g->mask) return;
  /* Without a mask, a key is visible if a stretch that begins at or before it reaches it. */
  int32_t end = 0;
  for (size_t j = 0; j < item->k; j++) {
    end = reach[j] > end ? reach[j] : end;
    seen[j] = (int32_t)j < end;
  }
}

/* --- preparing --- */

enum status sight_reserve(struct geometry *g, struct arena *a, struct error *e) {
  struct sight *s = &g->sight;
  *s = (struct sight){0};
  for (size_t i = 0; i < g->items; i++)
    if (!size_add(s->key_rows, g->item[i].k, &s->key_rows))
      return error_set(e, STATUS_TOO_LARGE, "the keys exceed the address space");
  if (s->key_rows != g->k_rows || g->moves) { /* some keys are in the KV cache, or will be */
    s->key_at = arena_alloc(a, g->items, sizeof *s->key_at, e);
    for (size_t i = 0, keys = 0; s->key_at && i < g->items; keys += g->item[i++].k)
      s->key_at[i] = keys;
  }
  s->item = arena_alloc(a, g->items, sizeof *s->item, e);
  s->from = arena_alloc(a, g->q_rows, sizeof *s->from, e);
  s->to = arena_alloc(a, g->q_rows, sizeof *s->to, e);
  s->seen = arena_alloc(a, s->key_rows, sizeof *s->seen, e);
  s->reach = arena_alloc(a, s->key_rows, sizeof *s->reach, e);
  if (e->status) return e->status;
  memset(s->item, 0, g->items * sizeof *s->item);
  memset(s->seen, 0, s->key_rows);
  return STATUS_OK;
}

enum status sight_need(struct geometry *g, size_t heads, const struct needed *more, struct arena *a,
                       struct error *e) {
  struct needed *all = &g->sight.needed;
  if (g->sight.heads == 0 || !more->slot) *all = *more;
  g->sight.heads = heads;
  if (!g->mask_per_head || !all->slot || all->slot == more->slot) return STATUS_OK;
  uint32_t *slot = arena_alloc(a, heads, sizeof *slot, e);
  size_t count = 0;
  for (size_t head = 0; slot && head < heads; head++)
    slot[head] = needed_has(all, head) || needed_has(more, head) ? (uint32_t)count++ : NEEDED_NOT;
  *all = (struct needed){.count = count, .slot = slot};
  return e->status;
}
