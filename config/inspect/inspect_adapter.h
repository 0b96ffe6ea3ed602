/* inspect_adapter: prints what the folder of a LoRA adapter holds. */
#ifndef CONFIG_INSPECT_ADAPTER_H
#define CONFIG_INSPECT_ADAPTER_H

#include <stdio.h>

#include "config/inspect/inspect.h"

/* Prints the adapter in the folder ask->path, or why it cannot be merged into a model.
 * STATUS_OUT_OF_MEMORY. */
enum status inspect_adapter_print(const struct inspect_ask *ask, FILE *out, struct error *e);

#endif
