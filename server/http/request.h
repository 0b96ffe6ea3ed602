/* request: one HTTP request at a time on a connection, from its head to the end of its answer.
 *
 * The record is made with the connection and used again for each of its requests, so that a
 * request costs no allocation of its own. It belongs to the connection's I/O thread, except between
 * exchange_submit and the call of its `done`, when it belongs to the pool. What a request holds is
 * given back in one place, request_end. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "server/http/header.h"
#include "server/http/io.h"
#include "server/http/reply.h"
#include "server/http/server.h"

struct request;

/* With the connection; NULL if memory runs out. */
struct request *request_open(struct door *d, struct io *io, struct MHD_Connection *c, int fd);
void request_close(struct request *r);

/* Its turn has come: the request with this waiter goes on. */
void request_called(struct waiter *w);

/* The client sends no more. */
void request_client_ended(struct request *r);

/* The request line has arrived: its target, before libmicrohttpd cuts it. */
void request_target(struct request *r, const char *target);

/* The three calls of libmicrohttpd's handler. False: the connection is to be closed. */
bool request_head(struct request *r, const char *url, const char *method, const char *version);
bool request_body(struct request *r, const char *bytes, size_t size);
bool request_rest(struct request *r); /* the body has ended, or the connection was resumed */

/* The request is over: its answer was sent to the last byte, or it was cut off on the way. */
void request_end(struct request *r, bool sent);

#endif
