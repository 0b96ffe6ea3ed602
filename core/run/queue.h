/* queue: the waiting jobs, by program. Private to the pool.
 *
 * The jobs of one program that may be merged form a line, and its jobs that are too large for that
 * form another. A line has two orders, for the two halves of the workers' time (enum half).
 * Continuing jobs, whose runs have another round, precede the new jobs of their line if they may be
 * merged: none is left out of a batch for a new job, and if not all fit, they take turns. Adding or
 * removing a job takes time proportional to the number of lines, and to the logarithm of the number
 * of jobs. All functions are called under the pool's lock. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "core/run/pool.h"

/* Operations that one batch may merge in any case: about 5 ms of one worker. */
enum { MERGE_WORK = 600000000 };

struct queue {
  struct line *lines;          /* lines that have a job */
  struct job *oldest, *newest; /* of all jobs, by job.newer and job.older */
  double byte_work;            /* as in struct pool_options */
  uint64_t entries;            /* how many jobs were added so far */
  uint64_t soonest;            /* the earliest deadline, or that of a job that left */
  uint64_t sifted;             /* when late jobs were last removed */
};

/* Operations in the time in which the matrices of a program are read. */
double queue_reading(const struct queue *q, const struct program *p);

/* The work that one batch of a program may merge: with more, computing the rows takes over ten
 * times as long as reading the matrices. */
double queue_merge_work(const struct queue *q, const struct program *p);

/* The operations that a job has left if computed alone, including the reading of matrices. */
double queue_left(const struct queue *q, const struct job *job);

/* Adds a job, whose `ends` is set. A job that has been started is a continuing one. */
void queue_add(struct queue *q, struct job *job);

/* The number by which a line competes for a half of the time: that of its first job. */
double line_rank(const struct line *line, enum half half);

/* Removes the first job of a line in this order; with `merge`, unless the line is one of large
 * jobs, also all jobs of its program that fit in a batch: continuing ones, then new ones in this
 * order. Returns them chained by job.next. */
struct job *queue_take(struct queue *q, struct line *line, enum half half, bool merge);

/* Remove the jobs whose deadline has passed, or all jobs; chained by job.next, NULL: none. */
struct job *queue_take_late(struct queue *q, uint64_t now);
struct job *queue_take_all(struct queue *q);

#endif
