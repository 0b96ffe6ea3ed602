/* pool: the workers and their queue. Jobs whose runs have one program, and that wait together, are
 * computed as one batch.
 *
 * A job is the submitter's memory. Between pool_submit and the call of `done` it belongs to the
 * pool; that call is the last thing that the pool does with it. After pool_new only pool_reserve
 * allocates. There are no timers. A submit never fails: a job that finds no place ends at once with
 * its error, on the same path as success.
 *
 * A worker takes jobs that wait for one program as a batch, as long as reading the matrices costs
 * more than a tenth of computing. A batch is cut into spans, so that one large job uses every
 * worker; after each span a worker goes on with the batch or the waiting job that comes first:
 *
 * Half of the workers' time belongs to the job that would end first in an ideal round, in which
 * each client that has work is served at the same rate (clients.h). So a job ends within twice its
 * time in that round, plus one span; plus a batch of its program, where it waits for the end of one
 * to join the next; and somewhat later where a client brings shorter ones all the time. The other
 * half belongs to the job that has the least work left: so short jobs pass long ones.
 *
 * A job whose run goes again is taken back into the queue with all others of its batch that do,
 * ahead of the newcomers of its program. The next batch takes them all, and newcomers as far as
 * there is room, and of a program whose runs go again one such batch is under way at a time: so its
 * jobs stay together, whenever they came. Between two rounds a job only waits: it can be late, its
 * client can leave, and it ends with the pool, like any that waits; but it has a place, and is
 * counted among those that run.
 *
 * A tiny job takes less time, in all its rounds together, than handing it to a worker and back
 * would. It does not enter the queue: the thread that submits it computes it at once. */
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
  size_t seats;         /* submitters that may compute tiny jobs at a time, at most 64 */
  size_t max_queue;     /* newcomers that may wait; one more gets STATUS_QUEUE_FULL */
  size_t scratch_bytes; /* per worker and seat: the most that any program needs, at first */
  bool merge;           /* compute waiting jobs of one program as one batch */
  double byte_work;     /* operations in the time in which a byte of weights is read; may be 0 */
};

/* The halves of the workers' time, by what comes first in each. */
enum half {
  HALF_ROUND,    /* the job that ends first in the ideal round */
  HALF_SHORTEST, /* the one that has the least work left */
  HALVES
};

/* Jobs of one program that wait: the queue's own. It lies in one of them. */
struct line {
  const struct program *program;
  bool large;       /* its jobs are not merged */
  struct job *host; /* in which it lies */
  struct line *next;
  struct job *again, *last;      /* those that go again and may be merged, by job.next: the first
                                    that came is taken first */
  struct heap returning[HALVES]; /* the same jobs, by rank */
  struct heap order[HALVES];     /* the others, by rank */
};

struct job {
  /* From the submitter. */
  struct run *run; /* all that is to be computed, with what comes then; in `done` its last one */
  size_t pieces;   /* of the answer, to be written after computing; may be 0 */
  void (*write)(struct job *job, size_t piece); /* any worker, any order; cannot fail */
  bool (*gone)(struct job *job);                /* has the client left? any worker; NULL: never */
  void (*done)(struct job *job); /* any worker, or the submitting thread inside pool_submit */
  uint64_t deadline;             /* on clock_now; 0: none */
  uint64_t client;               /* whose work it is, by a number: clients take turns */

  /* From the pool, valid in `done`. */
  struct error error;                              /* STATUS_OK, or why there is no answer */
  uint64_t submitted, started, computed, finished; /* clock_now; 0: never. `started` is that of the
                                                      first round, `computed` the end of the last */
  double cost; /* operations, with the reading of matrices, as the ideal round has them; 0: it was
                  computed where it was submitted */

  /* The pool's own. */
  struct job *next, *newer, *older; /* the last two in the queue */
  struct line line;
  struct heap_node rank[HALVES];
  double ends, paid; /* in the ideal round; of its cost, that of the rounds that have begun */
  uint64_t asked;
  size_t pieces_given, pieces_written;
  enum status verdict;
};

struct pool *pool_new(const struct pool_options *options, struct error *e);

/* Makes the scratch of every worker and seat at least so large, for all jobs that are submitted
 * after the return; jobs that are under way are not disturbed. One thread at a time.
 * STATUS_OUT_OF_MEMORY: nothing has changed. */
enum status pool_reserve(struct pool *p, size_t scratch_bytes, struct error *e);

/* Takes some microseconds; or some ten if the job is tiny: then `done` is called before the
 * return. */
void pool_submit(struct pool *p, struct job *job);

/* From within the job's `done`, with another run: the job had a place, and is not refused where the
 * queue is full by now. Seats are for others, however little there is to compute. */
void pool_submit_next(struct pool *p, struct job *job);

size_t pool_room(const struct pool *p); /* how many more jobs may wait now; takes no lock */
size_t pool_waiting(struct pool *p);    /* jobs that wait for their first round */
size_t pool_running(struct pool *p);    /* jobs that no longer do, and have not ended */

/* The sizes of all batches begun since the start. A job is in one in each of its rounds; a tiny one
 * that its submitter computes is a batch of its own. A job whose client had left, or that was too
 * late, is in none. */
void pool_batches(const struct pool *p, struct tally_sum *sum);

/* Returns true once no job waits or runs, or false at `deadline` (clock_now). Tiny jobs that other
 * threads are submitting are not seen. */
bool pool_drain(struct pool *p, uint64_t deadline);

/* Closes the pool for good: jobs that wait, that run or that are submitted from now on end with
 * STATUS_DRAINING. Spans under way are finished first, and so are answers that are being written.
 */
void pool_abandon(struct pool *p);

/* Has it been abandoned? It takes no lock. */
bool pool_is_closed(const struct pool *p);

void pool_free(struct pool *p); /* no job waits, runs or is submitted; NULL is fine */

#endif
