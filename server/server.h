/* server: what all connections of the process share. Made by serve, used by every I/O thread. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/connection.h"
#include "server/exchange.h"
#include "server/log.h"
#include "server/metrics.h"

struct server {
  const struct config *config;
  struct service service;
  struct log *log;
  struct metrics *metrics;
  struct connections *connections;
  size_t io_threads;
  uint32_t id_prefix;   /* of request identifiers; random */
  atomic_bool stopping; /* what /readyz says; answers close their connection */
  atomic_bool draining; /* kept connections get no further requests through */
};

#endif
