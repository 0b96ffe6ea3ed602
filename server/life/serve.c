/* serve: start, signals, stop.
 *
 * The order of a start: the admin door is opened, models are loaded, the main door is opened. Of a
 * stop: see stop.h; then libmicrohttpd, the reaper, the pool and the models go, in this order. */
#include "server/life/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "config/model/registry.h"
#include "core/run/clock.h"
#include "core/run/cpu.h"
#include "core/run/size.h"
#include "server/http/httpd.h"
#include "server/http/request_id.h"
#include "server/life/activation.h"
#include "server/life/announce.h"
#include "server/life/reload.h"
#include "server/life/signals.h"
#include "server/life/stop.h"
#include "server/watch/version.h"

enum {
  RELOAD_MS = 100,         /* how often one that has reloaded looks for models that nobody uses */
  READY_MS = 500,          /* for standard output to take the line with an address */
  LOADING_MS = 200,        /* for models that nobody will use to be loaded */
  SPARE_DESCRIPTORS = 384, /* leaving connections (128 of each door), logs, files */
  ADMIN_CONNECTIONS = 64,
  ADMIN_MS = 5000, /* for a probe to be sent, and for its answer to be read */
};

/* All that threads may still look at when serve_main leaves at once. */
struct serving {
  struct server server;
  const struct config *config;
  const struct invocation *called;
  int inherited[DOOR_COUNT];      /* descriptors, see activation.h */
  struct httpd *http[DOOR_COUNT]; /* NULL: not open, or no such door */
  struct notify notify;
  struct watchdog watchdog;
  struct reload reload;
  struct aside start; /* loads the first models */
  struct error start_error;
  int signal; /* the one that ends it all, or 0 */
};

void serve_complain(const struct error *e) { fprintf(stderr, "attend: %s\n", e->detail); }

static int exit_status(const struct error *e) { return e->status == STATUS_CONFIG ? 2 : 1; }

/* --- before the first connection --- */

