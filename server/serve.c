/* serve: start, signals, drain, stop.
 *
 * The order of a stop: readiness says 503 and each answer ends its connection, so that by the end
 * of drain_delay_ms none is kept that is in use; the backlog is accepted and the listening socket
 * closed; kept connections get no further work in; what was accepted is answered; idle connections
 * are ended; the pool takes no more; then libmicrohttpd, the reaper, the pool and the models go, in
 * this order. */
#include "server/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "config/registry.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "server/announce.h"
#include "server/httpd.h"
#include "server/reload.h"
#include "server/signals.h"
#include "server/version.h"

enum {
  EXIT_CUT = 3,        /* work was abandoned */
  STEP_MS = 5,         /* how often a draining server looks */
  RELOAD_MS = 100,     /* how often one that has reloaded looks for models that nobody uses */
  ABANDONED_MS = 1000, /* for the answers of abandoned work to leave */
  STUCK_MS = 10000,    /* for abandoned work to stop */
  LOADING_MS = 200,    /* for models that nobody will use to be loaded */
};

/* All that threads may still look at when serve_main leaves at once. */
struct serving {
  struct server server;
  const struct config *config;
  const struct invocation *called;
  struct httpd *http;
  struct reload reload;
  struct aside start; /* loads the first models */
  struct error start_error;
  int signal; /* the one that ends it all, or 0 */
};

void serve_complain(const struct error *e) { fprintf(stderr, "attend: %s\n", e->detail); }

static int exit_status(const struct error *e) { return e->status == STATUS_CONFIG ? 2 : 1; }

/* --- before the first connection --- */

static enum status raise_descriptors(const struct config *c, size_t io_threads, struct error *e) {
  struct rlimit now;
  rlim_t need = httpd_descriptors(c, io_threads);
  if (getrlimit(RLIMIT_NOFILE, &now)) return error_set(e, STATUS_SYSTEM, "getrlimit failed");
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < need)
    return error_set(e, STATUS_CONFIG,
                     "max_connections: %llu connections need %llu descriptors, and the hard limit "
                     "(ulimit -Hn) is %llu",
                     (unsigned long long)c->max_connections, (unsigned long long)need,
                     (unsigned long long)now.rlim_max);
  now.rlim_cur = now.rlim_max;
  setrlimit(RLIMIT_NOFILE, &now); /* refused only where the soft limit is as good */
  return STATUS_OK;
}

static bool uses_openblas(const struct registry *r) {
  for (size_t i = 0; i < registry_count(r); i++)
    if (!strcmp(layer_engine(registry_at(r, i)->layer), "openblas")) return true;
  return false;
}

/* Starts the program again, once, when OpenBLAS took a new processor for an old one: it computes
 * several times slower then, and can only be told otherwise before main. */
static void correct_openblas(const struct server *s, char **argv) {
  const struct gemm_blas blas = gemm_blas();
  const char *right = blas.better;
  struct models_hold hold = models_hold(s->service.models, 0);
  const bool used = uses_openblas(hold.registry);
  models_release(&hold);
  if (!used || !right) return;
  if (getenv("OPENBLAS_CORETYPE")) {
    log_line(s->log, LOG_WARNING,
             "OpenBLAS computes as for %s; OPENBLAS_CORETYPE=%s would be faster", blas.core, right);
    return;
  }
  fprintf(stderr,
          "level=warning msg=\"OpenBLAS took this processor for %s: starting again with "
          "OPENBLAS_CORETYPE=%s\"\n",
          blas.core, right);
  setenv("OPENBLAS_CORETYPE", right, 1);
  execv("/proc/self/exe", argv);
  log_line(s->log, LOG_WARNING, "cannot start again: %s", strerror(errno));
}

static void start_service(void *of) {
  struct serving *s = of;
  service_start(&s->server.service, s->config, s->config->io_threads, &s->start_error);
}

/* Takes the next signal, within a time or when one comes. */
static void look_at_signals(struct serving *s, const struct timespec *within) {
  const int got = signals_next(within);
  if (got == SIGHUP)
    reload_ask(&s->reload);
  else
    s->signal = got;
}

