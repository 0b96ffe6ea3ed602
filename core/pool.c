/* pool: the workers and their queue.
 *
 * One lock guards the queue, the batches and their cursors; it is held to hand out a span, never
 * while one is computed. A batch goes through the phases of the layer and then through the pieces
 * of its jobs' answers; a phase begins when the one before has no span left, given or running. */
#include "core/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/size.h"

/* Operations that one batch may merge, about 2 ms; what has had more may be overtaken. */
static const double merge_work = 2e8;
static const double span_least = 2e6; /* below this handing out costs more than it wins */
static const double span_most = 2e7;  /* small jobs wait for no longer than this */

enum {
  BATCHES_MIN = 64,   /* that may be under way at once */
  OLDEST_EVERY = 4,   /* every so many spans go to the oldest batch, which would starve else */
  CHECK_EVERY_MS = 5, /* how often running jobs are asked whether anyone still waits */
};

struct batch {
  const struct layer *layer;
  struct job *first; /* chain by job.next; the calls are chained by call.next in the same order */
  struct cursor cursor;
  struct job *writing; /* after PHASE_DONE: the job whose pieces are handed out */
  size_t spans;        /* handed out and not finished */
  double span_work;
  double served; /* operations handed out so far */
  bool wide;     /* more than one worker may find something to do */
  uint64_t checked;
  struct batch *next; /* in the list of active ones, oldest first; or of free ones */
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
  bool stopping;
  size_t workers; /* threads that were started */
  pthread_t *thread;
};

/* --- ending jobs --- */

/* Jobs to be ended once the lock is released: `done` may do anything. */
struct ending {
  struct job *first;
  size_t count;
};

static void end_later(struct ending *ending, struct job *job) {
  job->next = ending->first;
  ending->first = job;
  ending->count++;
}

static void end_all(struct ending *ending) {
  for (struct job *job = ending->first; job;) {
    struct job *next = job->next; /* `done` frees the job */
    job->finished = clock_now();
    job->done(job);
    job = next;
  }
}

/* Releases the lock, ends the jobs, takes the lock again. */
static void end_unlocked(struct pool *p, struct ending *ending) {
  if (!ending->first) return;
  pthread_mutex_unlock(&p->lock);
  end_all(ending);
  pthread_mutex_lock(&p->lock);
  p->running -= ending->count;
  if (p->running == 0 && p->waiting == 0) pthread_cond_broadcast(&p->idle);
  *ending = (struct ending){0};
}

static bool job_is_late(struct job *job, uint64_t now) {
  if (job->deadline && now >= job->deadline) {
    error_set(&job->error, STATUS_DEADLINE, "the deadline has passed");
    return true;
  }
  if (job->gone && job->gone(job)) {
    error_set(&job->error, STATUS_GONE, "the client has left");
    return true;
  }
  return false;
}

/* --- forming a batch --- */

