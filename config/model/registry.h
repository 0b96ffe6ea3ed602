/* registry: the models by name. It does not change after it is loaded; any thread may use it. */
#ifndef CONFIG_REGISTRY_H
#define CONFIG_REGISTRY_H

#include "config/build/model.h"
#include "config/model/progress.h"
#include "config/settings/config.h"

struct registry;

/* Loads every model of the configuration, with as many threads as there will be workers, unless
 * fewer are as fast. All definitions and files are checked before the numbers of any model are
 * read. NULL with the error of the first wrong model: STATUS_CONFIG or STATUS_OUT_OF_MEMORY. The
 * configuration is not needed afterwards. `p` counts, and may be NULL. */
struct registry *registry_load(const struct config *c, struct progress *p, struct error *e);
void registry_free(struct registry *r);

const struct model *registry_find(const struct registry *r, const char *name); /* NULL: unknown */

/* The model of requests for attention that name none: default_model, else the first attention
 * layer, else the first model. */
const struct model *registry_default(const struct registry *r);

/* default_model; NULL if the setting is empty. */
const struct model *registry_chosen(const struct registry *r);

size_t registry_count(const struct registry *r);
const struct model *registry_at(const struct registry *r, size_t index);
size_t registry_scratch_bytes(const struct registry *r); /* the most that any model needs */

#endif
