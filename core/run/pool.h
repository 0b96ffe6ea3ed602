/* pool: the workers and their queue. Waiting jobs whose runs have one program are computed
 * together, as a batch.
 *
 * A job is the submitter's memory. From pool_submit until `done` is called it belongs to the pool;
 * that call is the last thing that the pool does with it. After pool_new only pool_reserve
 * allocates. There are no timers. pool_submit never fails: if the queue is full, the job ends at
 * once with an error, on the same path as success.
 *
 * A worker takes waiting jobs of one program as a batch, as long as reading the matrices costs more
 * than a tenth of computing. A batch is cut into spans, so that one large job uses all workers.
 * After each span a worker continues with the batch or the waiting job that is first in an order:
 *
 * - Half of the workers' time is given to the job that would end first in an ideal round, in which
 *   all clients with work are served at the same rate (clients.h). So a job ends within twice its
 *   time in that round, plus one span; plus a batch of its program if it waits to join the next
 *   one; and somewhat later if a client sends shorter jobs all the time.
 * - The other half is given to the job with the least work left: short jobs overtake long ones.
 *
 * A job whose run has another round returns to the queue, with all such jobs of its batch, ahead of
 * the new jobs of its program. The next batch takes them all, and new jobs as far as there is room.
 * A program with rounds has one such batch at a time, so its jobs stay together, whenever they
 * came. Between two rounds a job only waits: its deadline may pass, its client may disconnect, and
 * it ends with the pool, like any waiting job; but it is not refused by a full queue, and counts as
 * running.
 *
 * A tiny job takes less time, in all its rounds together, than handing it to a worker and back. It
 * does not enter the queue: the thread that submits it computes it at once, in a seat: scratch
 * memory that serves one such thread at a time. */
#ifndef CORE_POOL_H
#define CORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/run/heap.h"
#include "core/run/run.h"
#include "core/run/tally.h"

struct pool_options {
  size_t workers;       /* threads, at least 1 */
  size_t seats;         /* how many threads may compute tiny jobs at a time, at most 64 */
  size_t max_queue;     /* new jobs that may wait; one more ends with STATUS_QUEUE_FULL */
  size_t scratch_bytes; /* per worker and seat: the most that any program needs at first */
  bool merge;           /* whether waiting jobs of one program become one batch */
  double byte_work;     /* operations in the time in which a byte of weights is read; may be 0 */
};

/* The halves of the workers' time, by the job that is first in each. */
enum half {
  HALF_ROUND,    /* the one that ends first in the ideal round */
  HALF_SHORTEST, /* the one with the least work left */
  HALVES
};

/* The waiting jobs of one program: private to the queue. It is stored in one of them. */
struct line {
  const struct program *program;
  bool large;       /* whether its jobs are too large to be merged */
  struct job *host; /* the job in which it is stored */
  struct line *next;
  struct job *continuing, *last; /* continuing jobs that may be merged, by job.next, in the order in
                                    which they came and are taken */
  struct heap returning[HALVES]; /* the same jobs, by rank */
  struct heap order[HALVES];     /* the other jobs, by rank */
};

struct job {
  /* From the submitter. */
  struct run *run; /* the first run of what is to be computed; in `done` the last one */
  size_t pieces;   /* of the response, written after computing; may be 0 */
  void (*write)(struct job *job, size_t piece); /* any worker, any order; cannot fail */
  bool (*gone)(struct job *job); /* whether the client has disconnected; any worker; NULL: never */
  void (*done)(struct job *job); /* any worker, or the submitting thread inside pool_submit */
  uint64_t deadline;             /* on clock_now; 0: none */
  uint64_t client;               /* number of the client: clients share the time equally */

  /* From the pool, valid in `done`. */
  struct error error;                              /* STATUS_OK, or why there is no response */
  uint64_t submitted, started, computed, finished; /* clock_now; 0: never. `started`: the first
                                                      round; `computed`: the end of the last */
  double cost; /* operations in the ideal round, including the reading of matrices; 0: a tiny job */

  /* Private to the pool. */
  struct job *next, *newer, *older; /* the last two in the queue */
  struct line line;
  struct heap_node rank[HALVES];
  double ends, paid; /* virtual end in the ideal round; cost of the rounds that have begun */
  uint64_t asked;
  size_t pieces_given, pieces_written;
  enum status verdict;
};

struct pool *pool_new(const struct pool_options *options, struct error *e);

/* Makes the scratch of every worker and seat at least `scratch_bytes` large, for all jobs that are
 * submitted after the return; running jobs are not disturbed. One thread at a time.
 * STATUS_OUT_OF_MEMORY: nothing has changed. */
enum status pool_reserve(struct pool *p, size_t scratch_bytes, struct error *e);

/* Submits a job, in some microseconds; or in some ten if the job is tiny: then `done` is called
 * before the return. */
void pool_submit(struct pool *p, struct job *job);

/* Submits a job again with another run, from within its `done`: it is not refused by a full queue,
 * and takes no seat, however little there is to compute. */
void pool_submit_next(struct pool *p, struct job *job);

size_t pool_room(const struct pool *p); /* how many more jobs may wait now; without the lock */
size_t pool_waiting(struct pool *p);    /* jobs that wait for their first round */
size_t pool_running(struct pool *p);    /* jobs after that, until they end */

/* Sets the sizes of all batches begun since the start. A job is in a batch in each of its rounds; a
 * tiny job is a batch by itself. A job whose client had disconnected, or whose deadline had passed,
 * is in none. */
void pool_batches(const struct pool *p, struct tally_sum *sum);

/* Returns true once no job waits or runs, or false at `deadline` (clock_now). Tiny jobs that other
 * threads are submitting are ignored. */
bool pool_drain(struct pool *p, uint64_t deadline);

/* Closes the pool for good: all jobs, and those submitted from now on, end with STATUS_DRAINING.
 * Spans that are being computed and responses that are being written are finished first. */
void pool_abandon(struct pool *p);

/* Whether it has been abandoned; without the lock. */
bool pool_is_closed(const struct pool *p);

void pool_free(struct pool *p); /* no job waits, runs or is submitted; NULL: nothing */

#endif
