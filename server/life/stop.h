/* stop: how a server that serves comes to rest.
 *
 * The order: readiness says 503 and each answer ends its connection, so that by the end of
 * drain_delay_ms none is kept that is in use; the backlog is accepted and the main listening socket
 * closed; kept connections get no further work in; what was accepted is answered; idle connections
 * are ended; the pool takes no more. The admin door stays open meanwhile, and closes last. */
#ifndef SERVER_STOP_H
#define SERVER_STOP_H

#include "server/http/httpd.h"
#include "server/life/watchdog.h"

/* A stop on its way: a second signal ends all waiting. */
struct stop {
  struct server *server;
  struct watchdog *watchdog;
  int second; /* the second signal, or 0 */
};

/* Waits a moment, or until a signal. */
void stop_step(struct stop *s);

/* Brings the main door and the pool to rest. Returns the exit status: 0, or 3 if work was
 * abandoned. `*at_once`: threads still work, so nothing may be freed. */
int stop_serving(struct stop *s, struct httpd *h, bool *at_once);

/* The admin door: a probe that is here still has its answer. */
void stop_admin(struct stop *s, struct httpd *h);

/* The longest that stop_serving and stop_admin take, in ms. */
uint64_t stop_longest_ms(const struct config *c);

#endif
