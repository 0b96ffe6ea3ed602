/* pool_work: the workers: which jobs become a batch, and which task a worker takes next.
 *
 * The lock is taken only if a span ends its step, or if the worker has to look for more. A worker
 * that watches gets its next task without it. */
#include <math.h>

#include "core/base/thread.h"
#include "core/run/pool_parts.h"

/* The first batch with a task in a half; NULL: there is none. */
static struct batch *first_batch(const struct pool *p, enum half half) {
  struct batch *first = NULL;
  for (struct batch *b = p->active; b; b = b->next)
    if (batch_has_task(b) && (!first || batch_rank(b, half) < batch_rank(first, half))) first = b;
  return first;
}

/* --- the jobs that become a batch --- */

/* Returns whether the jobs of a line should wait for the end of an active batch of their program,
 * to be computed together with its jobs: two batches side by side would never meet, and read every
 * matrix twice. If reading costs little, idle workers had better begin. */
static bool should_wait(const struct pool *p, const struct line *line) {
  if (!p->options.merge || line->large) return false;
  if (!line->program->next_round && queue_merge_work(&p->queue, line->program) <= MERGE_WORK)
    return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->cursor.program == line->program && !b->large && !batch_is_computed(b)) return true;
  return false;
}

/* The line whose jobs are the next batch: the first one in a half, if it precedes all active
 * batches with a task. NULL: there is none. If no batch has a task, at most as many large jobs are
 * begun as there are workers: more would only slow each other down. */
static struct line *next_line(const struct pool *p, enum half half) {
  if (!p->queue.lines || !p->free) return NULL;
  for (const struct batch *b = p->active; b; b = b->next)
    if (pool_is_beginning(b) && batch_has_task(b)) return NULL;
  const struct batch *first = first_batch(p, half);
  struct line *chosen = NULL;
  for (struct line *line = p->queue.lines; line; line = line->next) {
    if (should_wait(p, line)) continue;
    if (first ? line_rank(line, half) >= batch_rank(first, half)
              : line->large && p->large >= p->options.workers)
      continue;
    if (!chosen || line_rank(line, half) < line_rank(chosen, half)) chosen = line;
  }
  return chosen;
}

/* --- tasks --- */

/* Nanoseconds of an operation, about. The time of a half is counted when a task is handed out, so
 * that all workers know it; the difference to the real time when the task is done. */
static const double usual_ns = 0.01;

bool pool_take_task(struct pool *p, struct task *t) {
  /* A batch that others have overtaken for long gets a span, after which its jobs are checked. */
  struct batch *b = p->active;
  while (b && !batch_is_forgotten(b, p->now)) b = b->next;
  if (!b) b = first_batch(p, pool_turn(p));
  if (!b) return false;
  const enum half half = pool_is_beginning(b) ? b->half : pool_turn(p);
  const double served = b->served;
  batch_cut(b, p->now, t);
  t->half = half;
  t->expected = (b->served - served) * usual_ns;
  pool_count_time(p, half, t->expected);
  pool_tell_clients(p, b, b->cost * fmin(1, b->served / b->work));
  return true;
}

static size_t count_tasks(const struct pool *p) {
  size_t tasks = 0;
  for (const struct batch *b = p->active; b; b = b->next) tasks += batch_tasks(b);
  return tasks;
}

/* How many workers could find a task now, about. */
static size_t count_work(const struct pool *p) {
  const size_t tasks = count_tasks(p);
  return tasks == 0 && next_line(p, pool_turn(p)) ? 1 : tasks;
}

/* Must precede the search for workers that watch: see crew_begin_watch. */
static void set_has_work(struct pool *p, bool has_work) {
  if (atomic_load(&p->has_work) != has_work) atomic_store(&p->has_work, has_work);
}

void pool_share_work(struct pool *p) {
  set_has_work(p, p->queue.lines || count_tasks(p) > 0); /* a busy worker may take it, too */
  if (!crew_is_idle(&p->crew)) return;
  size_t left = count_work(p);
  for (size_t i = 0; i < p->crew.count && left > 0; i++) {
    struct task task = {0};
    if (!crew_is_watching(&p->crew, i)) continue;
    left = pool_take_task(p, &task) ? count_work(p) : 0; /* 0: the worker forms a batch */
    crew_deal(&p->crew, i, &task);
  }
  crew_call(&p->crew, left);
  set_has_work(p, left > 0);
}

/* --- ending jobs --- */

void pool_end_jobs(struct pool *p, struct ending *ending) {
  if (!ending->first) return;
  for (const struct job *job = ending->first; job; job = job->next)
    clients_correct(&p->clients, job->client, job->paid - job->cost);
  pool_share_work(p);
  pool_unlock(p);
  ending_run(ending);
  pool_lock(p);
  p->running -= ending->count;
  if (p->running == 0 && p->waiting == 0) {
    clients_forget(&p->clients);
    pthread_cond_broadcast(&p->idle);
  }
  *ending = (struct ending){0};
}

/* --- from the queue to a batch, and back --- */

/* Counts the new jobs of a chain as running. */
static void count_as_running(struct pool *p, const struct job *jobs) {
  size_t newcomers = 0;
  for (; jobs; jobs = jobs->next) newcomers += jobs->started == 0;
  p->waiting -= newcomers;
  p->running += newcomers;
}

/* The jobs of a batch that is being formed. */
struct wanted {
  struct job *first;
  size_t count, rows;
};

