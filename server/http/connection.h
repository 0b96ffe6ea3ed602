/* connection: what is known of each open connection beside libmicrohttpd, and the reaper that ends
 * what takes too long.
 *
 * A connection's state is one word: its phase and since when. The I/O thread that owns the
 * connection moves it from phase to phase; the reaper may only end it, by compare and exchange, so
 * each of the two knows who was first. The reaper touches a descriptor only under the lock of the
 * list, and a connection leaves the list before libmicrohttpd closes its descriptor. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings/config.h"
#include "core/run/keep.h"
#include "core/run/status.h"
#include "server/watch/metrics.h"
#include "server/watch/pulse.h"

enum connection_phase {
  CONNECTION_FRESH,  /* accepted, no request yet */
  CONNECTION_IDLE,   /* between requests */
  CONNECTION_HEAD,   /* a later request has begun to arrive */
  CONNECTION_BODY,   /* the head is there, the body arrives */
  CONNECTION_QUEUED, /* the request is there, the answer is made */
  CONNECTION_ANSWER, /* the answer is sent */
  /* Ended, mostly by the reaper. What still arrives is discarded. */
  CONNECTION_SLOW_HEAD,
  CONNECTION_SLOW_BODY,
  CONNECTION_SLOW_READER,
  CONNECTION_REFUSED,   /* by the I/O thread, in the middle of a body */
  CONNECTION_OVER_IDLE, /* not quite ended: a request that was on its way is still answered */
};

struct connection {
  int fd;
  uint64_t serial;        /* counts connections; part of request identifiers */
  _Atomic uint64_t state; /* phase and since when */
  const char *request_id; /* of the request whose body arrives */
  const char *origin;     /* that one's page, if it may read the answer (cors_allow), or NULL */
  bool v2;                /* that one is of the Open Inference Protocol */
  bool half_closed;       /* the client sends no more */
  unsigned shown;         /* so often to libmicrohttpd */
  bool discard;           /* answered before the body was read: read it after the close */
  /* The reaper's own. */
  struct connection *next, *previous;
  uint64_t idle_state, idle_bytes;
};

struct connections;

/* How long each phase may take. */
struct connection_times {
  uint64_t header_ms, body_ms, answer_ms, idle_ms;
};

/* The reaper also looks after `keep`, which may be NULL. */
struct connections *connections_new(const struct connection_times *t, struct metrics *m,
                                    struct keep *keep, struct error *e);
void connections_free(struct connections *all); /* none is open */

/* The I/O thread: the descriptor has just been opened; it is about to be closed. */
void connection_open(struct connections *all, struct connection *c, int fd);
void connection_close(struct connections *all, struct connection *c);

/* Enters a phase; returns the one it was in. If that is one of the ended phases, the connection
 * stays ended, and the caller closes it (but see CONNECTION_OVER_IDLE). */
enum connection_phase connection_enter(struct connection *c, enum connection_phase phase);

/* The client has closed its half. Where more is awaited from it, libmicrohttpd gets to see the end,
 * once it has read what came before: true, call again after it has run. False: there is nothing to
 * do for now; a request that is there is answered first. */
bool connection_half_closed(struct connection *c);

enum connection_phase connection_phase(struct connection *c);

static inline bool connection_is_ended(enum connection_phase p) {
  return p >= CONNECTION_SLOW_HEAD && p <= CONNECTION_REFUSED;
}

/* Answers with a message of our own and ends the connection's sending half, on behalf of a body
 * that is still arriving; libmicrohttpd must have sent nothing for this request. Without a
 * `request_id` there is a new one. */
void connection_refuse(struct connection *c, const struct error *e, const char *request_id);

/* Takes a descriptor whose answer is sent, and closes it once the client had time to read it. */
void connections_linger(struct connections *all, int fd);

/* Connections that are in work: with a request on its way, queued, or being answered. */
size_t connections_busy(struct connections *all);
size_t connections_queued(struct connections *all); /* in phase QUEUED: libmicrohttpd holds them */
size_t connections_count(struct connections *all);
uint64_t connections_opened(struct connections *all); /* since the start */

/* Ends the one that has waited the longest for a request; where none waits, the one that has taken
 * the longest for its answer. */
void connections_make_room(struct connections *all);

/* Does the reaper still turn? It answers some microseconds after it was asked. */
void connections_ask(struct connections *all);
bool connections_answered(struct connections *all);

/* From now on idle connections are ended, fresh ones that stay silent, and soon those whose head
 * is not whole. */
void connections_drain(struct connections *all);

#endif
