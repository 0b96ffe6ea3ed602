/* pool: the workers and their queue. Jobs of one layer that wait together run as one batch.
 *
 * A job is the submitter's memory. Between pool_submit and the call of `done` it belongs to the
 * pool; `done` is the pool's last touch. The pool allocates nothing after pool_new but for
 * pool_reserve, takes no timer and never fails a submit: a job that cannot be taken is done at once
 * with its error, on the same path as success. A worker takes all that waits for one layer, up to a
 * work budget, as a batch; a batch is cut into spans, so that one large job uses every worker, and
 * after each span a worker looks for the batch that has had the least work so far, so that small
 * jobs pass between the spans of large ones. Of what waits, too, the least goes first, and of large
 * jobs no more are under way than there are workers.
 *
 * A tiny job, one that is done in less time than handing it over and back takes, never sees the
 * queue: the thread that submits it does it at once. */
#ifndef CORE_POOL_H
#define CORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/attention/layer.h"
#include "core/run/status.h"
#include "core/run/tally.h"

struct pool_options {
  size_t workers;       /* threads, at least 1 */
  size_t seats;         /* submitters that may do tiny jobs at the same time, at most 64 */
  size_t max_queue;     /* jobs that may wait; one more gets STATUS_QUEUE_FULL */
  size_t scratch_bytes; /* per worker and seat: the most that any layer needs, at first */
  bool merge;           /* run waiting jobs of one layer as one batch */
};

struct job {
  /* From the submitter. */
  const struct layer *layer;
  struct call *call; /* prepared */
  size_t pieces;     /* of the answer, encoded after computing; may be 0 */
  void (*encode)(struct job *job, size_t piece); /* any worker, any order; cannot fail */
  bool (*gone)(struct job *job);                 /* has the client left? any worker; NULL: never */
  void (*done)(struct job *job); /* any worker, or the submitter itself inside pool_submit */
  uint64_t deadline;             /* on clock_now; 0: none */

  /* From the pool, valid in `done`. */
  struct error error;                              /* STATUS_OK, or why there is no answer */
  uint64_t submitted, started, computed, finished; /* clock_now; 0 if it never came to that */

  /* The pool's own. */
  struct job *next;
  size_t pieces_given, pieces_written;
  enum status verdict;
};

struct pool *pool_new(const struct pool_options *options, struct error *e);

/* Makes every worker's and seat's scratch at least so large, for the jobs that are submitted after
 * it has returned; what runs meanwhile is not disturbed. One thread at a time.
 * STATUS_OUT_OF_MEMORY: nothing has changed. */
enum status pool_reserve(struct pool *p, size_t scratch_bytes, struct error *e);

/* Takes some microseconds, or some ten where the job is tiny; `done` has then been called. */
void pool_submit(struct pool *p, struct job *job);

/* Of this moment: jobs that wait, and jobs taken but not done. */
size_t pool_room(const struct pool *p); /* how many more may wait; without a lock */
size_t pool_waiting(struct pool *p);
size_t pool_running(struct pool *p);

/* Since the start: the sizes of the batches that were begun. A tiny job that its submitter does is
 * a batch of its own. What nobody waited for any more is in none. */
void pool_batches(const struct pool *p, struct tally_sum *sum);

/* Waits until nothing waits or runs, or until `deadline` (clock_now); true if idle. Does not see
 * the tiny jobs that other threads are submitting. */
bool pool_drain(struct pool *p, uint64_t deadline);

/* Closes the pool for good: what waits, what runs and what is submitted from now on ends with
 * STATUS_DRAINING. Spans that are running are finished first, and so are answers being written. */
void pool_abandon(struct pool *p);

void pool_free(struct pool *p); /* the pool must be idle, nobody submits; NULL is fine */

#endif
