/* adapter_config: adapter_config.json of a LoRA adapter, as PEFT writes it.
 *
 * PEFT has many variants of LoRA that compute other things. A member that turns one on is rejected,
 * and so is an unknown member, unless its value means that it is off: false, null, [] or {}. */
#ifndef CONFIG_ADAPTER_CONFIG_H
#define CONFIG_ADAPTER_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

struct adapter_config;

/* NULL with STATUS_CONFIG naming the path and the member, or STATUS_OUT_OF_MEMORY. */
struct adapter_config *adapter_config_read(const char *path, struct error *e);
void adapter_config_free(struct adapter_config *c); /* NULL is fine */

/* The model that it was made for: a name on the hub, or a path; "": unknown. */
const char *adapter_config_base(const struct adapter_config *c);

/* The rank of a module's matrices, and the factor of their product. The module's path is that of
 * the model's code: "model.layers.0.self_attn.q_proj". STATUS_CONFIG if its pattern takes too long,
 * or STATUS_OUT_OF_MEMORY. */
enum status adapter_config_module(struct adapter_config *c, const char *module, size_t *rank,
                                  double *scale, struct error *e);

#endif
