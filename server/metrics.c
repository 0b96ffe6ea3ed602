/* metrics: counters and histograms in Prometheus' text form. */
#include "server/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/registry.h"
#include "core/cpu.h"
#include "server/version.h"

/* Upper bounds in microseconds; one more bucket takes the rest. */
static const uint64_t bounds_us[] = {50,     100,     250,     500,     1000,     2500,
                                     5000,   10000,   25000,   50000,   100000,   250000,
                                     500000, 1000000, 2500000, 5000000, 10000000, 30000000};
enum { BOUNDS = sizeof bounds_us / sizeof *bounds_us };

/* The codes that this server gives, and 0 for any other. */
static const unsigned short codes[] = {200, 400, 401, 404, 405, 406, 408, 413, 415,
                                       422, 429, 499, 500, 501, 503, 504, 0};
enum { CODES = sizeof codes / sizeof *codes };

static const char *const stage_names[STAGE_COUNT] = {"decode", "queue", "compute", "encode"};
static const char *const reject_names[REJECT_COUNT] = {
    [REJECT_OVERLOADED] = "overloaded",  [REJECT_CONNECTIONS] = "connections",
    [REJECT_DRAINING] = "draining",      [REJECT_DEADLINE] = "deadline",
    [REJECT_MEMORY] = "memory",          [REJECT_GONE] = "gone",
    [REJECT_SLOW_HEAD] = "slow_head",    [REJECT_SLOW_BODY] = "slow_body",
    [REJECT_SLOW_READER] = "slow_reader"};

struct histogram {
  _Atomic uint64_t bucket[BOUNDS + 1]; /* not cumulated */
  _Atomic uint64_t sum_ns;
};

/* Large, but a page that no request touches is never given to the process. */
struct shard {
  _Alignas(64) struct histogram stage[STAGE_COUNT];
  _Atomic uint64_t reject[REJECT_COUNT];
  struct histogram request[ROUTE_COUNT][METHOD_COUNT][CODES];
};

struct metrics {
  size_t shards;
  struct shard *shard;
  _Atomic uint64_t reloads[2]; /* that failed, that succeeded */
  _Atomic uint64_t loaded_ms;  /* when the models in service were loaded, in Unix time */
};

struct metrics *metrics_new(size_t shards, struct error *e) {
  struct metrics *m = calloc(1, sizeof *m);
  if (m) m->shard = calloc(shards + 1, sizeof *m->shard); /* one more, to align by hand */
  if (!m || !m->shard) {
    error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the metrics");
    metrics_free(m);
    return NULL;
  }
  m->shards = shards;
  return m;
}

void metrics_free(struct metrics *m) {
  if (!m) return;
  free(m->shard);
  free(m);
}

static struct shard *shard_at(const struct metrics *m, size_t shard) {
  uintptr_t base = ((uintptr_t)m->shard + 63) & ~(uintptr_t)63;
  return (struct shard *)base + shard % m->shards;
}

static void add(_Atomic uint64_t *to, uint64_t n) {
  atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void observe(struct histogram *h, uint64_t nanoseconds) {
  unsigned i = 0;
  while (i < BOUNDS && nanoseconds > bounds_us[i] * 1000) i++;
  add(&h->bucket[i], 1);
  add(&h->sum_ns, nanoseconds);
}

void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds) {
  unsigned c = 0;
  while (codes[c] && codes[c] != code) c++;
  observe(&shard_at(m, shard)->request[route][method][c], nanoseconds);
}

void metrics_stage(struct metrics *m, size_t shard, enum stage stage, uint64_t nanoseconds) {
  observe(&shard_at(m, shard)->stage[stage], nanoseconds);
}

void metrics_reject(struct metrics *m, size_t shard, enum reject reason) {
  add(&shard_at(m, shard)->reject[reason], 1);
}

void metrics_loaded(struct metrics *m) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
  atomic_store_explicit(&m->loaded_ms, ms, memory_order_relaxed);
}

