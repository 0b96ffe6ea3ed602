/* test_framing: what the first bytes of a connection say, and the frames that refuse HTTP/2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/http/framing.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Sends so many bytes to the end of a server, closes the connection or not, and looks at it there.
 */
static enum framing_first look(const char *bytes, size_t count, bool closed) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  assert_int_equal(send(ends[1], bytes, count, 0), count);
  if (closed) close(ends[1]);
  const enum framing_first first = framing_look(ends[0]);
  char again[64];
  assert_int_equal(recv(ends[0], again, sizeof again, MSG_DONTWAIT), count    ? (int)count
                                                                     : closed ? 0
                                                                              : -1);
  close(ends[0]);
  if (!closed) close(ends[1]);
  return first;
}

static void first_bytes_are_awaited(void **unused) {
  (void)unused;
  assert_int_equal(look("", 0, false), FRAMING_NOTHING);
  assert_int_equal(look("", 0, true), FRAMING_OTHER);
  for (size_t count = 1; count < sizeof preface - 1; count++)
    assert_int_equal(look(preface, count, false), count < 16 ? FRAMING_PART : FRAMING_HTTP_2);
  assert_int_equal(look("POST / HTTP/1.1\r\n", 17, false), FRAMING_OTHER);
  assert_int_equal(look("PR", 2, false), FRAMING_PART);
  assert_int_equal(look("PRI * HTTP/2.1\r\n", 16, false), FRAMING_OTHER);
}

static void a_refusal_is_two_frames(void **unused) {
  (void)unused;
  int ends[2];
  unsigned char frames[256];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  framing_refuse_http2(ends[0]);
  const ssize_t size = recv(ends[1], frames, sizeof frames, 0);
  assert_true(size > 26 && frames[3] == 4 && frames[12] == 7); /* SETTINGS, GOAWAY */
  assert_int_equal(frames[0] << 16 | frames[1] << 8 | frames[2], 0);
  assert_int_equal(frames[9] << 16 | frames[10] << 8 | frames[11], size - 18);
  assert_int_equal(frames[25], 13); /* HTTP_1_1_REQUIRED */
  assert_int_equal(recv(ends[1], frames, sizeof frames, 0), 0);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_bytes_are_awaited),
      cmocka_unit_test(a_refusal_is_two_frames),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
