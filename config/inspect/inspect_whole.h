/* inspect_whole: a checkpoint as a whole model. */
#ifndef CONFIG_INSPECT_WHOLE_H
#define CONFIG_INSPECT_WHOLE_H

#include "config/inspect/inspect.h"

/* Prints family, kind and sizes, the files they are from, the ignored tensors, and the size of the
 * numbers; or the reason why it is not supported, if config.json describes a whole model or cannot
 * be read; or nothing, if neither config.json nor the names of tensors show a whole model. Fails
 * only with STATUS_OUT_OF_MEMORY. */
enum status inspect_whole_print(const struct inspect_ask *ask, FILE *out, struct error *e);

/* New strings: the path of the tensors, in a folder that modules.json may name, and the same path
 * in definitions. `why` gets the mistake in modules.json. Fails only with STATUS_OUT_OF_MEMORY. */
enum status inspect_whole_place(const struct inspect_ask *ask, char **place, char **named,
                                struct error *why, struct error *e);

#endif
