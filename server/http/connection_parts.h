/* connection_parts: what is known of the connections, for those who open them and for the reaper.
 * Private to connection. */
#ifndef SERVER_CONNECTION_PARTS_H
#define SERVER_CONNECTION_PARTS_H

#include <pthread.h>
#include <sys/socket.h>

#include "core/run/clock.h"
#include "server/http/connection.h"

enum {
  CONNECTION_TICK_MS = 100, /* how often the reaper looks, at least */
  LINGER_MAX = 128,
  LINGER_MS = 1000,
  LINGER_BYTES = 16 << 20, /* a proxy sends some megabytes before it looks for an answer */
};

/* A descriptor whose answer is sent and whose client may still be sending. */
struct leaving {
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
  _Atomic uint64_t draining; /* since when; 0: not */
  bool running;
  pthread_t thread;
  struct pulse pulse;
  pthread_mutex_t lock; /* of all that follows */
  struct connection *first;
  size_t count;
  uint64_t serial;
  size_t lingering;
  struct leaving leaving[LINGER_MAX];
};

/* --- a connection's state: since when (ms), and its phase --- */

enum { PHASE_BITS = 4 };

static inline uint64_t now_ms(void) { return clock_now() / CLOCK_MS; }

static inline uint64_t state_of(enum connection_phase phase) {
  return now_ms() << PHASE_BITS | phase;
}
static inline enum connection_phase phase_of(uint64_t state) {
  return (enum connection_phase)(state & ((1u << PHASE_BITS) - 1));
}
static inline uint64_t since(uint64_t state) { return state >> PHASE_BITS; }

/* False: somebody else has moved it meanwhile. */
static inline bool move_to(struct connection *c, uint64_t seen, enum connection_phase phase) {
  return atomic_compare_exchange_strong(&c->state, &seen, state_of(phase));
}

/* libmicrohttpd waits for edges and misses the end of stream that came together with the last
 * bytes; shutting the receiving half makes another edge and loses nothing that has arrived. */
static inline void show_end(const struct connection *c) { shutdown(c->fd, SHUT_RD); }

/* The thread of a set of connections: `of` is the set. */
void *connection_reaper(void *of);

#endif
