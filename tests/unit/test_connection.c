/* test_connection: the set of open connections: which one is ended to make room, what the reaper
 * ends, and its pulse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/http/connection.h"
#include "server/watch/metrics_parts.h"

enum { COUNT = 6 };

struct connection_set {
  struct metrics *metrics;
  struct connections *all;
  struct connection c[COUNT];
  int other[COUNT]; /* the clients' ends */
};

static void settle(void) { nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); }

static int set_up(void **state) {
  static const struct connection_times patient = {3600000, 3600000, 3600000, 3600000};
  static struct connection_set s;
  struct error e = {0};
  s = (struct connection_set){.metrics = metrics_new(1, &e)};
  s.all = connections_new(&patient, s.metrics, NULL, &e);
  for (int i = 0; i < COUNT; i++) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    s.other[i] = pair[1];
    connection_open(s.all, &s.c[i], pair[0]);
    settle(); /* one is older than the other */
  }
  *state = &s;
  return e.status;
}

static int tear_down(void **state) {
  struct connection_set *s = *state;
  for (int i = 0; i < COUNT; i++) {
    connection_close(s->all, &s->c[i]);
    close(s->c[i].fd);
    close(s->other[i]);
  }
  connections_free(s->all);
  metrics_free(s->metrics);
  return 0;
}

static bool is_ended(struct connection_set *s, int i) {
  char byte;
  return recv(s->other[i], &byte, 1, MSG_DONTWAIT) == 0;
}

/* Makes room where `most` are open, and returns which connection was ended for it; -1: none or
 * several. */
static int make_room_of(struct connection_set *s, size_t most) {
  bool before[COUNT];
  int which = -1;
  for (int i = 0; i < COUNT; i++) before[i] = is_ended(s, i);
  connections_make_room(s->all, most);
  for (int i = 0; i < COUNT; i++)
    if (!before[i] && is_ended(s, i)) which = which < 0 ? i : -1;
  return which;
}

static int make_room(struct connection_set *s) { return make_room_of(s, 1); }

static void test_the_longest_wait_is_ended(void **state) {
  struct connection_set *s = *state;
  connection_enter(&s->c[0], CONNECTION_IDLE); /* just now: it has waited the least */
  settle();
  for (int i = 1; i < COUNT; i++) assert_int_equal(make_room(s), i);
  assert_int_equal(make_room(s), 0);
  assert_int_equal(make_room(s), -1); /* all are on their way out */
}

static void test_waiting_connections_are_ended_before_answers(void **state) {
  struct connection_set *s = *state;
  connection_enter(&s->c[1], CONNECTION_ANSWER);
  settle();
  connection_enter(&s->c[0], CONNECTION_ANSWER);
  settle();
  connection_enter(&s->c[2], CONNECTION_BODY);
  connection_enter(&s->c[3], CONNECTION_OVER_IDLE); /* is ended already */
  static const int order[] = {4, 5, 2, 1, 0};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    assert_int_equal(make_room(s), order[i]);
  assert_int_equal(make_room(s), -1);
}

/* However many knock before the ended ones are closed: as many as there may be stay. */
static void test_a_crowd_does_not_end_all(void **state) {
  struct connection_set *s = *state;
  assert_int_equal(make_room_of(s, COUNT + 1), -1);
  for (int i = 0; i < 3; i++) assert_int_equal(make_room_of(s, COUNT - 2), i);
  assert_int_equal(make_room_of(s, COUNT - 2), -1);
}

static void test_pulse(void **state) {
  struct connection_set *s = *state;
  for (int i = 0; i < 3; i++) {
    connections_ask(s->all);
    for (int turns = 0; !connections_answered(s->all) && turns < 100000; turns++) settle();
    assert_true(connections_answered(s->all));
  }
  struct pulse p = {0};
  assert_true(pulse_answered(&p));
  pulse_ask(&p);
  assert_false(pulse_answered(&p));
  pulse_pass(&p);
  assert_true(pulse_answered(&p));
  pulse_ask(&p);
  pulse_ask(&p);
  assert_false(pulse_answered(&p));
  pulse_pass(&p);
  assert_true(pulse_answered(&p));
}

