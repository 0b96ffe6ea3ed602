/* server: what all connections of the process share. Made by serve, used by every I/O thread. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/http/connection.h"
#include "server/http/cors.h"
#include "server/http/door.h"
#include "server/http/page.h"
#include "server/service/exchange.h"
#include "server/watch/log.h"
#include "server/watch/metrics.h"

struct server {
  const struct config *config;
  struct service service;
  struct log *log;
  struct metrics *metrics;
  struct cors *cors; /* NULL: off */
  struct page page;
  struct door door[DOOR_COUNT];
  uint32_t id_prefix;   /* of request identifiers; random */
  atomic_bool loaded;   /* the models are there, and the pool: until then only the admin door is */
  atomic_bool stopping; /* what /readyz says; answers close their connection */
};

#endif