/* Loads the models and starts the pool, unless a signal ends that first. */
static enum status load_first(struct serving *s, struct error *e) {
  static const struct timespec none = {0};
  if (aside_start(&s->start, start_service, s, false, e)) return e->status;
  for (bool done = false; !done && !s->signal;) {
    done = aside_rests(&s->start);
    look_at_signals(s, done ? &none : NULL);
  }
  if (!aside_rests(&s->start)) return STATUS_OK;
  aside_join(&s->start);
  *e = s->start_error;
  return e->status;
}

/* Afterwards there is a signal, or all that a server needs but httpd. */
static enum status server_open(struct serving *all, struct error *e) {
  struct server *s = &all->server;
  const struct config *c = all->config;
  s->config = c;
  if (getrandom(&s->id_prefix, sizeof s->id_prefix, GRND_NONBLOCK) != sizeof s->id_prefix)
    s->id_prefix = (uint32_t)clock_now() ^ (uint32_t)getpid() << 16;
  s->log = log_new(c->log_level, c->access_log, e);
  if (!s->log) return e->status;
  if (load_first(all, e) || all->signal) return e->status;
  s->io_threads = s->service.submitters;
  if (raise_descriptors(c, s->io_threads, e)) return e->status;
  correct_openblas(s, all->called->argv);
  s->metrics = metrics_new(s->io_threads + 1, e);
  if (!s->metrics) return e->status;
  metrics_loaded(s->metrics);
  s->connections = connections_new(c, s->metrics, s->service.budget.keep, e);
  return e->status;
}

static void announce(struct server *s, const struct httpd *h) {
  log_line(s->log, LOG_INFO, "attend %s (%s), %zu workers, %zu i/o threads, cpu %s, text %s",
           version_number(), version_commit(), s->service.workers, s->io_threads,
           cpu_level_name(cpu_level()), cpu_level_name(cpu_text_level()));
  struct models_hold hold = models_hold(s->service.models, 0);
  for (size_t i = 0; i < registry_count(hold.registry); i++)
    announce_model(s->log, registry_at(hold.registry, i));
  models_release(&hold);
  printf("listening on %s\n", httpd_address(h));
  fflush(stdout);
}

/* --- signals --- */

/* Serves, and reloads as asked, until a signal ends that. */
static void wait_for_stop(struct serving *s) {
  static const struct timespec soon = {.tv_nsec = RELOAD_MS * CLOCK_MS};
  while (!s->signal) {
    const bool again = reload_step(&s->reload);
    look_at_signals(s, again ? &soon : NULL);
  }
}

/* A stop on its way: a second signal ends all waiting. */
struct drain {
  struct server *server;
  int second; /* the second signal, or 0 */
};

static void drain_step(struct drain *d) {
  const struct timespec step = {.tv_nsec = STEP_MS * CLOCK_MS};
  const int got = signals_next(&step);
  if (got == SIGTERM || got == SIGINT) d->second = got;
}

/* --- the stop --- */

static uint64_t in_ms(uint64_t ms) { return clock_now() + ms * CLOCK_MS; }

/* Waits until nothing is in work, twice in a row: a connection may just be between two phases. */
static bool wait_until_quiet(struct drain *d, uint64_t until) {
  for (int quiet = 0; clock_now() < until && !d->second;) {
    quiet = connections_busy(d->server->connections) == 0 ? quiet + 1 : 0;
    if (quiet == 2) return true;
    drain_step(d);
  }
  return false;
}

/* Waits until libmicrohttpd holds no suspended connection: with one it must not be stopped. */
static bool wait_until_resumed(struct drain *d, uint64_t until) {
  while (connections_queued(d->server->connections)) {
    if (clock_now() >= until || d->second) return false;
    drain_step(d);
  }
  return true;
}

/* Ends the work that is left and takes no more; true if libmicrohttpd may be stopped. A request
 * may have come in between two looks at the connections: once the pool is closed, none waits. */
