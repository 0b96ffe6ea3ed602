/* pool: the workers and their queue, as callers see them; and tiny jobs, which need neither. */
#include "core/run/pool.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "core/run/pool_parts.h"

/* Operations below which a job is tiny: about 20 us with vector instructions. Waking a worker and
 * then the waiting thread costs about as much, and merging so little work gains nothing. */
static const double tiny_work = 2e6;

enum {
  BATCHES_MIN = 64,    /* batches that may be active at once, ... */
  BATCHES_MORE = 1024, /* ... and at most that many more, one per waiting job: each batch may have
                          been overtaken by the next one */
  SEATS_MAX = 64,      /* bits of the word `taken` */
};

struct pool *pool_new(const struct pool_options *options, struct error *e) {
  struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
  if (!p) goto no_memory;
  *p = (struct pool){.options = *options};
  p->options.seats = size_min(options->seats, SEATS_MAX);
  pthread_mutexattr_t brief; /* the lock is held for less time than falling asleep takes */
  pthread_mutexattr_init(&brief);
  pthread_mutexattr_settype(&brief, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&p->lock, &brief);
  pthread_mutexattr_destroy(&brief);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&p->idle, &monotonic);
  pthread_condattr_destroy(&monotonic);
  const size_t batches =
      BATCHES_MIN + 4 * options->workers + size_min(options->max_queue, BATCHES_MORE);
  p->batches = calloc(batches, sizeof *p->batches);
  p->thread = calloc(options->workers, sizeof *p->thread);
  const bool crew = crew_init(&p->crew, options->workers);
  const size_t pieces = p->options.seats + options->workers;
  p->tally = tally_new(pieces);
  p->queue.byte_work = options->byte_work;
  const bool clients = clients_init(&p->clients);
  if (!scratch_init(&p->scratch, pieces, options->scratch_bytes) || !p->batches || !p->thread ||
      !p->tally || !crew || !clients)
    goto no_memory;
  for (size_t i = 0; i < batches; i++) {
    p->batches[i].next = p->free;
    p->free = &p->batches[i];
  }
  size_t started = 0;
  while (started < options->workers &&
         pthread_create(&p->thread[started], NULL, pool_serve, p) == 0)
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
  crew_call(&p->crew, SIZE_MAX);
  pthread_mutex_unlock(&p->lock);
  for (size_t i = 0; i < p->options.workers; i++) pthread_join(p->thread[i], NULL);
  pthread_cond_destroy(&p->idle);
  crew_done(&p->crew);
  pthread_mutex_destroy(&p->lock);
  scratch_free(&p->scratch);
  tally_free(p->tally);
  clients_done(&p->clients);
  free(p->thread);
  free(p->batches);
  free(p);
}

/* --- tiny jobs --- */

/* Occupies a free seat and returns its index; the number of seats if none is free. The first choice
 * is the seat of this processor, whose caches may still hold its scratch. */
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

/* Ends a round; returns whether there is another one. */
static bool has_another_round(struct pool *p, struct job *job) {
  if (run_fault(job->run, &job->error)) return false;
  struct run *next = run_next_round(job->run);
  if (!next) return false;
  job->run = next;
  if (!atomic_load(&p->closed)) return true;
  job_give_up(job, STATUS_DRAINING);
  return false;
}

static void compute_tiny(struct pool *p, struct job *job, size_t seat) {
  void *scratch = scratch_use(&p->scratch, seat);
  const enum status why = job_ask(job, job->submitted);
  if (why) {
    job_give_up(job, why);
    return;
  }
  job->started = job->submitted;
  do {
    pool_count(&p->tally[seat], job->run->program, 1, job->run->rows);
    run_compute(job->run, tiny_work, scratch);
  } while (has_another_round(p, job));
  job->computed = clock_now();
  if (!job->error.status && job->pieces) job->write(job, 0);
}

/* Computes the job if it is tiny and a seat is free; false: it must go through the queue. */
static bool submit_tiny(struct pool *p, struct job *job) {
  const struct run *run = job->run;
  const bool tiny = run->work < tiny_work && run->whole < tiny_work && job->pieces <= 1;
  if (!tiny || atomic_load(&p->closed)) return false;
  const size_t seat = occupy_seat(p);
  if (seat == p->options.seats) return false;
  compute_tiny(p, job, seat);
  atomic_fetch_and_explicit(&p->taken, ~((uint64_t)1 << seat), memory_order_release);
  job->finished = clock_now();
  job->done(job);
  return true;
}

/* --- for callers --- */

enum status pool_reserve(struct pool *p, size_t scratch_bytes, struct error *e) {
  if (scratch_grow(&p->scratch, scratch_bytes)) return STATUS_OK;
  return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the workers' scratch of %zu bytes each",
                   scratch_bytes);
}

static void begin_job(struct job *job) {
  job->submitted = clock_now();
  job->started = job->computed = job->finished = 0;
  job->pieces_given = job->pieces_written = 0;
  job->verdict = STATUS_OK;
  job->asked = 0;
  job->run->had = 0;
  job->paid = job->cost = 0;
}

static void join_queue(struct pool *p, struct job *job, size_t max_queue) {
  pool_lock(p);
  const bool closed = p->closed, room = !closed && p->waiting < max_queue;
  if (room) {
    job->cost = queue_left(&p->queue, job);
    job->ends = clients_add(&p->clients, job->client, job->cost);
    queue_add(&p->queue, job);
    p->waiting++;
    pool_share_work(p);
  }
  pool_unlock(p);
  if (room) return;
  if (closed)
    job_give_up(job, STATUS_DRAINING);
  else
    error_set(&job->error, STATUS_QUEUE_FULL, "the queue is full");
  job->finished = clock_now();
  job->done(job);
}

void pool_submit(struct pool *p, struct job *job) {
  begin_job(job);
  if (!submit_tiny(p, job)) join_queue(p, job, p->options.max_queue);
}

void pool_submit_next(struct pool *p, struct job *job) {
  begin_job(job);
  join_queue(p, job, SIZE_MAX);
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

bool pool_is_closed(const struct pool *p) { return atomic_load(&p->closed); }

void pool_abandon(struct pool *p) {
  struct ending ending = {0};
  pthread_mutex_lock(&p->lock);
  p->closed = true;
  p->running += p->waiting;
  p->waiting = 0;
  ending_give_up(&ending, queue_take_all(&p->queue), STATUS_DRAINING);
  for (struct batch *b = p->active; b; b = b->next)
    for (struct job *job = b->first; job; job = job->next) job_give_up(job, STATUS_DRAINING);
  pool_end_jobs(p, &ending);
  pthread_mutex_unlock(&p->lock);
}
