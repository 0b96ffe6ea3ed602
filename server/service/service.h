/* service: all that requests share, with or without HTTP: models, pool, budget, sequences. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include "config/settings/config.h"
#include "core/base/arena.h"
#include "core/generate/prefix.h"
#include "core/run/pool.h"
#include "core/stack/stack.h"
#include "server/attention/attention_body.h"
#include "server/service/models.h"

/* The sequences in progress of all requests, and the memory of their KV caches. */
struct sequences {
  struct budget running; /* their number; its limit is max_sequences */
  atomic_size_t kept_bytes;
};

/* The sequences of one request; zeroed, none. */
struct sequences_share {
  size_t count, bytes;
};

/* Adds a share. STATUS_QUEUE_FULL if there would be too many: nothing is added then. */
enum status sequences_begin(struct sequences *s, struct sequences_share share, struct error *e);

/* Removes the share, and empties it. */
void sequences_end(struct sequences *s, struct sequences_share *share);

struct service {
  const struct config *config;
  struct models *models;
  struct pool *pool;
  struct stack_pace pace; /* the speed of one worker; by service_open */
  size_t workers;         /* threads of the pool */
  size_t submitters;      /* threads that submit */
  size_t seats; /* submitters that may compute tiny jobs: all of them or none; by service_open */
  struct budget budget;
  struct body_limits limits;
  struct sequences sequences;
  struct prefixes *prefixes; /* NULL: no prefix cache; by service_open */
  struct progress progress;  /* of the first load; its listener may be set before service_open */
};

/* Sets all members that do not depend on the models. `submitters` threads will submit; 0: as many
 * as there are workers. The configuration must outlive the service. service_stop has to follow. */
void service_init(struct service *s, const struct config *c, size_t submitters);

/* Loads the models and API keys of the configuration and starts the pool, maybe on another thread.
 * It writes only `models`, `pool`, `pace`, `seats`, `prefixes` and `progress`. */
enum status service_open(struct service *s, struct error *e);

/* Calls service_init and service_open. After a failure there is nothing to stop. */
enum status service_start(struct service *s, const struct config *c, size_t submitters,
                          struct error *e);
void service_stop(struct service *s); /* the pool has nothing to do */

/* Loads the models of another configuration while requests are served, and makes the pool ready for
 * them; also the API keys. Two settings remain as at the start: the engine and the file of the
 * keys. The set may then be put into service. `c` need not outlive this call. `p` counts meanwhile.
 * On failure nothing has changed, and the set is empty. */
enum status service_load(struct service *s, const struct config *c, struct progress *p,
                         struct models_set *out, struct error *e);

#endif
