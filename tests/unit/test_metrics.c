/* test_metrics: counting on many threads while others read, what the text has and leaves out, and
 * the resources of the process. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/model/registry.h"
#include "server/watch/metrics_parts.h"
#include "server/watch/metrics_process.h"
#include "server/watch/metrics_text.h"

static struct metrics *new_metrics(size_t shards) {
  struct error e = {0};
  struct metrics *m = metrics_new(shards, &e);
  assert_non_null(m);
  return m;
}

/* --- counting --- */

static void a_duration_is_in_the_first_bucket_that_holds_it(void **unused) {
  (void)unused;
  static const struct {
    uint64_t ns;
    unsigned bucket;
  } cases[] = {{0, 0},
               {20000, 0},
               {20001, 1},
               {50000, 1},
               {999999, 5},
               {1000000, 5},
               {60000000000u, METRICS_BOUNDS - 1},
               {60000000001u, METRICS_BOUNDS},
               {UINT64_MAX, METRICS_BOUNDS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct metrics *m = new_metrics(1);
    metrics_time(m, 7, METRICS_STAGE_WRITE, cases[i].ns);
    const struct metrics_sum s = metrics_durations(m, METRICS_STAGE_WRITE);
    assert_int_equal(s.bucket[cases[i].bucket], 1);
    assert_int_equal(s.count, 1);
    assert_true(s.ns == cases[i].ns);
    metrics_free(m);
  }
  for (unsigned b = 1; b < METRICS_BOUNDS; b++)
    assert_true(metrics_bound_us[b] > metrics_bound_us[b - 1]);
}

enum { THREADS = 4, ROUNDS = 3000, SHARDS = 3 }; /* two threads share a shard */

struct counting {
  struct metrics *m;
  size_t shard;
};

static const unsigned given[] = {200, 429, 999};

static void *count_on_thread(void *of) {
  const struct counting *c = of;
  for (unsigned i = 0; i < ROUNDS; i++) {
    metrics_request(c->m, c->shard, ROUTE_ATTENTION, METHOD_POST, given[i % 3], i * 1000);
    metrics_time(c->m, c->shard, METRICS_STAGE, i);
    metrics_add(c->m, c->shard, REJECT_BUDGET, 1);
    metrics_add(c->m, c->shard, ABORT_ANSWER, 1);
  }
  return NULL;
}

/* The index of a code in metrics_code; for an unknown code, that of all others. */
static unsigned code_index(unsigned code) {
  unsigned c = 0;
  while (metrics_code[c] && metrics_code[c] != code) c++;
  return c;
}

static void nothing_is_lost_and_nothing_shrinks(void **unused) {
  (void)unused;
  struct metrics *m = new_metrics(SHARDS);
  struct counting c[THREADS];
  pthread_t thread[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    c[i] = (struct counting){m, i};
    assert_int_equal(pthread_create(&thread[i], NULL, count_on_thread, &c[i]), 0);
  }
  struct metrics_sum last = {0};
  uint64_t rejected = 0;
  while (last.count < THREADS * ROUNDS || rejected < THREADS * ROUNDS) {
    const struct metrics_sum now = metrics_durations(m, METRICS_STAGE);
    uint64_t sum = 0;
    for (unsigned b = 0; b <= METRICS_BOUNDS; b++) {
      assert_true(now.bucket[b] >= last.bucket[b]);
      sum += now.bucket[b];
    }
    assert_true(sum == now.count);
    assert_true(metrics_count(m, REJECT_BUDGET) >= rejected);
    rejected = metrics_count(m, REJECT_BUDGET);
    last = now;
  }
  for (size_t i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  const uint64_t each = THREADS * ROUNDS;
  assert_true(metrics_count(m, ABORT_ANSWER) == each);
  assert_true(metrics_count(m, ABORT_BODY) == 0);
  assert_true(metrics_count(m, REJECT_QUEUE) == 0);
  for (unsigned i = 0; i < 3; i++)
    assert_true(metrics_requests(m, ROUTE_ATTENTION, METHOD_POST, code_index(given[i])).count ==
                each / 3);
  metrics_free(m);
}

/* --- the text --- */

struct served {
  struct config config;
  struct service service;
  struct metrics *m;
};

static void served_init(struct served *s) {
  struct error e = {0};
  char *settings[] = {"--workers", "1", "--max-queue", "77", NULL}, *nothing[] = {NULL};
  memset(s, 0, sizeof *s);
  config_read(&s->config, settings, nothing, &e);
  if (!e.status) service_start(&s->service, &s->config, 1, &e);
  if (e.status) fail_msg("%s", e.detail);
  s->m = new_metrics(2);
}

static void served_done(struct served *s) {
  metrics_free(s->m);
  service_stop(&s->service);
  config_free(&s->config);
}

static char *text_of(struct served *s, const struct metrics_now *now) {
  size_t length = 0;
  char *text = metrics_text(s->m, &s->service, now, &length);
  assert_non_null(text);
  assert_int_equal(length, strlen(text));
  return text;
}

/* Is this one of the text's lines, whole? */
static bool has_line(const char *text, const char *line) {
  const size_t n = strlen(line);
  for (const char *at = text; (at = strstr(at, line)); at++)
    if ((at == text || at[-1] == '\n') && at[n] == '\n') return true;
  return false;
}

static void the_text_has_counts_and_values_of_the_moment(void **unused) {
  (void)unused;
  static const struct metrics_listener listeners[] = {{"main", 3, 1024, 9}, {"admin", 1, 64, 2}};
  const struct metrics_now now = {.listener = listeners,
                                  .listeners = 2,
                                  .loaded = true,
                                  .io_threads = 5,
                                  .longest_turn_ns = 7250000,
                                  .log_dropped = 11,
                                  .log_suppressed = 12};
  static const char *const lines[] = {
      "attend_http_requests_total{route=\"/v1/attention\",method=\"POST\",code=\"200\"} 1",
      "attend_http_requests_total{route=\"/v1/attention\",method=\"POST\",code=\"503\"} 0",
      "attend_http_requests_total{route=\"/v1/embeddings\",method=\"POST\",code=\"500\"} 0",
      "attend_http_requests_total{route=\"/v1/models/{model}/"
      "generate\",method=\"POST\",code=\"200\"} 0",
      "attend_http_requests_total{route=\"none\",method=\"other\",code=\"other\"} 1",
      "attend_http_request_duration_seconds_bucket{route=\"/v1/attention\",method=\"POST\","
      "code=\"200\",le=\"0.0005\"} 1",
      "attend_http_request_duration_seconds_bucket{route=\"/v1/attention\",method=\"POST\","
      "code=\"200\",le=\"0.0002\"} 0",
      "attend_stage_duration_seconds_count{stage=\"write\"} 0",
      "attend_queue_wait_seconds_count{class=\"medium\"} 0",
      "attend_rejected_total{reason=\"too_large\"} 1",
      "attend_rejected_total{reason=\"unauthorized\"} 0",
      "attend_client_aborts_total{phase=\"queue\"} 1",
      "attend_connections{listener=\"main\"} 3",
      "attend_connections{listener=\"admin\"} 1",
      "attend_connections_limit{listener=\"admin\"} 64",
      "attend_connections_total{listener=\"main\"} 9",
      "attend_queue_limit 77",
      "attend_io_threads 5",
      "attend_io_longest_turn_seconds 0.007250",
      "attend_log_dropped_total 11",
      "attend_log_suppressed_total 12",
      "attend_batch_requests_bucket{le=\"4096\"} 0",
      "attend_batch_rows_bucket{le=\"1048576\"} 0",
      "# TYPE attend_batch_rows histogram",
  };
  struct served s;
  served_init(&s);
  metrics_request(s.m, 0, ROUTE_ATTENTION, METHOD_POST, 200, 400000);
  metrics_request(s.m, 1, ROUTE_NONE, METHOD_OTHER, 299, 1);
  metrics_add(s.m, 1, REJECT_TOO_LARGE, 1);
  metrics_add(s.m, 0, ABORT_QUEUE, 1);
  char *text = text_of(&s, &now);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!has_line(text, lines[i])) fail_msg("%s is not in\n%s", lines[i], text);
  assert_null(strstr(text, "code=\"401\"")); /* has not happened */
  free(text);
  served_done(&s);
}

/* A file's name may hold anything. */
static void labels_are_escaped(void **unused) {
  (void)unused;
  const struct metrics_now now = {.loaded = true};
  struct served s;
  served_init(&s);
  struct models_hold hold = models_hold(s.service.models, 0);
  struct model *m = (struct model *)(uintptr_t)registry_at(hold.registry, 0);
  free(m->source);
  m->source = strdup("a\"b\\c\nd\xff\xc3\xa9\xe2\x82");
  assert_non_null(m->source);
  models_release(&hold);
  char *text = text_of(&s, &now);
  assert_non_null(strstr(
      text, ",source=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\",layout"));
  free(text);
  served_done(&s);
}

/* --- the process --- */

static void resources_of_this_process_are_read(void **unused) {
  (void)unused;
  struct metrics_process p;
  metrics_process_read(&p, "/proc/self");
  assert_true(p.has_memory && p.has_fds);
  assert_true(p.resident_bytes > 1 << 16 && p.virtual_bytes >= p.resident_bytes);
  assert_true(p.threads >= 1);
  assert_true(p.open_fds >= 3 && (!p.has_max_fds || p.open_fds <= p.max_fds));
  assert_true(p.cpu_seconds > 0);
  const uint64_t before = p.open_fds;
  const int fd = dup(1);
  metrics_process_read(&p, "/proc/self");
  assert_int_equal(p.open_fds, before + 1);
  close(fd);
  const double now = (double)time(NULL), started = metrics_process_start("/proc/self");
  assert_true(started <= now + 2 && started > now - 86400);
}

static void without_proc_they_are_unknown(void **unused) {
  (void)unused;
  struct metrics_process p;
  metrics_process_read(&p, "/nowhere");
  assert_false(p.has_memory || p.has_fds);
  assert_true(p.cpu_seconds > 0);
  assert_true(metrics_process_start("/nowhere") == 0);
}

static void write_file(const char *folder, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

/* Files as on other systems: a name with parentheses, a line that is cut, and a folder fd of size
 * 0, as before Linux 6.2. */
static void files_of_other_systems_are_understood(void **unused) {
  (void)unused;
  char folder[] = "/tmp/attend-proc-XXXXXX", path[128];
  struct metrics_process p;
  assert_non_null(mkdtemp(folder));
  write_file(folder, "stat",
             "7 (a) 1 2 (b) S 1 7 7 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 33 0 4400 8192000 9 1 2\n");
  snprintf(path, sizeof path, "%s/fd", folder);
  assert_int_equal(symlink("/proc/self/task", path), 0); /* its size is 0 as well */
  metrics_process_read(&p, folder);
  assert_true(p.has_memory);
  assert_int_equal(p.threads, 33);
  assert_int_equal(p.virtual_bytes, 8192000);
  assert_int_equal(p.resident_bytes, 9 * sysconf(_SC_PAGESIZE));
  assert_true(p.has_fds);
  metrics_process_read(&p, "/proc/self");
  const uint64_t threads = p.threads;
  metrics_process_read(&p, folder);
  assert_int_equal(p.open_fds, threads - 1); /* one is taken for the reader's own */
  const char *const broken[] = {"", "7 (a", "7 (a) S 1 2 3", ")"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    write_file(folder, "stat", broken[i]);
    metrics_process_read(&p, folder);
    assert_false(p.has_memory);
  }
  unlink(path);
  snprintf(path, sizeof path, "%s/stat", folder);
  unlink(path);
  assert_int_equal(rmdir(folder), 0);
}

/* metrics.def has the names of the stages, which the log and Server-Timing have from timeline.h. */
static void stages_have_their_names(void **state) {
  (void)state;
  static const char *const labels[] = {
#define FAMILY(name, type, help)
#define COUNTER(id, labels)
#define SECONDS(id, labels)
#define HISTOGRAM(id, labels) labels,
#include "server/watch/metrics.def"
  };
  for (unsigned i = 0; i < STAGE_COUNT; i++) {
    char expected[40];
    snprintf(expected, sizeof expected, "stage=\"%s\"", timeline_name((enum timeline_stage)i));
    assert_string_equal(labels[METRICS_STAGE + i], expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_duration_is_in_the_first_bucket_that_holds_it),
      cmocka_unit_test(stages_have_their_names),
      cmocka_unit_test(nothing_is_lost_and_nothing_shrinks),
      cmocka_unit_test(the_text_has_counts_and_values_of_the_moment),
      cmocka_unit_test(labels_are_escaped),
      cmocka_unit_test(resources_of_this_process_are_read),
      cmocka_unit_test(without_proc_they_are_unknown),
      cmocka_unit_test(files_of_other_systems_are_understood),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
