/* sequences: those of all requests that are under way, and what is kept for them. */
#ifndef SERVER_SEQUENCES_H
#define SERVER_SEQUENCES_H

#include "core/base/arena.h"

struct sequences {
  struct budget running; /* how many; its limit is max_sequences */
  atomic_size_t kept_bytes;
};

/* What a request has of them; zeroed, nothing, which costs nothing to give back. */
struct sequences_share {
  size_t count, bytes;
};

/* Takes a share. STATUS_QUEUE_FULL where there would be too many: nothing is taken then. */
enum status sequences_begin(struct sequences *s, struct sequences_share share, struct error *e);

/* Gives it back, once. */
void sequences_end(struct sequences *s, struct sequences_share *share);

#endif
