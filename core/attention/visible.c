/* visible: lengths, causal, window and mask of a call -> what each query may see. */
#include "core/attention/visible.h"

#include <string.h>

#include "core/run/size.h"

static const uint8_t *mask_row(const struct call *c, const struct item *item, size_t head,
                               size_t i) {
  const size_t plane = c->mask_per_head ? head * item->q : 0;
  return c->mask + item->mask_at + (plane + i) * item->k;
}

bool visible_pair(const struct call *c, const struct item *item, size_t head, size_t i, size_t j) {
  const int64_t place = (int64_t)i + item->offset, key = (int64_t)j;
  if (c->lens && key >= c->lens[item->q_row + i]) return false;
  if (c->causal && key > place) return false;
  if (c->window_left >= 0 && key < place - c->window_left) return false;
  if (c->window_right >= 0 && key > place + c->window_right) return false;
  return !c->mask || mask_row(c, item, head, i)[j];
}

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* The run of keys that lengths, causal and window leave to query row `i`. */
static void run_of(const struct call *c, const struct item *item, size_t i, int32_t *from,
                   int32_t *to) {
  const int64_t place = (int64_t)i + item->offset;
  int64_t low = 0, high = (int64_t)item->k;
  if (c->lens) high = lesser(high, c->lens[item->q_row + i]);
  if (c->causal) high = lesser(high, place + 1);
  if (c->window_right >= 0) high = lesser(high, place + c->window_right + 1);
  if (c->window_left >= 0 && place - c->window_left > 0) low = place - c->window_left;
  if (low >= high) low = high = 0;
  *from = (int32_t)low;
  *to = (int32_t)high;
}

/* Narrows the run to its first and last unmasked key; marks the keys that are seen. */
static void look_through(const uint8_t *mask, uint8_t *seen, int32_t *from, int32_t *to) {
  while (*from < *to && !mask[*from]) (*from)++;
  while (*from < *to && !mask[*to - 1]) (*to)--;
  for (int32_t j = *from; j < *to; j++) seen[j] |= mask[j] != 0;
}

/* The same in all heads that are needed: the least run that holds theirs all. False if one of them
 * sees nothing. */
static bool look_through_masks(const struct call *c, const struct item *item, size_t i,
                               size_t heads, const struct live *live, uint8_t *seen, int32_t *from,
                               int32_t *to) {
  const size_t masks = c->mask_per_head ? heads : 1;
  int32_t least = *to, most = *from;
  bool all_see = true;
  for (size_t head = 0; head < masks; head++) {
    int32_t first = *from, end = *to;
    if (c->mask_per_head && !head_is_live(live, head)) continue;
    look_through(mask_row(c, item, head, i), seen, &first, &end);
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

/* Marks what the runs cover that begin at each key. */
static void mark_runs(const int32_t *reach, uint8_t *seen, size_t keys) {
  int32_t end = 0;
  for (size_t j = 0; j < keys; j++) {
    end = reach[j] > end ? reach[j] : end;
    seen[j] = (int32_t)j < end;
  }
}

void visible_look(struct visible *v, const struct call *c, size_t index, size_t heads,
                  const struct live *live) {
  const struct item *item = &c->item[index];
  struct visible_item *out = &v->item[index];
  uint8_t *seen = v->seen + item->k_row;
  int32_t *reach = v->reach + item->k_row;
  if (!c->mask) memset(reach, 0, item->k * sizeof *reach);
  for (size_t i = 0; i < item->q; i++) {
    int32_t from, to;
    run_of(c, item, i, &from, &to);
    if (c->mask)
      out->some_blind |= !look_through_masks(c, item, i, heads, live, seen, &from, &to);
    else if (from < to && to > reach[from])
      reach[from] = to;
    if (from == to) {
      out->some_blind = true;
      from = to = 0;
    }
    v->from[item->q_row + i] = from;
    v->to[item->q_row + i] = to;
    out->key_end = size_max(out->key_end, (size_t)to);
  }
  if (!c->mask) mark_runs(reach, seen, item->k);
}

enum status visible_reserve(struct visible *v, const struct call *c, struct arena *a,
                            struct error *e) {
  v->item = arena_alloc(a, c->items, sizeof *v->item, e);
  v->from = arena_alloc(a, c->q_rows, sizeof *v->from, e);
  v->to = arena_alloc(a, c->q_rows, sizeof *v->to, e);
  v->seen = arena_alloc(a, c->k_rows, sizeof *v->seen, e);
  v->reach = arena_alloc(a, c->k_rows, sizeof *v->reach, e);
  if (e->status) return e->status;
  memset(v->item, 0, c->items * sizeof *v->item);
  memset(v->seen, 0, c->k_rows);
  return STATUS_OK;
}
