/* connection: our record of each open connection, and the reaper, a thread that ends connections
 * which take too long.
 *
 * A connection's state is one word: its phase, and when it entered it. The I/O thread that owns the
 * connection moves it from phase to phase; the reaper may only end it. Both do so by compare and
 * exchange, so that each knows which of them was first. The reaper touches a descriptor only with
 * the list locked, and a connection leaves the list before libmicrohttpd closes its descriptor. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings/config.h"
#include "core/base/keep.h"
#include "core/base/status.h"
#include "server/http/reply.h"
#include "server/watch/metrics.h"
#include "server/watch/pulse.h"

enum connection_phase {
  CONNECTION_FRESH,  /* accepted, no request yet */
  CONNECTION_IDLE,   /* between requests */
  CONNECTION_HEADER, /* the header of a later request has begun to arrive */
  CONNECTION_LOBBY,  /* the header is complete, the body waits unread for a place in the queue */
  CONNECTION_BODY,   /* the header is complete, the body arrives */
  CONNECTION_QUEUED, /* the request is complete, its response is being computed */
  CONNECTION_ANSWER, /* the response is being sent */
  /* Ended, mostly by the reaper. Bytes that still arrive are discarded. */
  CONNECTION_SLOW_HEADER,
  CONNECTION_SLOW_BODY,
  CONNECTION_SLOW_READER,
  CONNECTION_DRAINED,   /* the server stops, and the request is incomplete */
  CONNECTION_REFUSED,   /* rejected by the I/O thread, in the middle of a body */
  CONNECTION_OVER_IDLE, /* idle for too long; a request on its way still gets its response */
};

struct connection {
  int fd;
  uint64_t serial;        /* counts connections; part of request identifiers */
  _Atomic uint64_t state; /* the phase, and when it was entered */

  /* Members for an error that the reaper sends while a request arrives. */
  const char *request_id;
  const char *origin;     /* the page that may read the response (cors_allow), or NULL */
  enum error_form errors; /* the form that its path has */

  bool half_closed; /* the client sends no more */
  unsigned shown;   /* how often libmicrohttpd was shown that end */
  bool discard; /* the response is sent before the body is read, which is read after the close */
  struct connection *next, *previous;

  /* The reaper's last look at the socket: the state then, the bytes that had arrived since the
   * connection was opened, and the time (ms) of the last change. */
  uint64_t looked_state, looked_bytes, looked_ms;
};

struct connections;

/* The longest time of each phase. */
struct connection_times {
  uint64_t header_ms, body_ms, answer_ms, idle_ms;
};

/* The reaper also trims `keep`, which may be NULL. */
struct connections *connections_new(const struct connection_times *t, struct metrics *m,
                                    struct keep *keep, struct error *e);
void connections_free(struct connections *all); /* no connection is open */

/* Called by the I/O thread after the descriptor was opened, and before it is closed. */
void connection_open(struct connections *all, struct connection *c, int fd);
void connection_close(struct connections *all, struct connection *c);

/* Moves the connection to a phase, and returns the phase it was in. If that is one of the ended
 * phases, the connection stays in it, and the caller closes it (except for CONNECTION_OVER_IDLE).
 */
enum connection_phase connection_enter(struct connection *c, enum connection_phase phase);

/* To be called when the client has closed its half. While more of a request has to arrive,
 * libmicrohttpd is shown the end of stream, which it sees after all earlier bytes; then this
 * returns true, and has to be called again after libmicrohttpd has run. False: there is nothing to
 * do now; a complete request gets its response first. */
bool connection_half_closed(struct connection *c);

enum connection_phase connection_phase(struct connection *c);

static inline bool connection_is_ended(enum connection_phase p) {
  return p >= CONNECTION_SLOW_HEADER && p <= CONNECTION_REFUSED;
}

/* Sends the error without libmicrohttpd, while the request still arrives, and ends the sending half
 * of the connection. libmicrohttpd must have sent nothing for this request. NULL for `request_id`:
 * the response gets a new one. */
void connection_refuse(struct connection *c, const struct error *e, const char *request_id);

/* Owns a descriptor on which a response was sent, and closes it once the client had time to read
 * that. */
void connections_linger(struct connections *all, int fd);

/* How many connections have a request that arrives, waits, is computed or gets its response. */
size_t connections_busy(struct connections *all);
size_t connections_queued(struct connections *all); /* in phase QUEUED: suspended, or about to be */
size_t connections_count(struct connections *all);
uint64_t connections_opened(struct connections *all); /* since the start */

/* If `most` or more connections are not ended yet, ends the one that has waited longest for a
 * request; if none waits, the one whose response has taken longest. Clients that connect faster
 * than the ended connections are closed do not end all others. */
void connections_make_room(struct connections *all, size_t most);

/* Whether the reaper still passes through its loop. It answers some microseconds after the
 * question. */
void connections_ask(struct connections *all);
bool connections_answered(struct connections *all);

/* From now on ends connections that are idle, or fresh and silent, and soon also rejects those
 * whose header is incomplete, or whose body stops arriving. */
void connections_drain(struct connections *all);

/* Rejects, in a set that drains, every incomplete request. Returns how many. */
size_t connections_refuse_incomplete(struct connections *all);

#endif
