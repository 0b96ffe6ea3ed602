/* lobby: the line of requests that wait for a place in a full queue. Their headers are checked,
 * their bodies not read. Each I/O thread has a lobby of its own, which no other thread touches.
 *
 * Most clients repeat a refused request at once, and the repetitions take the time that the answers
 * of others need. Waiting in the lobby costs nothing, and most requests get their answer after
 * all. */
#ifndef SERVER_LOBBY_H
#define SERVER_LOBBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/pool.h"

struct lobby_waiter {
  struct lobby_waiter *next, *previous;
  bool waits;      /* it is in the line */
  bool enters;     /* it was let in, and is not yet in the queue */
  uint64_t called; /* in which turn it was let in */
  uint64_t until;  /* it waits no longer than this; clock_now */
};

struct lobby {
  const struct pool *pool; /* set before the first call */
  size_t threads; /* that share the free places of the queue. A request that was let in occupies its
                     place only once its body has arrived, so each thread counts its own */
  struct lobby_waiter *first, *last;
  size_t entering;          /* let in during this turn, and not yet in the queue */
  uint64_t turn, turn_ends; /* `entering` begins anew with each turn, so that requests whose bodies
                               are slow to arrive block no others for long */
};

/* Must a request wait for a place now? */
bool lobby_is_needed(const struct lobby *l);

/* Puts the waiter at the end of the line, for at most `most_ms`. */
void lobby_join(struct lobby *l, struct lobby_waiter *w, uint64_t now, uint64_t most_ms);

/* The request of this waiter waits no longer, has reached the queue, or never will. Fine at any
 * time, also for a zeroed waiter. */
void lobby_leave(struct lobby *l, struct lobby_waiter *w);

/* Takes the first waiter out of the line if there is a place for it (`enters`), or if it has waited
 * as long as it may. NULL: it has to wait on, or the line is empty. */
struct lobby_waiter *lobby_call(struct lobby *l, uint64_t now);

/* Takes the first waiter out of the line. NULL: the line is empty. */
struct lobby_waiter *lobby_close(struct lobby *l);

#endif
