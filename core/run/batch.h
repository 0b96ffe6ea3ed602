/* batch: jobs of one program that are computed together, and how their work is handed out. Private
 * to the pool.
 *
 * A batch goes through the steps of its program and then through the pieces of its jobs' responses.
 * A step begins when all spans of the one before it are computed. After the last step, the jobs
 * whose runs have another round leave the batch. All functions are called under the pool's lock,
 * unless their comment says otherwise. */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include "core/run/pool.h"

/* Jobs that end once the lock is released, since `done` may do anything. */
struct ending {
  struct job *first;
  size_t count;
};

void ending_add(struct ending *ending, struct job *job);
void ending_give_up(struct ending *ending, struct job *chain,
                    enum status why);   /* all of the chain */
void ending_run(struct ending *ending); /* not under the lock */

/* Returns STATUS_OK if the job's response is still wanted, else STATUS_DEADLINE or STATUS_GONE. The
 * client is checked at most every 5 ms. Not under the lock: it may call the system. */
enum status job_ask(struct job *job, uint64_t now);

/* Sets the error of a job that ends without a response; the rest of its run is skipped. */
void job_give_up(struct job *job, enum status why);

struct batch {
  struct job *first; /* until all is computed; chained by job.next, and the runs by run.next */
  struct cursor cursor;
  struct job *continuing; /* then: the jobs with another round, for the pool to take */
  struct job *writing;    /* and the job whose pieces are handed out, followed by the others */
  size_t unwritten;       /* jobs with pieces that are not written */
  atomic_size_t tasks;    /* spans handed out and not finished; plus one for those not handed out */
  size_t spans, given;    /* spans of a step, about, and how many of them were handed out */
  double span_work;       /* operations of a span */
  double work, served;    /* operations of this round, and those handed out so far */
  double later;           /* operations left after this round, of the job that has the fewest */
  double ends;            /* the earliest virtual end of its jobs (clients.h) */
  double cost;            /* operations of this round in the ideal round */
  double told;            /* how much of the cost the ideal round has been advanced by */
  enum half half;         /* the half of the workers' time in which it was formed */
  bool large;             /* whether it is one large job, which the pool counts */
  uint64_t checked;       /* when it was last checked whether its jobs are still wanted */
  bool checking;          /* whether a worker is checking */
  struct batch *next;     /* in the list of active batches, oldest first, or of free ones */
};

/* A worker's next work: a span, or a piece of a response. */
struct task {
  struct batch *batch;
  struct span span;
  bool check;      /* check afterwards which jobs are still wanted */
  bool unwanted;   /* some are not */
  struct job *job; /* whose piece is to be written; NULL: the span is to be computed */
  size_t piece;
  enum half half;  /* the half that its time belongs to */
  double expected; /* nanoseconds of it that are counted already */
};

/* Makes an empty batch that is being formed: it has no jobs and no tasks, and is not over. */
void batch_reserve(struct batch *b, const struct line *line, enum half half);

/* Gives a reserved batch its jobs, at least one. `reading`: operations in the time in which the
 * matrices are read. */
void batch_init(struct batch *b, struct job *jobs, double reading, size_t workers, uint64_t now);

/* Moves on if the step has ended. Jobs that are done go to `ending`, those with another round to
 * b->continuing. Called after batch_init, after the last span of a step, and after every piece. */
void batch_advance(struct batch *b, struct ending *ending);

bool batch_is_computed(const struct batch *b); /* only pieces of responses are left */
bool batch_is_over(const struct batch *b);     /* nothing is left to hand out or to finish */

/* The number by which it competes for a half of the workers' time. */
double batch_rank(const struct batch *b, enum half half);

bool batch_has_task(const struct batch *b);

/* Whether it has a task, and has not been checked for a second, since others overtake it. */
bool batch_is_forgotten(const struct batch *b, uint64_t now);

size_t batch_tasks(const struct batch *b); /* how many it may hand out now, about */
void batch_cut(struct batch *b, uint64_t now, struct task *t); /* batch_has_task is true */

void task_run(struct task *t, void *scratch); /* not under the lock */

/* Finishes a span; true: it was the last of its step. If not, its batch must not be touched any
 * more. Under the lock or not. */
bool task_end_span(const struct task *t);

void task_end_piece(const struct task *t, struct ending *ending);
void task_end_check(const struct task *t); /* before its span is finished */

#endif
