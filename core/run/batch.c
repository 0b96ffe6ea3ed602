/* batch: jobs of one program that are computed together, and how their work is handed out. */
#include "core/run/batch.h"

#include <math.h>

#include "core/base/clock.h"
#include "core/base/patience.h"

static const double span_least = 2e6; /* operations; handing out less costs more than it gains */
static const double span_most = 2e7;  /* or one unit of the program, if that is more */

enum {
  SPANS_PER_WORKER = 16, /* of a batch, so that all workers end at about the same time */
  CHECK_EVERY_MS = 5,    /* how often jobs are checked, after a span */
  CHECK_LATEST_MS = 1000 /* the longest time without a check */
};

/* --- jobs --- */

void ending_add(struct ending *ending, struct job *job) {
  job->next = ending->first;
  ending->first = job;
  ending->count++;
}

void ending_give_up(struct ending *ending, struct job *chain, enum status why) {
  for (struct job *job = chain, *next; job; job = next) {
    next = job->next;
    job_give_up(job, why);
    ending_add(ending, job);
  }
}

void ending_run(struct ending *ending) {
  for (struct job *job = ending->first; job;) {
    struct job *next = job->next; /* `done` frees the job */
    job->finished = clock_now();
    job->done(job);
    job = next;
  }
}

enum status job_ask(struct job *job, uint64_t now) {
  if (job->deadline && now >= job->deadline) return STATUS_DEADLINE;
  if (!job->gone || now - job->asked < (uint64_t)CHECK_EVERY_MS * CLOCK_MS) return STATUS_OK;
  job->asked = now;
  return job->gone(job) ? STATUS_GONE : STATUS_OK;
}

void job_give_up(struct job *job, enum status why) {
  patience_tell(why, &job->error);
  atomic_store(&job->run->cancelled, true);
}

/* --- handing out --- */

/* Begins a step. The spans that are not handed out count as one task, so that the number of tasks
 * becomes zero only once all spans have been handed out and finished. */
static void begin_step(struct batch *b) {
  atomic_store(&b->tasks, run_has_units(&b->cursor));
  b->given = 0;
}

void batch_reserve(struct batch *b, const struct line *line, enum half half) {
  *b = (struct batch){
      .cursor = {.program = line->program}, .large = line->large, .half = half, .tasks = 1};
}

void batch_init(struct batch *b, struct job *jobs, double reading, size_t workers, uint64_t now) {
  const struct program *program = jobs->run->program;
  *b = (struct batch){.first = jobs,
                      .ends = INFINITY,
                      .later = INFINITY,
                      .work = reading,
                      .checked = now,
                      .large = b->large,
                      .half = b->half,
                      .next = b->next};
  for (struct job *job = jobs; job; job = job->next) {
    const double cost = job->run->work + reading;
    b->work += job->run->work;
    b->cost += cost;
    b->ends = fmin(b->ends, job->ends);
    b->later = fmin(b->later, fmax(0, job->rank[HALF_SHORTEST].key - cost));
    job->paid += cost;
  }
  const double work = b->work - reading;
  /* With several workers, a step of average length is cut for all of them: a program of many steps
   * has at least as many spans as steps. */
  const double spans = workers == 1 ? SPANS_PER_WORKER : fmax(SPANS_PER_WORKER, program->steps);
  const double share = work / ((double)workers * spans);
  b->span_work = fmin(fmax(share, span_least), span_most);
  run_begin(&b->cursor, jobs->run);
  b->spans = (size_t)(work / program->steps / b->span_work);
  begin_step(b);
}

double batch_rank(const struct batch *b, enum half half) {
  return half == HALF_ROUND ? b->ends : fmax(0, b->work - b->served) + b->later;
}

bool batch_is_computed(const struct batch *b) { return run_is_done(&b->cursor); }

bool batch_has_task(const struct batch *b) {
  return batch_is_computed(b) ? b->writing != NULL : run_has_units(&b->cursor);
}

size_t batch_tasks(const struct batch *b) {
  if (!batch_has_task(b)) return 0;
  return b->spans > b->given ? b->spans - b->given : 1;
}

bool batch_is_forgotten(const struct batch *b, uint64_t now) {
  return batch_has_task(b) && !batch_is_computed(b) && !b->checking && now > b->checked &&
         now - b->checked > (uint64_t)CHECK_LATEST_MS * CLOCK_MS;
}

void batch_cut(struct batch *b, uint64_t now, struct task *t) {
  *t = (struct task){.batch = b};
  b->given++;
  if (!batch_is_computed(b)) {
    must(run_cut(&b->cursor, b->span_work, &t->span));
    if (run_has_units(&b->cursor)) atomic_fetch_add(&b->tasks, 1);
    b->served += t->span.work;
    /* One worker at a time checks which jobs are still wanted, after its own span: until that is
     * finished, the batch stays in its step, and the chain of its jobs does not change. */
    if (b->checking || now - b->checked < (uint64_t)CHECK_EVERY_MS * CLOCK_MS) return;
    b->checked = now;
    b->checking = t->check = true;
    return;
  }
  t->job = b->writing;
  t->piece = t->job->pieces_given++;
  b->served += span_least;
  if (t->job->pieces_given == t->job->pieces) b->writing = t->job->next;
}

/* --- computing --- */

void task_run(struct task *t, void *scratch) {
  if (t->job) {
    t->job->write(t->job, t->piece);
    return;
  }
  run_span(&t->span, scratch);
  const uint64_t now = clock_now();
  for (struct job *job = t->batch->first; t->check && job; job = job->next)
    if ((job->verdict = job_ask(job, now))) t->unwanted = true;
}

bool task_end_span(const struct task *t) { return atomic_fetch_sub(&t->batch->tasks, 1) == 1; }

void task_end_check(const struct task *t) {
  t->batch->checking = false;
  for (struct job *job = t->unwanted ? t->batch->first : NULL; job; job = job->next)
    if (job->verdict && !job->error.status) job_give_up(job, job->verdict);
}

void task_end_piece(const struct task *t, struct ending *ending) {
  if (++t->job->pieces_written < t->job->pieces) return;
  t->batch->unwritten--;
  ending_add(ending, t->job);
}

/* --- from step to step --- */

/* All is computed: each job has another round, or pieces to be written, or ends. */
static void release_jobs(struct batch *b, struct ending *ending) {
  const uint64_t now = clock_now();
  struct job **continuing = &b->continuing, **writing = &b->writing;
  size_t pieces = 0;
  for (struct job *job = b->first, *next; job; job = next) {
    next = job->next;
    job->next = NULL;
    job->computed = now;
    if (!job->error.status) run_fault(job->run, &job->error);
    struct run *on = job->error.status ? NULL : run_next_round(job->run);
    if (on) {
      job->run = on;
      *continuing = job;
      continuing = &job->next;
    } else if (job->error.status || job->pieces == 0) {
      ending_add(ending, job);
    } else {
      *writing = job;
      writing = &job->next;
      pieces += job->pieces;
      b->unwritten++;
    }
  }
  b->first = NULL;
  b->spans = pieces;
}

void batch_advance(struct batch *b, struct ending *ending) {
  while (b->tasks == 0 && !batch_is_computed(b)) {
    run_next(&b->cursor);
    begin_step(b);
    if (batch_is_computed(b)) release_jobs(b, ending);
  }
}

bool batch_is_over(const struct batch *b) { return batch_is_computed(b) && b->unwritten == 0; }