/* Gives up jobs that are not wanted any more; chains the runs of the others. Not under the lock. */
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
    wanted.rows += job->run->rows;
    wanted.count++;
  }
  return wanted;
}

/* Appends an empty batch for the jobs of this line to the active ones. */
static struct batch *reserve_batch(struct pool *p, const struct line *line, enum half half) {
  struct batch *b = p->free, **end = &p->active;
  p->free = b->next;
  batch_reserve(b, line, half);
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

static void end_late_jobs(struct pool *p) {
  struct ending ending = {0};
  struct job *late = p->queue.lines ? queue_take_late(&p->queue, p->now) : NULL;
  if (!late) return;
  count_as_running(p, late);
  ending_give_up(&ending, late, STATUS_DEADLINE);
  pool_end_jobs(p, &ending);
}

void pool_advance(struct pool *p, struct batch *b, struct ending *ending) {
  batch_advance(b, ending);
  if (batch_is_computed(b)) pool_tell_clients(p, b, b->cost);
  for (struct job *job = b->continuing, *next; job; job = next) {
    next = job->next;
    if (job->paid > job->cost) { /* it costs more than estimated */
      clients_correct(&p->clients, job->client, job->paid - job->cost);
      job->ends += job->paid - job->cost;
      job->cost = job->paid;
    }
    queue_add(&p->queue, job);
  }
  b->continuing = NULL;
  if (batch_is_over(b)) release_batch(p, b);
}

bool pool_form_batch(struct pool *p, struct tally *tally) {
  const enum half half = pool_turn(p);
  struct line *line = next_line(p, half);
  if (!line) return false;
  struct ending ending = {0};
  const struct program *program = line->program;
  struct batch *b = reserve_batch(p, line, half);
  struct job *jobs = queue_take(&p->queue, line, half, p->options.merge);
  count_as_running(p, jobs);
  pool_unlock(p);
  struct wanted wanted = chain_wanted(jobs, &ending);
  pool_lock(p);
  if (p->closed) {
    ending_give_up(&ending, wanted.first, STATUS_DRAINING);
    wanted.first = NULL;
  }
  if (wanted.first) {
    pool_count(tally, program, wanted.count, wanted.rows);
    batch_init(b, wanted.first, queue_reading(&p->queue, program), p->options.workers, p->now);
    pool_advance(p, b, &ending); /* there may be nothing to compute */
  } else {
    release_batch(p, b);
  }
  pool_end_jobs(p, &ending);
  return true;
}

/* --- the worker --- */

/* Watches. Returns true with a task and without the lock, or false with the lock. */
static bool watch(struct pool *p, size_t worker, struct task *t) {
  if (!atomic_load(&p->has_work) && crew_watch(&p->crew, worker, t)) return true;
  pool_lock(p);
  if (!crew_end_watch(&p->crew, worker, t)) return false;
  pool_unlock(p);
  return true;
}

/* Computes the task, and those that are dealt meanwhile; then takes the lock. Returns true if the
 * worker has watched in vain. */
static bool run_tasks(struct pool *p, size_t worker, struct task *t) {
  double late[HALVES] = {0}; /* nanoseconds that tasks took more than expected */
  bool locked = false, watched = false;
  while (t->batch && !locked) {
    const uint64_t begun = clock_now();
    task_run(t, scratch_use(&p->scratch, p->options.seats + worker));
    late[t->half] += (double)(clock_now() - begun) - t->expected;
    bool last = !t->job && !t->check && task_end_span(t); /* of its step */
    if (t->job || t->check || last) {
      struct ending ending = {0};
      pool_lock(p);
      if (t->job) task_end_piece(t, &ending);
      if (t->check) {
        task_end_check(t);
        last = task_end_span(t);
      }
      if (t->job || last) pool_advance(p, t->batch, &ending);
      pool_end_jobs(p, &ending);
      locked = true;
    } else if (atomic_load(&p->has_work)) {
      break;
    } else {
      crew_begin_watch(&p->crew, worker);
      locked = watched = !watch(p, worker, t);
    }
  }
  if (!locked) pool_lock(p);
  for (enum half half = 0; half < HALVES; half++) pool_count_time(p, half, late[half]);
  return watched;
}

/* Returns true with a task and without the lock, or false with the lock. A worker that has
 * `watched` in vain does not watch again, but takes a task dealt to a worker that has not begun it.
 */
static bool find_task(struct pool *p, size_t worker, bool *watched, struct task *t) {
  bool found = pool_take_task(p, t);
  if (found)
    pool_share_work(p);
  else
    set_has_work(p, false);
  if (!found && *watched) found = crew_take_back(&p->crew, t);
  const bool watches = !found && !*watched && p->active;
  if (watches) crew_begin_watch(&p->crew, worker);
  if (found || watches) pool_unlock(p);
  *watched |= watches;
  return found || (watches && watch(p, worker, t));
}

void *pool_serve(void *argument) {
  struct pool *p = argument;
  struct task task;
  thread_name("attend-worker");
  pool_lock(p);
  const size_t worker = p->workers++;
  for (bool watched = false; !p->stopping;) {
    const bool watched_before = watched;
    end_late_jobs(p);
    if (pool_form_batch(p, &p->tally[p->options.seats + worker])) continue;
    if (find_task(p, worker, &watched, &task)) {
      watched = run_tasks(p, worker, &task);
    } else if (watched == watched_before) { /* else it tries again */
      crew_sleep(&p->crew, &p->lock);
      watched = false;
    }
  }
  pool_unlock(p);
  return NULL;
}
