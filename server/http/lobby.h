/* lobby: requests that found the queue full wait for a place, with their heads judged and their
 * bodies not read. Each I/O thread has one, and nobody else touches it.
 *
 * A refusal makes most clients come again at once, and then they take the time that the others'
 * answers need. Here they wait, which costs nothing, and most get their answer after all. */
#ifndef SERVER_LOBBY_H
#define SERVER_LOBBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/pool.h"

struct waiter {
  struct waiter *next, *previous;
  bool waits;      /* is it in the list? */
  bool enters;     /* called in, and not yet in the queue */
  uint64_t called; /* in which turn */
  uint64_t until;  /* clock_now */
};

struct lobby {
  const struct pool *pool; /* set before the first call */
  size_t threads; /* among whom the free places of the queue are shared: those on their way in have
                     not got theirs yet */
  struct waiter *first, *last;
  size_t entering;
  uint64_t turn, turn_ends; /* those that dawdle on their way in count for one turn only */
};

/* Has a request to wait for a place now? */
bool lobby_is_needed(const struct lobby *l);

/* At the end of the line, for at most so long. */
void lobby_join(struct lobby *l, struct waiter *w, uint64_t now, uint64_t most_ms);

/* It waits no longer, or has reached the queue, or will not. Fine at any time. */
void lobby_leave(struct lobby *l, struct waiter *w);

/* Takes out the next one whose turn has come: there is a place, or it has waited as long as it may.
 * NULL: nobody for now. */
struct waiter *lobby_call(struct lobby *l, uint64_t now);

/* Takes out the first, whoever it is; NULL: nobody waits. */
struct waiter *lobby_close(struct lobby *l);

#endif
