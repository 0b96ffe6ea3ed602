/* test_log: lines arrive whole and escaped; a slow reader costs lines, not time; repeated
 * complaints are counted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/clock.h"
#include "server/watch/log.h"
#include "tests/support/patience.h"

/* A standard stream replaced by a pipe. */
struct piped {
  int stream, saved, read;
};

static struct piped replace_stream(int stream) {
  int ends[2];
  fflush(stdout);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  struct piped p = {.stream = stream, .saved = dup(stream), .read = ends[0]};
  assert_int_equal(dup2(ends[1], stream), stream);
  close(ends[1]);
  return p;
}

/* Gives the stream back, which ends the pipe. Returns the text that was written, to be freed. */
static char *restore_stream(struct piped *p) {
  size_t size = 0, room = 1 << 16;
  char *text = malloc(room + 1);
  dup2(p->saved, p->stream);
  close(p->saved);
  for (ssize_t n; text && (n = read(p->read, text + size, room - size)) > 0;) {
    size += (size_t)n;
    if (size == room) text = realloc(text, (room *= 2) + 1);
  }
  close(p->read);
  assert_non_null(text);
  text[size] = 0;
  return text;
}

static struct log *open_log(const char *access, uint64_t repeat_ms) {
  struct error e = {0};
  const struct log_options o = {
      .level = "warning", .access = access, .slow_ms = 1000, .repeat_ms = repeat_ms};
  struct log *l = log_new(&o, &e);
  assert_non_null(l);
  return l;
}

static const struct timeline no_stages;

static struct log_request request(const char *path, const char *agent) {
  return (struct log_request){.id = "id",
                              .listener = "main",
                              .client = "127.0.0.1",
                              .method = "GET",
                              .route = "/healthz",
                              .path = path,
                              .agent = agent,
                              .code = 200,
                              .nanoseconds = 1500000,
                              .timeline = &no_stages};
}

static json_t *parsed(const char *line, size_t size) {
  json_error_t why;
  json_t *value = json_loadb(line, size, JSON_REJECT_DUPLICATES, &why);
  if (!value) fail_msg("%s in %.*s", why.text, (int)size, line);
  return value;
}

static const char *text_of(const json_t *line, const char *name) {
  const char *text = json_string_value(json_object_get(line, name));
  assert_non_null(text);
  return text;
}

static json_t *line_of(const struct log_request *r) {
  char text[LOG_LINE_SIZE];
  const size_t size = log_text_request(r, text);
  assert_in_range(size, 1, PIPE_BUF < LOG_LINE_SIZE ? PIPE_BUF : LOG_LINE_SIZE);
  assert_int_equal(text[size - 1], '\n');
  for (size_t i = 0; i < size - 1; i++) assert_in_range(text[i], 0x20, 0x7e);
  return parsed(text, size);
}

/* --- lines --- */

