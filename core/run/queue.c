/* queue: the waiting jobs, by program. */
#include "core/run/queue.h"

#include <math.h>

#include "core/base/clock.h"

enum {
  READING_MOST = 10, /* a batch is full if reading is less than a tenth of computing */
  LARGE_PART = 4,    /* a job of a quarter of such a batch is large, if runs have several rounds */
  SIFT_EVERY_MS = 5, /* how often late jobs are searched */
};

/* --- what jobs cost --- */

double queue_reading(const struct queue *q, const struct program *p) {
  return (double)p->bytes * q->byte_work;
}

double queue_merge_work(const struct queue *q, const struct program *p) {
  return fmax(MERGE_WORK, READING_MOST * queue_reading(q, p));
}

double queue_left(const struct queue *q, const struct job *job) {
  const struct run *run = job->run;
  const double rounds = run->rounds > 1 ? (double)run->rounds : 1;
  return fmax(run->whole - run->had, run->work) + rounds * queue_reading(q, run->program);
}

/* --- lines --- */

/* The job of a node in one of its line's two orders. */
static struct job *job_of(struct heap_node *rank, enum half half) {
  return rank ? (struct job *)((char *)(rank - half) - offsetof(struct job, rank)) : NULL;
}

static double rank_of(const struct heap *heap) { return heap->root ? heap->root->key : INFINITY; }

double line_rank(const struct line *line, enum half half) {
  return fmin(rank_of(&line->returning[half]), rank_of(&line->order[half]));
}

static struct line **find_line(struct queue *q, const struct program *program, bool large) {
  struct line **at = &q->lines;
  while (*at && ((*at)->program != program || (*at)->large != large)) at = &(*at)->next;
  return at;
}

/* Returns whether a job is a batch by itself. In a program with rounds it need not fill a batch for
 * that: it would make each round of the jobs merged with it as long as its own. */
static bool is_large(const struct queue *q, const struct run *run) {
  const double most = queue_merge_work(q, run->program);
  return run->work >= (run->program->next_round ? fmax(MERGE_WORK, most / LARGE_PART) : most);
}

/* Returns whether a job precedes the new jobs of its line. */
static bool continues(const struct line *line, const struct job *job) {
  return job->started != 0 && !line->large;
}

void queue_add(struct queue *q, struct job *job) {
  const struct program *program = job->run->program;
  const bool large = is_large(q, job->run);
  struct line **at = find_line(q, program, large), *line = *at;
  if (!line) {
    line = *at = &job->line;
    *line = (struct line){.program = program, .large = large, .host = job};
  }
  job->rank[HALF_SHORTEST].key = queue_left(q, job);
  job->rank[HALF_ROUND].key = job->ends;
  job->rank[HALF_SHORTEST].entry = job->rank[HALF_ROUND].entry = ++q->entries;
  job->next = NULL;
  struct heap *heaps = continues(line, job) ? line->returning : line->order;
  for (enum half h = 0; h < HALVES; h++) heap_add(&heaps[h], &job->rank[h]);
  if (continues(line, job)) {
    *(line->continuing ? &line->last->next : &line->continuing) = job;
    line->last = job;
  }
  job->newer = NULL;
  job->older = q->newest;
  *(q->newest ? &q->newest->newer : &q->oldest) = job;
  q->newest = job;
  if (job->deadline && (!q->soonest || job->deadline < q->soonest)) q->soonest = job->deadline;
}

static void remove_job(struct queue *q, struct job *job) {
  struct line **at = find_line(q, job->run->program, is_large(q, job->run)), *line = *at;
  if (continues(line, job)) {
    struct job **link = &line->continuing, *before = NULL;
    for (; *link != job; link = &(*link)->next) before = *link;
    *link = job->next;
    if (line->last == job) line->last = before;
  }
  struct heap *heaps = continues(line, job) ? line->returning : line->order;
  for (enum half h = 0; h < HALVES; h++) heap_remove(&heaps[h], &job->rank[h]);
  *(job->newer ? &job->newer->older : &q->newest) = job->older;
  *(job->older ? &job->older->newer : &q->oldest) = job->newer;
  job->next = NULL;
  if (line->host != job) return;
  /* The line is stored in this job: it moves to another one, or ends. */
  struct job *to = line->continuing ? line->continuing : job_of(line->order[0].root, 0);
  if (!to) {
    *at = line->next;
    return;
  }
  to->line = *line;
  to->line.host = to;
  *at = &to->line;
}

/* --- taking --- */

struct job *queue_take(struct queue *q, struct line *line, enum half half, bool merge) {
  const struct program *program = line->program;
  const double most = queue_merge_work(q, program);
  const bool large = line->large;
  struct job *taken = NULL, **end = &taken;
  double work = 0;
  bool newcomers = false;
  do {
    /* The first job is that of the order; after it, continuing jobs precede new ones. */
    const bool returns = rank_of(&line->returning[half]) <= rank_of(&line->order[half]);
    struct job *job = line->continuing && (taken || returns) ? line->continuing
                                                             : job_of(line->order[half].root, half);
    /* Continuing jobs are added until the batch is full, and so is one new job: otherwise a larger
     * new job might wait forever while others continue. */
    const bool newcomer = job->started == 0;
    if (newcomer && newcomers && work + job->run->work > most) break;
    newcomers |= newcomer;
    work += job->run->work;
    remove_job(q, job);
    *end = job;
    end = &job->next;
    line = *find_line(q, program, large); /* it may have moved */
  } while (line && merge && !large && work < most);
  return taken;
}

struct job *queue_take_late(struct queue *q, uint64_t now) {
  struct job *late = NULL;
  if (!q->soonest || now < q->soonest || now - q->sifted < (uint64_t)SIFT_EVERY_MS * CLOCK_MS)
    return NULL;
  q->soonest = 0;
  q->sifted = now;
  for (struct job *job = q->oldest, *newer; job; job = newer) {
    newer = job->newer;
    if (job->deadline && job->deadline <= now) {
      remove_job(q, job);
      job->next = late;
      late = job;
    } else if (job->deadline && (!q->soonest || job->deadline < q->soonest)) {
      q->soonest = job->deadline;
    }
  }
  return late;
}

struct job *queue_take_all(struct queue *q) {
  struct job *all = NULL, **end = &all;
  while (q->oldest) {
    struct job *job = q->oldest;
    remove_job(q, job);
    *end = job;
    end = &job->next;
  }
  return all;
}
