/* whole_load: a definition of a whole model, and its files, made into one that can serve. */
#ifndef CONFIG_WHOLE_LOAD_H
#define CONFIG_WHOLE_LOAD_H

#include "config/build/model.h"
#include "config/build/whole_plan.h"

/* Is the definition one of a whole model? */
bool whole_load_is_meant(const json_t *definition);

/* Makes the whole of model `m`, whose name is there: its kind, numbers, digest, parts and notes,
 * and tries it. Numbers are read a layer at a time: no two forms of all of them are in memory.
 * What there is after a failure is freed by model_free. STATUS_CONFIG, STATUS_OUT_OF_MEMORY. */
enum status whole_load(struct model *m, const json_t *definition, const char *directory,
                       struct error *e);

/* Checks all but the numbers, and says how many bytes these take as float32. */
enum status whole_load_measure(const json_t *definition, const char *directory, uint64_t *bytes,
                               struct error *e);

#endif
