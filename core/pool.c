/* pool: the workers and their queue.
 *
 * One lock guards the queue and the batches; it is held to hand out a task, never while one is
 * done. */
#include "core/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/clock.h"
#include "core/size.h"

/* Operations that one batch may merge, about 2 ms; what has had more may be overtaken. */
static const double merge_work = 2e8;

enum {
  BATCHES_MIN = 64, /* that may be under way at once */
  LOOKS_MAX = 4096, /* jobs of the queue looked at for one batch */
  OLDEST_EVERY = 4, /* every so many tasks go to the oldest batch, which would starve else */
};

struct pool {
  struct pool_options options;
  pthread_mutex_t lock;
  pthread_cond_t work; /* something to hand out, or the end */
  pthread_cond_t idle; /* nothing waits and nothing runs */
  struct job *head, **tail;
  size_t waiting, running;
  struct batch *active, *free, *batches;
  unsigned turn;
  bool closed;    /* by pool_abandon: no job is taken any more */
  bool stopping;  /* the workers are to end */
  size_t workers; /* threads that were started */
  pthread_t *thread;
};

/* --- ending jobs --- */

/* Gives up a whole chain, which is then empty. */
static void abandon_chain(struct job **chain, struct ending *ending) {
  for (struct job *job = *chain, *next; job; job = next) {
    next = job->next;
    job_give_up(job, STATUS_DRAINING);
    ending_add(ending, job);
  }
  *chain = NULL;
}

/* Releases the lock, ends the jobs, takes the lock again. */
static void end_unlocked(struct pool *p, struct ending *ending) {
  if (!ending->first) return;
  pthread_mutex_unlock(&p->lock);
  ending_run(ending);
  pthread_mutex_lock(&p->lock);
  p->running -= ending->count;
  if (p->running == 0 && p->waiting == 0) pthread_cond_broadcast(&p->idle);
  *ending = (struct ending){0};
}

/* --- forming a batch --- */

/* Unlinks the job at `link` from the queue. */
static struct job *unlink_waiting(struct pool *p, struct job **link) {
  struct job *job = *link;
  *link = job->next;
  if (p->tail == &job->next) p->tail = link;
  job->next = NULL;
  p->waiting--;
  p->running++;
  return job;
}

/* Takes the job that waits longest and, merging, all others of its layer that fit the budget. */
static struct job *take_waiting(struct pool *p) {
  struct job *first = unlink_waiting(p, &p->head), *last = first;
  double work = first->call->work;
  size_t looks = LOOKS_MAX;
  for (struct job **link = &p->head; p->options.merge && *link && work < merge_work && looks > 0;
       looks--) {
    const struct job *job = *link;
    if (job->layer != first->layer || work + job->call->work > merge_work) {
      link = &(*link)->next;
      continue;
    }
    work += job->call->work;
    last = last->next = unlink_waiting(p, link);
  }
  return first;
}

/* Drops whom nobody waits for any more; chains the others' calls. */
static struct job *still_wanted(struct job *jobs, struct ending *ending, double *work) {
  struct job *first = NULL, **link = &first;
  struct call **call = NULL;
  const uint64_t now = clock_now();
  while (jobs) {
    struct job *job = jobs;
    jobs = job->next;
    job->next = NULL;
    const enum status why = job_ask(job, now);
    if (why) {
      job_give_up(job, why);
      ending_add(ending, job);
      continue;
    }
    job->started = now;
    job->call->next = NULL;
    *link = job;
    link = &job->next;
    if (call) *call = job->call;
    call = &job->call->next;
    *work += job->call->work;
  }
  return first;
}

static void activate(struct pool *p, struct batch *b) {
  struct batch **end = &p->active;
  while (*end) end = &(*end)->next;
  b->next = NULL;
  *end = b;
}

static void retire(struct pool *p, struct batch *b) {
  struct batch **link = &p->active;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  b->next = p->free;
  p->free = b;
}

/* Is it time to take what waits? Not while a batch that must not be overtaken has work to give:
 * meanwhile more may come, and be merged. */
static bool may_form(const struct pool *p) {
  if (!p->head || !p->free) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->served < merge_work && batch_has_task(b)) return false;
  return true;
}

/* Lets a batch move on after something has ended in it. */
static void advance(struct pool *p, struct batch *b, struct ending *ending) {
  if (batch_advance(b, ending)) pthread_cond_broadcast(&p->work);
  if (!batch_is_over(b)) return;
  retire(p, b);
  if (p->waiting) pthread_cond_signal(&p->work);
}

/* Makes a batch of what waits. The lock is held at entry and exit, not while clients are asked. */
static void form_batch(struct pool *p) {
  struct batch *b = p->free;
  double work = 0;
  struct ending ending = {0};
  p->free = b->next;
  struct job *jobs = take_waiting(p);
  pthread_mutex_unlock(&p->lock);
  jobs = still_wanted(jobs, &ending, &work);
  pthread_mutex_lock(&p->lock);
  if (p->closed) abandon_chain(&jobs, &ending);
  if (jobs) {
    batch_init(b, jobs, work, p->options.workers);
    activate(p, b);
    if (b->wide) pthread_cond_broadcast(&p->work);
    advance(p, b, &ending); /* an empty call has no phases */
  } else {
    b->next = p->free;
    p->free = b;
  }
  end_unlocked(p, &ending);
}

