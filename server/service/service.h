/* service: all that requests share, on whatever way they come: models, pool and budget. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include "config/settings/config.h"
#include "core/base/arena.h"
#include "core/generate/prefix.h"
#include "core/run/pool.h"
#include "core/stack/stack.h"
#include "server/attention/attention_body.h"
#include "server/service/models.h"
#include "server/service/sequences.h"

struct service {
  const struct config *config;
  struct models *models;
  struct pool *pool;
  struct stack_pace pace; /* of one worker; by service_open */
  size_t workers;         /* of the pool */
  size_t submitters;      /* threads that submit */
  size_t seats; /* all of those may do tiny jobs at the same time, or none; by service_open */
  struct budget budget;
  struct body_limits limits;
  struct sequences sequences;
  struct prefixes *prefixes; /* NULL: none are kept */
  struct progress progress;  /* of the first load; its listener may be set before service_open */
};

/* Sets all that is known without the models. `submitters` threads will submit; 0: as many as there
 * are workers. The configuration must outlive the service. service_stop has to follow. */
void service_init(struct service *s, const struct config *c, size_t submitters);

/* Loads the models and API keys of the configuration and starts the pool, maybe on another thread.
 * Of the service it writes only `models`, `pool`, `pace`, `seats` and `progress`. */
enum status service_open(struct service *s, struct error *e);

/* Both of these. After a failure there is nothing to stop. */
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
