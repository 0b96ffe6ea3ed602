/* waiting: the requests of an I/O thread that wait, each until a time: in the lobby for a place in
 * the queue of the pool, in the silence for more of a stream to be computed.
 *
 * Both belong to one I/O thread; no other thread touches them. Times are of clock_now. */
#ifndef SERVER_WAITING_H
#define SERVER_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/pool.h"

/* A list in the order of arrival; a member of a request is its place there. */
struct waiter {
  struct waiter *next, *previous;
  uint64_t until;
  bool waits; /* it is in the list */
};
struct waiting {
  struct waiter *first, *last;
};

/* --- the lobby: requests whose header is checked and whose body is not read ---
 *
 * Most clients repeat a rejected request at once, and the repetitions take the time that other
 * responses need. Waiting in the lobby costs nothing, and most requests get a place after all. */

struct lobby_waiter {
  struct waiter line; /* the first member */
  bool enters;        /* it was let in, and is not yet in the queue */
  uint64_t called;    /* the turn in which it was let in */
};

struct lobby {
  const struct pool *pool; /* set before the first call */
  size_t threads; /* that share the free places of the queue. A request that was let in occupies its
                     place only once its body has arrived, so each thread counts its own */
  struct waiting line;
  size_t entering;          /* let in during this turn, and not yet in the queue */
  uint64_t turn, turn_ends; /* `entering` begins anew with each turn, so that requests whose bodies
                               are slow to arrive block no others for long */
};

/* Whether a request has to wait for a place now. */
bool lobby_is_needed(const struct lobby *l);

/* Puts the waiter at the end of the line, for at most `most_ms`. */
void lobby_join(struct lobby *l, struct lobby_waiter *w, uint64_t now, uint64_t most_ms);

/* The request of this waiter waits no longer, has reached the queue, or never will. Valid at any
 * time, also for a zeroed waiter. */
void lobby_leave(struct lobby *l, struct lobby_waiter *w);

/* Removes the first waiter if there is a place for it (`enters`), or if its time is over. NULL: it
 * has to wait longer, or the line is empty. */
struct lobby_waiter *lobby_call(struct lobby *l, uint64_t now);

/* Removes the first waiter. NULL: the line is empty. */
struct lobby_waiter *lobby_close(struct lobby *l);

/* --- the silence: streams that have nothing to send ---
 *
 * A stream that was silent for `most` sends a comment: proxies would close the connection, or the
 * server never learn that the client has left. */

struct silent {
  struct waiter line; /* the first member */
  bool over;          /* it was removed by silence_over */
};

struct silence {
  uint64_t most; /* nanoseconds; set before the first call */
  struct waiting line;
};

void silence_begin(struct silence *s, struct silent *w, uint64_t now);
void silence_end(struct silence *s, struct silent *w); /* valid at any time, also if zeroed */

/* Removes the first stream that has been silent for `most`. NULL: there is none. */
struct silent *silence_over(struct silence *s, uint64_t now);

/* Milliseconds until silence_over has a stream; -1: no stream is silent. */
int silence_left_ms(const struct silence *s, uint64_t now);

#endif
