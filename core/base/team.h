/* team: threads that share out work that comes once, such as the loading of models.
 *
 * There are two kinds of work. Jobs are dealt out in their order, one to each member that has none.
 * A large job waits for its turn, of which there is one, and cuts itself into pieces: members that
 * have no job, and those that wait for their own turn, take pieces. So many small jobs are done
 * side by side, and of large ones, which need much memory, one after the other, each by all.
 *
 * A thread knows its team: what is called within a job need not be given it. team_split does all
 * pieces on the calling thread if that has no team, or not the turn. */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#include "core/base/status.h"

struct team;

/* A team of so many threads, the caller of team_each among them; where the system refuses to start
 * one, of fewer. tick(of) is called on any of them, behind each piece and each job. NULL: no
 * memory. */
struct team *team_new(size_t threads, void (*tick)(void *of), void *of);
void team_free(struct team *t);

/* Does the job of each index. As if they were done one after the other, the error is that of the
 * first that fails; of those behind it some may have been done. The threads end before this
 * returns. */
enum status team_each(struct team *t, size_t count,
                      enum status (*job)(void *of, size_t index, struct error *e), void *of,
                      struct error *e);

/* Within a job: waits for the turn, and gives it back. Nothing on a thread without a team. */
void team_turn_begin(void);
void team_turn_end(void);

/* Does all pieces, in any order and side by side; the error is that of the first that fails, as
 * above. A piece splits nothing. */
enum status team_split(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                       void *of, struct error *e);

/* Likewise, but on the calling thread and in their order. */
enum status team_row(size_t count, enum status (*piece)(void *of, size_t index, struct error *e),
                     void *of, struct error *e);

#endif
