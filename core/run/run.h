/* run: the computation of one request, as the pool and its batches know it, and the program that
 * does it.
 *
 * A program says how runs of one kind are computed; it is immutable and shared by all threads. Runs
 * of the same program may be computed together, as a batch: a chain of runs. A program has phases,
 * each phase of a batch is cut into spans that any threads may compute in any order, and it ends
 * when all its spans have been computed. The bits of a run's results depend on the program and the
 * run alone: not on its neighbours in the batch, nor on how the batch was cut.
 *
 * A run is the first member of a larger struct, of which its program knows the rest. */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/status.h"

struct run {
  const struct program *program;
  struct run *next;       /* the next run of the same batch */
  double work;            /* floating-point operations, about */
  size_t rows;            /* query rows: the sizes of batches are counted in these */
  atomic_bool cancelled;  /* set by any thread: what is left of the run is skipped */
  _Atomic uint64_t fault; /* what went wrong, in the program's own terms; 0: nothing */
};

/* A place in the work of a batch. Every phase goes through the runs in order. */
struct cursor {
  struct run *first, *run; /* run NULL: the phase has nothing left */
  unsigned phase;          /* the number of the program's phases: all are done */
  unsigned role;           /* which of a phase's matrices */
  size_t round;            /* of a phase that goes through its runs more than once */
  size_t item, head, row;  /* where in the run */
};

/* A piece of work: so many of the program's units from a place on. */
struct span {
  struct cursor from;
  size_t units;
};

/* None of these allocates, waits or fails, but for what `fault` tells. */
struct program {
  unsigned phases;

  /* The beginning of the first phase, and of what follows once all spans of what came before have
   * been computed: the next phase, or the next round of this one. Its `run` is NULL if there is
   * nothing to do there. */
  struct cursor (*begin)(const struct program *p, struct run *first);
  struct cursor (*next)(const struct program *p, const struct cursor *at);

  /* Cuts the next span of about `work` operations and moves the cursor behind it; its `run` is then
   * NULL if nothing is left. False if there was nothing to cut. What is cancelled or at fault
   * counts as no work. */
  bool (*cut)(const struct program *p, struct cursor *at, double work, struct span *out);

  /* Computes a span. `scratch` is 64-byte aligned, of the size that the program asks for, and the
   * thread's own. */
  void (*compute)(const struct program *p, const struct span *span, void *scratch);

  /* STATUS_OK, or what went wrong in a run: between phases or after the last. */
  enum status (*fault)(const struct run *run, struct error *e);
};

static inline enum status run_fault(const struct run *run, struct error *e) {
  return run->program->fault(run, e);
}

/* All phases of a chain of runs on the calling thread, in spans of `work`: for what is not worth
 * sharing out. The faults are left to run_fault. */
static inline void run_compute(struct run *first, double work, void *scratch) {
  const struct program *p = first->program;
  struct span span;
  for (struct cursor at = p->begin(p, first); at.phase < p->phases; at = p->next(p, &at))
    while (p->cut(p, &at, work, &span)) p->compute(p, &span, scratch);
}

#endif
