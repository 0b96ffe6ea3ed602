/* queue: the jobs that wait, by program and size. */
#include "core/run/queue.h"

#include "core/base/clock.h"

static const double small_work = 2e6; /* of the smallest kind of newcomers */

enum {
  /* A program that goes again has few rows in each round, and reads all its matrices for them: it
   * merges so many whatever their work is. */
  MERGE_ROWS = 64,
  SIFT_EVERY_MS = 5, /* how often the queue is searched for jobs that are too late */
};

/* Of the lines of a program, in their order. Newcomers of a kind have up to four times the work of
 * the kind before. */
enum { KIND_AGAIN, KIND_NEW, KIND_NEW_LAST = KIND_NEW + 4, KIND_LARGE_AGAIN, KIND_LARGE_NEW };

/* --- lines --- */

static bool fills_batch(const struct program *program, double work, size_t rows) {
  return work >= MERGE_WORK && (!program->again || rows >= MERGE_ROWS);
}

static unsigned kind_of(const struct job *job) {
  const bool again = job->started != 0;
  if (fills_batch(job->run->program, job->run->work, job->run->rows))
    return again ? KIND_LARGE_AGAIN : KIND_LARGE_NEW;
  if (again) return KIND_AGAIN;
  unsigned kind = KIND_NEW;
  for (double most = small_work; kind < KIND_NEW_LAST && job->run->work >= most; most *= 4) kind++;
  return kind;
}

bool queue_is_large(const struct job *job) { return job->kind >= KIND_LARGE_AGAIN; }

static bool is_line(const struct job *line, const struct program *program, unsigned last_kind) {
  return line && line->run->program == program && line->kind <= last_kind;
}

/* The link to a program's first line of this kind or a later one; if it has none, to where that
 * would be. */
static struct job **find_line(struct queue *q, const struct program *program, unsigned kind) {
  struct job **link = &q->lines;
  while (*link && (*link)->run->program != program) link = &(*link)->next_line;
  while (kind > 0 && is_line(*link, program, kind - 1)) link = &(*link)->next_line;
  return link;
}

void queue_add(struct queue *q, struct job *job) {
  job->kind = kind_of(job);
  job->entry = ++q->entries;
  job->next = NULL;
  if (job->deadline && (!q->soonest || job->deadline < q->soonest)) q->soonest = job->deadline;
  struct job **line = find_line(q, job->run->program, job->kind), *first = *line;
  if (is_line(first, job->run->program, job->kind)) {
    first->last->next = job;
    first->last = job;
    return;
  }
  job->last = job;
  job->next_line = first;
  *line = job;
}

/* Unlinks the first job of a line. The line passes to the second, or ends. */
static struct job *leave_line(struct job **line) {
  struct job *job = *line, *heir = job->next;
  *line = heir ? heir : job->next_line;
  if (heir) {
    heir->last = job->last;
    heir->next_line = job->next_line;
  }
  job->next = NULL;
  return job;
}

/* --- taking --- */

struct job *queue_after(const struct job *line, bool merge) {
  struct job *next = line->next_line;
  if (merge && line->kind == KIND_AGAIN)
    while (is_line(next, line->run->program, KIND_NEW_LAST)) next = next->next_line;
  return next;
}

/* The line of the program whose turn it is to add a job to a batch. */
static struct job **choose_line(struct job **first, bool oldest) {
  struct job **chosen = first;
  if ((*first)->kind == KIND_AGAIN || !oldest) return first;
  const struct program *program = (*first)->run->program;
  for (struct job **line = first; is_line(*line, program, KIND_NEW_LAST);
       line = &(*line)->next_line)
    if ((*line)->entry < (*chosen)->entry) chosen = line;
  return chosen;
}

/* What a batch has so far. */
struct load {
  double work;
  size_t rows;
  bool newcomers;
};

/* Jobs that go again fit until the batch is full, and so does one newcomer, or a large one might
 * wait for ever beside jobs that go on and on. */
static bool load_fits(const struct load *load, const struct job *job) {
  const struct run *run = job->run;
  if (fills_batch(run->program, load->work, load->rows)) return false;
  if (!load->newcomers) return true;
  return load->work + run->work <= MERGE_WORK ||
         (run->program->again && load->rows + run->rows <= MERGE_ROWS);
}

struct job *queue_take(struct queue *q, struct job *line, bool merge, bool oldest) {
  const struct program *program = line->run->program;
  if (!merge || queue_is_large(line)) return leave_line(find_line(q, program, line->kind));
  struct job **first = find_line(q, program, KIND_AGAIN), *taken = NULL, **end = &taken;
  struct load load = {0};
  while (is_line(*first, program, KIND_NEW_LAST)) {
    struct job **chosen = choose_line(first, oldest);
    if (!load_fits(&load, *chosen)) break;
    struct job *job = leave_line(chosen);
    load.work += job->run->work;
    load.rows += job->run->rows;
    load.newcomers |= job->kind != KIND_AGAIN;
    *end = job;
    end = &job->next;
  }
  return taken;
}

/* Parts the jobs of a line whose deadline has passed from the others. False: all have left. */
static bool sift_line(struct queue *q, struct job **line, uint64_t now, struct job **late) {
  struct job *job = *line, *next, *after = job->next_line, *first = NULL, **end = &first;
  for (struct job *last = NULL; job; job = next) {
    next = job->next;
    if (job->deadline && job->deadline <= now) {
      job->next = *late;
      *late = job;
      continue;
    }
    if (job->deadline && (!q->soonest || job->deadline < q->soonest)) q->soonest = job->deadline;
    job->next = NULL;
    *end = last = job;
    end = &job->next;
    first->last = last;
  }
  *line = first ? first : after;
  if (first) first->next_line = after;
  return first != NULL;
}

struct job *queue_take_late(struct queue *q, uint64_t now) {
  struct job *late = NULL;
  if (!q->soonest || now < q->soonest || now - q->sifted < (uint64_t)SIFT_EVERY_MS * CLOCK_MS)
    return NULL;
  q->soonest = 0;
  q->sifted = now;
  for (struct job **line = &q->lines; *line;)
    if (sift_line(q, line, now, &late)) line = &(*line)->next_line;
  return late;
}

struct job *queue_take_all(struct queue *q) {
  struct job *all = NULL, **end = &all;
  while (q->lines) {
    *end = leave_line(&q->lines);
    end = &(*end)->next;
  }
  return all;
}
