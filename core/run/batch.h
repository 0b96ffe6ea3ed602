/* batch: jobs of one program that are computed together, and how their work is handed out. Private
 * to the pool.
 *
 * A batch goes through the steps of its program and then through the pieces of its jobs' answers.
 * A step begins when all spans of the one before have been computed. After the last the jobs whose
 * runs go again leave the batch. All functions are called under the pool's lock, except where their
 * comment says otherwise. */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include "core/run/pool.h"

/* Jobs to be ended once the lock is released, since `done` may do anything. */
struct ending {
  struct job *first;
  size_t count;
};

void ending_add(struct ending *ending, struct job *job);
void ending_give_up(struct ending *ending, struct job *chain, enum status why); /* all of it */
void ending_run(struct ending *ending); /* not under the lock */

/* STATUS_OK if the job is still wanted, else STATUS_DEADLINE or STATUS_GONE. The client is asked
 * for at most every 5 ms. It may ask the system: not under the lock. */
enum status job_ask(struct job *job, uint64_t now);

/* Records why the job will have no answer; what is left of its run is skipped. */
void job_give_up(struct job *job, enum status why);

struct batch {
  struct job *first; /* until all is computed; by job.next, and the runs by run.next likewise */
  struct cursor cursor;
  struct job *again;   /* then: those that go again, for the pool to take */
  struct job *writing; /* and the job whose pieces are handed out, followed by the others' */
  size_t unwritten;    /* jobs whose pieces have not all been written */
  atomic_size_t tasks; /* spans handed out and not finished; and one for those not handed out */
  size_t spans, given; /* of a step: about so many, and so many handed out */
  double span_work;
  double work, served; /* operations: of this round; handed out so far */
  double later;        /* what is then left of the job that has the least left */
  double ends;         /* when the first of its jobs ends in the ideal round */
  double cost, told;  /* of its jobs in that round, for this one; of this the round has been told */
  enum half half;     /* in which it was formed */
  bool large;         /* of one large job: counted by the pool */
  uint64_t checked;   /* when its jobs were last asked whether they are still wanted */
  bool checking;      /* a worker is asking */
  struct batch *next; /* in the list of active ones, oldest first; or of free ones */
};

/* What a worker does next: a span, or a piece of an answer. */
struct task {
  struct batch *batch;
  struct span span;
  bool check;      /* ask afterwards which jobs are still wanted */
  bool unwanted;   /* some are not */
  struct job *job; /* NULL: the span */
  size_t piece;
  enum half half;  /* of the time that it takes, ... */
  double expected; /* ... of which so many nanoseconds are counted already */
};

/* A batch that is being formed: it has no jobs and no tasks, and is not over. */
void batch_reserve(struct batch *b, const struct line *line, enum half half);

/* From a chain of at least one job. `reading` the matrices costs so many operations. */
void batch_init(struct batch *b, struct job *jobs, double reading, size_t workers, uint64_t now);

/* Moves on if the step has come to an end; jobs that have nothing left to do go to `ending`, those
 * that go again to `again`. Call it after batch_init, after the last span of a step, and after
 * every piece. */
void batch_advance(struct batch *b, struct ending *ending);

bool batch_is_computed(const struct batch *b); /* what is left are pieces of answers */
bool batch_is_over(const struct batch *b);     /* nothing is left to hand out or to finish */

/* The number by which it competes for a half of the workers' time. */
double batch_rank(const struct batch *b, enum half half);

bool batch_has_task(const struct batch *b);

/* Has it not been asked for a second whether its jobs are still wanted? Others come before it all
 * the time. It has a task. */
bool batch_is_forgotten(const struct batch *b, uint64_t now);

size_t batch_tasks(const struct batch *b); /* about how many it has to hand out now */
void batch_cut(struct batch *b, uint64_t now, struct task *t); /* batch_has_task is true */

void task_run(struct task *t, void *scratch); /* not under the lock */

/* A span is finished; true: it was the last of its step. If not, its batch must not be touched any
 * more. Under the lock or not. */
bool task_end_span(const struct task *t);

void task_end_piece(const struct task *t, struct ending *ending);
void task_end_check(const struct task *t); /* before its span is finished */

#endif