static void a_line_has_every_field(void **state) {
  (void)state;
  struct log_request r = request("/v1/attention?key=secret", "curl");
  struct timeline t = {.ns = {1000000, 2000, 3, 4000000000, 5001000},
                       .reached = {true, true, true, true, true}};
  r.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  r.model = "demo";
  r.error = "not-finite";
  r.code = 422;
  r.bytes_in = 12;
  r.bytes_out = UINT32_MAX;
  r.timeline = &t;
  json_t *line = line_of(&r);
  assert_int_equal(json_object_size(line), 21);
  assert_string_equal(text_of(line, "request_id"), "id");
  assert_string_equal(text_of(line, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
  assert_string_equal(text_of(line, "parent_id"), "b7ad6b7169203331");
  assert_string_equal(text_of(line, "listener"), "main");
  assert_string_equal(text_of(line, "client"), "127.0.0.1");
  assert_string_equal(text_of(line, "method"), "GET");
  assert_string_equal(text_of(line, "route"), "/healthz");
  assert_string_equal(text_of(line, "path"), "/v1/attention");
  assert_string_equal(text_of(line, "model"), "demo");
  assert_string_equal(text_of(line, "error"), "not-finite");
  assert_string_equal(text_of(line, "agent"), "curl");
  assert_int_equal(strlen(text_of(line, "time")), strlen("2026-11-22T02:37:22.494666Z"));
  assert_int_equal(json_integer_value(json_object_get(line, "status")), 422);
  assert_int_equal(json_integer_value(json_object_get(line, "bytes_in")), 12);
  assert_int_equal(json_integer_value(json_object_get(line, "bytes_out")), UINT32_MAX);
  static const char *const names[] = {"total_ms",   "decode_ms", "queue_ms",
                                      "compute_ms", "encode_ms", "write_ms"};
  static const double ms[] = {1.5, 1, 0.002, 0, 4000, 5.001};
  for (size_t i = 0; i < 6; i++) {
    const json_t *value = json_object_get(line, names[i]);
    assert_true(json_is_real(value) && json_real_value(value) == ms[i]);
  }
  json_decref(line);
}

static void what_is_not_known_is_left_out(void **state) {
  (void)state;
  struct log_request r = request("/#x", NULL);
  r.model = "";
  json_t *line = line_of(&r);
  assert_int_equal(json_object_size(line), 11);
  assert_string_equal(text_of(line, "path"), "/");
  json_decref(line);
}

static void hostile_text_stays_one_line_of_json(void **state) {
  (void)state;
  char hostile[5000];
  uint64_t random = 1;
  struct timeline t = {.ns = {[0 ... STAGE_COUNT - 1] = UINT64_MAX},
                       .reached = {[0 ... STAGE_COUNT - 1] = true}};
  for (unsigned round = 0; round < 600; round++) {
    for (size_t i = 0; i < sizeof hostile; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const char any = (char)(random >> 33);
      hostile[i] = round < 256 ? (char)round : any;
      if (round >= 256 && !any) hostile[i] = '\\';
    }
    hostile[round % 2 ? 63 : sizeof hostile - 1] = 0;
    struct log_request r = request(hostile, hostile);
    r.id = r.listener = r.client = r.method = r.route = r.model = r.error = hostile;
    r.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    r.code = UINT32_MAX;
    r.bytes_in = r.bytes_out = INT64_MAX; /* more is no integer to Jansson */
    r.nanoseconds = UINT64_MAX;
    r.timeline = &t;
    json_decref(line_of(&r));
  }
}

static void text_is_kept_where_it_is_unicode(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"/\xff"
       "a\xc3",
       "/\xef\xbf\xbd"
       "a\xef\xbf\xbd"},
      {"/\xed\xa0\x80", "/\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half a pair */
      {"/\"\\\x01\n\x7f", "/\"\\\x01\n\x7f"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct log_request r = request(cases[i][0], NULL);
    json_t *line = line_of(&r);
    assert_string_equal(text_of(line, "path"), cases[i][1]);
    json_decref(line);
  }
  char longer[1000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  const struct log_request r = request(longer, longer);
  json_t *line = line_of(&r);
  for (unsigned i = 0; i < 2; i++) {
    const char *text = text_of(line, i ? "agent" : "path");
    assert_in_range(strlen(text), 300, 600);
    assert_string_equal(text + strlen(text) - 4, "x\xe2\x80\xa6");
  }
  json_decref(line);
}

static void times_are_those_of_the_calendar(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 40000; i++) {
    const struct timespec when = {.tv_sec = (time_t)(i * 233017 % 8000000000), .tv_nsec = 1999};
    char text[LOG_TIME_SIZE], right[64];
    struct tm day;
    log_text_time(&when, text);
    gmtime_r(&when.tv_sec, &day);
    strftime(right, sizeof right, "%Y-%m-%dT%H:%M:%S.000001Z", &day);
    assert_string_equal(text, right);
  }
}

/* --- readers that do not read --- */

/* Counts the lines of a text, and those that it says were lost. */
static void count_lines(char *text, uint64_t *lines, uint64_t *lost) {
  *lines = *lost = 0;
  for (char *at = text, *end; *at; at = end + 1) {
    end = strchr(at, '\n');
    assert_non_null(end);
    json_t *line = parsed(at, (size_t)(end - at));
    const json_t *told = json_object_get(line, "log_lost");
    *lines += told == NULL;
    *lost += told ? (uint64_t)json_integer_value(told) : 0;
    json_decref(line);
  }
}

static void a_reader_that_sleeps_costs_lines_not_time(void **state) {
  (void)state;
  struct piped p = replace_stream(STDOUT_FILENO);
  struct log *l = open_log("all", 1000);
  struct log_request r = request("/healthz", NULL);
  uint64_t lines, lost;
  for (int i = 0; i < 10000; i++) log_request(l, &r); /* waiting for the pipe would last for ever */
  const uint64_t dropped = log_dropped(l);
  log_free(l);
  char *text = restore_stream(&p);
  assert_in_range(dropped, 1000, 10000); /* the ring and the pipe hold some thousands */
  count_lines(text, &lines, &lost);
  assert_in_range(lines, 100, 10000 - dropped);
  free(text);
}

/* Reads until `mark` has come. */
static char *read_until(const struct piped *p, const char *mark) {
  size_t size = 0, room = 8 << 20;
  char *text = malloc(room);
  assert_non_null(text);
  for (text[0] = 0; !strstr(text, mark);) {
    ssize_t n = read(p->read, text + size, room - size - 1);
    assert_true(n > 0);
    size += (size_t)n;
    text[size] = 0;
  }
  return text;
}

/* Reads until `expected` lines have come or are reported as lost, with no new line pushed. Returns
 * how many were lost. */
static uint64_t read_all(const struct piped *p, uint64_t expected,
                         void count(char *text, uint64_t *lines, uint64_t *lost)) {
  size_t size = 0, room = 8 << 20;
  uint64_t lines = 0, lost = 0;
  char *text = malloc(room);
  assert_non_null(text);
  while (lines + lost < expected) {
    ssize_t n = read(p->read, text + size, room - size - 1);
    assert_true(n > 0);
    size += (size_t)n;
    text[size] = 0;
    if (text[size - 1] == '\n') count(text, &lines, &lost);
  }
  assert_int_equal(lines + lost, expected);
  free(text);
  return lost;
}

static void a_late_reader_learns_how_many_lines_are_missing(void **state) {
  (void)state;
  struct piped p = replace_stream(STDOUT_FILENO);
  struct log *l = open_log("all", 1000);
  struct log_request r = request("/healthz", NULL);
  for (int i = 0; i < 10000; i++) log_request(l, &r);
  assert_in_range(read_all(&p, 10000, count_lines), 1000, 10000);
  log_free(l);
  free(restore_stream(&p));
}

static const char hostile_line[] = "level=warning msg=\"\\x1b[31m\\x0a\\\"\"\n";

static void count_hostile(char *text, uint64_t *lines, uint64_t *lost) {
  *lines = *lost = 0;
  for (char *at = text, *end; *at; at = end + 1) {
    unsigned long long n;
    const char *said = strstr(at, "level=");
    end = strchr(at, '\n');
    assert_true(said && end);
    if (sscanf(said, "level=warning msg=\"log overflow: %llu lines dropped\"\n", &n) == 1)
      *lost += n;
    else
      ++*lines, assert_memory_equal(said, hostile_line, sizeof hostile_line - 1);
  }
}

static void standard_error_is_no_different(void **state) {
  (void)state;
  struct piped p = replace_stream(STDERR_FILENO);
  struct log *l = open_log("off", 1000);
  for (int i = 0; i < 5000; i++)
    log_line(l, LOG_WARNING, "\x1b[31m\n\""); /* nothing reads the pipe */
  const uint64_t lost = read_all(&p, 5000, count_hostile);
  assert_int_equal(log_dropped(l), lost);
  log_free(l);
  free(restore_stream(&p));
  assert_in_range(lost, 1000, 5000);
}

static void a_full_disk_costs_lines_until_there_is_room(void **state) {
  (void)state;
  struct piped p = replace_stream(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC), pipe = dup(STDOUT_FILENO);
  assert_true(full >= 0 && pipe >= 0);
  dup2(full, STDOUT_FILENO);
  struct log *l = open_log("all", 1000);
  struct log_request r = request("/healthz", NULL);
  uint64_t lines, lost;
  for (int i = 0; i < 100; i++) log_request(l, &r);
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (log_dropped(l) < 100 && clock_now() < until) usleep(1000);
  dup2(pipe, STDOUT_FILENO); /* there is room */
  close(pipe);
  char *first = read_until(&p, "log_lost");
  log_request(l, &r);
  log_free(l);
  char *rest = restore_stream(&p);
  count_lines(first, &lines, &lost);
  assert_int_equal(lines, 0);
  assert_int_equal(lost, 100);
  count_lines(rest, &lines, &lost);
  assert_int_equal(lines, 1);
  assert_int_equal(lost, 0);
  free(first);
  free(rest);
  close(full);
}

/* A file that may not grow takes half a line; the rest of it comes when it may. */
static void half_a_line_is_made_whole(void **state) {
  (void)state;
  char path[] = "/tmp/attend-test-XXXXXX";
  const int file = mkstemp(path), saved = dup(STDOUT_FILENO);
  assert_true(file >= 0 && saved >= 0);
  fflush(stdout);
  dup2(file, STDOUT_FILENO);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  struct log_request r = request("/healthz", NULL);
  char one[LOG_LINE_SIZE], *text = calloc(1, 1 << 20);
  const size_t size = log_text_request(&r, one);
  small = (struct rlimit){.rlim_cur = 3 * size + size / 2, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  struct log *l = open_log("all", 1000);
  for (int i = 0; i < 50; i++) log_request(l, &r);
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (log_dropped(l) < 46 && clock_now() < until) usleep(1000);
  struct stat about = {0};
  while (about.st_size < (off_t)small.rlim_cur && clock_now() < until) {
    usleep(1000);
    fstat(file, &about);
  }
  usleep(10000); /* a try that fails */
  fstat(file, &about);
  setrlimit(RLIMIT_FSIZE, &before);
  struct stat later = about; /* the rest comes without a new line */
  while (later.st_size <= about.st_size && clock_now() < until) {
    usleep(1000);
    fstat(file, &later);
  }
  log_request(l, &r);
  log_free(l);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  const ssize_t n = pread(file, text, (1 << 20) - 1, 0);
  close(file);
  unlink(path);
  uint64_t lines, lost;
  assert_int_equal(about.st_size, small.rlim_cur);
  assert_true(later.st_size > about.st_size);
  assert_true(n > 0);
  count_lines(text, &lines, &lost);
  assert_int_equal(lines, 5); /* three, the half one, and the last */
  assert_int_equal(lost, 46);
  free(text);
}

static void no_reader_at_all_is_no_harm(void **state) {
  (void)state;
  signal(SIGPIPE, SIG_IGN);
  struct piped p = replace_stream(STDOUT_FILENO);
  close(p.read);
  p.read = open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct log *l = open_log("all", 1000);
  struct log_request r = request("/healthz", NULL);
  for (int i = 0; i < 100; i++) log_request(l, &r);
  const uint64_t until = clock_now() + PATIENCE_NS;
  while (log_dropped(l) < 100 && clock_now() < until) usleep(1000);
  assert_int_equal(log_dropped(l), 100);
  log_free(l);
  free(restore_stream(&p));
}

/* --- repeated complaints --- */

static unsigned occurrences(const char *text, const char *word) {
  unsigned n = 0;
  for (const char *at = text; (at = strstr(at, word)); at++) n++;
  return n;
}

static void a_complaint_is_logged_once_and_then_counted(void **state) {
  (void)state;
  struct piped p = replace_stream(STDERR_FILENO);
  struct log *l = open_log("off", 100);
  for (int i = 0; i < 1000; i++) log_complain(l, COMPLAINT_ACCEPT, "cannot accept: because %d", i);
  log_complain(l, COMPLAINT_LOST, "a connection could not be taken: never mind");
  log_complain(l, COMPLAINT_HTTP, "not at this level");
  char *text = read_until(&p, "more like this\"\n"); /* without a new complaint */
  const uint64_t suppressed = log_suppressed(l);
  log_complain(l, COMPLAINT_ACCEPT, "cannot accept: still");
  log_complain(l, COMPLAINT_ACCEPT, "cannot accept: still");
  log_free(l);
  char *rest = restore_stream(&p);
  /* On a slow machine a first number may have been written already. */
  assert_non_null(strstr(text, "level=warning msg=\"cannot accept: because 0\"\n"));
  assert_int_equal(occurrences(text, "a connection could not be taken: never mind"), 1);
  assert_in_range(suppressed, 900, 999);
  assert_null(strstr(text, "level=debug"));
  if (suppressed == 999)
    assert_non_null(strstr(text, "level=warning msg=\"cannot accept: 999 more like this\"\n"));
  assert_int_equal(occurrences(rest, "cannot accept: still") +
                       2 * occurrences(rest, "cannot accept: 2 more like this") +
                       occurrences(rest, "cannot accept: 1 more like this"),
                   2);
  free(text);
  free(rest);
}

static void counted_complaints_are_logged_at_the_end(void **state) {
  (void)state;
  struct piped p = replace_stream(STDERR_FILENO);
  struct log *l = open_log("off", 3600000);
  for (int i = 0; i < 8; i++) log_complain(l, COMPLAINT_FULL, "a connection was refused: full");
  for (int i = 0; i < 3; i++) log_complain(l, COMPLAINT_LOST, "a connection could not be taken");
  log_free(l);
  char *text = restore_stream(&p);
  assert_int_equal(occurrences(text, "a connection was refused: full\"\n"), 1);
  assert_int_equal(occurrences(text, "a connection was refused: 7 more like this\"\n"), 1);
  assert_int_equal(occurrences(text, "a connection could not be taken: 2 more like this\"\n"), 1);
  assert_int_equal(occurrences(text, "\n"), 4);
  free(text);
}

/* --- levels and settings --- */

static void levels_and_access_are_as_set(void **state) {
  (void)state;
  const uint64_t slow = 1000 * (uint64_t)CLOCK_MS;
  struct log *l = open_log("errors", 1000);
  assert_true(log_wants(l, LOG_ERROR));
  assert_true(log_wants(l, LOG_WARNING));
  assert_false(log_wants(l, LOG_INFO));
  assert_false(log_wants_request(l, false, 200, true, slow));
  assert_true(log_wants_request(l, false, 404, true, 0));
  assert_true(log_wants_request(l, false, 503, true, 0));
  assert_true(log_wants_request(l, false, 200, false, 0));
  assert_true(log_wants_request(l, false, 200, true, slow + 1));
  assert_false(log_wants_request(l, true, 200, true, slow));
  assert_true(log_wants_request(l, true, 503, true, 0));
  log_free(l);
  l = open_log("off", 1000);
  assert_false(log_wants_request(l, false, 500, false, slow + 1));
  log_free(l);
  l = open_log("all", 1000);
  assert_true(log_wants_request(l, false, 200, true, 0));
  log_free(l);
}

static void the_journal_keeps_the_time(void **state) {
  (void)state;
  struct error e = {0};
  struct log_options o = {.level = "debug", .access = "off", .repeat_ms = 1000};
  for (unsigned journal = 0; journal < 2; journal++) {
    struct piped p = replace_stream(STDERR_FILENO);
    struct stat about;
    char name[64];
    fstat(STDERR_FILENO, &about);
    snprintf(name, sizeof name, "%llu:%llu", (unsigned long long)about.st_dev,
             (unsigned long long)about.st_ino + !journal);
    setenv("JOURNAL_STREAM", name, 1);
    o.journal = log_is_journal(STDERR_FILENO);
    unsetenv("JOURNAL_STREAM");
    struct log *l = log_new(&o, &e);
    if (l) log_line(l, LOG_ERROR, "one");
    if (l) log_line(l, LOG_DEBUG, "two");
    log_free(l);
    char *text = restore_stream(&p);
    assert_non_null(l);
    assert_int_equal(o.journal, journal);
    if (journal)
      assert_string_equal(text, "<3>level=error msg=\"one\"\n<7>level=debug msg=\"two\"\n");
    else
      assert_memory_equal(text, "time=20", 7);
    assert_int_equal(occurrences(text, "time="), 2 * !journal);
    free(text);
  }
  assert_false(log_is_journal(STDERR_FILENO));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_line_has_every_field),
      cmocka_unit_test(what_is_not_known_is_left_out),
      cmocka_unit_test(hostile_text_stays_one_line_of_json),
      cmocka_unit_test(text_is_kept_where_it_is_unicode),
      cmocka_unit_test(times_are_those_of_the_calendar),
      cmocka_unit_test(a_reader_that_sleeps_costs_lines_not_time),
      cmocka_unit_test(a_late_reader_learns_how_many_lines_are_missing),
      cmocka_unit_test(standard_error_is_no_different),
      cmocka_unit_test(a_full_disk_costs_lines_until_there_is_room),
      cmocka_unit_test(half_a_line_is_made_whole),
      cmocka_unit_test(no_reader_at_all_is_no_harm),
      cmocka_unit_test(a_complaint_is_logged_once_and_then_counted),
      cmocka_unit_test(counted_complaints_are_logged_at_the_end),
      cmocka_unit_test(levels_and_access_are_as_set),
      cmocka_unit_test(the_journal_keeps_the_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