static bool close_pool(struct drain *d) {
  pool_abandon(d->server->service.pool);
  if (!wait_until_resumed(d, in_ms(STUCK_MS))) return false;
  wait_until_quiet(d, in_ms(ABANDONED_MS));
  return !d->second;
}

/* The exit status. `*at_once`: threads still work, so nothing may be freed. */
static int stop(struct drain *d, struct httpd *h, bool *at_once) {
  struct server *s = d->server;
  int status = 0;
  atomic_store(&s->stopping, true);
  uint64_t delay = in_ms(s->config->drain_delay_ms);
  while (clock_now() < delay && !d->second) drain_step(d);
  uint64_t until = in_ms(s->config->drain_ms);
  httpd_stop_accepting(h);
  atomic_store(&s->draining, true);
  connections_drain(s->connections);
  if (!wait_until_quiet(d, until)) {
    status = EXIT_CUT;
    log_line(s->log, LOG_WARNING, "%s: %zu connections are cut off",
             d->second ? "a second signal" : "drain_ms has passed",
             connections_busy(s->connections));
  }
  /* The last worker may still be on its way out of its last job. */
  *at_once = d->second || !close_pool(d) || !pool_drain(s->service.pool, in_ms(STUCK_MS));
  return *at_once ? EXIT_CUT : status;
}

static bool nothing_loads(const struct serving *s) {
  return aside_rests(&s->start) && reload_rests(&s->reload);
}

/* Waits a moment for what loads; a large model is left where it is. */
static void wait_until_loaded(struct drain *d, const struct serving *s) {
  const uint64_t until = in_ms(LOADING_MS);
  while (!nothing_loads(s) && clock_now() < until && !d->second) drain_step(d);
}

/* Stops, as far as it has started. */
static int end(struct serving *s, bool *at_once) {
  struct drain d = {.server = &s->server};
  int status = 0;
  log_line(s->server.log, LOG_INFO, "signal %d: stopping", s->signal);
  if (s->http) status = stop(&d, s->http, at_once);
  if (!*at_once) wait_until_loaded(&d, s);
  if (d.second) *at_once = true;
  if (!*at_once) log_line(s->server.log, LOG_INFO, "stopped");
  return d.second ? 128 + d.second : status;
}

static void leave_loads(struct serving *s) {
  aside_leave(&s->start);
  reload_leave(&s->reload);
}

/* The pool is idle and no connection is open. False: what a load still uses had to stay. */
static bool serving_free(struct serving *s) {
  const bool whole = nothing_loads(s);
  httpd_free(s->http);
  connections_free(s->server.connections);
  if (whole) {
    reload_free(&s->reload);
    aside_join(&s->start);
    service_stop(&s->server.service);
  } else {
    leave_loads(s);
  }
  metrics_free(s->server.metrics);
  log_free(s->server.log);
  if (whole) free(s);
  return whole;
}

static enum status serve(struct serving *s, struct error *e) {
  struct address address;
  must(address_parse(&address, s->config->listen)); /* or it would be no configuration */
  reload_init(&s->reload, &s->server, s->called);
  if (signals_open(e) || server_open(s, e) || s->signal) return e->status;
  s->http = httpd_new(&s->server, &address, e);
  if (!s->http || httpd_start(s->http, e)) return e->status;
  announce(&s->server, s->http);
  wait_for_stop(s);
  return STATUS_OK;
}

int serve_main(const struct config *c, const struct invocation *called, bool *at_once) {
  struct error e = {0};
  int status = 0;
  struct serving *s = calloc(1, sizeof *s);
  if (!s) {
    error_set(&e, STATUS_OUT_OF_MEMORY, "no memory for the server");
    serve_complain(&e);
    return exit_status(&e);
  }
  s->config = c;
  s->called = called;
  if (serve(s, &e) == STATUS_OK) status = end(s, at_once);
  if (*at_once) {
    leave_loads(s);
    return status;
  }
  *at_once = !serving_free(s);
  if (!e.status) return status;
  serve_complain(&e);
  return exit_status(&e);
}
