/* pool: the workers and their queue.
 *
 * One lock guards the queue and the batches; it is held while tasks are handed out, never while one
 * is done. Tiny jobs do without it: they take a seat, which has scratch of its own. */
#include "core/run/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/batch.h"
#include "core/run/clock.h"
#include "core/run/scratch.h"
#include "core/run/size.h"
#include "core/run/thread.h"

/* Operations that one batch may merge, about 5 ms of one worker; a batch that has had more may be
 * overtaken. With so many rows, computing outweighs reading the matrices even of wide layers. */
static const double merge_work = 6e8;

/* A tiny job has fewer operations, some 20 us where there are vector instructions. Waking a worker
 * and then the waiting thread costs about as much, and merging so little work wins nothing. */
static const double tiny_work = 2e6;

enum {
  BATCHES_MIN = 64,    /* that may be under way at once */
  LOOKS_MAX = 4096,    /* jobs of the queue looked at for one batch */
  OLDEST_EVERY = 4,    /* every fourth time the oldest goes first, so that it does not starve */
  EXPIRE_EVERY_MS = 5, /* how often the queue is searched for jobs that are too late */
  SEATS_MAX = 64,      /* bits of the word `taken` */
};

struct pool {
  struct pool_options options;
  pthread_mutex_t lock;
  pthread_cond_t work;      /* signalled: there are tasks to hand out, or the workers are to end */
  pthread_cond_t idle;      /* signalled: no job waits or runs */
  struct job *first, **end; /* the queue */
  atomic_size_t waiting;    /* read without the lock, too */
  size_t running;
  struct batch *active, *free, *batches;
  unsigned handed_out, formed; /* tasks and batches so far: every OLDEST_EVERY-th is the oldest */
  size_t large;                /* batches under way of one large job each */
  uint64_t next_expiry;
  atomic_bool closed; /* by pool_abandon: all jobs are refused */
  bool stopping;      /* the workers are to end */
  size_t workers;     /* that have begun */
  pthread_t *thread;
  struct scratch scratch;              /* of the seats, then of the workers */
  struct tally *tally;                 /* in the same order */
  _Alignas(64) _Atomic uint64_t taken; /* a bit for each seat in use; not under the lock */
};

/* --- ending jobs --- */

/* Gives up all jobs of a chain, which is then empty. */
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
  if (p->end == &job->next) p->end = link;
  job->next = NULL;
  p->waiting--;
  p->running++;
  return job;
}

static bool is_large(const struct job *job) { return job->run->work >= merge_work; }

/* The link to the job that goes next: that with the least work, so that small jobs pass large ones
 * in the queue, too; every fourth time the one that has waited longest. Large jobs wait while as
 * many are under way as there are workers: more would only slow each other down. NULL: none may go
 * now. */
static struct job **next_waiting(struct pool *p) {
  const bool oldest = ++p->formed % OLDEST_EVERY == 0, full = p->large >= p->options.workers;
  struct job **chosen = NULL;
  size_t looks = LOOKS_MAX;
  for (struct job **link = &p->first; *link && looks > 0; link = &(*link)->next, looks--) {
    if (full && is_large(*link)) continue;
    if (!chosen || (*link)->run->work < (*chosen)->run->work) chosen = link;
    if (oldest) break;
  }
  return chosen;
}

/* Unlinks the job at `link` and, where jobs are merged, all others of its program that fit the
 * budget. */
static struct job *unlink_mergeable(struct pool *p, struct job **link) {
  struct job *first = unlink_waiting(p, link), *last = first;
  double work = first->run->work;
  size_t looks = LOOKS_MAX;
  link = &p->first;
  while (p->options.merge && *link && work < merge_work && looks-- > 0) {
    const struct job *job = *link;
    if (job->run->program != first->run->program || work + job->run->work > merge_work) {
      link = &(*link)->next;
      continue;
    }
    work += job->run->work;
    last = last->next = unlink_waiting(p, link);
  }
  return first;
}

/* The jobs of a batch to be, after those have left that are not wanted any more. */
struct wanted {
  struct job *first;
  size_t count, rows;
  double work;
};

/* Gives up jobs that are not wanted any more; chains the runs of the others. */
static struct wanted chain_wanted(struct job *jobs, struct ending *ending) {
  struct wanted wanted = {0};
  struct job **link = &wanted.first;
  struct run **run = NULL;
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
    job->run->next = NULL;
    *link = job;
    link = &job->next;
    if (run) *run = job->run;
    run = &job->run->next;
    wanted.work += job->run->work;
    wanted.rows += job->run->rows;
    wanted.count++;
  }
  return wanted;
}

