/* stop: the shutdown of a server that serves.
 *
 * The order: /readyz is 503 and each response closes its connection, so that after drain_delay_ms
 * clients hold only idle connections; the backlog is accepted and the main listening socket closed;
 * open connections accept no further requests; requests that were accepted get their responses;
 * requests that stop arriving are rejected, as are all that are incomplete when drain_ms has
 * passed; idle connections are closed; the pool is closed. The admin door is open until then and
 * closes last. */
#ifndef SERVER_STOP_H
#define SERVER_STOP_H

#include "server/life/supervisor.h"
#include "server/request/httpd.h"

/* A stop under way. A second signal ends all waiting. */
struct stop {
  struct server *server;
  struct supervisor *supervisor;
  int second; /* the second signal, or 0 */
};

/* Waits some milliseconds, or until a signal; keeps the watchdog quiet. */
void stop_wait(struct stop *s);

/* Stops the main door and the pool. Returns the exit status: 0, or 3 if a complete request was cut
 * off. `*at_once`: threads are still at work, so nothing may be freed. */
int stop_serving(struct stop *s, struct httpd *h, bool *at_once);

/* Closes the admin door. A probe that has been accepted still gets its response. */
void stop_admin(struct stop *s, struct httpd *h);

/* The longest time that stop_serving and stop_admin take together. */
uint64_t stop_longest_ms(const struct config *c);

#endif
