/* request_parts: the record of a request, which its parts share. Private to request. */
#ifndef SERVER_REQUEST_PARTS_H
#define SERVER_REQUEST_PARTS_H

#include "server/http/request.h"
#include "server/http/request_id.h"
#include "server/watch/timeline.h"

enum request_step {
  STEP_NONE,
  STEP_LOBBY,  /* the head is judged, the body has to wait */
  STEP_BODY,   /* the head is judged, the body arrives */
  STEP_POOL,   /* given to the pool */
  STEP_ANSWER, /* the answer is queued, or the connection is being closed */
};

/* Who finds the work done: the I/O thread, or a worker that must wake the connection. */
enum request_handoff { HANDOFF_RUNNING, HANDOFF_SUSPENDED, HANDOFF_DONE };

enum { REQUEST_TIMING_SIZE = 160, REQUEST_CLIENT_SIZE = 56 };

struct request {
  struct connection connection;
  struct server *server;
  struct door *door; /* through which it came */
  struct io *io;     /* whose thread has the connection */
  struct MHD_Connection *mhd;
  enum request_step step;
  struct waiter waiter; /* in the lobby of `io` */
  enum route route;
  enum method method;
  const char *url, *word; /* path and method as sent; libmicrohttpd's */
  const char *target_end; /* of the whole target as it came */
  struct header header;
  struct error error; /* why there will be no answer but this */
  uint64_t started, submitted;
  uint64_t answered; /* when the answer was queued; 0: not yet */
  struct timeline timeline;
  uint64_t body_bytes;
  size_t answer_bytes;
  unsigned served;     /* requests of this connection that have ended */
  unsigned code;       /* of the answer; 0: none yet */
  enum status verdict; /* why it has no answer but this */
  bool holds;          /* `exchange` has begun and not ended */
  bool preflight;      /* a browser asks whether a page may ask */
  _Atomic int handoff;
  struct exchange exchange;
  char model[ROUTE_MODEL_SIZE];
  char id[REQUEST_ID_SIZE];
  char client[REQUEST_CLIENT_SIZE]; /* address, once it was asked for */
  char timing[REQUEST_TIMING_SIZE];
  char problem[REPLY_PROBLEM_SIZE];
};

/* The shard of the I/O thread, which is chosen by the descriptor. Shard 0 is for the threads that
 * are not I/O threads. */
static inline size_t request_shard(const struct request *r) {
  return r->door->first_shard + (size_t)r->connection.fd % r->door->io_threads;
}

/* Counts why a request has no answer of its own, where that is a reason that is counted: the
 * server's, or that its client left while it waited or was computed. */
void request_count_reject(struct request *r, enum status status);

/* Does the path lead to the pool? */
bool request_is_computed(const struct request *r);

/* Whatever can be said of a request before its body, as r->error. If nothing is, what is computed
 * has begun its exchange, or waits in the lobby, its connection suspended: STEP_LOBBY. */
void request_judge(struct request *r, const char *version);

/* The last part of it, for a request that leaves the lobby: begins its exchange, or r->error. */
void request_judge_computed(struct request *r);

/* Is there a place in the queue, as far as can be told before the body? If not the request waits
 * for one, once; then false is the end, in r->error. */
bool request_enters(struct request *r);

/* No model has the name in the path: says which there are, in r->error. */
void request_refuse_model(struct request *r, const struct registry *all);

/* The durations of the exchange, if there is one. */
void request_note_stages(struct request *r);

/* The request is over: its line in the access log, if that wants it. */
void request_log(struct request *r, bool sent, uint64_t nanoseconds);

/* Queue an answer: the problem, what the exchange has made, or what the route says without any
 * work. False: the connection is to be closed. */
bool request_answer_error(struct request *r, const struct error *e);
bool request_answer_exchange(struct request *r);
bool request_answer_route(struct request *r);
bool request_answer_preflight(struct request *r);

#endif
