/* test_log: lines arrive whole and escaped; a reader that does not read costs lines, not time. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/clock.h"
#include "server/log.h"

/* Standard output replaced by a pipe. */
struct pipe_out {
  int saved, read, write;
};

static struct pipe_out replace_output(void) {
  int ends[2];
  fflush(stdout);
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  struct pipe_out p = {.saved = dup(STDOUT_FILENO), .read = ends[0], .write = ends[1]};
  assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
  return p;
}

static void restore_output(struct pipe_out *p) {
  dup2(p->saved, STDOUT_FILENO);
  close(p->saved);
  close(p->read);
  close(p->write);
}

static struct log_request request(const char *path, const char *agent) {
  return (struct log_request){.id = "id",
                              .client = "127.0.0.1",
                              .method = "GET",
                              .path = path,
                              .agent = agent,
                              .code = 200,
                              .nanoseconds = 1500000};
}

static void hostile_text_stays_one_line_of_json(void **state) {
  (void)state;
  char hostile[700], line[4096];
  for (size_t i = 0; i < sizeof hostile - 1; i++) hostile[i] = (char)(1 + i % 255);
  hostile[sizeof hostile - 1] = 0;
  struct error e = {0};
  struct pipe_out p = replace_output();
  struct log *l = log_new("info", "all", &e);
  struct log_request r = request(hostile, hostile);
  if (l) log_request(l, &r);
  log_free(l);
  ssize_t n = read(p.read, line, sizeof line);
  restore_output(&p);
  assert_non_null(l);
  assert_in_range(n, 1, sizeof line);
  assert_int_equal(line[n - 1], '\n');
  assert_null(memchr(line, '\n', (size_t)n - 1));
  json_t *value = json_loadb(line, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(value);
  assert_int_equal(json_integer_value(json_object_get(value, "status")), 200);
  assert_string_equal(json_string_value(json_object_get(value, "id")), "id");
  json_decref(value);
}

static void a_reader_that_sleeps_costs_lines_not_time(void **state) {
  (void)state;
  struct error e = {0};
  struct pipe_out p = replace_output();
  struct log *l = log_new("info", "all", &e);
  struct log_request r = request("/healthz", NULL);
  uint64_t start = clock_now(), dropped = 0;
  for (int i = 0; l && i < 10000; i++) log_request(l, &r);
  uint64_t written = clock_now();
  if (l) dropped = log_dropped(l);
  log_free(l);
  uint64_t ended = clock_now();
  restore_output(&p);
  assert_non_null(l);
  assert_in_range(dropped, 1000, 10000); /* the ring and the pipe hold some thousands */
  assert_true(written - start < 1000 * (uint64_t)CLOCK_MS);
  assert_true(ended - written < 3000 * (uint64_t)CLOCK_MS);
}

static void levels_and_access_are_as_set(void **state) {
  (void)state;
  struct error e = {0};
  struct log *l = log_new("warning", "errors", &e);
  assert_non_null(l);
  assert_true(log_wants(l, LOG_ERROR));
  assert_true(log_wants(l, LOG_WARNING));
  assert_false(log_wants(l, LOG_INFO));
  assert_false(log_wants_access(l, 200));
  assert_true(log_wants_access(l, 404));
  log_free(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hostile_text_stays_one_line_of_json),
      cmocka_unit_test(a_reader_that_sleeps_costs_lines_not_time),
      cmocka_unit_test(levels_and_access_are_as_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