/* Takes the job that waits longest and, merging, all others of its layer that fit the budget. */
static struct job *take_waiting(struct pool *p, size_t *count) {
  struct job *first = p->head, *last = first;
  double work = first->call->work;
  p->head = first->next;
  first->next = NULL;
  *count = 1;
  struct job **link = &p->head;
  while (p->options.merge && *link && work < merge_work) {
    struct job *job = *link;
    if (job->layer != first->layer || work + job->call->work > merge_work) {
      link = &job->next;
      continue;
    }
    *link = job->next;
    job->next = NULL;
    last = last->next = job;
    work += job->call->work;
    (*count)++;
  }
  p->tail = &p->head;
  while (*p->tail) p->tail = &(*p->tail)->next;
  p->waiting -= *count;
  p->running += *count;
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
    if (job_is_late(job, now)) {
      end_later(ending, job);
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

/* --- handing out --- */

/* What a worker does next: a span, or a piece of an answer. */
struct task {
  struct batch *batch;
  struct span span;
  struct job *job; /* NULL: the span */
  size_t piece;
};

static bool cut_piece(struct batch *b, struct task *t) {
  while (b->writing && b->writing->pieces_given == b->writing->pieces)
    b->writing = b->writing->next;
  if (!b->writing) return false;
  t->job = b->writing;
  t->piece = b->writing->pieces_given++;
  b->served += span_least;
  return true;
}

static bool has_task(const struct batch *b) {
  if (b->cursor.phase != PHASE_DONE) return b->cursor.call != NULL;
  for (const struct job *job = b->writing; job; job = job->next)
    if (job->pieces_given < job->pieces) return true;
  return false;
}

/* Is it time to take what waits? Not while a batch that must not be overtaken has work to give:
 * meanwhile more may come, and be merged. */
static bool may_form(const struct pool *p) {
  if (!p->head || !p->free) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->served < merge_work && has_task(b)) return false;
  return true;
}

static bool cut_task(struct batch *b, struct task *t) {
  *t = (struct task){.batch = b};
  bool some;
  if (b->cursor.phase == PHASE_DONE) {
    some = cut_piece(b, t);
  } else {
    some = b->cursor.call && layer_cut(b->layer, &b->cursor, b->span_work, &t->span);
    b->served += some ? b->span_work : 0;
  }
  b->spans += some;
  return some;
}

/* The batch that has had the least so far; now and then the oldest. */
static bool next_task(struct pool *p, struct task *t) {
  const bool oldest = ++p->turn % OLDEST_EVERY == 0;
  for (struct batch *b = p->active; oldest && b; b = b->next)
    if (cut_task(b, t)) return true;
  for (double floor = -1;;) { /* in ascending order of what they have had */
    struct batch *least = NULL;
    for (struct batch *b = p->active; b; b = b->next)
      if (b->served > floor && (!least || b->served < least->served)) least = b;
    if (!least) return false;
    floor = least->served;
    for (struct batch *b = p->active; b; b = b->next)
      if (b->served == floor && cut_task(b, t)) return true;
  }
}

/* --- from phase to phase --- */

/* The answers are computed: keeps the jobs whose pieces are to be written, ends the others. */
static void begin_writing(struct batch *b, struct ending *ending) {
  const uint64_t now = clock_now();
  struct job **link = &b->first;
  size_t pieces = 0;
  while (*link) {
    struct job *job = *link;
    job->computed = now;
    if (!job->error.status) layer_fault(b->layer, job->call, &job->error);
    if (job->error.status || job->pieces == 0) {
      *link = job->next;
      end_later(ending, job);
    } else {
      pieces += job->pieces;
      link = &job->next;
    }
  }
  b->writing = b->first;
  b->wide = pieces > 1;
}

static void forget_job(struct batch *b, struct job *job) {
  if (b->writing == job) b->writing = job->next;
  struct job **link = &b->first;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
}

/* While others wait for a span's end: has the client left, has the time run out? */
static void check_jobs(struct batch *b) {
  const uint64_t now = clock_now();
  if (now - b->checked < (uint64_t)CHECK_EVERY_MS * CLOCK_MS) return;
  b->checked = now;
  for (struct job *job = b->first; job; job = job->next)
    if (!job->error.status && job_is_late(job, now)) atomic_store(&job->call->cancelled, true);
}

/* Moves the batch on if its phase has come to an end. */
static void advance(struct pool *p, struct batch *b, struct ending *ending) {
  while (b->spans == 0 && b->cursor.phase != PHASE_DONE && !b->cursor.call) {
    b->cursor = layer_begin(b->layer, b->first->call, b->cursor.phase + 1);
    if (b->cursor.phase == PHASE_DONE) begin_writing(b, ending);
    if (b->wide) pthread_cond_broadcast(&p->work);
  }
  if (b->cursor.phase == PHASE_DONE && !b->first && b->spans == 0) {
    retire(p, b);
    if (p->waiting) pthread_cond_signal(&p->work);
  }
}

/* Makes a batch of what waits. The lock is held at entry and exit, not while clients are asked. */
static void form_batch(struct pool *p) {
  struct batch *b = p->free;
  size_t count;
  double work = 0;
  struct ending ending = {0};
  p->free = b->next;
  struct job *jobs = take_waiting(p, &count);
  pthread_mutex_unlock(&p->lock);
  jobs = still_wanted(jobs, &ending, &work);
  pthread_mutex_lock(&p->lock);
  if (jobs) {
    const double share = work / (double)(p->options.workers * 16);
    *b = (struct batch){.layer = jobs->layer,
                        .first = jobs,
                        .cursor = layer_begin(jobs->layer, jobs->call, PHASE_PROJECT),
                        .span_work = share < span_least  ? span_least
                                     : share > span_most ? span_most
                                                         : share,
                        .checked = jobs->started};
    b->wide = work > b->span_work;
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

static void run_task(struct pool *p, const struct task *t, void *scratch) {
  struct ending ending = {0};
  pthread_mutex_unlock(&p->lock);
  if (t->job)
    t->job->encode(t->job, t->piece);
  else
    layer_run(t->batch->layer, &t->span, scratch);
  pthread_mutex_lock(&p->lock);
  t->batch->spans--;
  if (t->job && ++t->job->pieces_written == t->job->pieces) {
    forget_job(t->batch, t->job);
    end_later(&ending, t->job);
  } else if (!t->job) {
    check_jobs(t->batch);
  }
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
  while (!p->stopping || p->running || p->waiting) {
    if (may_form(p))
      form_batch(p);
    else if (next_task(p, &task))
      run_task(p, &task, scratch);
    else if (!p->stopping || p->active)
      pthread_cond_wait(&p->work, &p->lock);
    else
      break;
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
  job->next = NULL;
  pthread_mutex_lock(&p->lock);
  const bool room = p->waiting < p->options.max_queue && !p->stopping;
  if (room) {
    *p->tail = job;
    p->tail = &job->next;
    p->waiting++;
    pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
  if (room) return;
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
  for (struct job *job = p->head, *next; job; job = next) {
    next = job->next;
    error_set(&job->error, STATUS_DRAINING, "the server is stopping");
    end_later(&ending, job);
  }
  p->head = NULL;
  p->tail = &p->head;
  p->running += p->waiting;
  p->waiting = 0;
  for (struct batch *b = p->active; b; b = b->next)
    for (struct job *job = b->first; job; job = job->next) {
      if (b->cursor.phase == PHASE_DONE) continue; /* computed: its answer is being written */
      error_set(&job->error, STATUS_DRAINING, "the server is stopping");
      atomic_store(&job->call->cancelled, true);
    }
  end_unlocked(p, &ending);
  pthread_mutex_unlock(&p->lock);
}
