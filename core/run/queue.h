/* queue: the jobs that wait, by program and size. Private to the pool.
 *
 * Jobs of one program that are about as large form a line: first come, first served. Jobs that go
 * again have a line of their own, ahead of the newcomers': none of them is left out of a batch for
 * a newcomer, and where not all of them fit, they take turns. Adding or taking a job takes longer
 * with the number of lines, but not with the number of jobs. All functions are called under the
 * pool's lock. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "core/run/pool.h"

/* Operations that one batch may merge, about 5 ms of one worker. With so many rows, computing
 * outweighs reading the matrices even of wide layers. */
enum { MERGE_WORK = 600000000 };

struct queue {
  struct job *lines;        /* the first of each line, by job.next_line; those of a program follow
                               each other: who goes again, small newcomers, large ones */
  uint64_t entries;         /* so far: numbers them */
  uint64_t soonest, sifted; /* the soonest deadline, or one that was; when the late were taken */
};

/* A job that has been started goes again, any other is a newcomer. */
void queue_add(struct queue *q, struct job *job);

/* The lines that compete for the next batch, by their first jobs, from q->lines on; NULL: no more.
 * Where jobs are merged, the newcomers of a program of which jobs go again come along with these
 * and do not compete. */
struct job *queue_after(const struct job *line, bool merge);

/* A large job is a batch by itself. Of a job that waits, or has been taken. */
bool queue_is_large(const struct job *job);

/* Takes the first job of a line; if `merge`, and it is not large, with it all jobs of its program
 * that fit a batch: those that go again, then newcomers, the oldest or the smallest first. They are
 * chained by job.next. */
struct job *queue_take(struct queue *q, struct job *line, bool merge, bool oldest);

struct job *queue_take_late(struct queue *q, uint64_t now); /* whose deadline has passed */
struct job *queue_take_all(struct queue *q);

#endif
