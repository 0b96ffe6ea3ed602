/* hints: what the config.json beside a checkpoint, as Hugging Face writes it, says of its layers.
 *
 * A model is made by its definition, but that heads which it does not say are taken from here.
 * `attend inspect` writes these hints into the definitions that it prints; a model that differs
 * from them gets notes. */
#ifndef CONFIG_HINTS_H
#define CONFIG_HINTS_H

#include <jansson.h>

#include "config/family/layout_family.h"

struct hints {
  json_t *config; /* NULL if there is none, or it is not usable */
};

/* The layer that is asked about. */
struct hints_layer {
  const struct layout_family *family; /* NULL if `tensors` names the tensors */
  const char *address;                /* what precedes its tensors' names */
  bool numbered;
  size_t layer;
};

/* Reads the config.json in the folder of `path`. If it cannot be used, `why` says so; if there is
 * none, both stay empty. Fails only with STATUS_OUT_OF_MEMORY. */
enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e);
void hints_free(struct hints *h);

/* The value of a key for this layer, or NULL. A model of several towers has an object for each; the
 * words of the address tell which, and NULL is returned where they do not. */
const json_t *hints_value(const struct hints *h, const struct hints_layer *at, const char *key);

/* Are there objects for several towers, and the address does not tell which one is the layer's? */
bool hints_ambiguous(const struct hints *h, const struct hints_layer *at);

/* 0 or NULL for what config.json does not say. */
size_t hints_heads(const struct hints *h, const struct hints_layer *at);
size_t hints_kv_heads(const struct hints *h, const struct hints_layer *at);
double hints_rope_base(const struct hints *h, const struct hints_layer *at);
size_t hints_distance(const struct hints *h, const struct hints_layer *at);
const char *hints_type(const struct hints *h, const struct hints_layer *at);

/* Is the layer causal? Unsaid where config.json does not differ from what is usual in the
 * family. */
enum toggle hints_causal(const struct hints *h, const struct hints_layer *at);

#endif
