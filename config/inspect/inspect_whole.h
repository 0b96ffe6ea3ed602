/* inspect_whole: what a checkpoint would be as a whole model. */
#ifndef CONFIG_INSPECT_WHOLE_H
#define CONFIG_INSPECT_WHOLE_H

#include "config/inspect/inspect.h"

/* Prints family, kind and sizes, from where they are taken, what is left aside, and how large the
 * numbers are; or why it is none, where config.json says that it is one or cannot be read. Nothing
 * where neither config.json nor the names tell of a whole model. Fails only with
 * STATUS_OUT_OF_MEMORY. */
enum status inspect_whole_print(const struct inspect_ask *ask, FILE *out, struct error *e);

/* New strings: where the tensors of the path are, of which modules.json may name a folder, and the
 * same in definitions. `why` is what is wrong with modules.json. Fails only with
 * STATUS_OUT_OF_MEMORY. */
enum status inspect_whole_place(const struct inspect_ask *ask, char **place, char **named,
                                struct error *why, struct error *e);

#endif
