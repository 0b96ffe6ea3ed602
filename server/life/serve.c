/* serve: start, signals, stop.
 *
 * A start opens the admin door, loads the models and opens the main door. A stop is described in
 * stop.h; after it libmicrohttpd, the reaper, the pool and the models are freed, in this order. */
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
#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/base/size.h"
#include "server/life/announce.h"
#include "server/life/reload.h"
#include "server/life/signals.h"
#include "server/life/stop.h"
#include "server/life/supervisor.h"
#include "server/request/httpd.h"
#include "server/watch/request_id.h"
#include "server/watch/version.h"

enum {
  RELOAD_MS = 100,         /* after a reload, between two looks for models that no request holds */
  READY_MS = 500,          /* for standard output to take the line with an address */
  LOADING_MS = 200,        /* at a stop, for a load under way to end */
  SPARE_DESCRIPTORS = 384, /* connections being closed (128 of each door), logs, files */
  ADMIN_CONNECTIONS = 64,
  ADMIN_MS = 5000, /* for a probe to send its request, and to read its answer */
};

/* The memory that threads may still use when serve_main returns at once. */
struct serve_state {
  struct server server;
  const struct config *config;
  const struct reload_invocation *called;
  int inherited[DOOR_COUNT];      /* descriptors, or SUPERVISOR_NO_SOCKET */
  struct httpd *http[DOOR_COUNT]; /* NULL: not open, or no such door */
  struct supervisor supervisor;
  struct reload reload;
  struct background start; /* loads the first models */
  struct error start_error;
  bool version_logged; /* belongs to the thread that loads, as long as it does */
  int signal;          /* the one that stops the server, or 0 */
};

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
                     "max_connections: %llu connections need %llu file descriptors, but the hard "
                     "limit (ulimit -Hn) is %llu",
                     (unsigned long long)c->max_connections, (unsigned long long)need,
                     (unsigned long long)now.rlim_max);
  now.rlim_cur = now.rlim_max;
  setrlimit(RLIMIT_NOFILE, &now); /* fails only where the soft limit is high enough */
  return STATUS_OK;
}

/* Runs on the background thread. */
static void open_service(void *of) {
  struct serve_state *s = of;
  service_open(&s->server.service, &s->start_error);
}

/* Waits for the next signal, at most `within`, and asks for a reload or sets s->signal. */
static void handle_signal(struct serve_state *s, const struct timespec *within) {
  const int got = signals_next(within);
  if (got == SIGHUP)
    reload_ask(&s->reload);
  else
    s->signal = got;
}

/* Loads the first models and starts the pool, unless a signal to stop comes first. */
static enum status load_first_models(struct serve_state *s, struct error *e) {
  static const struct timespec none = {0};
  supervisor_send(&s->supervisor, "STATUS=loading the models");
  if (background_start(&s->start, open_service, s, false, e)) return e->status;
  for (bool done = false; !done && !s->signal;) {
    done = background_idle(&s->start);
    handle_signal(s, done ? &none : NULL);
  }
  if (background_idle(&s->start)) {
    background_join(&s->start);
    *e = s->start_error;
  }
  if (e->status || s->signal) return e->status;
  metrics_loaded(s->server.metrics);
  return STATUS_OK;
}

/* --- the doors --- */

