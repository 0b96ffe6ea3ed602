/* whole_adapter: LoRA adapters of a model, which are merged into its matrices as they are read. */
#ifndef CONFIG_WHOLE_ADAPTER_H
#define CONFIG_WHOLE_ADAPTER_H

#include "config/build/plan/whole_plan.h"

/* Opens the folders that the definition's `adapter` names, and finds the tensors that they change.
 * The plan is complete otherwise. STATUS_CONFIG with a detail that begins with "adapter: " and the
 * file, or STATUS_OUT_OF_MEMORY. */
enum status whole_adapter_find(struct whole_plan *p, const json_t *definition,
                               const char *directory, struct error *e);

/* Reads the adapters' numbers: from now on each tensor is read with what they add to it. The same
 * errors. */
enum status whole_adapter_merge(struct whole_plan *p, struct error *e);

/* A list of the adapters: [{"name": "...", "base": "...", "modules": 24}, ...], without `base` if
 * it is unknown; NULL if there is none, or without memory. */
json_t *whole_adapter_describe(const struct whole_plan *p);

#endif
