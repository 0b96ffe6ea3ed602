/* test_turns: who comes next, in a pool of simulated time. The queue, the batches and the clients'
 * turns are the pool's own; the workers are numbers, and a span takes as long as its work says.
 *
 * Every job must end within twice its time in an ideal round, in which each client that has work is
 * served at the same rate, and one span: computed here anew, client by client. Where one client
 * brings short jobs all the time, these may have put the longer ones that wait behind the round
 * when a job of another client comes: then it is three times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/run/pool_parts.h"
#include "tests/support/number_draw.h"

enum { WORKERS = 16, CLIENTS = 1000, JOBS = 4000 };
static const double rate = 1e11;        /* operations of a worker in a second */
static const double unit_least = 1e7;   /* operations of a unit, but of the smallest jobs */
static const double longest_span = 2e7; /* as spans are cut */

struct sim_job {
  struct job job;
  struct run run;
  size_t units;
  double arrives, ends, ideal;
};

static double now; /* seconds */

/* --- a program of one step --- */

static bool next_unit(const struct step *s, struct cursor *at, struct unit *u) {
  (void)s;
  return at->row++ < ((struct sim_job *)((char *)u->run - offsetof(struct sim_job, run)))->units;
}

static double unit_work(const struct step *s, const struct unit *u) {
  (void)s;
  return u->run->work /
         (double)((struct sim_job *)((char *)u->run - offsetof(struct sim_job, run)))->units;
}

static const struct step step = {.unit = next_unit, .work = unit_work};
static const struct step *const steps[] = {&step};
static const struct program program = {.step = steps, .steps = 1};

static void note_end(struct job *job) { ((struct sim_job *)job)->ends = now; }

static void job_init(struct sim_job *s, uint64_t client, double arrives, double work) {
  *s = (struct sim_job){.units = (size_t)ceil(work / unit_least), .arrives = arrives};
  s->run = (struct run){.program = &program, .work = work, .rows = 1};
  s->job = (struct job){.run = &s->run, .client = client, .done = note_end};
}

/* --- the pool, and its workers --- */

static struct pool *pool_without_threads(bool merge) {
  enum { BATCHES = 1200 };
  struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
  *p = (struct pool){.options = {.workers = WORKERS, .max_queue = JOBS, .merge = merge}};
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->idle, NULL);
  p->batches = calloc(BATCHES, sizeof *p->batches);
  for (size_t i = 0; i < BATCHES; i++) {
    p->batches[i].next = p->free;
    p->free = &p->batches[i];
  }
  p->now = UINT64_MAX / 2; /* no clock ticks: nobody is asked whether jobs are still wanted */
  p->tally = tally_new(1);
  assert_true(crew_init(&p->crew, WORKERS) && clients_init(&p->clients));
  return p;
}

static void pool_is_empty(struct pool *p) {
  assert_int_equal(p->waiting, 0);
  assert_int_equal(p->running, 0);
  assert_null(p->queue.lines);
  assert_int_equal(p->clients.count, 0);
  crew_done(&p->crew);
  clients_done(&p->clients);
  tally_free(p->tally);
  free(p->batches);
  free(p);
}

struct worker {
  struct task task;
  double until; /* INFINITY: it is idle */
};

static void begin_task(struct pool *p, struct worker *w) {
  pool_lock(p);
  while (pool_form_batch(p, p->tally)) {
  }
  w->until = pool_take_task(p, &w->task) ? now + w->task.span.work / rate : INFINITY;
  pool_unlock(p);
}

static void end_task(struct pool *p, struct worker *w) {
  struct ending ending = {0};
  pool_lock(p);
  pool_count_time(p, w->task.half, w->task.span.work / rate * 1e9 - w->task.expected);
  if (task_end_span(&w->task)) pool_advance(p, w->task.batch, &ending);
  pool_end_jobs(p, &ending);
  pool_unlock(p);
}

/* Jobs come in the order of their arrival. */
static void simulate(struct sim_job *job, size_t jobs, bool merge) {
  struct pool *p = pool_without_threads(merge);
  struct worker worker[WORKERS];
  for (size_t i = 0; i < WORKERS; i++) worker[i].until = INFINITY;
  now = 0;
  for (size_t came = 0;;) {
    struct worker *next = &worker[0];
    for (size_t i = 1; i < WORKERS; i++)
      if (worker[i].until < next->until) next = &worker[i];
    const double arrival = came < jobs ? job[came].arrives : INFINITY;
    if (arrival == INFINITY && next->until == INFINITY) break;
    if (arrival <= next->until) {
      now = arrival;
      pool_submit(p, &job[came++].job);
    } else {
      now = next->until;
      end_task(p, next);
      next->until = INFINITY;
    }
    for (size_t i = 0; i < WORKERS; i++)
      if (worker[i].until == INFINITY) begin_task(p, &worker[i]);
  }
  pool_is_empty(p);
}

