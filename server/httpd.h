/* httpd: the socket. Accepts connections, hands them to the I/O threads (io.h), and passes
 * libmicrohttpd's calls on to the request. */
#ifndef SERVER_HTTPD_H
#define SERVER_HTTPD_H

#include "config/address.h"
#include "server/server.h"

struct httpd;

/* Descriptors that a server needs for so many connections, beside those that it has already. */
size_t httpd_descriptors(const struct config *c, size_t io_threads);

/* Binds the address. NULL with an error: STATUS_CONFIG or STATUS_SYSTEM. */
struct httpd *httpd_new(struct server *s, const struct address *a, struct error *e);
const char *httpd_address(const struct httpd *h); /* with the real port */

enum status httpd_start(struct httpd *h, struct error *e);

/* Accepts what waits in the backlog, then closes the listening socket. */
void httpd_stop_accepting(struct httpd *h);

/* Closes all connections. None may be in phase QUEUED. NULL is fine. */
void httpd_free(struct httpd *h);

#endif