void metrics_reload(struct metrics *m, bool succeeded) {
  if (succeeded) metrics_loaded(m);
  add(&m->reloads[succeeded], 1);
}

/* --- the scrape --- */

/* A histogram added up over the shards, at `offset` bytes into each. */
struct sum {
  uint64_t bucket[BOUNDS + 1], count, ns;
};

static struct sum sum_at(const struct metrics *m, size_t offset) {
  struct sum s = {0};
  for (size_t i = 0; i < m->shards; i++) {
    const struct histogram *h = (const void *)((const char *)shard_at(m, i) + offset);
    for (unsigned b = 0; b <= BOUNDS; b++) {
      uint64_t n = atomic_load_explicit(&h->bucket[b], memory_order_relaxed);
      s.bucket[b] += n;
      s.count += n;
    }
    s.ns += atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
  }
  return s;
}

static void write_histogram(FILE *f, const char *name, const char *labels, const struct sum *s) {
  uint64_t below = 0;
  for (unsigned b = 0; b < BOUNDS; b++) {
    below += s->bucket[b];
    fprintf(f, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels, (double)bounds_us[b] / 1e6,
            below);
  }
  fprintf(f, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, s->count);
  fprintf(f, "%s_sum{%s} %.9g\n", name, labels, (double)s->ns / 1e9);
  fprintf(f, "%s_count{%s} %" PRIu64 "\n", name, labels, s->count);
}

/* Calls `visit` for each series of requests that has a count, with its labels. */
static void each_request(const struct metrics *m, FILE *f,
                         void (*visit)(FILE *, const char *labels, const struct sum *)) {
  for (unsigned r = 0; r < ROUTE_COUNT; r++)
    for (unsigned w = 0; w < METHOD_COUNT; w++)
      for (unsigned c = 0; c < CODES; c++) {
        const struct shard *first = shard_at(m, 0);
        struct sum s =
            sum_at(m, (size_t)((const char *)&first->request[r][w][c] - (const char *)first));
        if (!s.count) continue;
        char labels[128], code[8] = "other";
        if (codes[c]) snprintf(code, sizeof code, "%u", codes[c]);
        snprintf(labels, sizeof labels, "route=\"%s\",method=\"%s\",code=\"%s\"",
                 route_template((enum route)r), method_name((enum method)w), code);
        visit(f, labels, &s);
      }
}

static void visit_total(FILE *f, const char *labels, const struct sum *s) {
  fprintf(f, "attend_http_requests_total{%s} %" PRIu64 "\n", labels, s->count);
}

static void visit_duration(FILE *f, const char *labels, const struct sum *s) {
  write_histogram(f, "attend_http_request_duration_seconds", labels, s);
}