/* --- the ideal round --- */

struct sim_client {
  size_t next[JOBS], count, at; /* its jobs in their order, and the one that is served */
  double left;                  /* of that one */
};

/* From event to event: a job comes, or the first one of a client ends. */
static void serve_ideally(struct sim_job *job, size_t jobs) {
  struct sim_client *client = calloc(CLIENTS, sizeof *client);
  double time = 0;
  for (size_t came = 0;;) {
    size_t active = 0;
    struct sim_client *first = NULL;
    for (size_t i = 0; i < CLIENTS; i++) {
      struct sim_client *c = &client[i];
      if (c->at == c->count) continue;
      active++;
      if (!first || c->left < first->left) first = c;
    }
    const double arrival = came < jobs ? job[came].arrives : INFINITY;
    const double share = active ? WORKERS * rate / (double)active : 0;
    const double end = first ? time + first->left / share : INFINITY;
    if (arrival == INFINITY && !first) break;
    const double until = fmin(arrival, end);
    for (size_t i = 0; i < CLIENTS; i++)
      if (client[i].at < client[i].count) client[i].left -= (until - time) * share;
    time = until;
    if (arrival <= end) {
      struct sim_client *c = &client[job[came].job.client];
      c->next[c->count++] = came;
      if (c->at + 1 == c->count) c->left = job[came].run.work;
      came++;
    } else {
      job[first->next[first->at++]].ideal = time;
      if (first->at < first->count) first->left = job[first->next[first->at]].run.work;
    }
  }
  free(client);
}

/* --- the cases --- */

static double drawn(uint64_t *state) { return (double)(draw(state) % 1000003) / 1000003; }

static double size_of(uint64_t *state, double orders) {
  return 1e7 * pow(10, orders * drawn(state));
}

static int by_arrival(const void *a, const void *b) {
  const double x = ((const struct sim_job *)a)->arrives, y = ((const struct sim_job *)b)->arrives;
  return (x > y) - (x < y);
}

/* One span may be another's; and a batch that begins is not overtaken at once, nor is one that a
 * job is a part of. */
static void all_end_in_time(struct sim_job *job, size_t jobs, bool merge, double times) {
  qsort(job, jobs, sizeof *job, by_arrival);
  for (size_t i = 0; i < jobs; i++) job[i].job.run = &job[i].run;
  serve_ideally(job, jobs);
  simulate(job, jobs, merge);
  const double more = longest_span / rate + (merge ? 2 : 1) * MERGE_WORK / rate;
  for (size_t i = 0; i < jobs; i++) {
    const double took = job[i].ends - job[i].arrives, ideal = job[i].ideal - job[i].arrives;
    if (!(took <= times * ideal + more) || job[i].job.error.status)
      fail_msg("job %zu of %g operations took %g s, ideally %g s", i, job[i].run.work, took, ideal);
  }
}

static void every_job_ends_in_time(bool merge) {
  struct sim_job *job = calloc(JOBS, sizeof *job);
  uint64_t state = 1;
  for (size_t i = 0; i < CLIENTS; i++) job_init(&job[i], i, 0, size_of(&state, 4)); /* at once */
  all_end_in_time(job, CLIENTS, merge, 2);
  for (size_t i = 0; i < JOBS; i++) { /* some clients have many */
    const size_t client = (size_t)(CLIENTS * pow(drawn(&state), 3));
    job_init(&job[i], client, 20 * drawn(&state), size_of(&state, 4));
  }
  all_end_in_time(job, JOBS, merge, 2);
  for (size_t i = 0; i < JOBS; i++) /* every other one is client 0's */
    job_init(&job[i], i % 2 ? 0 : i % 40, 6.5 * drawn(&state), i % 2 ? 3e9 : size_of(&state, 3));
  all_end_in_time(job, JOBS, merge, 3);
  free(job);
}

static void every_job_ends_within_twice_its_time(void **unused) {
  (void)unused;
  every_job_ends_in_time(false);
}

static void the_same_with_merging(void **unused) {
  (void)unused;
  every_job_ends_in_time(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_job_ends_within_twice_its_time),
      cmocka_unit_test(the_same_with_merging),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