static void link_batch(struct pool *p, struct batch *b) {
  struct batch **end = &p->active;
  while (*end) end = &(*end)->next;
  b->next = NULL;
  *end = b;
}

static void unlink_batch(struct pool *p, struct batch *b) {
  struct batch **link = &p->active;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  b->next = p->free;
  p->free = b;
}

/* Is it time to form a batch of waiting jobs? Not while a batch that must not be overtaken has work
 * to hand out: meanwhile more jobs may come, and be merged. */
static bool may_form(const struct pool *p) {
  if (!p->first || !p->free) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->served < merge_work && batch_has_task(b)) return false;
  return true;
}

/* Ends the jobs whose deadline has passed while they waited. */
static void expire_waiting(struct pool *p, struct ending *ending) {
  const uint64_t now = clock_now();
  if (!p->first || now < p->next_expiry) return;
  p->next_expiry = now + (uint64_t)EXPIRE_EVERY_MS * CLOCK_MS;
  for (struct job **link = &p->first; *link;) {
    if ((*link)->deadline == 0 || now < (*link)->deadline) {
      link = &(*link)->next;
      continue;
    }
    struct job *job = unlink_waiting(p, link);
    job_give_up(job, STATUS_DEADLINE);
    ending_add(ending, job);
  }
}

/* Lets a batch move on after one of its tasks has been finished. */
static void advance_batch(struct pool *p, struct batch *b, struct ending *ending) {
  if (batch_advance(b, ending)) pthread_cond_broadcast(&p->work);
  if (!batch_is_over(b)) return;
  p->large -= b->large;
  unlink_batch(p, b);
  if (p->waiting) pthread_cond_signal(&p->work);
}

/* Makes a batch of waiting jobs, if any may go now, and counts it. The lock is held at entry and
 * exit, but not while clients are asked. */
static bool form_batch(struct pool *p, struct tally *tally) {
  struct job **next = may_form(p) ? next_waiting(p) : NULL;
  if (!next) return false;
  struct batch *b = p->free;
  struct ending ending = {0};
  p->free = b->next;
  struct job *jobs = unlink_mergeable(p, next);
  const bool large = is_large(jobs);
  p->large += large;
  pthread_mutex_unlock(&p->lock);
  struct wanted wanted = chain_wanted(jobs, &ending);
  pthread_mutex_lock(&p->lock);
  if (p->closed) abandon_chain(&wanted.first, &ending);
  if (wanted.first) {
    tally_batch(tally, wanted.count, wanted.rows);
    batch_init(b, wanted.first, wanted.work, p->options.workers);
    b->large = large;
    link_batch(p, b);
    if (b->wide) pthread_cond_broadcast(&p->work);
    advance_batch(p, b, &ending); /* an empty run has no phases */
  } else {
    b->next = p->free;
    p->free = b;
    p->large -= large;
  }
  end_unlocked(p, &ending);
  return true;
}

/* --- the workers --- */

/* A task of the batch that has had the least work so far; every fourth time of the oldest. */
static bool choose_task(struct pool *p, struct task *t) {
  const bool oldest = ++p->handed_out % OLDEST_EVERY == 0;
  struct batch *chosen = NULL;
  for (struct batch *b = p->active; b; b = b->next)
    if (batch_has_task(b) && (!chosen || (!oldest && b->served < chosen->served))) chosen = b;
  if (chosen) batch_cut(chosen, t);
  return chosen != NULL;
}

static void run_task(struct pool *p, const struct task *t, size_t piece) {
  struct ending ending = {0};
  pthread_mutex_unlock(&p->lock);
  task_run(t, scratch_use(&p->scratch, piece));
  pthread_mutex_lock(&p->lock);
  task_finish(t, &ending);
  advance_batch(p, t->batch, &ending);
  expire_waiting(p, &ending);
  end_unlocked(p, &ending);
}

