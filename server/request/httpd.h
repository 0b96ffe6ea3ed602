/* httpd: the socket of a door. Accepts connections, gives them to the I/O threads (io.h), and
 * passes libmicrohttpd's calls to the request. */
#ifndef SERVER_HTTPD_H
#define SERVER_HTTPD_H

#include "server/http/listener.h"
#include "server/request/server.h"

struct httpd;

/* The descriptors that a door needs for all its connections. */
size_t httpd_descriptors(const struct door *d);

/* Owns the listener from now on, also after a failure. NULL with an error. */
struct httpd *httpd_new(struct door *d, const struct listener *l, struct error *e);
const char *httpd_address(const struct httpd *h); /* with the port that the system chose for 0 */

enum status httpd_start(struct httpd *h, struct error *e);

/* Accepts what waits in the backlog, then closes the listening socket. The backlog of an inherited
 * socket is left to the process that the supervisor starts next. */
void httpd_stop_accepting(struct httpd *h);

/* How many accepted connections have not reached their I/O threads yet. Until then the door's
 * connections do not include them: a caller of both functions calls this one first. */
size_t httpd_arriving(const struct httpd *h);

/* Whether every thread of the door still passes through its loop: the I/O threads, the accepting
 * one, the reaper. httpd_ask asks all; they answer within microseconds, or after the work that they
 * have begun. A door that is NULL has answered. */
void httpd_ask(struct httpd *h);
bool httpd_answered(struct httpd *h);

/* Closes all connections. None may be in phase QUEUED. `h` may be NULL. */
void httpd_free(struct httpd *h);

#endif
