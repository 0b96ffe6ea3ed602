/* pulse: whether a thread still passes through its loop. Main asks, the thread answers. */
#ifndef SERVER_PULSE_H
#define SERVER_PULSE_H

#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed: answered. A thread that sleeps has to be woken to answer. */
struct pulse {
  atomic_uint asked, passed;
};

static inline void pulse_ask(struct pulse *p) { atomic_fetch_add(&p->asked, 1); }

/* Answers; called by the thread in each turn of its loop. */
static inline void pulse_pass(struct pulse *p) {
  const unsigned asked = atomic_load_explicit(&p->asked, memory_order_relaxed);
  if (atomic_load_explicit(&p->passed, memory_order_relaxed) != asked)
    atomic_store(&p->passed, asked);
}

static inline bool pulse_answered(struct pulse *p) {
  return atomic_load(&p->passed) == atomic_load(&p->asked);
}

#endif
