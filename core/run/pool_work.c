/* pool_work: the workers: what they do next, and how they find it.
 *
 * A span that is neither the last of its step nor followed by another ends without the lock, and a
 * worker that watches is dealt its next. */
#include "core/base/thread.h"
#include "core/run/pool_parts.h"

/* A task of the batch that has had the least work so far; every fourth time of the one that has
 * waited longest: batches that begin anew all the time, each with nothing served, leave that much
 * to the others, whatever these have had. */
static bool choose_task(struct pool *p, struct task *t) {
  const bool oldest = ++p->handed_out % POOL_OLDEST_EVERY == 0;
  struct batch *chosen = NULL;
  for (struct batch *b = p->active; b; b = b->next)
    if (batch_has_task(b) &&
        (!chosen || (oldest ? b->turn < chosen->turn : b->served < chosen->served)))
      chosen = b;
  if (!chosen) return false;
  chosen->turn = p->handed_out;
  batch_cut(chosen, p->now, t);
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
    left = choose_task(p, &task) ? count_work(p) : 0; /* 0: the worker is to form a batch */
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
  while (t->batch) {
    task_run(t, scratch_use(&p->scratch, p->options.seats + worker));
    const bool light = !t->job && !t->check;
    if (!light || task_end_span(t)) {
      end_task(p, t, light);
      return false;
    }
    if (atomic_load(&p->has_work)) break;
    crew_begin_watch(&p->crew, worker);
    if (!watch(p, worker, t)) return true;
  }
  pool_lock(p);
  return false;
}

/* True: with a task and without the lock. A worker that has `watched` in vain does not watch again,
 * but takes what was dealt to others that have not begun. */
static bool find_task(struct pool *p, size_t worker, bool *watched, struct task *t) {
  bool found = choose_task(p, t);
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
