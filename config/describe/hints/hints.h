/* hints: what the config.json of a checkpoint, as Hugging Face writes it, contains about its
 * layers.
 *
 * The definition makes a layer; only heads that it does not give are taken from here. A layer that
 * differs from these hints gets notes, and `attend inspect` prints definitions with them. */
#ifndef CONFIG_HINTS_H
#define CONFIG_HINTS_H

#include <jansson.h>

#include "config/describe/definition_value.h"
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

/* The values of config.json for one layer; 0 or NULL: it has none. */
struct hints_said {
  const json_t *config; /* the object about the layer: a model of several towers has one for each,
                           which the words of the address choose; NULL if they do not */
  bool ambiguous;       /* there are objects for several towers, and the address chooses none */
  const char *type;
  size_t heads, kv_heads, distance;
  double rope_base;
  enum toggle causal; /* TOGGLE_UNSAID if it does not differ from the family's default */
};

struct hints_said hints_of(const struct hints *h, const struct hints_layer *at);

#endif
