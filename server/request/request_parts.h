/* request_parts: the record of a request. Private to the files request*.c. */
#ifndef SERVER_REQUEST_PARTS_H
#define SERVER_REQUEST_PARTS_H

#include "server/http/framing.h"
#include "server/request/request.h"
#include "server/watch/request_id.h"
#include "server/watch/timeline.h"

enum request_state {
  REQUEST_NONE,     /* the connection is between requests */
  REQUEST_IN_LOBBY, /* the header is checked, the body has to wait */
  REQUEST_IN_BODY,  /* the header is checked, the body arrives */
  REQUEST_IN_POOL,  /* the pool has it */
  REQUEST_STREAMED, /* the pool has it, and the response has begun */
  REQUEST_ANSWERED, /* the response is queued, or the connection is being closed */
};

/* The handoff between the I/O thread and the workers: the worker that finishes the work sets DONE,
 * and resumes the connection if it finds SUSPENDED; else the I/O thread finds DONE. News of a
 * stream resume it, too. If the client of a stream leaves before DONE, the I/O thread sets LEFT:
 * then the worker owns the record of the request, and frees it. */
enum request_handoff { HANDOFF_RUNNING, HANDOFF_SUSPENDED, HANDOFF_DONE, HANDOFF_LEFT };

enum { REQUEST_TIMING_SIZE = 160, REQUEST_CLIENT_SIZE = 56 };

struct request {
  struct connection connection;
  struct server *server;
  struct door *door;
  struct io *io; /* its thread has the connection */
  struct MHD_Connection *mhd;
  enum request_state state;
  struct lobby_waiter waiter; /* in the lobby of `io` */
  struct silent silent;       /* among the silent streams of `io` */
  struct model part;          /* the attention of a model that the path names, if it names one */
  enum route route;
  enum method method;
  const char *url, *method_word; /* path and method as sent, in libmicrohttpd's memory */
  struct framing_target target;  /* before libmicrohttpd has cut it */
  struct header header;
  struct error error; /* once set, this is the response */
  uint64_t started, submitted;
  uint64_t answered; /* the time at which the response was queued; 0: not yet */
  struct timeline timeline;
  uint64_t body_bytes;
  size_t answer_bytes; /* bytes of the response's body */
  unsigned served;     /* requests of this connection that have ended */
  unsigned code;       /* the HTTP status; 0: no response yet */
  enum status verdict; /* the error that is sent, or the reason why the response is cut off */
  bool has_exchange;   /* `exchange` has begun and not ended */
  bool preflight;      /* a browser asks whether a page may send a request */
  bool asks_server;    /* OPTIONS *: the methods of the server as a whole */
  bool streams;        /* the response is a stream that has begun */
  bool left;           /* its stream was cut off while the pool has it */
  _Atomic int handoff;
  atomic_uint news; /* counts the rounds of a stream that are over */
  struct exchange exchange;
  struct route_names names; /* once the model is found, `model` has its name, also of the default */
  char id[REQUEST_ID_SIZE];
  char client[REQUEST_CLIENT_SIZE]; /* the client's address; empty until it is needed */
  char timing[REQUEST_TIMING_SIZE];
  char problem[REPLY_ERROR_SIZE];
};

/* The shard of the request's I/O thread, in metrics and models. All threads that are not I/O
 * threads share shard 0. */
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

/* Whether there is a place for the request in the queue, as far as is known before the body. If
 * not, it is put into the lobby, once; the next time r->error says that the queue is full. */
bool request_has_place(struct request *r);

/* The model in the path, or the default one if the path names none. NULL with r->error set: no
 * model has the name, and the error lists the names of `all`; or its kind has no such path. */
const struct model *request_find_model(struct request *r, const struct registry *all);

/* --- request_stream: a response that is sent while it is computed --- */

/* Suspends the connection until the work is done, or there is more news than `seen`. */
void request_wait(struct request *r, unsigned seen);

/* Callbacks of the exchange, on a worker: a part of the stream is new; a token took `ns`. */
void request_news(struct exchange *x);
void request_pace(struct exchange *x, bool first, uint64_t ns);

/* A callback of libmicrohttpd: copies the part of the response that is there, up to `room` bytes.
 */
ssize_t request_read_stream(void *request, uint64_t at, char *out, size_t room);

/* --- request_answer: these queue a response. False: the connection has to be closed. --- */

bool request_answer_error(struct request *r, const struct error *e);
bool request_answer_exchange(struct request *r);  /* the result of the pool */
bool request_answer_stream(struct request *r);    /* a response of which a part is there */
bool request_answer_route(struct request *r);     /* for a route that is not computed */
bool request_answer_preflight(struct request *r); /* the methods and fields that a page may send */
bool request_answer_server(struct request *r);    /* the methods of the server */

/* --- request_end --- */

/* Counts a status that has a reason of its own in the metrics. */
void request_count_reject(struct request *r, enum status status);

/* Counts the tokens that a model has read and generated. */
void request_count_tokens(struct request *r);

/* Copies the durations of the exchange, if there is one, into the timeline. */
void request_set_stages(struct request *r);

/* Ends the exchange, if there is one. */
void request_end_exchange(struct request *r);

#endif
