/* answer_join: the bytes of an answer whose pieces are written. For test programs alone: it needs
 * cmocka. */
#ifndef TESTS_ANSWER_JOIN_H
#define TESTS_ANSWER_JOIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/answer/answer.h"

/* All answer_bytes of them, and a zero behind them; the caller frees them. */
static inline char *answer_join(const struct answer *a) {
  const size_t bytes = answer_bytes(a);
  char *text = malloc(bytes + 1), *at = text;
  assert_non_null(text);
  for (size_t i = 0; i < a->pieces; i++) {
    memcpy(at, a->piece[i].iov_base, a->piece[i].iov_len);
    at += a->piece[i].iov_len;
  }
  assert_int_equal(at - text, bytes);
  *at = '\0';
  return text;
}

/* The same of an answer that is planned: its pieces are written last to first. */
static inline char *answer_join_written(struct answer *a) {
  for (size_t i = a->pieces; i-- > 0;) answer_write_piece(a, i);
  return answer_join(a);
}

#endif
