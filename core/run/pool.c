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
#include "core/run/queue.h"
#include "core/run/scratch.h"
#include "core/run/size.h"
#include "core/run/thread.h"

/* A tiny job has fewer operations, some 20 us where there are vector instructions. Waking a worker
 * and then the waiting thread costs about as much, and merging so little work wins nothing. */
static const double tiny_work = 2e6;

enum {
  BATCHES_MIN = 64, /* that may be under way at once */
  OLDEST_EVERY = 4, /* every fourth time the oldest goes first, so that it does not starve */
  SEATS_MAX = 64,   /* bits of the word `taken` */
};

struct pool {
  struct pool_options options;
  pthread_mutex_t lock;
  pthread_cond_t work; /* signalled: there are tasks to hand out, or the workers are to end */
  pthread_cond_t idle; /* signalled: no job waits or runs */
  struct queue queue;
  atomic_size_t waiting; /* newcomers in the queue; read without the lock, too */
  size_t running;
  struct batch *active, *free, *batches;
  unsigned handed_out, formed; /* tasks and batches so far: every OLDEST_EVERY-th is the oldest */
  size_t large;                /* batches under way of one large job each */
  atomic_bool closed;          /* by pool_abandon: all jobs are refused */
  bool stopping;               /* the workers are to end */
  size_t workers;              /* that have begun */
  pthread_t *thread;
  struct scratch scratch;              /* of the seats, then of the workers */
  struct tally *tally;                 /* in the same order */
  _Alignas(64) _Atomic uint64_t taken; /* a bit for each seat in use; not under the lock */
};

/* --- ending jobs --- */

static void give_up_chain(struct job *chain, enum status why, struct ending *ending) {
  for (struct job *job = chain, *next; job; job = next) {
    next = job->next;
    job_give_up(job, why);
    ending_add(ending, job);
  }
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

/* Of a program whose runs go again, is a batch under way that those that wait may join in its next
 * round? Two batches side by side would never meet, and read every matrix twice. */
static bool may_be_joined(const struct pool *p, const struct program *program) {
  if (!p->options.merge || !program->again) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->program == program && !b->large && !batch_is_computed(b)) return true;
  return false;
}

/* May the line that begins with this job have a batch now? Large jobs wait while as many are under
 * way as there are workers: more would only slow each other down. */
static bool may_go(const struct pool *p, const struct job *line) {
  if (queue_is_large(line)) return p->large < p->options.workers;
  return !may_be_joined(p, line->run->program);
}

/* What a job will have had after its next round: the less, the sooner it goes. */
static double claim(const struct job *job) { return job->run->had + job->run->work; }

/* The line that goes next: that of the job with the least work, what it has had included, so that
 * small jobs pass large ones in the queue, too; every fourth time that of the job that has waited
 * longest. Who goes again begins to wait anew: so each line has its turn, and a job that goes on
 * and on keeps nobody waiting. NULL: none may go now. */
static struct job *next_line(struct pool *p, bool oldest) {
  struct job *chosen = NULL;
  for (struct job *line = p->queue.lines; line; line = queue_after(line, p->options.merge)) {
    if (!may_go(p, line)) continue;
    if (!chosen || (oldest ? line->entry < chosen->entry : claim(line) < claim(chosen)))
      chosen = line;
  }
  return chosen;
}

/* Those of the jobs that have not been in a batch do not wait any more. */
static void count_newcomers(struct pool *p, const struct job *jobs) {
  size_t newcomers = 0;
  for (; jobs; jobs = jobs->next) newcomers += jobs->started == 0;
  p->waiting -= newcomers;
  p->running += newcomers;
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
    if (!job->started) job->started = now;
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

/* A batch for the jobs of this line, already among those that are under way. */
static struct batch *reserve_batch(struct pool *p, const struct job *line) {
  struct batch *b = p->free, **end = &p->active;
  p->free = b->next;
  batch_reserve(b, line->run->program, queue_is_large(line));
  p->large += b->large;
  while (*end) end = &(*end)->next;
  return *end = b;
}

static void release_batch(struct pool *p, struct batch *b) {
  struct batch **link = &p->active;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  p->large -= b->large;
  b->next = p->free;
  p->free = b;
}

/* Is it time to form a batch of waiting jobs? Not while a batch that must not be overtaken has work
 * to hand out: meanwhile more jobs may come, and be merged. */
static bool may_form(const struct pool *p) {
  if (!p->queue.lines || !p->free) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->served < MERGE_WORK && batch_has_task(b)) return false;
  return true;
}

