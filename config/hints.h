/* hints: what the config.json beside a checkpoint tells of its layers, as Hugging Face writes it.
 *
 * Only `attend inspect` looks at it: what a model is made of stands in its definition. */
#ifndef CONFIG_HINTS_H
#define CONFIG_HINTS_H

#include <jansson.h>
#include <stddef.h>

#include "core/status.h"

struct hints {
  json_t *config; /* NULL: there is none, or it says nothing */
};

/* Reads the config.json in the folder of `path`, if there is one that is JSON; else says why not in
 * `why`, which stays empty where there is none. STATUS_OUT_OF_MEMORY. */
enum status hints_read(struct hints *h, const char *path, struct error *why, struct error *e);
void hints_free(struct hints *h);

/* For a layer that inspect labels so ("text", "decoder", ...); 0 for what is not told. */
size_t hints_heads(const struct hints *h, const char *label);
size_t hints_kv_heads(const struct hints *h, const char *label);
double hints_rope_base(const struct hints *h, const char *label);
size_t hints_distance(const struct hints *h, const char *label);

/* The text model of SigLIP has CLIP's names, but sees to both sides. */
bool hints_text_sees_all(const struct hints *h);

/* The `index`-th key that changes what such a layer computes and that a definition cannot say; or
 * NULL. */
const char *hints_unserved(const struct hints *h, const char *label, size_t index);

#endif
