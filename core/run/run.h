/* run: the computation of one request, as the pool and its batches see it, and the program that
 * computes it.
 *
 * A program is an immutable list of steps, shared by all threads; it says how runs of one kind are
 * computed. Runs of the same program may be computed together, as a batch: a chain of runs. Each
 * step of a batch is cut into spans, which any threads may compute in any order; a step ends when
 * all its spans are computed. The bits of a run's results depend only on the program and the run,
 * not on its neighbors in the batch, nor on how the batch was cut.
 *
 * A run may have several rounds: after the last step, the program may move the run on to its next
 * round. Between two rounds the run only waits, and its rounds may be in different batches.
 *
 * A run is the first member of a larger struct, the rest of which only its program's steps know. In
 * the same way, a step is the first member of a larger struct for its own functions. */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Work is estimated in floating-point operations everywhere. */
struct run {
  const struct program *program;
  struct run *next;      /* the next run of the same batch */
  struct run *then;      /* of any program: begins when all rounds of this one are over; or NULL */
  double work;           /* of this round */
  size_t rows;           /* query rows of this round: the sizes of batches are counted in these */
  double whole;          /* work of all rounds and of the runs that follow; may be 0 if there is one
                            round */
  size_t rounds;         /* how many are left, this one included, about; 0 is read as 1 */
  double had;            /* work of the rounds that are over; set by the pool */
  atomic_bool cancelled; /* set by any thread: the rest of the run is skipped */
  _Atomic uint64_t fault; /* the first fault (run_record_fault); 0: none */
};

/* The smallest piece of work, in terms of its step: rows of items, in some heads, some columns. */
struct unit {
  struct run *run;
  unsigned step;
  size_t pass;
  size_t item, items;
  size_t head, heads;
  size_t row, rows;       /* rows 0: all of each item */
  size_t column, columns; /* 0, 0: all */
};

/* A position in the work of a batch: a step goes through the runs in order, and through each run in
 * its own order. The cursor is at a unit, and knows where the next one begins. */
struct cursor {
  const struct program *program; /* of all the runs; valid when these have ended */
  struct run *first;
  struct unit unit; /* its run is NULL if all units that may begin have been handed out */

  unsigned step;          /* the program's number of steps: all are done */
  size_t pass;            /* of a step that goes through its runs more than once */
  size_t item, head, row; /* where in the unit's run the next unit begins */
  size_t column, columns; /* if columns are shared out: the first one, and how many at a time; all
                             runs have these columns before any run has the next */
};

/* Consecutive units of one step. */
struct span {
  struct cursor from;
  size_t units;
  double work;
};

/* The functions of a step neither allocate nor wait. They fail only by recording a fault. */
struct step {
  bool joins;     /* may begin while the step before it is computed */
  size_t columns; /* of a matrix whose columns may be shared out; else 0 */

  /* Sets the next unit of the run u->run and moves the cursor after it; false: the run has none
   * left. The units depend on the program, the runs and the results of steps that are over. */
  bool (*unit)(const struct step *s, struct cursor *at, struct unit *u);
  double (*work)(const struct step *s, const struct unit *u); /* of a unit */

  /* How many times the step goes through a run; NULL: once. No other step joins a step with more
   * passes. */
  size_t (*passes)(const struct step *s, const struct run *r);

  /* How many columns at a time a batch goes through; NULL or 0: they are not shared out. */
  size_t (*share)(const struct step *s, const struct run *first);

  /* The least work of a span from here on, even if smaller spans would occupy more threads; NULL:
   * 0. */
  double (*least)(const struct step *s, const struct cursor *at);

  /* Computes a span. `scratch` is 64-byte aligned, of the size that the program's maker names, and
   * the thread's own. */
  void (*compute)(const struct step *s, const struct span *span, void *scratch);

  /* Sets the error of a fault of a run, at a place that this step has recorded. */
  enum status (*fault)(const struct step *s, const struct run *r, uint64_t place, struct error *e);
};

struct program {
  const struct step *const *step; /* [steps] */
  unsigned steps;
  size_t bytes; /* of the matrices that each batch reads, about */
  bool aside;   /* its runs only prepare what a request asks for: their batches are not counted */

  /* Returns whether the run has another round, and moves it on: its work and rows are then those of
   * the next round. Called after all steps of a run that has no fault and is not cancelled. It only
   * moves counters, since the pool's lock may be held (a tiny job's rounds run without it). NULL:
   * runs have one round. */
  bool (*next_round)(const struct program *p, struct run *run);
};

/* --- a batch of runs, from its first one on --- */

/* Moves to the beginning, and to the next pass or the next step that has units, once all spans
 * before it are computed. */
void run_begin(struct cursor *at, struct run *first);
void run_next(struct cursor *at);

/* Whether all steps are done. */
static inline bool run_is_done(const struct cursor *at) { return at->step == at->program->steps; }

/* Whether there is a unit that may begin and has not been handed out. */
static inline bool run_has_units(const struct cursor *at) { return at->unit.run != NULL; }

/* Cuts the next span of about `work` operations and moves the cursor after it; false: there is no
 * unit. Units of runs that are over count as no work. */
bool run_cut(struct cursor *at, double work, struct span *out);

void run_span(const struct span *span, void *scratch);

/* Sets the next unit of a span whose run is not over, for a step's `compute`; false: none is left.
 */
bool run_next_unit(struct span *left, struct unit *u);

/* Ends a round without a fault. Returns the run with its next round, or the run that follows it;
 * NULL: all is over. */
static inline struct run *run_next_round(struct run *run) {
  const struct program *p = run->program;
  run->had += run->work;
  if (atomic_load(&run->cancelled)) return NULL;
  if (p->next_round && p->next_round(p, run)) return run;
  if (run->then) run->then->had = run->had;
  return run->then;
}

/* Computes all steps of one round on the calling thread, in spans of `work`, if it is too little to
 * share out. run_fault reports faults. */
void run_compute(struct run *first, double work, void *scratch);

/* --- faults of one run --- */

enum { RUN_FAULT_SHIFT = 48 };

/* Records a fault of a step at a place below 2^48, whose meaning the step defines. The first place
 * of the first step is kept, whatever the order of the calls. */
void run_record_fault(struct run *r, unsigned step, uint64_t place);

/* Whether the run is cancelled or has a fault of an earlier step. A fault of the same step stops
 * nothing: which place is the first must not depend on the order in which units are computed. */
static inline bool run_is_over(const struct run *r, unsigned step) {
  if (atomic_load_explicit(&r->cancelled, memory_order_relaxed)) return true;
  const uint64_t fault = atomic_load_explicit(&r->fault, memory_order_relaxed);
  return fault != 0 && (fault >> RUN_FAULT_SHIFT) - 1 < step;
}

/* Returns STATUS_OK, or the error of the run's fault: between steps or after the last. */
enum status run_fault(const struct run *r, struct error *e);

#endif
