/* request_stream: a response that is sent while it is computed.
 *
 * libmicrohttpd asks for more of it whenever the socket has accepted all there was. If there is
 * nothing yet, the connection is suspended, and the next round resumes it: a slow reader delays
 * only its own response, and one that waits costs nothing. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "server/request/request_parts.h"

/* --- waiting --- */

static void resume(struct request *r) {
  int suspended = HANDOFF_SUSPENDED;
  if (atomic_compare_exchange_strong(&r->handoff, &suspended, HANDOFF_RUNNING))
    io_resume(r->io, r->mhd);
}

void request_wait(struct request *r, unsigned seen) {
  MHD_suspend_connection(r->mhd);
  int running = HANDOFF_RUNNING;
  if (!atomic_compare_exchange_strong(&r->handoff, &running, HANDOFF_SUSPENDED))
    io_resume(r->io, r->mhd); /* the worker set DONE before SUSPENDED, and resumed nobody */
  else if (atomic_load(&r->news) != seen)
    resume(r); /* news that came before SUSPENDED resumed nobody */
}

void request_pace(struct exchange *x, bool first, uint64_t ns) {
  const struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  metrics_time(r->server->metrics, 0, first ? PACE_FIRST : PACE_NEXT, ns);
}

void request_news(struct exchange *x) {
  struct request *r = (struct request *)((char *)x - offsetof(struct request, exchange));
  atomic_fetch_add(&r->news, 1);
  resume(r);
}

/* A stream that is not suspended has news, and needs no comment. */
void request_speak(struct silent *w) {
  resume((struct request *)((char *)w - offsetof(struct request, silent)));
}

/* --- sending --- */

/* An empty comment, which readers of events ignore. */
static const char COMMENT[] = ": \n\n";

_Static_assert((int)REPLY_PROBLEM_SIZE <= (int)STACK_PROBLEM_MOST,
               "a stream has room for a problem");

ssize_t request_read_stream(void *of, uint64_t at, char *out, size_t room) {
  struct request *r = of;
  const struct error *e = &r->exchange.error;
  const unsigned seen = atomic_load(&r->news); /* before the look at the stream */
  const bool done = atomic_load(&r->handoff) == HANDOFF_DONE;
  (void)at;
  if (connection_is_ended(connection_enter(&r->connection, CONNECTION_ANSWER)))
    return MHD_CONTENT_READER_END_WITH_ERROR;
  if (done && e->status) {
    /* Only our own clients read events, and they look for no member `error` in a problem. */
    const enum error_form form = r->names.errors == ERROR_V1 ? ERROR_PROBLEM : r->names.errors;
    const size_t length = reply_error_text(e, form, r->problem);
    if (r->problem[length - 1] == '\n') r->problem[length - 1] = 0; /* it would end the event */
    r->verdict = e->status;
  }
  size_t bytes =
      exchange_stream(&r->exchange, done, done && e->status ? r->problem : NULL, out, room);
  if (bytes == 0 && !done && r->silent.over) {
    bytes = sizeof COMMENT - 1;
    memcpy(out, COMMENT, bytes);
  }
  silence_end(&r->io->silence, &r->silent);
  r->silent.over = false;
  r->answer_bytes += bytes;
  if (bytes > 0) return (ssize_t)bytes;
  if (done) return MHD_CONTENT_READER_END_OF_STREAM;
  connection_enter(&r->connection, CONNECTION_QUEUED);
  silence_begin(&r->io->silence, &r->silent, clock_now());
  request_wait(r, seen);
  return 0;
}
