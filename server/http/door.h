/* door: a listening socket with all that belongs to it: threads, connections, limits.
 *
 * There are two: the main one, and one for health and metrics alone, which shares nothing with the
 * other that may be used up. */
#ifndef SERVER_DOOR_H
#define SERVER_DOOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum door_kind { DOOR_MAIN, DOOR_ADMIN, DOOR_COUNT };

struct server;
struct connections;

struct door {
  enum door_kind kind;
  struct server *server;
  struct connections *connections; /* NULL: there is no such door */
  size_t io_threads;
  size_t first_shard;     /* of the metrics: one for each I/O thread */
  size_t max_connections; /* the admin door ends the one that waits the longest, then refuses */
  atomic_bool draining;   /* kept connections get no further requests through */
};

/* As it is called in metrics and logs. */
static inline const char *door_name(const struct door *d) {
  return d->kind == DOOR_ADMIN ? "admin" : "main";
}

#endif
