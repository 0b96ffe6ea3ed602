/* stop: the shutdown of a server that serves. */
#include "server/life/stop.h"

#include <signal.h>

#include "core/base/clock.h"
#include "server/life/signals.h"

enum {
  EXIT_CUT = 3,        /* the exit status if work was abandoned */
  WAIT_MS = 5,         /* between two looks at the work that is left */
  ABANDONED_MS = 1000, /* for the responses to abandoned work to be sent */
  STUCK_MS = 10000,    /* for abandoned work to stop */
  PROBE_MS = 200,      /* for the responses to the last probes */
};

void stop_wait(struct stop *s) {
  const struct timespec moment = {.tv_nsec = WAIT_MS * CLOCK_MS};
  const int got = signals_next(&moment);
  if (got == SIGTERM || got == SIGINT) s->second = got;
  supervisor_beat(s->supervisor);
}

static uint64_t ms_from_now(uint64_t ms) { return clock_now() + ms * CLOCK_MS; }

uint64_t stop_longest_ms(const struct config *c) {
  return c->drain_delay_ms + c->drain_ms + 2 * STUCK_MS + ABANDONED_MS + PROBE_MS;
}

/* Waits until no connection is busy at two looks in a row: one may just be between two phases. */
static bool wait_until_quiet(struct stop *s, struct httpd *h, struct door *door, uint64_t until) {
  for (int quiet = 0; clock_now() < until && !s->second;) {
    const bool busy = httpd_arriving(h) || connections_busy(door->connections);
    quiet = busy ? 0 : quiet + 1;
    if (quiet == 2) return true;
    stop_wait(s);
  }
  return false;
}

/* Rejects incomplete requests at the end of a drain. Returns the exit status for all others that
 * are left, which are cut off. */
static int cut_off(struct stop *s, struct httpd *h, struct door *door) {
  struct log *log = s->server->log;
  if (s->second) {
    log_line(log, LOG_WARNING, "second signal received: aborting %zu connections",
             connections_busy(door->connections));
    return EXIT_CUT;
  }
  const size_t refused = connections_refuse_incomplete(door->connections);
  size_t cut = httpd_arriving(h);
  cut += connections_busy(door->connections);
  log_line(log, LOG_WARNING,
           "drain timeout (drain_ms): aborting %zu requests, rejecting %zu incomplete ones", cut,
           refused);
  return cut ? EXIT_CUT : 0;
}

/* Abandons the work that is left, and closes the pool: a request that arrived between two looks at
 * the connections does not wait then. True if libmicrohttpd may be stopped. */
static bool close_pool(struct stop *s, struct httpd *h, struct door *door, bool cut) {
  pool_abandon(s->server->service.pool);
  /* With a suspended connection libmicrohttpd must not be stopped. */
  const uint64_t stuck = ms_from_now(STUCK_MS);
  for (; connections_queued(door->connections); stop_wait(s))
    if (clock_now() >= stuck || s->second) return false;
  const uint64_t until = ms_from_now(ABANDONED_MS);
  wait_until_quiet(s, h, door, until);
  /* A client closes its connection once it has read that its request was rejected. */
  while (cut && connections_count(door->connections) && clock_now() < until && !s->second)
    stop_wait(s);
  return !s->second;
}

int stop_serving(struct stop *s, struct httpd *h, bool *at_once) {
  struct server *server = s->server;
  struct door *door = &server->door[DOOR_MAIN];
  const uint64_t delay = ms_from_now(server->config->drain_delay_ms);
  while (clock_now() < delay && !s->second) stop_wait(s);
  const uint64_t until = ms_from_now(server->config->drain_ms);
  httpd_stop_accepting(h);
  atomic_store(&door->draining, true);
  connections_drain(door->connections);
  const bool quiet = wait_until_quiet(s, h, door, until);
  const int status = quiet ? 0 : cut_off(s, h, door);
  /* pool_drain: the last worker may still be finishing its last job. */
  *at_once = s->second || !close_pool(s, h, door, !quiet) ||
             !pool_drain(server->service.pool, ms_from_now(STUCK_MS));
  return *at_once ? EXIT_CUT : status;
}

void stop_admin(struct stop *s, struct httpd *h) {
  struct door *door = &s->server->door[DOOR_ADMIN];
  httpd_stop_accepting(h);
  atomic_store(&door->draining, true);
  connections_drain(door->connections);
  if (!wait_until_quiet(s, h, door, ms_from_now(PROBE_MS)))
    connections_refuse_incomplete(door->connections);
}