/* --- the workers --- */

/* A task of the batch that has had the least so far; now and then of the oldest. */
static bool next_task(struct pool *p, struct task *t) {
  const bool oldest = ++p->turn % OLDEST_EVERY == 0;
  struct batch *chosen = NULL;
  for (struct batch *b = p->active; b; b = b->next)
    if (batch_has_task(b) && (!chosen || (!oldest && b->served < chosen->served))) chosen = b;
  if (chosen) batch_cut(chosen, t);
  return chosen != NULL;
}

static void run_task(struct pool *p, const struct task *t, void *scratch) {
  struct ending ending = {0};
  pthread_mutex_unlock(&p->lock);
  task_run(t, scratch);
  pthread_mutex_lock(&p->lock);
  task_finish(t, &ending);
  advance(p, t->batch, &ending);
  end_unlocked(p, &ending);
}

static void *work(void *argument) {
  struct pool *p = argument;
  void *scratch = aligned_alloc(64, size_round_up(p->options.scratch_bytes + 64, 64));
  struct task task;
  pthread_mutex_lock(&p->lock);
  if (!scratch) p->stopping = true; /* pool_new sees a worker missing */
  p->workers += scratch != NULL;
  pthread_cond_broadcast(&p->idle);
  while (!p->stopping) {
    if (may_form(p))
      form_batch(p);
    else if (next_task(p, &task))
      run_task(p, &task, scratch);
    else
      pthread_cond_wait(&p->work, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  free(scratch);
  return NULL;
}

struct pool *pool_new(const struct pool_options *options, struct error *e) {
  struct pool *p = calloc(1, sizeof *p);
  if (!p) goto no_memory;
  p->options = *options;
  p->tail = &p->head;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&p->idle, &monotonic);
  pthread_condattr_destroy(&monotonic);
  const size_t batches = size_max(BATCHES_MIN, 4 * options->workers);
  p->batches = calloc(batches, sizeof *p->batches);
  p->thread = calloc(options->workers, sizeof *p->thread);
  if (!p->batches || !p->thread) goto no_memory;
  for (size_t i = 0; i < batches; i++) {
    p->batches[i].next = p->free;
    p->free = &p->batches[i];
  }
  size_t started = 0;
  while (started < options->workers && pthread_create(&p->thread[started], NULL, work, p) == 0)
    started++;
  pthread_mutex_lock(&p->lock);
  while (p->workers < started && !p->stopping) pthread_cond_wait(&p->idle, &p->lock);
  pthread_mutex_unlock(&p->lock);
  if (started == options->workers && !p->stopping) return p;
  error_set(e, STATUS_SYSTEM, "cannot start %zu worker threads", options->workers);
  p->options.workers = started;
  pool_free(p);
  return NULL;
no_memory:
  if (p) p->options.workers = 0;
  pool_free(p);
  error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the pool");
  return NULL;
}

void pool_free(struct pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  must(p->waiting == 0 && p->running == 0);
  p->stopping = true;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (size_t i = 0; i < p->options.workers; i++) pthread_join(p->thread[i], NULL);
  pthread_cond_destroy(&p->idle);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
  free(p->thread);
  free(p->batches);
  free(p);
}

/* --- from outside --- */

void pool_submit(struct pool *p, struct job *job) {
  job->submitted = clock_now();
  job->started = job->computed = job->finished = 0;
  job->pieces_given = job->pieces_written = 0;
  job->verdict = STATUS_OK;
  job->next = NULL;
  pthread_mutex_lock(&p->lock);
  const bool closed = p->closed, room = !closed && p->waiting < p->options.max_queue;
  if (room) {
    *p->tail = job;
    p->tail = &job->next;
    p->waiting++;
    pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
  if (room) return;
  if (closed)
    job_give_up(job, STATUS_DRAINING);
  else
    error_set(&job->error, STATUS_OVERLOADED, "the queue is full");
  job->finished = clock_now();
  job->done(job);
}

size_t pool_waiting(struct pool *p) {
  pthread_mutex_lock(&p->lock);
  const size_t n = p->waiting;
  pthread_mutex_unlock(&p->lock);
  return n;
}

size_t pool_running(struct pool *p) {
  pthread_mutex_lock(&p->lock);
  const size_t n = p->running;
  pthread_mutex_unlock(&p->lock);
  return n;
}

bool pool_drain(struct pool *p, uint64_t deadline) {
  const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                 .tv_nsec = (long)(deadline % 1000000000u)};
  pthread_mutex_lock(&p->lock);
  int late = 0;
  while ((p->waiting || p->running) && late == 0)
    late = pthread_cond_timedwait(&p->idle, &p->lock, &until);
  const bool idle = !p->waiting && !p->running;
  pthread_mutex_unlock(&p->lock);
  return idle;
}

void pool_abandon(struct pool *p) {
  struct ending ending = {0};
  pthread_mutex_lock(&p->lock);
  p->closed = true;
  p->running += p->waiting;
  p->waiting = 0;
  abandon_chain(&p->head, &ending);
  p->tail = &p->head;
  for (struct batch *b = p->active; b; b = b->next)
    for (struct job *job = b->first; job; job = job->next)
      if (b->cursor.phase != PHASE_DONE) job_give_up(job, STATUS_DRAINING);
  end_unlocked(p, &ending);
  pthread_mutex_unlock(&p->lock);
}
