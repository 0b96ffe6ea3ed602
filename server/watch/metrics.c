/* metrics: counts requests and their times, and adds the counts of all threads up. */
#include "server/watch/metrics.h"

#include <stdlib.h>
#include <time.h>

#include "server/watch/metrics_parts.h"
#include "server/watch/metrics_process.h"

const uint64_t metrics_bound_us[METRICS_BOUNDS] = {
    20,     50,     100,    200,     500,     1000,    2000,     5000,     10000,    20000,   50000,
    100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 30000000, 60000000};

const unsigned short metrics_code[METRICS_CODES] = {200, 204, 304, 400, 401, 403, 404, 405,
                                                    406, 408, 411, 413, 414, 415, 422, 429,
                                                    431, 499, 500, 501, 503, 504, 0};

struct metrics *metrics_new(size_t shards, struct error *e) {
  struct metrics *m = aligned_alloc(_Alignof(struct metrics), sizeof *m);
  if (m) *m = (struct metrics){.shards = shards, .started = metrics_process_start("/proc/self")};
  if (m) m->shard = calloc(shards + 1, sizeof *m->shard); /* one more, to align by hand */
  if (m && m->shard) return m;
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the metrics");
  metrics_free(m);
  return NULL;
}

void metrics_free(struct metrics *m) {
  if (!m) return;
  free(m->shard);
  free(m);
}

static struct metrics_shard *shard_at(const struct metrics *m, size_t shard) {
  uintptr_t base = ((uintptr_t)m->shard + 63) & ~(uintptr_t)63;
  return (struct metrics_shard *)base + shard % m->shards;
}

/* --- counting --- */

static void add_count(_Atomic uint64_t *to, uint64_t n) {
  atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void add_duration(struct metrics_durations *h, uint64_t nanoseconds) {
  /* Rounded up: a bucket includes its upper bound. */
  const uint64_t us = nanoseconds / 1000 + (nanoseconds % 1000 != 0);
  unsigned i = 0;
  while (i < METRICS_BOUNDS && us > metrics_bound_us[i]) i++;
  add_count(&h->bucket[i], 1);
  add_count(&h->sum_ns, nanoseconds);
}

void metrics_request(struct metrics *m, size_t shard, enum route route, enum method method,
                     unsigned code, uint64_t nanoseconds) {
  unsigned c = 0;
  while (metrics_code[c] && metrics_code[c] != code) c++;
  atomic_bool *used = &m->used[route][method][c];
  if (!atomic_load_explicit(used, memory_order_relaxed))
    atomic_store_explicit(used, true, memory_order_relaxed);
  add_duration(&shard_at(m, shard)->request[route][method][c], nanoseconds);
}

void metrics_add(struct metrics *m, size_t shard, enum metrics_counter counter, uint64_t n) {
  add_count(&shard_at(m, shard)->counter[counter], n);
}

_Static_assert(METRICS_STAGE_WRITE - METRICS_STAGE == STAGE_WRITE, "the rows of all stages");

void metrics_time(struct metrics *m, size_t shard, enum metrics_histogram histogram,
                  uint64_t nanoseconds) {
  add_duration(&shard_at(m, shard)->histogram[histogram], nanoseconds);
}

void metrics_loaded(struct metrics *m) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
  atomic_store_explicit(&m->loaded_ms, ms, memory_order_relaxed);
}

void metrics_reload(struct metrics *m, bool succeeded) {
  if (succeeded) metrics_loaded(m);
  metrics_add(m, 0, succeeded ? RELOAD_OK : RELOAD_FAILED, 1);
}

/* --- adding up --- */

static uint64_t load_count(const _Atomic uint64_t *of) {
  return atomic_load_explicit(of, memory_order_relaxed);
}

static void add_durations(struct metrics_sum *s, const struct metrics_durations *h) {
  for (unsigned b = 0; b <= METRICS_BOUNDS; b++) {
    const uint64_t n = load_count(&h->bucket[b]);
    s->bucket[b] += n;
    s->count += n;
  }
  s->ns += load_count(&h->sum_ns);
}

struct metrics_sum metrics_durations(const struct metrics *m, enum metrics_histogram histogram) {
  struct metrics_sum s = {0};
  for (size_t i = 0; i < m->shards; i++) add_durations(&s, &shard_at(m, i)->histogram[histogram]);
  return s;
}

struct metrics_sum metrics_requests(const struct metrics *m, enum route route, enum method method,
                                    unsigned code) {
  struct metrics_sum s = {0};
  for (size_t i = 0; i < m->shards; i++)
    add_durations(&s, &shard_at(m, i)->request[route][method][code]);
  return s;
}

uint64_t metrics_count(const struct metrics *m, enum metrics_counter counter) {
  uint64_t n = 0;
  for (size_t i = 0; i < m->shards; i++) n += load_count(&shard_at(m, i)->counter[counter]);
  return n;
}