/* A client that never stops sending is cut off long before the time to linger is over. */
static void test_what_is_discarded_has_an_end(void **state) {
  enum { MOST = 20 << 20 }; /* what is read, and what lies in the socket's buffers */
  static const char bytes[65536];
  const struct connection_set *s = *state;
  int pair[2];
  size_t sent = 0;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  connections_linger(s->all, pair[0]);
  for (ssize_t n; sent <= MOST && (n = send(pair[1], bytes, sizeof bytes, MSG_NOSIGNAL)) > 0;)
    sent += (size_t)n;
  close(pair[1]);
  assert_in_range(sent, 1, MOST);
}

static void test_an_incomplete_header_in_a_drain(void **state) {
  struct connection_set *s = *state;
  connection_enter(&s->c[0], CONNECTION_HEADER);
  connections_drain(s->all);
  for (int turns = 0; !metrics_count(s->metrics, REJECT_DRAINING) && turns < 100000; turns++)
    settle();
  assert_int_equal(metrics_count(s->metrics, REJECT_DRAINING), 1);
  assert_int_equal(metrics_count(s->metrics, REJECT_SLOW_HEADER), 0);
  assert_int_equal(connection_phase(&s->c[0]), CONNECTION_DRAINED);
}

static void wait_for_phase(struct connection *c, enum connection_phase phase) {
  for (int turns = 0; connection_phase(c) != phase && turns < 100000; turns++) settle();
  assert_int_equal(connection_phase(c), phase);
}

/* What the server has not read yet, or lets wait, is no fault of the client. */
static void test_a_body_that_stops_in_a_drain(void **state) {
  struct connection_set *s = *state;
  char byte = 'x';
  for (int i = 0; i < 2; i++) connection_enter(&s->c[i], CONNECTION_BODY);
  connection_enter(&s->c[2], CONNECTION_LOBBY);
  assert_int_equal(send(s->other[1], &byte, 1, 0), 1);
  connections_drain(s->all);
  wait_for_phase(&s->c[0], CONNECTION_DRAINED);
  assert_true(recv(s->other[0], &byte, 1, 0) == 1 && byte == 'H'); /* HTTP/1.1 503 */
  assert_int_equal(connection_phase(&s->c[1]), CONNECTION_BODY);
  assert_int_equal(connection_phase(&s->c[2]), CONNECTION_LOBBY);
  assert_int_equal(recv(s->c[1].fd, &byte, 1, 0), 1);
  wait_for_phase(&s->c[1], CONNECTION_DRAINED);
  assert_int_equal(connection_phase(&s->c[2]), CONNECTION_LOBBY);
  assert_int_equal(metrics_count(s->metrics, REJECT_DRAINING), 2);
}

static void test_what_is_incomplete_at_the_end_of_a_drain(void **state) {
  struct connection_set *s = *state;
  static const enum connection_phase before[COUNT] = {CONNECTION_FRESH,  CONNECTION_HEADER,
                                                      CONNECTION_LOBBY,  CONNECTION_BODY,
                                                      CONNECTION_QUEUED, CONNECTION_ANSWER};
  static const enum connection_phase after[COUNT] = {CONNECTION_OVER_IDLE, CONNECTION_DRAINED,
                                                     CONNECTION_DRAINED,   CONNECTION_DRAINED,
                                                     CONNECTION_QUEUED,    CONNECTION_ANSWER};
  for (int i = 0; i < COUNT; i++) connection_enter(&s->c[i], before[i]);
  assert_int_equal(connections_busy(s->all), COUNT);
  assert_int_equal(connections_refuse_incomplete(s->all), 3);
  for (int i = 0; i < COUNT; i++) assert_int_equal(connection_phase(&s->c[i]), after[i]);
  assert_int_equal(connections_busy(s->all), 2);
  assert_int_equal(connections_refuse_incomplete(s->all), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_the_longest_wait_is_ended, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_waiting_connections_are_ended_before_answers, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_a_crowd_does_not_end_all, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pulse, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_discarded_has_an_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_an_incomplete_header_in_a_drain, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_body_that_stops_in_a_drain, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_incomplete_at_the_end_of_a_drain, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
