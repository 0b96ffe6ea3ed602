/* test_traceparent: which values of traceparent are valid, and how long stages took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/header.h"
#include "server/watch/timeline.h"
#include "server/watch/request_id.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define VALID  "00-" TRACE "-" PARENT "-01"

static void values_of_the_standard_are_valid(void **state) {
  (void)state;
  static const char *const good[] = {
      VALID,
      "00-" TRACE "-" PARENT "-00",
      "00-" TRACE "-" PARENT "-ff",
      "01-" TRACE "-" PARENT "-01",
      "cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like",
      "fe-" TRACE "-" PARENT "-01-",
      "00-00000000000000000000000000000001-0000000000000001-01",
      VALID " \t",
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(traceparent_is_valid(good[i]));
  assert_memory_equal(traceparent_trace(VALID), TRACE, TRACEPARENT_TRACE_SIZE);
  assert_memory_equal(traceparent_parent(VALID), PARENT, TRACEPARENT_PARENT_SIZE);
}

static void all_others_are_invalid(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "00",
      "00-" TRACE "-" PARENT,
      "00-" TRACE "-" PARENT "-",
      "00-" TRACE "-" PARENT "-1",
      "00-" TRACE "-" PARENT "-0g",
      VALID "-",
      VALID "-x",
      VALID "0",
      "01-" TRACE "-" PARENT "-01.x",
      "ff-" TRACE "-" PARENT "-01",
      "fF-" TRACE "-" PARENT "-01",
      "0x-" TRACE "-" PARENT "-01",
      "000-" TRACE "-" PARENT "-01",
      "00-00000000000000000000000000000000-" PARENT "-01",
      "00-" TRACE "-0000000000000000-01",
      "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
      "00-" TRACE "-B7AD6B7169203331-01",
      "00-" TRACE "f-" PARENT "-01",
      "00-" TRACE "-" PARENT "1-01",
      "00_" TRACE "-" PARENT "-01",
      "00-" TRACE "_" PARENT "-01",
      "00-" TRACE "-" PARENT "_01",
      " " VALID,
      VALID "," VALID,
      "00-0af7651916cd43dd8448eb211c8031\"c-" PARENT "-01",
      "                                                       ",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (traceparent_is_valid(bad[i])) fail_msg("valid: %s", bad[i]);
}

/* Each byte is replaced by every other one: only hexadecimal digits in their places are valid. */
static void every_single_byte_counts(void **state) {
  (void)state;
  for (size_t i = 0; i < strlen(VALID); i++)
    for (int c = 0; c < 256; c++) {
      char text[] = VALID;
      text[i] = (char)c;
      const bool dash = i == 2 || i == 35 || i == 52;
      const bool hex = c && strchr("0123456789abcdef", c);
      assert_int_equal(traceparent_is_valid(text), dash ? c == '-' : hex);
    }
}

static void two_fields_count_as_none(void **state) {
  (void)state;
  for (unsigned n = 0; n < 4; n++) {
    struct header h;
    header_init(&h);
    for (unsigned i = 0; i < n; i++) header_add(&h, "Traceparent", 11, VALID);
    header_finish(&h);
    assert_int_equal(h.traceparent != NULL, n == 1);
    assert_int_equal(h.error.status, STATUS_OK);
  }
  struct header h;
  header_init(&h);
  header_add(&h, "traceparent", 11, "nonsense");
  header_add(&h, "traceparent", 11, VALID);
  header_finish(&h);
  assert_null(h.traceparent);
  assert_int_equal(h.error.status, STATUS_OK);
}

/* `stages`: those that an exchange with this job has reached, as letters. */
static void check_stages(const struct job *job, const char *stages) {
  struct exchange x = {.job = *job, .body_ns = 7};
  struct timeline t = {0};
  char reached[STAGE_COUNT + 1] = "";
  timeline_exchange(&t, &x);
  for (unsigned i = 0, n = 0; i < STAGE_COUNT; i++)
    if (t.reached[i]) reached[n++] = timeline_name((enum timeline_stage)i)[0];
  assert_string_equal(reached, stages);
  assert_int_equal(t.ns[STAGE_DECODE], 7);
  uint64_t sum = 0;
  for (unsigned i = STAGE_QUEUE; i < STAGE_COUNT; i++) sum += t.ns[i];
  if (!job->computed || !job->error.status) assert_int_equal(sum, job->finished - job->submitted);
}

static void stages_end_where_the_request_ended(void **state) {
  (void)state;
  const struct error gone = {.status = STATUS_GONE}, over = {.status = STATUS_NOT_FINITE};
  check_stages(&(struct job){0}, "d");
  check_stages(&(struct job){.submitted = 10, .finished = 15, .error = gone}, "dq");
  check_stages(&(struct job){.submitted = 10, .started = 11, .finished = 15, .error = gone}, "dqc");
  check_stages(
      &(struct job){.submitted = 10, .started = 11, .computed = 13, .finished = 15, .error = over},
      "dqc");
  check_stages(&(struct job){.submitted = 10, .started = 11, .computed = 13, .finished = 15},
               "dqce");
  struct timeline t = {0};
  timeline_write(&t, 9);
  assert_true(t.reached[STAGE_WRITE] && t.ns[STAGE_WRITE] == 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_of_the_standard_are_valid),
      cmocka_unit_test(all_others_are_invalid),
      cmocka_unit_test(every_single_byte_counts),
      cmocka_unit_test(two_fields_count_as_none),
      cmocka_unit_test(stages_end_where_the_request_ended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
