/* pool_work: the workers: what they do next, and how they find it.
 *
 * A span that is neither the last of its step nor followed by another ends without the lock, and a
 * worker that watches is dealt its next. */
#include <math.h>

#include "core/base/thread.h"
#include "core/run/pool_parts.h"

struct batch *pool_first_batch(const struct pool *p, enum half half) {
  struct batch *first = NULL;
  for (struct batch *b = p->active; b; b = b->next)
    if (batch_has_task(b) && (!first || batch_rank(b, half) < batch_rank(first, half))) first = b;
  return first;
}

/* Of an operation, about. Time of a half is counted when a task is handed out, so that all workers
 * know of it; what the task took more, or less, when it is done. */
static const double usual_ns = 0.01;

/* A batch that others have passed for long gets a span, behind which it is asked whether its clients
 * are still there, and in time. */
static struct batch *forgotten_batch(const struct pool *p) {
  struct batch *b = p->active;
  while (b && !batch_is_forgotten(b, p->now)) b = b->next;
  return b;
}

bool pool_take_task(struct pool *p, struct task *t) {
  struct batch *b = forgotten_batch(p);
  if (!b) b = pool_first_batch(p, pool_turn(p));
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

/* How many workers could find something to do now, about. */
static size_t count_work(const struct pool *p) {
  const size_t tasks = count_tasks(p);
  return tasks == 0 && pool_may_form(p) ? 1 : tasks;
}

/* Before it is looked who watches: see crew_begin_watch. */
static void note_work(struct pool *p, bool has_work) {
  if (atomic_load(&p->has_work) != has_work) atomic_store(&p->has_work, has_work);
}

void pool_share_work(struct pool *p) {
  note_work(p, p->queue.lines || count_tasks(p) > 0); /* or a worker that is busy may find out */
  if (!crew_is_idle(&p->crew)) return;
  size_t left = count_work(p);
  for (size_t i = 0; i < p->crew.count && left > 0; i++) {
    struct task task = {0};
    if (!crew_is_watching(&p->crew, i)) continue;
    left = pool_take_task(p, &task) ? count_work(p) : 0; /* 0: the worker is to form a batch */
    crew_deal(&p->crew, i, &task);
  }
  crew_call(&p->crew, left);
  note_work(p, left > 0);
}

/* Watches: true with a task and without the lock, false with the lock. */
static bool watch(struct pool *p, size_t worker, struct task *t) {
  if (!atomic_load(&p->has_work) && crew_watch(&p->crew, worker, t)) return true;
  pool_lock(p);
  if (!crew_end_watch(&p->crew, worker, t)) return false;
  pool_unlock(p);
  return true;
}

/* Takes the lock, and settles a piece, a check, or the last span of a step. */
static void end_task(struct pool *p, const struct task *t, bool last) {
  struct ending ending = {0};
  pool_lock(p);
  if (t->job) task_end_piece(t, &ending);
  if (t->check) {
    task_end_check(t);
    last = task_end_span(t);
  }
  if (t->job || last) pool_advance(p, t->batch, &ending);
  pool_end_jobs(p, &ending);
}

/* Does the task, and those that are dealt meanwhile; then it takes the lock. True: the worker has
 * watched in vain. */
static bool run_tasks(struct pool *p, size_t worker, struct task *t) {
  double late[HALVES] = {0}; /* nanoseconds that tasks took more than expected */
  bool locked = false, watched = false;
  while (t->batch && !locked) {
    const uint64_t begun = clock_now();
    task_run(t, scratch_use(&p->scratch, p->options.seats + worker));
    late[t->half] += (double)(clock_now() - begun) - t->expected;
    const bool light = !t->job && !t->check;
    if (!light || task_end_span(t)) {
      end_task(p, t, light);
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

/* True: with a task and without the lock. A worker that has `watched` in vain does not watch again,
 * but takes what was dealt to others that have not begun. */
static bool find_task(struct pool *p, size_t worker, bool *watched, struct task *t) {
  bool found = pool_take_task(p, t);
  if (found)
    pool_share_work(p);
  else
    note_work(p, false);
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
    pool_expire(p);
    if (pool_form_batch(p, &p->tally[p->options.seats + worker])) continue;
    if (find_task(p, worker, &watched, &task)) {
      watched = run_tasks(p, worker, &task);
    } else if (watched == watched_before) { /* else it looks once more */
      crew_sleep(&p->crew, &p->lock);
      watched = false;
    }
  }
  pool_unlock(p);
  return NULL;
}
