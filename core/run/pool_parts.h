/* pool_parts: what the files of the pool share. Private to the pool.
 *
 * One lock guards the queue and the batches; it is held while tasks are handed out, never while one
 * is done. All functions are called under it, except where their comment says otherwise. */
#ifndef CORE_POOL_PARTS_H
#define CORE_POOL_PARTS_H

#include <pthread.h>

#include "core/base/clock.h"
#include "core/base/scratch.h"
#include "core/run/batch.h"
#include "core/run/clients.h"
#include "core/run/crew.h"
#include "core/run/queue.h"

struct pool {
  struct pool_options options;
  pthread_mutex_t lock;
  uint64_t now;        /* shortly before the lock was taken */
  pthread_cond_t idle; /* signalled: no job waits or runs */
  struct queue queue;
  atomic_size_t waiting; /* newcomers in the queue; read without the lock, too */
  size_t running;
  struct batch *active, *free, *batches;
  struct clients clients;
  double ahead;       /* nanoseconds that HALF_ROUND has had more than the other half */
  size_t large;       /* batches under way of one large job each */
  atomic_bool closed; /* by pool_abandon: all jobs are refused */
  bool stopping;      /* the workers are to end */
  size_t workers;     /* that have begun */
  struct crew crew;   /* in the order in which they began */
  pthread_t *thread;
  struct scratch scratch;              /* of the seats, then of the workers */
  struct tally *tally;                 /* in the same order */
  _Alignas(64) atomic_bool has_work;   /* to hand out or to form; read without the lock, too */
  _Alignas(64) _Atomic uint64_t taken; /* a bit for each seat in use; not under the lock */
};

static inline void pool_lock(struct pool *p) {
  const uint64_t now = clock_now(); /* for all that is done under the lock */
  pthread_mutex_lock(&p->lock);
  if (p->now < now) p->now = now;
}

static inline void pool_unlock(struct pool *p) { pthread_mutex_unlock(&p->lock); }

/* Counts a batch, or a round of a tiny job. */
static inline void pool_count(struct tally *t, const struct program *p, size_t jobs, size_t rows) {
  if (!p->aside) tally_batch(t, jobs, rows);
}

/* The half of the time whose turn it is. */
static inline enum half pool_turn(const struct pool *p) {
  return p->ahead > 0 ? HALF_SHORTEST : HALF_ROUND;
}

/* Is it not to be overtaken by a new batch yet? Meanwhile more jobs may come, and be merged. What
 * it gets is counted as of the half in which it was formed. */
static inline bool pool_is_beginning(const struct batch *b) { return b->served < MERGE_WORK; }

static inline void pool_count_time(struct pool *p, enum half half, double ns) {
  p->ahead += half == HALF_ROUND ? ns : -ns;
}

/* The batch with a task that comes first in a half; NULL: there is none. */
struct batch *pool_first_batch(const struct pool *p, enum half half);

/* Of the cost of a batch, so much has been computed: time passes in the ideal round. */
static inline void pool_tell_clients(struct pool *p, struct batch *b, double cost) {
  if (cost <= b->told) return;
  clients_advance(&p->clients, cost - b->told);
  b->told = cost;
}

/* Releases the lock, ends the jobs, takes the lock again. */
void pool_end_jobs(struct pool *p, struct ending *ending);

/* --- pool_form.c: from the queue to a batch, and back --- */

/* Ends the jobs whose deadline has passed while they waited. It may release the lock. */
void pool_expire(struct pool *p);

bool pool_may_form(const struct pool *p); /* may jobs that wait become a batch now? */

/* Makes a batch of them, if so, and counts it. It releases the lock while clients are asked. */
bool pool_form_batch(struct pool *p, struct tally *tally);

/* Lets a batch move on after a piece or the last span of a step. */
void pool_advance(struct pool *p, struct batch *b, struct ending *ending);

/* --- pool_work.c: the workers --- */

/* The next task, of the batch that comes first; false: there is none. Its expected time is counted;
 * what it took more, or less, is still to be. */
bool pool_take_task(struct pool *p, struct task *t);

/* Lets those that have nothing to do find what there is: a task for each worker that watches, and
 * as many of those that sleep as there are tasks left. It is called before the lock is released by
 * a thread that may leave work behind; not while a batch is formed, which takes microseconds. */
void pool_share_work(struct pool *p);

void *pool_serve(void *pool); /* a worker, until the pool is stopping; not under the lock */

#endif
