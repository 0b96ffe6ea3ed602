/* request: one HTTP request at a time on a connection, from its header to the end of its response.
 *
 * The record is made with the connection and used again for each of its requests, so that a request
 * costs no allocation of its own. It belongs to the connection's I/O thread. Between
 * exchange_submit and `done` its exchange belongs to the pool; of a stream the I/O thread sends
 * meanwhile what there is (enum request_handoff has the rule). request_end releases what a request
 * holds; if the client has left while the pool had the exchange, the worker does (hand_back).
 *
 * request.c receives it, request_admit.c checks it before its body, request_answer.c queues its
 * response, request_stream.c sends a response while it is computed, request_end.c counts and logs
 * it. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "server/http/header.h"
#include "server/http/io.h"
#include "server/http/reply.h"
#include "server/request/server.h"

struct request;

/* Called when the connection is opened and closed. request_open returns NULL: no memory. */
struct request *request_open(struct door *d, struct io *io, struct MHD_Connection *c, int fd);
void request_close(struct request *r);

/* Called by the lobby's thread: the waiter is out of the line, and its request continues. */
void request_end_wait(struct lobby_waiter *w);

/* Called when a stream has been silent for as long as it may: it sends a comment. */
void request_speak(struct silent *stream);

/* Called when the client sends no more. */
void request_client_ended(struct request *r);

/* Called when the request line has arrived, with its target before libmicrohttpd cuts it. */
void request_target(struct request *r, const char *target);

/* The three kinds of call of libmicrohttpd's handler: the header is complete; a part of the body
 * has arrived; the body has ended, or the connection was resumed. False: the connection has to be
 * closed. */
bool request_header(struct request *r, const char *url, const char *method, const char *version);
bool request_body(struct request *r, const char *bytes, size_t size);
bool request_continue(struct request *r);

/* The request is over: its response was sent to the last byte (`sent`), or cut off. */
void request_end(struct request *r, bool sent);

#endif
