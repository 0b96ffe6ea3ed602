/* service: what all requests of the process share: the models, the pool, the budget. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include "config/settings/config.h"
#include "core/run/arena.h"
#include "core/run/pool.h"
#include "server/attention/attention_body.h"
#include "server/service/models.h"

struct service {
  const struct config *config;
  struct models *models;
  struct pool *pool;
  size_t workers;    /* of the pool */
  size_t submitters; /* threads that submit */
  size_t seats;      /* of them may do tiny jobs, at the same time: all or none. By service_open */
  struct budget budget;
  struct body_limits limits;
};

/* All that is known without the models. So many threads will submit; 0: as many as there are
 * workers. The configuration must outlive the service. service_stop has to follow. */
void service_init(struct service *s, const struct config *c, size_t submitters);

/* Opens the configuration's models and keys and starts the pool, maybe on another thread, which
 * writes nothing but `models`, `pool` and `seats`. */
enum status service_open(struct service *s, struct error *e);

/* Both: what run begins with. On failure there is nothing to stop. */
enum status service_start(struct service *s, const struct config *c, size_t submitters,
                          struct error *e);
void service_stop(struct service *s); /* the pool is idle */

/* Loads the models of another configuration while requests are served, with the engine of the
 * start, and makes the pool ready for them; and the keys, of the file of the start. They may be put
 * into service. `c` need not live longer than this call. On failure nothing has changed, and the
 * set is empty. */
enum status service_load(struct service *s, const struct config *c, struct models_set *out,
                         struct error *e);

#endif