static void head(FILE *f, const char *name, const char *type, const char *help) {
  fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(FILE *f, const char *name, const char *help, double value) {
  head(f, name, "gauge", help);
  fprintf(f, "%s %.17g\n", name, value);
}

static size_t resident_bytes(void) {
  size_t pages = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  if (!f) return 0;
  if (fscanf(f, "%*u %zu", &pages) != 1) pages = 0;
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void write_counted(FILE *f, const struct metrics *m) {
  head(f, "attend_http_requests_total", "counter", "Requests that have ended.");
  each_request(m, f, visit_total);
  head(f, "attend_http_request_duration_seconds", "histogram",
       "From the end of a request's head to the last byte of its answer.");
  each_request(m, f, visit_duration);
  head(f, "attend_stage_duration_seconds", "histogram",
       "Time in one stage of an attention request.");
  for (unsigned i = 0; i < STAGE_COUNT; i++) {
    char labels[32];
    snprintf(labels, sizeof labels, "stage=\"%s\"", stage_names[i]);
    struct sum s = sum_at(m, offsetof(struct shard, stage) + i * sizeof(struct histogram));
    write_histogram(f, "attend_stage_duration_seconds", labels, &s);
  }
  head(f, "attend_rejected_total", "counter",
       "Requests and connections ended without their answer.");
  for (unsigned i = 0; i < REJECT_COUNT; i++) {
    uint64_t n = 0;
    for (size_t s = 0; s < m->shards; s++)
      n += atomic_load_explicit(&shard_at(m, s)->reject[i], memory_order_relaxed);
    fprintf(f, "attend_rejected_total{reason=\"%s\"} %" PRIu64 "\n", reject_names[i], n);
  }
}

static void write_reloads(FILE *f, const struct metrics *m) {
  head(f, "attend_reloads_total", "counter", "Reloads of the models (SIGHUP) that have ended.");
  for (unsigned ok = 0; ok < 2; ok++)
    fprintf(f, "attend_reloads_total{result=\"%s\"} %" PRIu64 "\n", ok ? "ok" : "failed",
            atomic_load_explicit(&m->reloads[ok], memory_order_relaxed));
  gauge(f, "attend_models_loaded_timestamp_seconds", "When the models in service were loaded.",
        (double)atomic_load_explicit(&m->loaded_ms, memory_order_relaxed) / 1e3);
}

static const char *const door_names[DOOR_COUNT] = {[DOOR_MAIN] = "main", [DOOR_ADMIN] = "admin"};

/* A value for each listener that there is. */
static void by_door(FILE *f, const char *name, const char *help, const size_t value[DOOR_COUNT],
                    const struct metrics_now *now) {
  head(f, name, "gauge", help);
  for (unsigned i = 0; i < DOOR_COUNT; i++)
    if (now->connections_limit[i])
      fprintf(f, "%s{listener=\"%s\"} %zu\n", name, door_names[i], value[i]);
}

/* What there is only once the models are. */
static void write_loaded(FILE *f, struct service *s) {
  gauge(f, "attend_queue_depth", "Requests that wait for a worker.", (double)pool_waiting(s->pool));
  gauge(f, "attend_running", "Requests that workers have taken and not finished.",
        (double)pool_running(s->pool));
  struct models_hold hold = models_hold(s->models, 0);
  gauge(f, "attend_models", "Models that are loaded.", (double)registry_count(hold.registry));
  models_release(&hold);
}

static void write_now(FILE *f, struct service *s, const struct metrics_now *now) {
  if (now->loaded) write_loaded(f, s);
  gauge(f, "attend_inflight_bytes", "Memory that requests hold.",
        (double)atomic_load_explicit(&s->budget.used, memory_order_relaxed));
  gauge(f, "attend_kept_bytes", "Memory of past requests, kept for the next ones.",
        s->budget.keep ? (double)keep_bytes(s->budget.keep) : 0);
  gauge(f, "attend_inflight_limit_bytes", "Memory that requests may hold together.",
        (double)s->budget.limit);
  by_door(f, "attend_connections", "Open connections.", now->connections, now);
  by_door(f, "attend_connections_limit", "Connections that may be open.", now->connections_limit,
          now);
  gauge(f, "attend_workers", "Threads that compute all but tiny requests.", (double)s->workers);
  gauge(f, "attend_io_threads", "Threads that read and write sockets, and compute tiny requests.",
        (double)now->io_threads);
  gauge(f, "process_resident_memory_bytes", "Resident memory.", (double)resident_bytes());
  head(f, "attend_log_dropped_total", "counter", "Log lines dropped because nobody read them.");
  fprintf(f, "attend_log_dropped_total %" PRIu64 "\n", now->log_dropped);
  head(f, "attend_build_info", "gauge", "Which attend this is.");
  fprintf(f, "attend_build_info{version=\"%s\",commit=\"%s\",cpu=\"%s\"} 1\n", version_number(),
          version_commit(), cpu_level_name(cpu_level()));
}

char *metrics_text(const struct metrics *m, struct service *s, const struct metrics_now *now,
                   size_t *length) {
  char *text = NULL;
  FILE *f = open_memstream(&text, length);
  if (!f) return NULL;
  write_counted(f, m);
  write_reloads(f, m);
  write_now(f, s, now);
  bool good = !ferror(f);
  if (fclose(f) == 0 && good) return text;
  free(text);
  return NULL;
}
