/* short_memory: the same work over and over, with a little more memory each time, until there is
 * enough. For test programs alone: it needs cmocka. */
#ifndef TESTS_SHORT_MEMORY_H
#define TESTS_SHORT_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/arena.h"

/* A budget that grows. It begins as zeros, but for the arena that is charged, which each turn makes
 * anew, and what the first turn has. */
struct short_memory {
  struct arena *arena;
  size_t limit; /* bytes of the turn */
  struct budget budget;
  bool begun, enough;
};

/* The condition of a loop over the turns: each has `more` bytes than the one before. All that was
 * charged in that must be given back once its arena is freed. */
static inline bool short_memory_next(struct short_memory *m, size_t more) {
  if (m->begun) {
    arena_free(m->arena);
    assert_int_equal(atomic_load(&m->budget.used), 0);
    m->limit += more;
  }
  m->begun = true;
  if (m->enough) return false;
  budget_init(&m->budget, m->limit);
  arena_init(m->arena, &m->budget);
  return true;
}

/* Was it enough, and this turn the last one? If not, the error, which has the status, must say so.
 */
static inline bool short_memory_is_enough(struct short_memory *m, enum status status,
                                          const struct error *e) {
  assert_int_equal(status, e->status);
  if (e->status) {
    assert_int_equal(e->status, STATUS_TOO_LARGE);
    assert_string_equal(e->limit, "memory_budget_bytes");
  }
  return m->enough = e->status == STATUS_OK;
}

#endif
