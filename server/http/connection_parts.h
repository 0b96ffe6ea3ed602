/* connection_parts: the set of all connections, and a connection's state as one word. Private to
 * connection.c and connection_reaper.c. */
#ifndef SERVER_CONNECTION_PARTS_H
#define SERVER_CONNECTION_PARTS_H

#include <pthread.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "server/http/connection.h"

enum {
  CONNECTION_TICK_MS = 100, /* the longest time between two looks of the reaper */
  LINGER_MAX = 128,
  LINGER_MS = 1000,
  LINGER_BYTES = 16 << 20, /* a proxy sends some megabytes before it looks for a response */
};

/* A descriptor on which a response was sent, while its client may still be sending. */
struct connection_leaving {
  int fd;
  uint64_t until; /* ms */
  size_t bytes;   /* that may still be discarded */
};

struct connections {
  struct connection_times times;
  struct metrics *metrics;
  struct keep *keep; /* or NULL */
  uint64_t tick_ms;
  int wake; /* eventfd */
  atomic_bool stop;
  _Atomic uint64_t draining; /* the time at which it began, in ms; 0: not draining */
  bool running;
  pthread_t thread;
  struct pulse pulse;
  pthread_mutex_t lock; /* protects all members that follow */
  struct connection *first;
  size_t count;
  uint64_t serial;
  size_t lingering;
  struct connection_leaving leaving[LINGER_MAX];
};

/* --- a connection's state: the time at which it entered its phase (ms), and the phase --- */

enum { CONNECTION_PHASE_BITS = 4 };

static inline uint64_t connection_now_ms(void) { return clock_now() / CLOCK_MS; }

static inline uint64_t connection_state_now(enum connection_phase phase) {
  return connection_now_ms() << CONNECTION_PHASE_BITS | phase;
}
static inline enum connection_phase connection_state_phase(uint64_t state) {
  return (enum connection_phase)(state & ((1u << CONNECTION_PHASE_BITS) - 1));
}
static inline uint64_t connection_state_since_ms(uint64_t state) {
  return state >> CONNECTION_PHASE_BITS;
}

/* Moves a connection out of the state `seen`. False: another thread has moved it meanwhile. */
static inline bool connection_move(struct connection *c, uint64_t seen,
                                   enum connection_phase phase) {
  return atomic_compare_exchange_strong(&c->state, &seen, connection_state_now(phase));
}

/* libmicrohttpd waits for edges and misses an end of stream that comes together with the last
 * bytes. Shutting the receiving half makes another edge, and loses no bytes that have arrived. */
static inline void connection_show_end(const struct connection *c) { shutdown(c->fd, SHUT_RD); }

/* The reaper's thread; `set` is the struct connections. */
void *connection_reaper(void *set);

#endif
