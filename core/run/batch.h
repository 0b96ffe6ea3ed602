/* batch: jobs of one program that are computed together, and how their work is handed out. Private
 * to the pool.
 *
 * A batch goes through the phases of its program and then through the pieces of its jobs' answers.
 * A phase begins when all spans of the one before have been computed. All functions are called
 * under the pool's lock, except where their comment says otherwise. */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include "core/run/pool.h"

/* Jobs to be ended once the lock is released, since `done` may do anything. */
struct ending {
  struct job *first;
  size_t count;
};

void ending_add(struct ending *ending, struct job *job);
void ending_run(struct ending *ending); /* not under the lock */

/* STATUS_OK if the job is still wanted, else STATUS_DEADLINE or STATUS_GONE. It may ask the system:
 * not under the lock. */
enum status job_ask(struct job *job, uint64_t now);

/* Records why the job will have no answer; what is left of its run is skipped. */
void job_give_up(struct job *job, enum status why);

struct batch {
  const struct program *program;
  struct job *first; /* chain by job.next; the runs are chained by run.next in the same order */
  struct cursor cursor;
  struct job *writing; /* once all is computed: the job whose pieces are handed out */
  size_t tasks;        /* handed out and not finished */
  double span_work;
  double served;      /* operations handed out so far */
  bool large;         /* counted by the pool */
  bool wide;          /* more than one worker may find something to do */
  uint64_t checked;   /* when its jobs were last asked whether they are still wanted */
  bool checking;      /* a worker is asking */
  struct batch *next; /* in the list of active ones, oldest first; or of free ones */
};

/* What a worker does next: a span, or a piece of an answer. */
struct task {
  struct batch *batch;
  struct span span;
  bool check;      /* ask afterwards which jobs are still wanted */
  struct job *job; /* NULL: the span */
  size_t piece;
};

/* From a chain of at least one job, with `work` operations in all. */
void batch_init(struct batch *b, struct job *jobs, double work, size_t workers);

/* Moves on if the phase has come to an end; jobs that have nothing left to do go to `ending`. True
 * if sleeping workers should look again. Call it after batch_init and after every task. */
bool batch_advance(struct batch *b, struct ending *ending);

bool batch_is_computed(const struct batch *b); /* what is left are pieces of answers */
bool batch_is_over(const struct batch *b);     /* nothing is left to hand out or to finish */

bool batch_has_task(const struct batch *b);
void batch_cut(struct batch *b, struct task *t); /* batch_has_task is true */

void task_run(const struct task *t, void *scratch); /* not under the lock */
void task_finish(const struct task *t, struct ending *ending);

#endif
