/* pool_parts: what the files of the pool share. Private to the pool.
 *
 * One lock guards the queue and the batches. It is held while tasks are handed out, never while
 * they are computed. All functions are called under it, unless their comment says otherwise. */
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
  pthread_cond_t idle; /* signaled when no job waits or runs */
  struct queue queue;
  atomic_size_t waiting; /* new jobs in the queue; read without the lock, too */
  size_t running;        /* jobs after that, until they end */
  struct batch *active, *free, *batches;
  struct clients clients;
  double ahead;       /* nanoseconds that HALF_ROUND has had more than the other half */
  size_t large;       /* active batches of one large job each */
  atomic_bool closed; /* by pool_abandon: all jobs are refused */
  bool stopping;      /* the workers end */
  size_t workers;     /* how many have begun */
  struct crew crew;   /* idle workers, numbered in the order in which they began */
  pthread_t *thread;
  struct scratch scratch;              /* a piece for each seat, then for each worker */
  struct tally *tally;                 /* in the same order */
  _Alignas(64) atomic_bool has_work;   /* tasks or waiting jobs; read without the lock, too */
  _Alignas(64) _Atomic uint64_t taken; /* a bit for each seat in use; not under the lock */
};

static inline void pool_lock(struct pool *p) {
  const uint64_t now = clock_now(); /* the time for all that is done under the lock */
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

/* Whether the batch has had too little work to be overtaken by a new one. Meanwhile more jobs may
 * come, and be merged. Its time belongs to the half in which it was formed. */
static inline bool pool_is_beginning(const struct batch *b) { return b->served < MERGE_WORK; }

static inline void pool_count_time(struct pool *p, enum half half, double ns) {
  p->ahead += half == HALF_ROUND ? ns : -ns;
}

/* Advances the ideal round: `cost` of the cost of a batch has been computed so far. */
static inline void pool_tell_clients(struct pool *p, struct batch *b, double cost) {
  if (cost <= b->told) return;
  clients_advance(&p->clients, cost - b->told);
  b->told = cost;
}

/* --- pool_work.c: the workers --- */

/* Forms a batch of waiting jobs, if some may begin now, and counts it in the tally. Releases the
 * lock while it checks whether the jobs are still wanted. */
bool pool_form_batch(struct pool *p, struct tally *tally);

/* Moves a batch on after a piece or the last span of a step. */
void pool_advance(struct pool *p, struct batch *b, struct ending *ending);

/* Sets the next task, of the batch that is first; false: there is none. Its expected time is
 * counted at once, the difference to the real time when the task is done. */
bool pool_take_task(struct pool *p, struct task *t);

/* Deals tasks to idle workers: one to each worker that watches; then it wakes as many sleeping
 * workers as tasks are left. A thread that may leave work to others calls it before it releases the
 * lock; but not while a batch is formed, which takes microseconds. */
void pool_share_work(struct pool *p);

/* Releases the lock, ends the jobs, takes the lock again. */
void pool_end_jobs(struct pool *p, struct ending *ending);

void *pool_serve(void *pool); /* a worker, until the pool is stopping; not under the lock */

#endif