static enum status raise_descriptors(const struct server *s, struct error *e) {
  const struct config *c = s->config;
  struct rlimit now;
  rlim_t need = SPARE_DESCRIPTORS;
  for (unsigned i = 0; i < DOOR_COUNT; i++)
    if (s->door[i].connections) need += httpd_descriptors(&s->door[i]);
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
  service_open(&s->server.service, &s->start_error);
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

/* --- the doors --- */

/* The admin door has little patience: whoever asks for health or metrics asks for little. */
static enum status door_init(struct serving *all, enum door_kind kind, struct error *e) {
  struct server *s = &all->server;
  const struct config *c = all->config;
  struct door *d = &s->door[kind];
  const size_t threads = s->service.submitters;
  struct connection_times times = {.header_ms = c->header_timeout_ms,
                                   .body_ms = c->body_timeout_ms,
                                   .answer_ms = c->answer_timeout_ms,
                                   .idle_ms = c->idle_timeout_ms};
  *d = (struct door){.kind = kind,
                     .server = s,
                     .io_threads = threads,
                     .first_shard = 1,
                     .max_connections = c->max_connections};
  if (kind == DOOR_ADMIN) {
    if (!*c->admin_listen && all->inherited[kind] == ACTIVATION_NONE) return STATUS_OK;
    d->io_threads = 1;
    d->first_shard = 1 + threads;
    d->max_connections = ADMIN_CONNECTIONS;
    times.header_ms = size_min(times.header_ms, ADMIN_MS);
    times.body_ms = size_min(times.body_ms, ADMIN_MS);
    times.answer_ms = size_min(times.answer_ms, ADMIN_MS);
  }
  d->connections =
      connections_new(&times, s->metrics, kind == DOOR_MAIN ? s->service.budget.keep : NULL, e);
  return e->status;
}

/* Says that an address that was set is not the one that is served. */
static void say_inherited(const struct serving *s, int fd, const char *setting, const char *text) {
  char address[LISTENER_TEXT_SIZE];
  listener_text(fd, address);
  if (*text && strcmp(text, address) != 0)
    log_line(s->server.log, LOG_INFO, "the supervisor's socket %s is used; %s (%s) is not", address,
             setting, text);
}

/* The listening socket: the one that came with the process, or one of our own. */
static enum status door_listen(struct serving *s, enum door_kind kind, struct error *e) {
  static const char *const setting[DOOR_COUNT] = {"listen", "admin_listen"};
  const char *const text[DOOR_COUNT] = {s->config->listen, s->config->admin_listen};
  struct address address;
  struct listener listener;
  if (s->inherited[kind] != ACTIVATION_NONE) {
    if (listener_inherit(&listener, s->inherited[kind], e)) return e->status;
    say_inherited(s, listener.fd, setting[kind], text[kind]);
  } else {
    must(address_parse(&address, text[kind])); /* or it would be no configuration */
    if (listener_open(&listener, setting[kind], &address, e)) return e->status;
  }
  s->http[kind] = httpd_new(&s->server.door[kind], &listener, e);
  return e->status;
}

static enum status door_open(struct serving *s, enum door_kind kind, struct error *e) {
  if (!s->server.door[kind].connections || door_listen(s, kind, e)) return e->status;
  return httpd_start(s->http[kind], e);
}

/* A pipe that nobody reads would hold this thread for ever, and with it every signal. */
static void say_address(const char *what, const struct httpd *h) {
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  if (poll(&out, 1, READY_MS) == 0) return;
  printf("%s on %s\n", what, httpd_address(h));
  fflush(stdout);
}

/* --- the start --- */

/* All that needs no models. */
static enum status prepare(struct serving *all, struct error *e) {
  struct server *s = &all->server;
  const struct config *c = all->config;
  s->config = c;
  const uint64_t random = request_id_random();
  s->id_prefix = (uint32_t)(random ^ random >> 32);
  const struct log_options log = {.level = c->log_level,
                                  .access = c->access_log,
                                  .slow_ms = c->slow_ms,
                                  .repeat_ms = LOG_REPEAT_MS,
                                  .journal = log_is_journal(STDERR_FILENO)};
  s->log = log_new(&log, e);
  if (!s->log) return e->status;
  notify_open(&all->notify, s->log);
  service_init(&s->service, c, c->io_threads);
  s->metrics = metrics_new(s->service.submitters + 2, e); /* one for the admin door, and shard 0 */
  if (!s->metrics || activation_find(all->inherited, e)) return e->status;
  if (cors_new(c->cors_origins, &s->cors, e)) return e->status;
  page_init(&s->page);
  if (door_init(all, DOOR_MAIN, e) || door_init(all, DOOR_ADMIN, e)) return e->status;
  return raise_descriptors(s, e);
}

/* The first models: afterwards there is a signal, or all that the main door needs. */
static enum status load(struct serving *all, struct error *e) {
  struct server *s = &all->server;
  notify_say(&all->notify, "STATUS=loading the models");
  if (load_first(all, e) || all->signal) return e->status;
  correct_openblas(s, all->called->argv);
  metrics_loaded(s->metrics);
  return STATUS_OK;
}

static void announce(struct server *s) {
  log_line(s->log, LOG_INFO, "attend %s (%s), %zu workers, %zu i/o threads, cpu %s, text %s",
           version_number(), version_commit(), s->service.workers, s->door[DOOR_MAIN].io_threads,
           cpu_level_name(cpu_level()), cpu_level_name(cpu_text_level()));
  struct models_hold hold = models_hold(s->service.models, 0);
  for (size_t i = 0; i < registry_count(hold.registry); i++)
    announce_model(s->log, registry_at(hold.registry, i));
  announce_api_keys(s->log, hold.api_keys);
  models_release(&hold);
}

/* To the supervisor, after the start and after each reload. */
static void say_ready(const struct serving *s) {
  notify_say(&s->notify, "READY=1\nSTATUS=serving on %s", httpd_address(s->http[DOOR_MAIN]));
}

/* --- signals --- */

/* Tells the supervisor when a reload that was asked for begins, and when there is none any more:
 * while it waits for one it asks for nothing else. */
static bool reload_told(struct serving *s, bool told) {
  const bool pending = reload_pending(&s->reload);
  if (pending && !told) notify_reloading(&s->notify);
  if (!pending && told) say_ready(s);
  return pending;
}

/* How long to wait for signals, at most; false: for ever. */
static bool patience(bool soon, uint64_t next, struct timespec *out) {
  const uint64_t now = clock_now();
  uint64_t ns = soon ? RELOAD_MS * (uint64_t)CLOCK_MS : UINT64_MAX;
  if (next) ns = size_min(ns, next > now ? next - now : 0);
  *out = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  return soon || next;
}

/* Serves, and reloads as asked, until a signal ends that. */
static void wait_for_stop(struct serving *s) {
  struct timespec within;
  for (bool told = false; !s->signal;) {
    told = reload_told(s, told);
    const bool again = reload_step(&s->reload);
    told = reload_told(s, told);
    const uint64_t next = watchdog_step(&s->watchdog);
    look_at_signals(s, patience(again, next, &within) ? &within : NULL);
  }
}

/* --- the stop --- */

static bool nothing_loads(const struct serving *s) {
  return aside_rests(&s->start) && reload_rests(&s->reload);
}

/* Waits a moment for what loads; a large model is left where it is. */
static void wait_until_loaded(struct stop *d, const struct serving *s) {
  const uint64_t until = clock_now() + LOADING_MS * (uint64_t)CLOCK_MS;
  while (!nothing_loads(s) && clock_now() < until && !d->second) stop_step(d);
}

/* Stops, as far as it has started. */
static int end(struct serving *s, bool *at_once) {
  struct stop d = {.server = &s->server, .watchdog = &s->watchdog};
  const bool serves = atomic_load(&s->server.loaded);
  int status = 0;
  log_line(s->server.log, LOG_INFO, "signal %d: stopping", s->signal);
  notify_say(&s->notify, "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=%ju",
             (uintmax_t)stop_longest_ms(s->config) * 1000);
  atomic_store(&s->server.stopping, true);
  if (serves) status = stop_serving(&d, s->http[DOOR_MAIN], at_once);
  if (!*at_once) wait_until_loaded(&d, s);
  if (!*at_once && s->http[DOOR_ADMIN]) stop_admin(&d, s->http[DOOR_ADMIN]);
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
  /* Both doors are closed before either is forgotten: the admin door counts the main one's. */
  for (unsigned i = 0; i < DOOR_COUNT; i++) httpd_free(s->http[i]);
  for (unsigned i = 0; i < DOOR_COUNT; i++) connections_free(s->server.door[i].connections);
  if (whole) {
    reload_free(&s->reload);
    aside_join(&s->start);
    service_stop(&s->server.service);
  } else {
    leave_loads(s);
  }
  metrics_free(s->server.metrics);
  cors_free(s->server.cors);
  notify_close(&s->notify);
  log_free(s->server.log);
  if (whole) free(s);
  return whole;
}

static enum status serve(struct serving *s, struct error *e) {
  reload_init(&s->reload, &s->server, s->called);
  if (signals_open(e) || prepare(s, e) || door_open(s, DOOR_ADMIN, e)) return e->status;
  if (s->http[DOOR_ADMIN]) say_address("admin listening", s->http[DOOR_ADMIN]);
  if (load(s, e) || s->signal || door_listen(s, DOOR_MAIN, e)) return e->status;
  atomic_store(&s->server.loaded, true);
  if (httpd_start(s->http[DOOR_MAIN], e)) return e->status;
  announce(&s->server);
  say_address("listening", s->http[DOOR_MAIN]);
  say_ready(s);
  watchdog_start(&s->watchdog, &s->notify, s->http);
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
  if (serve(s, &e) == STATUS_OK)
    status = end(s, at_once);
  else
    notify_say(&s->notify, "STATUS=%s", e.detail);
  if (*at_once) {
    leave_loads(s);
    return status;
  }
  *at_once = !serving_free(s);
  if (!e.status) return status;
  serve_complain(&e);
  return exit_status(&e);
}
