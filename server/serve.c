/* serve: start, signals, drain, stop.
 *
 * The order of a stop: readiness says 503; the backlog is accepted and the listening socket
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
#include "server/version.h"

enum {
  EXIT_CUT = 3,        /* work was abandoned */
  STEP_MS = 5,         /* how often a draining server looks */
  RELOAD_MS = 100,     /* how often one that has reloaded looks for models that nobody uses */
  ABANDONED_MS = 1000, /* for the answers of abandoned work to leave */
  STUCK_MS = 10000,    /* for abandoned work to stop */
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

static enum status server_open(struct server *s, const struct config *c, char **argv,
                               struct error *e) {
  *s = (struct server){.config = c};
  if (getrandom(&s->id_prefix, sizeof s->id_prefix, GRND_NONBLOCK) != sizeof s->id_prefix)
    s->id_prefix = (uint32_t)clock_now() ^ (uint32_t)getpid() << 16;
  s->log = log_new(c->log_level, c->access_log, e);
  if (!s->log) return e->status;
  if (service_start(&s->service, c, c->io_threads, e)) return e->status;
  s->io_threads = s->service.submitters;
  if (raise_descriptors(c, s->io_threads, e)) return e->status;
  correct_openblas(s, argv);
  s->metrics = metrics_new(s->io_threads + 1, e);
  if (!s->metrics) return e->status;
  metrics_loaded(s->metrics);
  s->connections = connections_new(c, s->metrics, s->service.budget.keep, e);
  return e->status;
}

/* The pool is idle and no connection is open. */
static void server_close(struct server *s) {
  connections_free(s->connections);
  service_stop(&s->service);
  metrics_free(s->metrics);
  log_free(s->log);
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

/* Every thread inherits this: signals come to whoever waits for them, which is main. */
static sigset_t block_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

/* The next signal; 0: none has come within the time. One that stops goes before SIGHUP, which the
 * system would give first, and of which there may be no end. */
static int next_signal(const sigset_t *set, const struct timespec *within) {
  static const struct timespec none = {0};
  sigset_t stops = *set;
  sigdelset(&stops, SIGHUP);
  int got = sigtimedwait(&stops, NULL, &none);
  if (got < 0) got = within ? sigtimedwait(set, NULL, within) : sigwaitinfo(set, NULL);
  return got < 0 ? 0 : got;
}

/* Serves, and reloads as asked, until a signal ends that. */
static int wait_for_stop(struct server *s, const sigset_t *set, const struct invocation *called) {
  static const struct timespec soon = {.tv_nsec = RELOAD_MS * CLOCK_MS};
  struct reload reload;
  reload_init(&reload, s, called);
  int got = 0;
  for (bool again = false; got != SIGTERM && got != SIGINT;) {
    got = next_signal(set, again ? &soon : NULL);
    if (got == SIGHUP) reload_ask(&reload);
    if (got == SIGHUP || got == 0) again = reload_step(&reload);
  }
  reload_free(&reload);
  return got;
}

/* A stop on its way: a second signal ends all waiting. */
struct drain {
  struct server *server;
  const sigset_t *set;
  int second; /* the second signal, or 0 */
};

static void drain_step(struct drain *d) {
  const struct timespec step = {.tv_nsec = STEP_MS * CLOCK_MS};
  int got = sigtimedwait(d->set, NULL, &step);
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
static int stop(struct server *s, struct httpd *h, const sigset_t *set, bool *at_once) {
  struct drain d = {.server = s, .set = set};
  int status = 0;
  atomic_store(&s->stopping, true);
  uint64_t delay = in_ms(s->config->drain_delay_ms);
  while (clock_now() < delay && !d.second) drain_step(&d);
  uint64_t until = in_ms(s->config->drain_ms);
  httpd_stop_accepting(h);
  atomic_store(&s->draining, true);
  connections_drain(s->connections);
  if (!wait_until_quiet(&d, until)) {
    status = EXIT_CUT;
    log_line(s->log, LOG_WARNING, "%s: %zu connections are cut off",
             d.second ? "a second signal" : "drain_ms has passed",
             connections_busy(s->connections));
  }
  /* The last worker may still be on its way out of its last job. */
  *at_once = d.second || !close_pool(&d) || !pool_drain(s->service.pool, in_ms(STUCK_MS));
  if (*at_once) status = EXIT_CUT;
  return d.second ? 128 + d.second : status;
}

int serve_main(const struct config *c, const struct invocation *called, bool *at_once) {
  struct error e = {0};
  struct address address;
  struct server server;
  struct httpd *h = NULL;
  int status = 0;
  memset(&server, 0, sizeof server);
  sigset_t set = block_signals();
  must(address_parse(&address, c->listen)); /* or it would be no configuration */
  if (server_open(&server, c, called->argv, &e)) goto done;
  h = httpd_new(&server, &address, &e);
  if (!h || httpd_start(h, &e)) goto done;
  announce(&server, h);
  int got = wait_for_stop(&server, &set, called);
  log_line(server.log, LOG_INFO, "signal %d: stopping", got);
  status = stop(&server, h, &set, at_once);
  if (*at_once) return status;
  log_line(server.log, LOG_INFO, "stopped");
done:
  httpd_free(h);
  server_close(&server);
  if (!e.status) return status;
  serve_complain(&e);
  return exit_status(&e);
}
