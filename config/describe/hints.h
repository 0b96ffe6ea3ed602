/* hints: what the config.json of a checkpoint, as Hugging Face writes it, contains about its
 * layers.
 *
 * The definition makes a layer; only heads that it does not give are taken from here. A layer that
 * differs from these hints gets notes, and `attend inspect` prints definitions with them. */
#ifndef CONFIG_HINTS_H
#define CONFIG_HINTS_H

#include <jansson.h>

#include "config/family/layout_family.h"

struct hints {
  json_t *config; /* NULL if there is none, or it is not usable */
};

/* The layer that the hints are about. */
struct hints_layer {
  const struct layout_family *family; /* NULL if `tensors` names the tensors */
  const char *address;                /* the common beginning of its tensors' names */
  bool numbered;
  size_t layer;
};

/* Reads the config.json in the folder of `path`. If it cannot be used, `why` has the reason; if
 * there is none, both stay empty. Fails only with STATUS_OUT_OF_MEMORY. */
enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e);
void hints_free(struct hints *h);

/* The value of a key for this layer, or NULL. A model of several towers has an object for each,
 * which the words of the address choose; NULL if they do not. */
const json_t *hints_value(const struct hints *h, const struct hints_layer *at, const char *key);

/* Are there objects for several towers, none of which the address chooses? */
bool hints_ambiguous(const struct hints *h, const struct hints_layer *at);

/* 0 or NULL if config.json does not have the value. */
size_t hints_heads(const struct hints *h, const struct hints_layer *at);
size_t hints_kv_heads(const struct hints *h, const struct hints_layer *at);
double hints_rope_base(const struct hints *h, const struct hints_layer *at);
size_t hints_distance(const struct hints *h, const struct hints_layer *at);
const char *hints_type(const struct hints *h, const struct hints_layer *at);

/* Is the layer causal? TOGGLE_UNSAID if config.json does not differ from the family's default. */
enum toggle hints_causal(const struct hints *h, const struct hints_layer *at);

#endif
