/* sight: lengths, causal, window and mask of a call -> what each query may see. */
#include "core/attention/sight.h"

#include <string.h>

#include "core/run/size.h"

static const uint8_t *mask_row(const struct call *c, const struct item *item, size_t head,
                               size_t i) {
  const size_t plane = c->mask_per_head ? head * item->q : 0;
  return c->mask + item->mask_at + (plane + i) * item->k;
}

bool sight_allows(const struct call *c, const struct item *item, size_t head, size_t i, size_t j) {
  const int64_t position = (int64_t)i + item->offset, key = (int64_t)j;
  if (c->lens && key >= c->lens[item->q_row + i]) return false;
  if (c->causal && key > position) return false;
  if (c->window_left >= 0 && key < position - c->window_left) return false;
  if (c->window_right >= 0 && key > position + c->window_right) return false;
  return !c->mask || mask_row(c, item, head, i)[j];
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* The stretch of keys that lengths, causal and window leave to query row `i`. */
static void find_stretch(const struct call *c, const struct item *item, size_t i, int32_t *from,
                         int32_t *to) {
  const int64_t position = (int64_t)i + item->offset;
  int64_t low = 0, high = (int64_t)item->k;
  if (c->lens) high = lesser(high, c->lens[item->q_row + i]);
  if (c->causal) high = lesser(high, position + 1);
  if (c->window_right >= 0) high = lesser(high, position + c->window_right + 1);
  if (c->window_left >= 0 && position - c->window_left > 0) low = position - c->window_left;
  if (low >= high) low = high = 0;
  *from = (int32_t)low;
  *to = (int32_t)high;
}

/* Narrows the stretch to its first and last unmasked key; marks the keys that are seen. */
static void apply_mask(const uint8_t *mask, uint8_t *seen, int32_t *from, int32_t *to) {
  while (*from < *to && !mask[*from]) (*from)++;
  while (*from < *to && !mask[*to - 1]) (*to)--;
  for (int32_t j = *from; j < *to; j++) seen[j] |= mask[j] != 0;
}

/* Narrows the stretch to the least one that holds those of all needed heads. False if one of these
 * heads sees nothing. */
static bool apply_masks(const struct call *c, const struct item *item, size_t i, size_t heads,
                        const struct needed *needed, uint8_t *seen, int32_t *from, int32_t *to) {
  const size_t masks = c->mask_per_head ? heads : 1;
  int32_t least = *to, most = *from;
  bool all_see = true;
  for (size_t head = 0; head < masks; head++) {
    int32_t first = *from, end = *to;
    if (c->mask_per_head && !needed_has(needed, head)) continue;
    apply_mask(mask_row(c, item, head, i), seen, &first, &end);
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

/* Marks the keys in the stretches that begin at each key. */
static void mark_stretches(const int32_t *reach, uint8_t *seen, size_t keys) {
  int32_t end = 0;
  for (size_t j = 0; j < keys; j++) {
    end = reach[j] > end ? reach[j] : end;
    seen[j] = (int32_t)j < end;
  }
}

void sight_look(struct sight *s, const struct call *c, size_t index, size_t heads,
                const struct needed *needed) {
  const struct item *item = &c->item[index];
  struct sight_item *out = &s->item[index];
  uint8_t *seen = s->seen + item->k_row;
  int32_t *reach = s->reach + item->k_row;
  if (!c->mask) memset(reach, 0, item->k * sizeof *reach);
  for (size_t i = 0; i < item->q; i++) {
    int32_t from, to;
    find_stretch(c, item, i, &from, &to);
    if (c->mask)
      out->some_blind |= !apply_masks(c, item, i, heads, needed, seen, &from, &to);
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
  if (!c->mask) mark_stretches(reach, seen, item->k);
}

enum status sight_reserve(struct sight *s, const struct call *c, struct arena *a, struct error *e) {
  s->item = arena_alloc(a, c->items, sizeof *s->item, e);
  s->from = arena_alloc(a, c->q_rows, sizeof *s->from, e);
  s->to = arena_alloc(a, c->q_rows, sizeof *s->to, e);
  s->seen = arena_alloc(a, c->k_rows, sizeof *s->seen, e);
  s->reach = arena_alloc(a, c->k_rows, sizeof *s->reach, e);
  if (e->status) return e->status;
  memset(s->item, 0, c->items * sizeof *s->item);
  memset(s->seen, 0, c->k_rows);
  return STATUS_OK;
}
