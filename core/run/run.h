/* run: the computation of one request, as the pool and its batches know it, and the program that
 * does it.
 *
 * A program is an immutable list of steps, shared by all threads; it says how runs of one kind are
 * computed. Runs of the same program may be computed together, as a batch: a chain of runs. Each
 * step of a batch is cut into spans that any threads may compute in any order, and a step ends when
 * all its spans have been computed. The bits of a run's results depend on the program and the run
 * alone: not on its neighbours in the batch, nor on how the batch was cut.
 *
 * A run may go again: when the program has been through all steps it may find that the run has more
 * to do, and moves it on to its next round. Between two rounds the run only waits, and the batches
 * of its rounds may be different ones.
 *
 * A run is the first member of a larger struct, of which the steps of its program know the rest; a
 * step is the first member of a larger struct as well, of which its own functions know the rest. */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

struct run {
  const struct program *program;
  struct run *next;       /* the next run of the same batch */
  struct run *then;       /* of any program: begins when all rounds of this one are over; or NULL */
  double work;            /* floating-point operations of the round, about */
  size_t rows;            /* of the round, of queries: the sizes of batches are counted in these */
  double whole;           /* the work of all rounds, about, and of what comes then; one that has one
                             round may leave it 0 */
  size_t rounds;          /* that are left, this one included, about; 0 is read as 1 */
  double had;             /* the work of the rounds that are over; the pool's own */
  atomic_bool cancelled;  /* set by any thread: what is left of the run is skipped */
  _Atomic uint64_t fault; /* the first place that went wrong: see run_note_fault; 0: none */
};

/* The least piece of work, in its step's own terms: rows of items, in some heads, some columns. */
struct unit {
  struct run *run;
  unsigned step;
  size_t pass;
  size_t item, items;
  size_t head, heads;
  size_t row, rows;       /* rows 0: all of each item */
  size_t column, columns; /* 0, 0: all */
};

/* A place in the work of a batch: a step goes through the runs in order, and through each of them
 * in an order of its own. The cursor stands on a unit, and knows where the next one begins. */
struct cursor {
  const struct program *program; /* of all the runs, and to be read when these have ended */
  struct run *first;
  struct unit unit; /* its run is NULL: all have been handed out that could begin */

  unsigned step;          /* the number of the program's steps: all are done */
  size_t pass;            /* of a step that goes through its runs more than once */
  size_t item, head, row; /* where in the unit's run the next one begins */
  size_t column, columns; /* where columns are shared out: the first, and how many at a time; all
                             runs come to these before any comes to the next */
};

/* Units that follow each other in one step, from a place on. */
struct span {
  struct cursor from;
  size_t units;
  double work; /* operations, about */
};

/* None of these allocates, waits or fails, but for the faults that it notes. */
struct step {
  bool joins;     /* begins while the step before it is under way */
  size_t columns; /* of a matrix whose columns may be shared out; else 0 */

  /* The next unit of the run that `u` names, behind which the cursor then is; false: the run has
   * none left. It depends on the program, the runs and the results of steps that are over. */
  bool (*unit)(const struct step *s, struct cursor *at, struct unit *u);
  double (*work)(const struct step *s, const struct unit *u); /* operations of a unit, about */

  /* How many times the step goes through a run; NULL: once. A step with more passes is joined by no
   * other. */
  size_t (*passes)(const struct step *s, const struct run *r);

  /* How many columns at a time a batch goes through; NULL or 0: they are not shared out. */
  size_t (*share)(const struct step *s, const struct run *first);

  /* The work that a span from here on should have, even where less would occupy more threads; NULL:
   * none. */
  double (*least)(const struct step *s, const struct cursor *at);

  /* Computes a span. `scratch` is 64-byte aligned, of the size that the program's maker names, and
   * the thread's own. */
  void (*compute)(const struct step *s, const struct span *span, void *scratch);

  /* Says what went wrong in a run, at a place that this step has noted. */
  enum status (*fault)(const struct step *s, const struct run *r, uint64_t place, struct error *e);
};

struct program {
  const struct step *const *step; /* [steps] */
  unsigned steps;
  size_t bytes; /* of the matrices that each batch reads, about */
  bool aside;   /* its runs come before what a request asks for: their batches are not counted */

  /* Has the run more to do? It is asked once a run has been through all steps without a fault and
   * is not cancelled. True: the run has been moved on, its work and rows are those of the next
   * round. It moves counters and no more, since the pool's lock is held. NULL: runs have one round.
   */
  bool (*again)(const struct program *p, struct run *run);
};

/* --- a batch of runs, from its first one on --- */

/* To the beginning, and to what follows once all spans of what came before have been computed:
 * another pass, or the next step that has something to do. */
void run_begin(struct cursor *at, struct run *first);
void run_next(struct cursor *at);

/* Are all steps done? */
static inline bool run_is_done(const struct cursor *at) { return at->step == at->program->steps; }

/* Is there a unit that could begin and has not been handed out? */
static inline bool run_has_units(const struct cursor *at) { return at->unit.run != NULL; }

/* Cuts the next span of about `work` operations and moves the cursor behind it. False if there was
 * nothing to cut. What is over counts as no work. */
bool run_cut(struct cursor *at, double work, struct span *out);

void run_span(const struct span *span, void *scratch);

/* The next unit of a span that is not over, for a step's `compute`; false: none is left. */
bool run_next_unit(struct span *left, struct unit *u);

/* Counts a round that is over, without a fault. The run goes again, or the one that comes then does
 * begin; NULL: all is over. */
static inline struct run *run_goes_on(struct run *run) {
  const struct program *p = run->program;
  run->had += run->work;
  if (atomic_load(&run->cancelled)) return NULL;
  if (p->again && p->again(p, run)) return run;
  if (run->then) run->then->had = run->had;
  return run->then;
}

/* All steps of one round on the calling thread, in spans of `work`: for what is not worth sharing
 * out. The faults are left to run_fault. */
void run_compute(struct run *first, double work, void *scratch);

/* --- faults of one run --- */

enum { RUN_FAULT_SHIFT = 48 };

/* Notes that a step went wrong at a place, which means what the step says and is less than 2^48.
 * Kept is the first place of the first step, whatever the order of the notes. */
void run_note_fault(struct run *r, unsigned step, uint64_t place);

/* Is nothing left to do in a step for this run? A fault of the same step stops nothing: which place
 * is the first one must not depend on the order in which the units are computed. */
static inline bool run_is_over(const struct run *r, unsigned step) {
  if (atomic_load_explicit(&r->cancelled, memory_order_relaxed)) return true;
  const uint64_t fault = atomic_load_explicit(&r->fault, memory_order_relaxed);
  return fault != 0 && (fault >> RUN_FAULT_SHIFT) - 1 < step;
}

/* STATUS_OK, or what went wrong: between steps or after the last. */
enum status run_fault(const struct run *r, struct error *e);

#endif
