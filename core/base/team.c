/* team: threads that share out work that is done once. */
#include "core/base/team.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/base/thread.h"

/* Jobs or pieces that are dealt out, in order: all indices below a failed one have begun. */
struct team_loop {
  enum status (*work)(void *of, size_t index, struct error *e);
  void *of;
  size_t count, next;
  size_t under_way;
  size_t failed;      /* the lowest index that has failed */
  struct error error; /* its error */
};

struct team {
  size_t threads;
  void (*tick)(void *of);
  void *of;
  pthread_mutex_t lock; /* guards the members below */
  pthread_cond_t changed;
  struct team_loop jobs, pieces;
  bool turn; /* whether a job has the turn */
};

static _Thread_local struct team *own;
static _Thread_local bool has_turn;

struct team *team_new(size_t threads, void (*tick)(void *of), void *of) {
  struct team *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->threads = threads;
  t->tick = tick;
  t->of = of;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  return t;
}

void team_free(struct team *t) {
  if (!t) return;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* --- loops; the lock is held, except while the work is done --- */

static void loop_begin(struct team *t, struct team_loop *l, const struct team_loop *begun) {
  must(l->under_way == 0);
  *l = *begun;
  l->failed = SIZE_MAX;
  pthread_cond_broadcast(&t->changed);
}

/* Whether nothing more is dealt out. */
static bool loop_is_dealt(const struct team_loop *l) {
  return l->next == l->count || l->error.status != STATUS_OK;
}

static bool loop_is_done(const struct team_loop *l) {
  return loop_is_dealt(l) && l->under_way == 0;
}

/* Does the next job or piece; false: there is none. */
static bool do_next(struct team *t, struct team_loop *l) {
  struct error e = {0};
  if (loop_is_dealt(l)) return false;
  const size_t index = l->next++;
  l->under_way++;
  pthread_mutex_unlock(&t->lock);
  l->work(l->of, index, &e);
  t->tick(t->of);
  pthread_mutex_lock(&t->lock);
  if (e.status != STATUS_OK && index < l->failed) {
    l->failed = index;
    l->error = e;
  }
  l->under_way--;
  if (loop_is_done(l)) pthread_cond_broadcast(&t->changed);
  return true;
}

/* Sets the error of the loop. */
static enum status loop_end(const struct team_loop *l, struct error *e) {
  if (e->status == STATUS_OK) *e = l->error;
  return e->status;
}

/* --- members --- */

/* Pieces precede jobs: the job that they belong to has the turn. */
static void work_to_the_end(struct team *t) {
  own = t;
  pthread_mutex_lock(&t->lock);
  while (!loop_is_done(&t->jobs))
    if (!do_next(t, &t->pieces) && !do_next(t, &t->jobs)) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  own = NULL;
}

static void *member_main(void *of) {
  thread_name("attend-load");
  work_to_the_end(of);
  return NULL;
}

enum status team_each(struct team *t, size_t count,
                      enum status (*job)(void *of, size_t index, struct error *e), void *of,
                      struct error *e) {
  pthread_t *member = calloc(t->threads, sizeof *member);
  size_t started = 0;
  if (!member) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for threads");
  loop_begin(t, &t->jobs, &(struct team_loop){.work = job, .of = of, .count = count});
  while (started + 1 < t->threads && !pthread_create(&member[started], NULL, member_main, t))
    started++;
  work_to_the_end(t);
  for (size_t i = 0; i < started; i++) pthread_join(member[i], NULL);
  free(member);
  return loop_end(&t->jobs, e);
}

/* --- within a job --- */

void team_turn_begin(void) {
  struct team *t = own;
  if (!t) return;
  must(!has_turn);
  pthread_mutex_lock(&t->lock);
  while (t->turn)
    if (!do_next(t, &t->pieces)) pthread_cond_wait(&t->changed, &t->lock);
  t->turn = has_turn = true;
  pthread_mutex_unlock(&t->lock);
}

void team_turn_end(void) {
  struct team *t = own;
  if (!has_turn) return;
  pthread_mutex_lock(&t->lock);
  t->turn = has_turn = false;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

enum status team_row(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                     void *of, struct error *e) {
  for (size_t i = 0; i < count && e->status == STATUS_OK; i++) {
    piece(of, i, e);
    if (own) own->tick(own->of);
  }
  return e->status;
}

enum status team_split(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                       void *of, struct error *e) {
  struct team *t = own;
  if (!has_turn || t->threads == 1 || count < 2) return team_row(count, piece, of, e);
  pthread_mutex_lock(&t->lock);
  loop_begin(t, &t->pieces, &(struct team_loop){.work = piece, .of = of, .count = count});
  while (do_next(t, &t->pieces)) continue;
  while (!loop_is_done(&t->pieces)) pthread_cond_wait(&t->changed, &t->lock);
  loop_end(&t->pieces, e);
  pthread_mutex_unlock(&t->lock);
  return e->status;
}
