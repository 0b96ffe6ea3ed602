/* same_sequence: are two sequences that were generated the same, bit for bit? For test programs
 * alone: it needs cmocka. */
#ifndef TESTS_SAME_SEQUENCE_H
#define TESTS_SAME_SEQUENCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/stack/stack.h"

/* Sequence i of a computed run, and sequence j of another one. */
static inline void same_sequence(const struct stack_run *x, size_t i, const struct stack_run *y,
                                 size_t j) {
  const struct stack_sequence *p = &x->generation->sequence[i], *q = &y->generation->sequence[j];
  const size_t count = stack_sequence_count(p), top = x->generation->top_count;
  assert_int_equal(count, stack_sequence_count(q));
  assert_int_equal(top, y->generation->top_count);
  assert_int_equal(p->finish, q->finish);
  assert_true(p->score == q->score);
  assert_memory_equal(p->token, q->token, count * sizeof *p->token);
  assert_memory_equal(p->log_probability, q->log_probability, count * sizeof(float));
  assert_memory_equal(p->top_token, q->top_token, count * top * sizeof(int32_t));
  assert_memory_equal(p->top_log_probability, q->top_log_probability, count * top * sizeof(float));
}

/* All sequences of two runs. */
static inline void same_sequences(const struct stack_run *x, const struct stack_run *y) {
  for (size_t i = 0; i < x->geometry.items; i++) same_sequence(x, i, y, i);
}

#endif
