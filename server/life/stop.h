/* stop: how a server that serves comes to rest.
 *
 * The order: /readyz says 503 and each answer closes its connection, so that after drain_delay_ms
 * clients hold only idle connections; the backlog is accepted and the main listening socket closed;
 * open connections get no further requests through; requests that were accepted are answered; what
 * stops to arrive is refused, as is all that has not arrived when drain_ms has passed; idle
 * connections are closed; the pool is closed. The admin door stays open meanwhile and closes last.
 */
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

/* Brings the main door and the pool to rest. Returns the exit status: 0, or 3 if a request that had
 * arrived whole was cut off. `*at_once`: threads are still at work, so nothing may be freed. */
int stop_serving(struct stop *s, struct httpd *h, bool *at_once);

/* Closes the admin door. A probe that has been accepted is still answered. */
void stop_admin(struct stop *s, struct httpd *h);

/* The longest time that stop_serving and stop_admin take together. */
uint64_t stop_longest_ms(const struct config *c);

#endif
