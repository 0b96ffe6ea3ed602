/* httpd: the socket of a door. Accepts connections, hands them to the I/O threads (io.h), and
 * passes libmicrohttpd's calls on to the request. */
#ifndef SERVER_HTTPD_H
#define SERVER_HTTPD_H

#include "server/http/listener.h"
#include "server/http/server.h"

struct httpd;

/* Descriptors that a door needs for all its connections. */
size_t httpd_descriptors(const struct door *d);

/* Takes the listener, always. NULL with an error. */
struct httpd *httpd_new(struct door *d, const struct listener *l, struct error *e);
const char *httpd_address(const struct httpd *h); /* with the real port */

enum status httpd_start(struct httpd *h, struct error *e);

/* Accepts what waits in the backlog, then closes the listening socket. One that is inherited keeps
 * what waits in it, for whoever is started next. */
void httpd_stop_accepting(struct httpd *h);

/* Are connections that were accepted on their way to their I/O threads, known to nobody else? */
bool httpd_hands_on(struct httpd *h);

/* Does every thread of the door still turn: those that read and write, the one that accepts, the
 * reaper? They answer some microseconds after they were asked, or when they have done what they do.
 * NULL: nothing is asked, and that is answered. */
void httpd_ask(struct httpd *h);
bool httpd_answered(struct httpd *h);

/* Closes all connections. None may be in phase QUEUED. NULL is fine. */
void httpd_free(struct httpd *h);

#endif
