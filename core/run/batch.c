/* batch: jobs of one layer that run together, and how their work is handed out. */
#include "core/run/batch.h"

#include "core/run/clock.h"

static const double span_least = 2e6; /* below this handing out costs more than it wins */
static const double span_most = 2e7;  /* a span is this, or one unit of the layer if that is more */

enum {
  SPANS_PER_WORKER = 16, /* of a batch, so that all workers end at about the same time */
  CHECK_EVERY_MS = 5,    /* how often running jobs are asked whether anyone still waits */
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
  atomic_store(&job->call->cancelled, true);
}

/* --- handing out --- */

void batch_init(struct batch *b, struct job *jobs, double work, size_t workers) {
  const double share = work / (double)(workers * SPANS_PER_WORKER);
  *b = (struct batch){.layer = jobs->layer,
                      .first = jobs,
                      .cursor = layer_begin(jobs->layer, jobs->call),
                      .span_work = share < span_least  ? span_least
                                   : share > span_most ? span_most
                                                       : share,
                      .checked = jobs->started};
  b->wide = work > b->span_work;
}

bool batch_has_task(const struct batch *b) {
  return b->cursor.phase == PHASE_DONE ? b->writing != NULL : b->cursor.call != NULL;
}

/* Time to ask the batch's jobs whether anyone still waits? One worker does, and only while a span
 * of its own keeps the batch in its phase, and so the chain of its jobs as it is. */
static bool begin_check(struct batch *b) {
  const uint64_t now = clock_now();
  if (b->checking || now - b->checked < (uint64_t)CHECK_EVERY_MS * CLOCK_MS) return false;
  b->checked = now;
  return b->checking = true;
}

void batch_cut(struct batch *b, struct task *t) {
  *t = (struct task){.batch = b};
  b->spans++;
  if (b->cursor.phase != PHASE_DONE) {
    must(layer_cut(b->layer, &b->cursor, b->span_work, &t->span));
    b->served += b->span_work;
    t->check = begin_check(b);
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
    t->job->encode(t->job, t->piece);
    return;
  }
  layer_run(t->batch->layer, &t->span, scratch);
  const uint64_t now = clock_now();
  for (struct job *job = t->batch->first; t->check && job; job = job->next)
    job->verdict = job_ask(job, now);
}

static void end_check(struct batch *b) {
  b->checking = false;
  for (struct job *job = b->first; job; job = job->next)
    if (job->verdict && !job->error.status) job_give_up(job, job->verdict);
}

static void forget_job(struct batch *b, struct job *job) {
  struct job **link = &b->first;
  while (*link != job) link = &(*link)->next;
  *link = job->next;
}

void task_finish(const struct task *t, struct ending *ending) {
  t->batch->spans--;
  if (t->check) end_check(t->batch);
  if (!t->job || ++t->job->pieces_written < t->job->pieces) return;
  forget_job(t->batch, t->job);
  ending_add(ending, t->job);
}

/* --- from phase to phase --- */

/* The answers are computed: keeps the jobs whose pieces are to be written, ends the others. */
static void begin_writing(struct batch *b, struct ending *ending) {
  const uint64_t now = clock_now();
  struct job **link = &b->first;
  size_t pieces = 0;
  while (*link) {
    struct job *job = *link;
    job->computed = now;
    if (!job->error.status) layer_fault(job->call, &job->error);
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
  while (b->spans == 0 && b->cursor.phase != PHASE_DONE && !b->cursor.call) {
    b->cursor = layer_next(b->layer, &b->cursor);
    if (b->cursor.phase == PHASE_DONE) begin_writing(b, ending);
    moved = true;
  }
  return moved && b->wide;
}

bool batch_is_over(const struct batch *b) {
  return b->cursor.phase == PHASE_DONE && !b->first && b->spans == 0;
}