/* Ends the jobs whose deadline has passed while they waited. */
static void expire_waiting(struct pool *p, struct ending *ending) {
  struct job *late = p->queue.lines ? queue_take_late(&p->queue, clock_now()) : NULL;
  count_newcomers(p, late);
  give_up_chain(late, STATUS_DEADLINE, ending);
}

/* Lets a batch move on after one of its tasks has been finished. */
static void advance_batch(struct pool *p, struct batch *b, struct ending *ending) {
  if (batch_advance(b, ending)) pthread_cond_broadcast(&p->work);
  for (struct job *job = b->again, *next; job; job = next) {
    next = job->next;
    queue_add(&p->queue, job);
  }
  b->again = NULL;
  if (!batch_is_over(b)) return;
  release_batch(p, b);
  if (p->queue.lines) pthread_cond_signal(&p->work);
}

/* Makes a batch of waiting jobs, if any may go now, and counts it. The lock is held at entry and
 * exit, but not while clients are asked. */
static bool form_batch(struct pool *p, struct tally *tally) {
  if (!may_form(p)) return false;
  const bool oldest = ++p->formed % OLDEST_EVERY == 0;
  struct job *line = next_line(p, oldest);
  if (!line) return false;
  struct ending ending = {0};
  struct batch *b = reserve_batch(p, line);
  struct job *jobs = queue_take(&p->queue, line, p->options.merge, oldest);
  count_newcomers(p, jobs);
  pthread_mutex_unlock(&p->lock);
  struct wanted wanted = chain_wanted(jobs, &ending);
  pthread_mutex_lock(&p->lock);
  if (p->closed) {
    give_up_chain(wanted.first, STATUS_DRAINING, &ending);
    wanted.first = NULL;
  }
  if (wanted.first) {
    tally_batch(tally, wanted.count, wanted.rows);
    batch_init(b, wanted.first, wanted.work, p->options.workers);
    if (b->wide) pthread_cond_broadcast(&p->work);
    advance_batch(p, b, &ending); /* an empty run has no phases */
  } else {
    release_batch(p, b);
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

static void run_task(struct pool *p, struct task *t, size_t piece) {
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
  return job->run->work < tiny_work && job->run->whole < tiny_work && job->pieces <= 1;
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

/* Ends a round; true: there is another one. */
static bool has_another_round(struct pool *p, struct job *job) {
  if (run_fault(job->run, &job->error) || !run_again(job->run)) return false;
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
    tally_batch(&p->tally[seat], 1, job->run->rows);
    run_compute(job->run, tiny_work, scratch);
  } while (has_another_round(p, job));
  job->computed = clock_now();
  if (!job->error.status && job->pieces) job->write(job, 0);
}

/* Computes the job if it is tiny and there is a seat; false: it has to go through the queue. */
static bool submit_tiny(struct pool *p, struct job *job) {
  if (!is_tiny(job) || atomic_load(&p->closed)) return false;
  const size_t seat = occupy_seat(p);
  if (seat == p->options.seats) return false;
  compute_tiny(p, job, seat);
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
  job->asked = 0;
  job->run->had = 0;
  if (submit_tiny(p, job)) return;
  pthread_mutex_lock(&p->lock);
  const bool closed = p->closed, room = !closed && p->waiting < p->options.max_queue;
  if (room) {
    queue_add(&p->queue, job);
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
  give_up_chain(queue_take_all(&p->queue), STATUS_DRAINING, &ending);
  for (struct batch *b = p->active; b; b = b->next)
    for (struct job *job = b->first; job; job = job->next) job_give_up(job, STATUS_DRAINING);
  end_unlocked(p, &ending);
  pthread_mutex_unlock(&p->lock);
}
