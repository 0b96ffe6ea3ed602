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
  size_t units, rounds; /* of the job that are left */
  double arrives, ends, ideal;
};

static double now; /* seconds */

/* --- a program of one step --- */

static struct sim_job *sim_of(struct run *run) {
  return (struct sim_job *)((char *)run - offsetof(struct sim_job, run));
}

static bool next_unit(const struct step *s, struct cursor *at, struct unit *u) {
  (void)s;
  return at->row++ < sim_of(u->run)->units;
}

static double unit_work(const struct step *s, const struct unit *u) {
  (void)s;
  return u->run->work / (double)sim_of(u->run)->units;
}

static bool has_another_round(const struct program *p, struct run *run) {
  (void)p;
  run->rounds = --sim_of(run)->rounds;
  return run->rounds > 0;
}

static const struct step step = {.unit = next_unit, .work = unit_work};
static const struct step *const steps[] = {&step};
static const struct program program = {.step = steps, .steps = 1};
static const struct program rounds_program = {.step = steps,
                                              .steps = 1,
                                              .next_round = has_another_round};

static void note_end(struct job *job) { ((struct sim_job *)job)->ends = now; }

static void job_init(struct sim_job *s, uint64_t client, double arrives, double work) {
  *s = (struct sim_job){.units = (size_t)ceil(work / unit_least), .arrives = arrives};
  s->run = (struct run){.program = &program, .work = work, .rows = 1};
  s->job = (struct job){.run = &s->run, .client = client, .done = note_end};
}

static void give_rounds(struct sim_job *s, size_t rounds) {
  s->rounds = s->run.rounds = rounds;
  s->run.whole = s->run.work * (double)rounds;
  s->run.program = &rounds_program;
}

/* --- the pool, and its workers --- */

static struct pool *pool_without_threads(size_t workers, bool merge) {
  enum { BATCHES = 1200 };
  struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
  *p = (struct pool){.options = {.workers = workers, .max_queue = JOBS, .merge = merge}};
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->idle, NULL);
  p->batches = calloc(BATCHES, sizeof *p->batches);
  for (size_t i = 0; i < BATCHES; i++) {
    p->batches[i].next = p->free;
    p->free = &p->batches[i];
  }
  p->now = UINT64_MAX / 2; /* no clock ticks: nobody is asked whether jobs are still wanted */
  p->tally = tally_new(1);
  assert_true(crew_init(&p->crew, workers) && clients_init(&p->clients));
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
static void simulate(struct sim_job *job, size_t jobs, size_t workers, bool merge) {
  struct pool *p = pool_without_threads(workers, merge);
  struct worker worker[WORKERS];
  for (size_t i = 0; i < workers; i++) worker[i].until = INFINITY;
  now = 0;
  for (size_t came = 0;;) {
    struct worker *next = &worker[0];
    for (size_t i = 1; i < workers; i++)
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
    for (size_t i = 0; i < workers; i++)
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
  simulate(job, jobs, WORKERS, merge);
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

/* More jobs go from round to round than a batch holds, so that some always wait. One that has ended
 * leaves nothing of its rank there: a job of another client and program comes in its turn. */
static void jobs_that_return_keep_no_rank_of_one_that_ended(void **unused) {
  enum { MANY = 30, ALL = MANY + 3 };
  (void)unused;
  for (int small = 0; small < 2; small++) {
    struct sim_job job[ALL];
    for (size_t i = 0; i < MANY; i++) job_init(&job[i], 1, 0, 2e7), give_rounds(&job[i], 30000);
    job_init(&job[MANY], 3, 0.1, 2e7), give_rounds(&job[MANY], 10000);
    job_init(&job[MANY + 1], 2, 0.4, 2e7), give_rounds(&job[MANY + 1], 20);
    job_init(&job[MANY + 2], 5, 6, small ? 1e9 : 1e10);
    simulate(job, ALL, 1, true);
    const double alone = small ? 0.01 : 0.1;
    assert_true(job[MANY + 2].ends - 6 <= 4 * alone + 2 * MERGE_WORK / rate);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_job_ends_within_twice_its_time),
      cmocka_unit_test(the_same_with_merging),
      cmocka_unit_test(jobs_that_return_keep_no_rank_of_one_that_ended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
