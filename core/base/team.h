/* team: threads that share out work that is done once, such as loading models.
 *
 * There are two kinds of work. Jobs are dealt out in order, one to each member without a job. A
 * large job waits for the turn, which one job has at a time, and cuts itself into pieces: members
 * without a job, and those that wait for the turn, take pieces. So small jobs are done in parallel,
 * and large ones, which need much memory, one after the other, each by all members.
 *
 * A thread knows its team, so functions called within a job need no argument for it. team_split
 * does all pieces on the calling thread if that has no team, or not the turn. */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#include "core/base/status.h"

struct team;

/* Makes a team of `threads` threads, the caller of team_each among them; of fewer if the system
 * refuses to start one. tick(of) is called on any of them, after each piece and each job. NULL: no
 * memory. */
struct team *team_new(size_t threads, void (*tick)(void *of), void *of);
void team_free(struct team *t);

/* Does the job of each index. The error is that of the first one that fails, as if they were done
 * one after the other; some of the jobs after it may have been done. The threads end before this
 * returns. Returns e->status. */
enum status team_each(struct team *t, size_t count,
                      enum status (*job)(void *of, size_t index, struct error *e), void *of,
                      struct error *e);

/* Within a job: wait for the turn, and end it. They do nothing on a thread without a team. */
void team_turn_begin(void);
void team_turn_end(void);

/* Does all pieces, in any order and in parallel. The error is that of the first one that fails, as
 * above. A piece must not call team_split. Returns e->status. */
enum status team_split(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                       void *of, struct error *e);

/* Does all pieces on the calling thread, in order, until one fails. Returns e->status. */
enum status team_row(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                     void *of, struct error *e);

#endif
