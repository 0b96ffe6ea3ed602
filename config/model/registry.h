/* registry: the models by name. It does not change once it is loaded. */
#ifndef CONFIG_REGISTRY_H
#define CONFIG_REGISTRY_H

#include "config/build/model.h"
#include "config/model/progress.h"
#include "config/settings/config.h"

struct registry;

/* Loads every model of the configuration, by as many threads as there will be workers where that
 * is worth while; on failure the error is that of the first model that is wrong: first of all that
 * are wrong without their numbers, then of those whose numbers are. The configuration is not needed
 * afterwards. `p` counts meanwhile, and may be NULL. */
struct registry *registry_load(const struct config *c, struct progress *p, struct error *e);
void registry_free(struct registry *r);

const struct model *registry_find(const struct registry *r, const char *name); /* NULL: unknown */

/* The model that is asked for attention where none is named: default_model, else the first one that
 * is a layer. Only if default_model or all are whole models, it is one, which has no such path. */
const struct model *registry_default(const struct registry *r);

/* default_model; NULL: the setting names none. */
const struct model *registry_chosen(const struct registry *r);

size_t registry_count(const struct registry *r);
const struct model *registry_at(const struct registry *r, size_t index);
size_t registry_scratch_bytes(const struct registry *r); /* the most that any model needs */

#endif
