/* pool_form: which of the jobs that wait become a batch, and when. */
#include "core/run/pool_parts.h"

/* Of a program whose runs go again, is a batch under way that those that wait may join in its next
 * round? Two batches side by side would never meet, and read every matrix twice. */
static bool may_be_joined(const struct pool *p, const struct program *program) {
  if (!p->options.merge || !program->again) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->cursor.program == program && !b->large && !batch_is_computed(b)) return true;
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
 * and on does not hold up the others. NULL: none may go now. */
static struct job *next_line(const struct pool *p, bool oldest) {
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
static bool is_time_to_form(const struct pool *p) {
  if (!p->queue.lines || !p->free) return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->served < MERGE_WORK && batch_has_task(b)) return false;
  return true;
}

bool pool_may_form(const struct pool *p) { return is_time_to_form(p) && next_line(p, false); }

void pool_expire(struct pool *p) {
  struct ending ending = {0};
  struct job *late = p->queue.lines ? queue_take_late(&p->queue, p->now) : NULL;
  if (!late) return;
  count_newcomers(p, late);
  ending_give_up(&ending, late, STATUS_DEADLINE);
  pool_end_jobs(p, &ending);
}

void pool_advance(struct pool *p, struct batch *b, struct ending *ending) {
  batch_advance(b, ending);
  for (struct job *job = b->again, *next; job; job = next) {
    next = job->next;
    queue_add(&p->queue, job);
  }
  b->again = NULL;
  if (batch_is_over(b)) release_batch(p, b);
}

bool pool_form_batch(struct pool *p, struct tally *tally) {
  if (!is_time_to_form(p)) return false;
  const bool oldest = ++p->formed % POOL_OLDEST_EVERY == 0;
  struct job *line = next_line(p, oldest);
  if (!line) return false;
  struct ending ending = {0};
  const struct program *program = line->run->program;
  struct batch *b = reserve_batch(p, line);
  struct job *jobs = queue_take(&p->queue, line, p->options.merge, oldest);
  count_newcomers(p, jobs);
  pool_unlock(p);
  struct wanted wanted = chain_wanted(jobs, &ending);
  pool_lock(p);
  if (p->closed) {
    ending_give_up(&ending, wanted.first, STATUS_DRAINING);
    wanted.first = NULL;
  }
  if (wanted.first) {
    pool_count(tally, program, wanted.count, wanted.rows);
    batch_init(b, wanted.first, wanted.work, p->options.workers, p->now);
    b->turn = p->handed_out;
    pool_advance(p, b, &ending); /* there may be nothing to compute */
  } else {
    release_batch(p, b);
  }
  pool_end_jobs(p, &ending);
  return true;
}
