/* server: the process as its connections see it: its doors, and all that their requests share.
 *
 * Made by life/serve. Every I/O thread reads it; only the atomic members change once a door is
 * open. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/describe/openapi.h"
#include "server/describe/page.h"
#include "server/http/connection.h"
#include "server/http/cors.h"
#include "server/service/service.h"
#include "server/watch/log.h"
#include "server/watch/metrics.h"

enum door_kind { DOOR_MAIN, DOOR_ADMIN, DOOR_COUNT };

/* A listening socket with its own threads, connections and limits. The admin door serves only
 * health and metrics, and shares nothing with the main door that could be used up. */
struct door {
  enum door_kind kind;
  struct server *server;
  struct connections *connections; /* NULL: the server has no such door */
  size_t io_threads;
  size_t first_shard; /* of the metrics; each I/O thread has one shard */
  size_t max_connections;
  atomic_bool draining; /* connections that are open already get no further request through */
};

/* The name of a door in metrics and logs. */
static inline const char *door_name(const struct door *d) {
  return d->kind == DOOR_ADMIN ? "admin" : "main";
}

struct server {
  const struct config *config;
  struct service service;
  struct log *log;
  struct metrics *metrics;
  struct cors *cors; /* NULL: off */
  struct page page;
  struct openapi openapi;
  struct door door[DOOR_COUNT];
  uint32_t id_prefix;   /* random; the beginning of every request id that is made here */
  atomic_bool loaded;   /* models and pool are ready; before that only the admin door is open */
  atomic_bool stopping; /* /readyz reports it, and every response closes its connection */
  _Atomic uint64_t longest_turn; /* nanoseconds; the longest turn of any I/O thread */
};

#endif
