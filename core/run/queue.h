/* queue: the jobs that wait, by program. Private to the pool.
 *
 * Jobs of one program that may be merged form a line, and those that are too large for that
 * another. A line has two orders, for the two halves of the workers' time (struct ranks). Jobs that
 * go again and may be merged stand ahead of the newcomers of their line: none of them is left out
 * of a batch for a newcomer, and where not all of them fit, they take turns. Adding or taking a job
 * takes longer with the number of lines, and with the logarithm of the number of jobs. All
 * functions are called under the pool's lock. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "core/run/pool.h"

/* Operations that one batch may merge in any case, about 5 ms of one worker. */
enum { MERGE_WORK = 600000000 };

struct queue {
  struct line *lines;          /* those that have a job */
  struct job *oldest, *newest; /* of all, by job.newer and job.older */
  double byte_work;            /* as pool_options has it */
  uint64_t entries;            /* so far: numbers them */
  uint64_t soonest, sifted;    /* the soonest deadline, or one that was; when the late were taken */
};

/* What reading the matrices of a program takes, as operations. */
double queue_reading(const struct queue *q, const struct program *p);

/* The work that one batch of a program may merge: with so many rows computing outweighs reading the
 * matrices ten times. */
double queue_merge_work(const struct queue *q, const struct program *p);

/* The operations of a job that are left, were it computed alone, with the reading of matrices. */
double queue_left(const struct queue *q, const struct job *job);

/* A job that has been started goes again, any other is a newcomer. job.ends is set. */
void queue_add(struct queue *q, struct job *job);

/* The number by which a line competes for a half of the time: that of its first job. */
double line_rank(const struct line *line, enum half half);

/* Takes the first job of a line by this order; if `merge`, and the line is not one of large jobs,
 * with it all jobs of its program that fit a batch: those that go again, then newcomers in that
 * order. They are chained by job.next. */
struct job *queue_take(struct queue *q, struct line *line, enum half half, bool merge);

struct job *queue_take_late(struct queue *q, uint64_t now); /* whose deadline has passed */
struct job *queue_take_all(struct queue *q);

#endif
