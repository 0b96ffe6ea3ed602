/* request_parts: the record of a request. Private to the files request*.c. */
#ifndef SERVER_REQUEST_PARTS_H
#define SERVER_REQUEST_PARTS_H

#include "server/http/framing.h"
#include "server/watch/request_id.h"
#include "server/request/request.h"
#include "server/watch/timeline.h"

enum request_state {
  REQUEST_NONE,     /* the connection is between requests */
  REQUEST_IN_LOBBY, /* the header is checked, the body has to wait */
  REQUEST_IN_BODY,  /* the header is checked, the body arrives */
  REQUEST_IN_POOL,  /* the pool has it */
  REQUEST_STREAMED, /* the pool has it, and the answer has begun */
  REQUEST_ANSWERED, /* the answer is queued, or the connection is being closed */
};

/* Between the I/O thread and the workers: the one that finishes the work sets DONE, and resumes the
 * connection if it finds SUSPENDED; else the I/O thread finds DONE. Of a stream, news resume it,
 * too; and where its client leaves before DONE, the I/O thread sets LEFT: the record of the request
 * is the worker's then, who frees it. */
enum request_handoff { HANDOFF_RUNNING, HANDOFF_SUSPENDED, HANDOFF_DONE, HANDOFF_LEFT };

enum { REQUEST_TIMING_SIZE = 160, REQUEST_CLIENT_SIZE = 56 };

struct request {
  struct connection connection;
  struct server *server;
  struct door *door; /* through which it came */
  struct io *io;     /* whose thread has the connection */
  struct MHD_Connection *mhd;
  enum request_state state;
  struct lobby_waiter waiter; /* in the lobby of `io` */
  struct silent silent;       /* among the silent streams of `io` */
  struct model part;          /* where the path names an attention of a whole model: that one */
  enum route route;
  enum method method;
  const char *url, *method_word; /* path and method as sent, in libmicrohttpd's memory */
  struct framing_target target;  /* before libmicrohttpd has cut it */
  struct header header;
  struct error error; /* once set, this is the answer */
  uint64_t started, submitted;
  uint64_t answered; /* when the answer was queued; 0: not yet */
  struct timeline timeline;
  uint64_t body_bytes;
  size_t answer_bytes;
  unsigned served;     /* requests of this connection that have ended */
  unsigned code;       /* of the answer; 0: none yet */
  enum status verdict; /* of the answer, if it is an error; why there is none, if it is cut off */
  bool has_exchange;   /* `exchange` has begun and not ended */
  bool preflight;      /* a browser asks whether a page may send a request */
  bool asks_server;    /* OPTIONS *: what the server as a whole can do */
  bool streams;        /* the answer is a stream that has begun */
  bool left;           /* its stream was cut off while the pool has it */
  _Atomic int handoff;
  atomic_uint news; /* counts the rounds of a stream that are over */
  struct exchange exchange;
  struct route_names names; /* the model's is that of the default one, where it serves */
  char id[REQUEST_ID_SIZE];
  char client[REQUEST_CLIENT_SIZE]; /* the client's address; empty until it is needed */
  char timing[REQUEST_TIMING_SIZE];
  char problem[REPLY_ERROR_SIZE];
};

/* The shard of the request's I/O thread, in metrics and models. Shard 0 is for all threads that are
 * not I/O threads. */
static inline size_t request_shard(const struct request *r) {
  return r->door->first_shard + (size_t)r->connection.fd % r->door->io_threads;
}

/* --- request_admit --- */

/* Checks what can be checked before the body arrives. Afterwards r->error is set, or a request to
 * be computed has begun its exchange, or it waits in the lobby, suspended: REQUEST_IN_LOBBY. */
void request_admit(struct request *r, const char *version);

/* The last part of request_admit, again, for a request that leaves the lobby: begins its exchange
 * or sets r->error. */
void request_admit_computed(struct request *r);

/* Is there a place for the request in the queue, as far as can be told before the body? Without one
 * it is put into the lobby, once; the next time r->error says that the queue is full. */
bool request_has_place(struct request *r);

/* The model in the path, or the default one where the path names none. NULL with r->error set: no
 * model has the name, and those of `all` are named; or its kind has no such path. */
const struct model *request_find_model(struct request *r, const struct registry *all);

/* --- request_stream: an answer that is sent while it is computed --- */

/* Suspends the connection until the work is done, or there is more news than `seen`. */
void request_wait(struct request *r, unsigned seen);

/* There is news; and what a token took; by a worker. */
void request_note_news(struct exchange *x);
void request_note_pace(struct exchange *x, bool first, uint64_t ns);

/* A callback of libmicrohttpd: copies the part of the response that is there, up to `room` bytes.
 */
ssize_t request_read_stream(void *request, uint64_t at, char *out, size_t room);

/* --- request_answer: these queue an answer. False: the connection has to be closed. --- */

bool request_answer_error(struct request *r, const struct error *e);
bool request_answer_exchange(struct request *r);  /* what the pool has computed */
bool request_answer_stream(struct request *r);    /* a response of which a part is there */
bool request_answer_route(struct request *r);     /* of a route that is not computed */
bool request_answer_preflight(struct request *r); /* what a page may send */
bool request_answer_server(struct request *r);    /* which methods there are */

/* --- request_end --- */

/* Counts a status for which metrics have a reason of their own. */
void request_count_reject(struct request *r, enum status status);

/* Counts the tokens that a whole model has read and chosen. */
void request_count_tokens(struct request *r);

/* Copies the durations of the exchange, if there is one, into the timeline. */
void request_note_stages(struct request *r);

/* Ends the exchange, if there is one. */
void request_end_exchange(struct request *r);

#endif
