/* counting: a program of the tests' own, for the pool: runs that count, round after round, in steps
 * whose units need those of the step before. It has no mathematics, so that thousands of rounds
 * take no time; a unit that is left out, computed twice or too early changes the sum. */
#ifndef TESTS_SUPPORT_COUNTING_H
#define TESTS_SUPPORT_COUNTING_H

#include <stdatomic.h>

#include "core/run/pool.h"

enum { COUNTING_STEPS = 30, COUNTING_UNITS = 16 }; /* at most */

struct counting {
  struct program program;
  const struct step *list[COUNTING_STEPS];
  atomic_bool closed;           /* set by the test: from now on no run may be asked */
  atomic_size_t asked_too_late; /* how often one was */
};

struct counting_run {
  struct run run;
  struct job job;
  size_t units;    /* of each step, 1 to COUNTING_UNITS */
  size_t rounds;   /* that it goes through */
  size_t fault_at; /* the round in which it is at fault; SIZE_MAX: none */
  uint64_t seed;   /* the works of later rounds are drawn from it; 0: they are `later` */
  double later;    /* if not 0 either */
  size_t round;    /* now */
  size_t asked;    /* how often it was asked whether it goes again */
  uint64_t cell[COUNTING_STEPS][COUNTING_UNITS];
  void (*at_unit)(struct counting_run *r); /* called by every unit; NULL: nothing */
};

void counting_init(struct counting *c, size_t steps, bool again);
void counting_run_init(struct counting_run *r, struct counting *c, size_t units, size_t rounds);

/* What the cells of a run must be in the end. */
bool counting_is_right(const struct counting_run *r);

static inline struct counting_run *counting_of(struct job *job) {
  return (struct counting_run *)((char *)job - offsetof(struct counting_run, job));
}

#endif
