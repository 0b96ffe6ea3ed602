/* batch: jobs of one program that are computed together, and how their work is handed out. */
#include "core/run/batch.h"

#include "core/run/clock.h"

static const double span_least = 2e6; /* below this handing out costs more than it wins */
static const double span_most = 2e7;  /* or one unit of the program, if that is more */

enum {
  SPANS_PER_WORKER = 16, /* of a batch, so that all workers end at about the same time */
  CHECK_EVERY_MS = 5,    /* how often running jobs are asked whether they are still wanted */
};

/* --- jobs --- */

void ending_add(struct ending *ending, struct job *job) {
  job->next = ending->first;
  ending->first = job;
  ending->count++;
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
  return job->gone && job->gone(job) ? STATUS_GONE : STATUS_OK;
}

void job_give_up(struct job *job, enum status why) {
  const char *words = why == STATUS_DEADLINE   ? "the deadline has passed"
                      : why == STATUS_DRAINING ? "the server is stopping"
                                               : "the client has left";
  error_set(&job->error, why, "%s", words);
  atomic_store(&job->run->cancelled, true);
}

/* --- handing out --- */

void batch_init(struct batch *b, struct job *jobs, double work, size_t workers) {
  const double share = work / (double)(workers * SPANS_PER_WORKER);
  const struct program *program = jobs->run->program;
  *b = (struct batch){.program = program,
                      .first = jobs,
                      .cursor = program->begin(program, jobs->run),
                      .span_work = share < span_least  ? span_least
                                   : share > span_most ? span_most
                                                       : share,
                      .checked = jobs->started};
  b->wide = work > b->span_work;
}

bool batch_is_computed(const struct batch *b) { return b->cursor.phase == b->program->phases; }

bool batch_has_task(const struct batch *b) {
  return batch_is_computed(b) ? b->writing != NULL : b->cursor.run != NULL;
}

/* Is it time to ask which jobs are still wanted? One worker asks at a time, after a span of its
 * own: until that is finished the batch stays in its phase, and the chain of its jobs as it is. */
static bool check_is_due(struct batch *b) {
  const uint64_t now = clock_now();
  if (b->checking || now - b->checked < (uint64_t)CHECK_EVERY_MS * CLOCK_MS) return false;
  b->checked = now;
  return b->checking = true;
}

void batch_cut(struct batch *b, struct task *t) {
  *t = (struct task){.batch = b};
  b->tasks++;
  if (!batch_is_computed(b)) {
    must(b->program->cut(b->program, &b->cursor, b->span_work, &t->span));
    b->served += b->span_work;
    t->check = check_is_due(b);
    return;
  }
  t->job = b->writing;
  t->piece = t->job->pieces_given++;
  b->served += span_least;
  if (t->job->pieces_given == t->job->pieces) b->writing = t->job->next;
}

/* --- doing it --- */

void task_run(const struct task *t, void *scratch) {
  if (t->job) {
    t->job->write(t->job, t->piece);
    return;
  }
  t->batch->program->compute(t->batch->program, &t->span, scratch);
  const uint64_t now = clock_now();
  for (struct job *job = t->batch->first; t->check && job; job = job->next)
    job->verdict = job_ask(job, now);
}

static void give_up_unwanted(struct batch *b) {
  b->checking = false;
  for (struct job *job = b->first; job; job = job->next)
    if (job->verdict && !job->error.status) job_give_up(job, job->verdict);
}

static void unlink_job(struct batch *b, struct job *job) {
  struct job **link = &b->first;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
}

void task_finish(const struct task *t, struct ending *ending) {
  t->batch->tasks--;
  if (t->check) give_up_unwanted(t->batch);
  if (!t->job || ++t->job->pieces_written < t->job->pieces) return;
  unlink_job(t->batch, t->job);
  ending_add(ending, t->job);
}

/* --- from phase to phase --- */

/* All is computed: jobs whose pieces are to be written stay in the batch, the others end. */
static void begin_writing(struct batch *b, struct ending *ending) {
  const uint64_t now = clock_now();
  struct job **link = &b->first;
  size_t pieces = 0;
  while (*link) {
    struct job *job = *link;
    job->computed = now;
    if (!job->error.status) run_fault(job->run, &job->error);
    if (job->error.status || job->pieces == 0) {
      *link = job->next;
      ending_add(ending, job);
    } else {
      pieces += job->pieces;
      link = &job->next;
    }
  }
  b->writing = b->first;
  b->wide = pieces > 1;
}

bool batch_advance(struct batch *b, struct ending *ending) {
  bool moved = false;
  while (b->tasks == 0 && !batch_is_computed(b) && !b->cursor.run) {
    b->cursor = b->program->next(b->program, &b->cursor);
    if (batch_is_computed(b)) begin_writing(b, ending);
    moved = true;
  }
  return moved && b->wide;
}

bool batch_is_over(const struct batch *b) {
  return batch_is_computed(b) && !b->first && b->tasks == 0;
}