static void *serve_batches(void *argument) {
  struct pool *p = argument;
  struct task task;
  thread_name("attend-worker");
  pthread_mutex_lock(&p->lock);
  const size_t piece = p->options.seats + p->workers++;
  while (!p->stopping) {
    if (form_batch(p, &p->tally[piece])) continue;
    if (choose_task(p, &task))
      run_task(p, &task, piece);
    else
      pthread_cond_wait(&p->work, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

struct pool *pool_new(const struct pool_options *options, struct error *e) {
  struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
  if (!p) goto no_memory;
  *p = (struct pool){.options = *options};
  p->options.seats = size_min(options->seats, SEATS_MAX);
  p->end = &p->first;
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
  const size_t pieces = p->options.seats + options->workers;
  p->tally = tally_new(pieces);
  if (!scratch_init(&p->scratch, pieces, options->scratch_bytes) || !p->batches || !p->thread ||
      !p->tally)
    goto no_memory;
  for (size_t i = 0; i < batches; i++) {
    p->batches[i].next = p->free;
    p->free = &p->batches[i];
  }
  size_t started = 0;
  while (started < options->workers &&
         pthread_create(&p->thread[started], NULL, serve_batches, p) == 0)
    started++;
  if (started == options->workers) return p;
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
  must(p->waiting == 0 && p->running == 0 && atomic_load(&p->taken) == 0);
  p->stopping = true;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (size_t i = 0; i < p->options.workers; i++) pthread_join(p->thread[i], NULL);
  pthread_cond_destroy(&p->idle);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
  scratch_free(&p->scratch);
  tally_free(p->tally);
  free(p->thread);
  free(p->batches);
  free(p);
}

/* --- tiny jobs --- */

static bool is_tiny(const struct job *job) {
  return job->run->work < tiny_work && job->pieces <= 1;
}

/* The number of a seat that was free, or the number of seats if none was. The first choice is the
 * seat of this processor, whose caches may still hold its scratch. */
static size_t occupy_seat(struct pool *p) {
  const size_t seats = p->options.seats;
  if (seats == 0) return 0;
  const int cpu = sched_getcpu();
  for (size_t i = 0, seat = cpu < 0 ? 0 : (size_t)cpu % seats; i < seats; i++) {
    const uint64_t bit = (uint64_t)1 << seat;
    if (!(atomic_fetch_or_explicit(&p->taken, bit, memory_order_acquire) & bit)) return seat;
    seat = seat + 1 == seats ? 0 : seat + 1;
  }
  return seats;
}

static void leave_seat(struct pool *p, size_t seat) {
  atomic_fetch_and_explicit(&p->taken, ~((uint64_t)1 << seat), memory_order_release);
}

static void compute_tiny(struct job *job, void *scratch, struct tally *tally) {
  const enum status why = job_ask(job, job->submitted);
  if (why) {
    job_give_up(job, why);
    return;
  }
  tally_batch(tally, 1, job->run->rows);
  job->started = job->submitted;
  run_compute(job->run, tiny_work, scratch);
  run_fault(job->run, &job->error);
  job->computed = clock_now();
  if (!job->error.status && job->pieces) job->write(job, 0);
}

/* Computes the job if it is tiny and there is a seat; false: it has to go through the queue. */
static bool submit_tiny(struct pool *p, struct job *job) {
  if (!is_tiny(job) || atomic_load(&p->closed)) return false;
  const size_t seat = occupy_seat(p);
  if (seat == p->options.seats) return false;
  compute_tiny(job, scratch_use(&p->scratch, seat), &p->tally[seat]);
  leave_seat(p, seat);
  job->finished = clock_now();
  job->done(job);
  return true;
}

/* --- from outside --- */

enum status pool_reserve(struct pool *p, size_t scratch_bytes, struct error *e) {
  if (scratch_grow(&p->scratch, scratch_bytes)) return STATUS_OK;
  return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the workers' scratch of %zu bytes each",
                   scratch_bytes);
}

void pool_submit(struct pool *p, struct job *job) {
  job->submitted = clock_now();
  job->started = job->computed = job->finished = 0;
  job->pieces_given = job->pieces_written = 0;
  job->verdict = STATUS_OK;
  job->next = NULL;
  if (submit_tiny(p, job)) return;
  pthread_mutex_lock(&p->lock);
  const bool closed = p->closed, room = !closed && p->waiting < p->options.max_queue;
  if (room) {
    *p->end = job;
    p->end = &job->next;
    p->waiting++;
    pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
  if (room) return;
  if (closed)
    job_give_up(job, STATUS_DRAINING);
  else
    error_set(&job->error, STATUS_QUEUE_FULL, "the queue is full");
  job->finished = clock_now();
  job->done(job);
}

size_t pool_room(const struct pool *p) {
  const size_t waiting = atomic_load_explicit(&p->waiting, memory_order_relaxed);
  return waiting < p->options.max_queue ? p->options.max_queue - waiting : 0;
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
  return n + (size_t)__builtin_popcountll(atomic_load(&p->taken));
}

void pool_batches(const struct pool *p, struct tally_sum *sum) {
  tally_read(p->tally, p->options.seats + p->options.workers, sum);
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
  abandon_chain(&p->first, &ending);
  p->end = &p->first;
  for (struct batch *b = p->active; b; b = b->next)
    for (struct job *job = b->first; job; job = job->next)
      if (!batch_is_computed(b)) job_give_up(job, STATUS_DRAINING);
  end_unlocked(p, &ending);
  pthread_mutex_unlock(&p->lock);
}
