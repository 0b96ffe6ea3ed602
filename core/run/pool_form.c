/* pool_form: which of the jobs that wait become a batch, and when. */
#include "core/run/pool_parts.h"

/* Is a batch of a program under way whose end those that wait for the program should await, to go
 * on or to begin together? Two batches side by side would never meet, and read every matrix twice.
 * Where reading costs little, workers that have nothing else to do had better begin. */
static bool should_wait(const struct pool *p, const struct line *line) {
  if (!p->options.merge || line->large) return false;
  if (!line->program->again && queue_merge_work(&p->queue, line->program) <= MERGE_WORK)
    return false;
  for (const struct batch *b = p->active; b; b = b->next)
    if (b->cursor.program == line->program && !b->large && !batch_is_computed(b)) return true;
  return false;
}

/* The line whose jobs are the next batch: the first one in a half, if it comes before all batches
 * under way that have something to hand out. NULL: there is none. Where these have nothing, as many
 * large jobs are begun as there are workers: more would only slow each other down. */
static struct line *next_line(const struct pool *p, enum half half) {
  if (!p->queue.lines || !p->free) return NULL;
  for (const struct batch *b = p->active; b; b = b->next)
    if (pool_is_beginning(b) && batch_has_task(b)) return NULL;
  const struct batch *first = pool_first_batch(p, half);
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
    wanted.rows += job->run->rows;
    wanted.count++;
  }
  return wanted;
}

/* A batch for the jobs of this line, already among those that are under way. */
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

bool pool_may_form(const struct pool *p) { return next_line(p, pool_turn(p)); }

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
  if (batch_is_computed(b)) pool_tell_clients(p, b, b->cost);
  for (struct job *job = b->again, *next; job; job = next) {
    next = job->next;
    if (job->paid > job->cost) { /* it takes longer than it seemed */
      clients_correct(&p->clients, job->client, job->paid - job->cost);
      job->ends += job->paid - job->cost;
      job->cost = job->paid;
    }
    queue_add(&p->queue, job);
  }
  b->again = NULL;
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
    batch_init(b, wanted.first, queue_reading(&p->queue, program), p->options.workers, p->now);
    pool_advance(p, b, &ending); /* there may be nothing to compute */
  } else {
    release_batch(p, b);
  }
  pool_end_jobs(p, &ending);
  return true;
}
