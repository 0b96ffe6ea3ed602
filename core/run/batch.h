/* batch: jobs of one layer that run together, and how their work is handed out. Private to pool.
 *
 * A batch goes through the phases of the layer and then through the pieces of its jobs' answers; a
 * phase begins when the one before has no span left, given or running. Everything here is called
 * under the pool's lock, but for what says otherwise. */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include "core/run/pool.h"

/* Jobs to be ended once the lock is released: `done` may do anything. */
struct ending {
  struct job *first;
  size_t count;
};

void ending_add(struct ending *ending, struct job *job);
void ending_run(struct ending *ending); /* not under the lock */

/* Is anyone still waiting for the job? STATUS_OK, STATUS_DEADLINE or STATUS_GONE. May ask the
 * system: not under the lock. */
enum status job_ask(struct job *job, uint64_t now);

/* Records why the job will have no answer; what is left of its call is skipped. */
void job_give_up(struct job *job, enum status why);

struct batch {
  const struct layer *layer;
  struct job *first; /* chain by job.next; the calls are chained by call.next in the same order */
  struct cursor cursor;
  struct job *writing; /* after PHASE_DONE: the job whose pieces are handed out */
  size_t spans;        /* handed out and not finished */
  double span_work;
  double served;      /* operations handed out so far */
  bool large;         /* counted by the pool */
  bool wide;          /* more than one worker may find something to do */
  uint64_t checked;   /* when its jobs were last asked whether anyone still waits */
  bool checking;      /* a worker is asking */
  struct batch *next; /* in the list of active ones, oldest first; or of free ones */
};

/* What a worker does next: a span, or a piece of an answer. */
struct task {
  struct batch *batch;
  struct span span;
  bool check;      /* and then ask whether anyone still waits */
  struct job *job; /* NULL: the span */
  size_t piece;
};

/* From a chain of jobs, at least one, which has `work` operations to do. */
void batch_init(struct batch *b, struct job *jobs, double work, size_t workers);

/* Moves on if the phase has come to an end; jobs that are done go to `ending`. True if workers
 * that sleep should look again. Call it after batch_init and after every task. */
bool batch_advance(struct batch *b, struct ending *ending);

bool batch_is_over(const struct batch *b); /* nothing is left, given or running */

bool batch_has_task(const struct batch *b);
void batch_cut(struct batch *b, struct task *t); /* batch_has_task is true */

void task_run(const struct task *t, void *scratch); /* not under the lock */
void task_finish(const struct task *t, struct ending *ending);

#endif
