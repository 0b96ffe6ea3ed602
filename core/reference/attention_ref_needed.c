/* attention_ref_needed: which heads and rows of an item take part in the answer. */
#include <string.h>

#include "core/attention/trace.h"
#include "core/reference/attention_ref_parts.h"

/* --- heads --- */

static bool head_is_masked(const struct ref_item *item, size_t head) {
  return item->head_mask && item->head_mask[head] == 0;
}

/* A head of keys is needed with any of the heads that share it. Values show in the outputs and in a
 * trace alone, so those of other masked heads are never needed. */
static void find_heads(struct ref_work *r) {
  const struct ref_item *item = r->item;
  for (enum role role = ROLE_QUERY; role <= ROLE_VALUE; role++)
    memset(r->rows[role].head_needed, 0, r->rows[role].heads);
  for (size_t head = 0; head < r->s->heads; head++) {
    const size_t key_head = ref_key_head(r->s, head);
    const bool traced = item->trace && item->trace->head == head;
    const bool masked = head_is_masked(item, head) && !traced;
    const bool needed = !masked || item->masked_heads;
    r->rows[ROLE_QUERY].head_needed[head] = needed;
    r->rows[ROLE_KEY].head_needed[key_head] |= needed;
    r->rows[ROLE_VALUE].head_needed[key_head] |= !masked;
  }
}

/* --- rows --- */

/* Notes what query row `i` sees in a head; returns whether that is anything. */
static bool note_seen(struct ref_work *r, size_t head, size_t i) {
  const size_t k = r->item->k;
  const uint8_t *seen = r->item->seen + (head * r->item->q + i) * k;
  bool any = false;
  for (size_t j = 0; j < k; j++) {
    r->rows[ROLE_KEY].row_needed[j] |= seen[j];
    any |= seen[j];
  }
  r->rows[ROLE_QUERY].row_needed[i] |= any;
  return any;
}

/* A query that sees something, a key that is seen and its value are needed, each in a head that is
 * needed; and all values, where a query that sees nothing weighs all keys alike. */
static void find_rows(struct ref_work *r) {
  const struct ref_item *item = r->item;
  bool blind = false;
  memset(r->rows[ROLE_QUERY].row_needed, 0, item->q);
  memset(r->rows[ROLE_KEY].row_needed, 0, item->k);
  for (size_t head = 0; head < r->s->heads; head++)
    for (size_t i = 0; r->rows[ROLE_QUERY].head_needed[head] && i < item->q; i++)
      blind |= !note_seen(r, head, i);
  for (size_t j = 0; j < item->k; j++)
    r->rows[ROLE_VALUE].row_needed[j] =
        r->rows[ROLE_KEY].row_needed[j] || (blind && item->uniform_rows);
}

void ref_find_needed(struct ref_work *r) {
  find_heads(r);
  find_rows(r);
}