/* The admin door has short limits of time: requests for health or metrics are small. */
static enum status door_init(struct serve_state *all, enum door_kind kind, struct error *e) {
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
    if (!*c->admin_listen && all->inherited[kind] == SUPERVISOR_NO_SOCKET) return STATUS_OK;
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

/* Makes the door's listening socket, or uses the supervisor's. */
static enum status door_listen(struct serve_state *s, enum door_kind kind, struct error *e) {
  static const char *const setting[DOOR_COUNT] = {"listen", "admin_listen"};
  const char *const text[DOOR_COUNT] = {s->config->listen, s->config->admin_listen};
  struct address address;
  struct listener listener;
  if (s->inherited[kind] != SUPERVISOR_NO_SOCKET) {
    if (listener_inherit(&listener, s->inherited[kind], e)) return e->status;
    char inherited[LISTENER_TEXT_SIZE];
    listener_text(listener.fd, inherited);
    if (*text[kind] && strcmp(text[kind], inherited) != 0)
      log_line(s->server.log, LOG_INFO, "using the supervisor's socket %s: %s (%s) is ignored",
               inherited, setting[kind], text[kind]);
  } else {
    must(address_parse(&address, text[kind])); /* config_read has checked it */
    if (listener_open(&listener, setting[kind], &address, e)) return e->status;
  }
  s->http[kind] = httpd_new(&s->server.door[kind], &listener, e);
  return e->status;
}

/* Waits no longer than READY_MS: a full pipe without a reader would block main, and with it every
 * signal. */
static void print_address(const char *what, const struct httpd *h) {
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  if (poll(&out, 1, READY_MS) == 0) return;
  printf("%s on %s\n", what, httpd_address(h));
  fflush(stdout);
}

/* --- the start --- */

/* Logs the version once: before the first line about models, but not before an error about them
 * that occurs at once, which is then the only line. */
static void log_version(struct serve_state *all) {
  const struct server *s = &all->server;
  if (all->version_logged) return;
  all->version_logged = true;
  const size_t workers = s->service.workers, threads = s->door[DOOR_MAIN].io_threads;
  log_line(s->log, LOG_INFO,
           "attend %s (commit %s): %zu worker%s, %zu I/O thread%s, kernels %s, text %s",
           version_number(), version_commit(), workers, workers == 1 ? "" : "s", threads,
           threads == 1 ? "" : "s", cpu_word()->name, cpu_level_name(cpu_text_level()));
}

/* A listener of the first load, on the thread that loads. */
static void log_first_progress(void *of, const struct progress_news *news) {
  struct serve_state *s = of;
  const struct progress_listener listener = announce_progress(s->server.log);
  log_version(s);
  listener.tell(listener.of, news);
}

/* Makes all parts that need no models. */
static enum status make_parts(struct serve_state *all, struct error *e) {
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
  supervisor_open(&all->supervisor, s->log);
  service_init(&s->service, c, c->io_threads);
  s->service.progress.listener = (struct progress_listener){log_first_progress, all, PROGRESS_MS};
  s->metrics = metrics_new(s->service.submitters + 2, e); /* 2: shard 0, and the admin door */
  if (!s->metrics || supervisor_sockets(all->inherited, e)) return e->status;
  if (cors_new(c->cors_origins, &s->cors, e)) return e->status;
  if (page_init(&s->page, c->cors_origins, e)) return e->status;
  if (door_init(all, DOOR_MAIN, e) || door_init(all, DOOR_ADMIN, e)) return e->status;
  return raise_descriptors(s, e);
}

static void log_start(struct serve_state *all, const char *address) {
  struct server *s = &all->server;
  log_version(all);
  struct models_hold hold = models_hold(s->service.models, 0);
  for (size_t i = 0; i < registry_count(hold.registry); i++)
    announce_model(s->log, registry_at(hold.registry, i));
  announce_built_in(s->log, s->config);
  announce_api_keys(s->log, hold.api_keys);
  announce_reach(s->log, address, hold.api_keys);
  models_release(&hold);
}

/* After the start and after each reload. */
static void send_ready(const struct serve_state *s) {
  supervisor_send(&s->supervisor, "READY=1\nSTATUS=serving on %s",
                  httpd_address(s->http[DOOR_MAIN]));
}

/* --- signals --- */

/* Sends RELOADING=1 when a reload is asked for, and READY=1 when none is pending any more. `sent`:
 * the last of the two was RELOADING=1; returns the new value. */
static bool send_reload_state(struct serve_state *s, bool sent) {
  const bool pending = reload_pending(&s->reload);
  if (pending && !sent) supervisor_send_reloading(&s->supervisor);
  if (!pending && sent) send_ready(s);
  return pending;
}

/* Reloads when asked to, and feeds the watchdog, until a signal to stop. */
static void wait_for_stop(struct serve_state *s) {
  for (bool sent = false; !s->signal;) {
    sent = send_reload_state(s, sent);
    const bool soon = reload_advance(&s->reload);
    sent = send_reload_state(s, sent);
    const uint64_t next = supervisor_beat(&s->supervisor), now = clock_now();
    uint64_t ns = soon ? RELOAD_MS * (uint64_t)CLOCK_MS : UINT64_MAX;
    if (next) ns = size_min(ns, next > now ? next - now : 0);
    const struct timespec within = {.tv_sec = (time_t)(ns / 1000000000),
                                    .tv_nsec = (long)(ns % 1000000000)};
    handle_signal(s, soon || next ? &within : NULL);
  }
}

/* --- the stop --- */

static bool nothing_loads(const struct serve_state *s) {
  return background_idle(&s->start) && reload_idle(&s->reload);
}

/* Stops what has started. Returns the exit status. */
static int stop_started(struct serve_state *s, bool *at_once) {
  struct stop d = {.server = &s->server, .supervisor = &s->supervisor};
  const bool serves = atomic_load(&s->server.loaded);
  int status = 0;
  const char *name = s->signal == SIGTERM ? "SIGTERM" : "SIGINT";
  if (serves)
    log_line(s->server.log, LOG_INFO, "%s received: draining, up to %llu ms (drain_ms)", name,
             (unsigned long long)s->config->drain_ms);
  else
    log_line(s->server.log, LOG_INFO, "%s received: stopping", name);
  supervisor_send(&s->supervisor, "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=%ju",
                  (uintmax_t)stop_longest_ms(s->config) * 1000);
  atomic_store(&s->server.stopping, true);
  if (serves) status = stop_serving(&d, s->http[DOOR_MAIN], at_once);
  /* The load of a small model ends soon; that of a large one is not awaited. */
  const uint64_t until = clock_now() + LOADING_MS * (uint64_t)CLOCK_MS;
  while (!*at_once && !nothing_loads(s) && clock_now() < until && !d.second) stop_wait(&d);
  if (!*at_once && s->http[DOOR_ADMIN]) stop_admin(&d, s->http[DOOR_ADMIN]);
  if (d.second) *at_once = true;
  if (!*at_once) log_line(s->server.log, LOG_INFO, "stopped");
  return d.second ? 128 + d.second : status;
}

static void detach_loads(struct serve_state *s) {
  progress_silence(&s->server.service.progress);
  background_detach(&s->start);
  reload_detach(&s->reload);
}

/* Frees all, or, if a load is under way, all that it does not use: then returns false. The pool is
 * idle and no connection is open. */
static bool free_state(struct serve_state *s) {
  const bool whole = nothing_loads(s);
  /* Both doors close before connections are freed: the admin door counts those of the main one. */
  for (unsigned i = 0; i < DOOR_COUNT; i++) httpd_free(s->http[i]);
  for (unsigned i = 0; i < DOOR_COUNT; i++) connections_free(s->server.door[i].connections);
  if (whole) {
    reload_free(&s->reload);
    background_join(&s->start);
    service_stop(&s->server.service);
  } else {
    detach_loads(s);
  }
  metrics_free(s->server.metrics);
  cors_free(s->server.cors);
  openapi_free(&s->server.openapi);
  page_done(&s->server.page);
  supervisor_close(&s->supervisor);
  log_free(s->server.log);
  if (whole) free(s);
  return whole;
}

/* Starts, and serves until a signal to stop. */
static enum status serve_until_signal(struct serve_state *s, struct error *e) {
  reload_init(&s->reload, &s->server, s->called);
  if (signals_open(e) || make_parts(s, e)) return e->status;
  if (s->server.door[DOOR_ADMIN].connections) {
    if (door_listen(s, DOOR_ADMIN, e) || httpd_start(s->http[DOOR_ADMIN], e)) return e->status;
    print_address("admin listening", s->http[DOOR_ADMIN]);
  }
  if (load_first_models(s, e) || s->signal || door_listen(s, DOOR_MAIN, e)) return e->status;
  atomic_store(&s->server.loaded, true);
  if (httpd_start(s->http[DOOR_MAIN], e)) return e->status;
  log_start(s, httpd_address(s->http[DOOR_MAIN]));
  print_address("listening", s->http[DOOR_MAIN]);
  send_ready(s);
  supervisor_watch(&s->supervisor, s->http);
  wait_for_stop(s);
  return STATUS_OK;
}

int serve_main(const struct config *c, const struct reload_invocation *called, bool *at_once,
               struct error *e) {
  int status = 0;
  struct serve_state *s = calloc(1, sizeof *s);
  if (!s) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the server");
    return status;
  }
  s->config = c;
  s->called = called;
  if (serve_until_signal(s, e) == STATUS_OK)
    status = stop_started(s, at_once);
  else
    supervisor_send(&s->supervisor, "STATUS=%s", e->detail);
  if (*at_once)
    detach_loads(s);
  else
    *at_once = !free_state(s);
  return status;
}
