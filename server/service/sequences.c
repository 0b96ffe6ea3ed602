/* sequences: those of all requests that are under way. */
#include "server/service/sequences.h"

enum status sequences_begin(struct sequences *s, struct sequences_share share, struct error *e) {
  if (!budget_charge(&s->running, share.count))
    return error_set(e, STATUS_QUEUE_FULL,
                     "%zu sequences are in progress, and %zu more would exceed max_sequences, %zu",
                     atomic_load(&s->running.used), share.count, s->running.limit);
  atomic_fetch_add(&s->kept_bytes, share.bytes);
  return STATUS_OK;
}

void sequences_end(struct sequences *s, struct sequences_share *share) {
  if (share->count == 0) return;
  budget_return(&s->running, share->count);
  atomic_fetch_sub(&s->kept_bytes, share->bytes);
  *share = (struct sequences_share){0};
}
