/* hints: what the config.json beside a checkpoint tells of its layers, as Hugging Face writes it.
 *
 * What a model is made of stands in its definition: `attend inspect` writes what is told here into
 * the definitions that it prints, and a model that is told otherwise gets notes. */
#ifndef CONFIG_HINTS_H
#define CONFIG_HINTS_H

#include "config/model/layout_family.h"

struct hints {
  json_t *config; /* NULL: there is none, or it says nothing */
};

/* The layer that is asked about. */
struct hints_layer {
  const struct layout_family *family; /* NULL: `tensors` names it */
  const char *address;                /* what stands before its tensors' names */
  bool numbered;
  size_t layer;
};

/* Reads the config.json in the folder of `path`, if there is one that is JSON; else says why not in
 * `why`, which stays empty where there is none. STATUS_OUT_OF_MEMORY. */
enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e);
void hints_free(struct hints *h);

/* What a key says of the layer, or NULL. Models of several towers have an object for each, which
 * the first words of the address tell; where these tell none, nothing is said. */
const json_t *hints_value(const struct hints *h, const struct hints_layer *at, const char *key);

/* Has it objects for several towers, none of which is the layer's? */
bool hints_ambiguous(const struct hints *h, const struct hints_layer *at);

/* 0 or NULL for what is not told. */
size_t hints_heads(const struct hints *h, const struct hints_layer *at);
size_t hints_kv_heads(const struct hints *h, const struct hints_layer *at);
double hints_rope_base(const struct hints *h, const struct hints_layer *at);
size_t hints_distance(const struct hints *h, const struct hints_layer *at);
const char *hints_type(const struct hints *h, const struct hints_layer *at);

/* Is the layer causal? Unsaid where it is as is usual in its family. */
enum toggle hints_causal(const struct hints *h, const struct hints_layer *at);

#endif
