/* inspect_layers: the layers of a checkpoint as model definitions. */
#ifndef CONFIG_INSPECT_LAYERS_H
#define CONFIG_INSPECT_LAYERS_H

#include "config/checkpoint/checkpoint.h"
#include "config/model/hints.h"
#include "config/model/notes.h"

enum { INSPECT_LAYERS_MOST = 512, INSPECT_NAME = 65 };

struct inspect_layer {
  const char *layout, *label;        /* static text */
  char address[LAYOUT_ADDRESS_SIZE]; /* what precedes its tensors' names */
  struct hints_layer at;             /* the same, for hints */
  char name[INSPECT_NAME];           /* of the model; no two are the same */
  json_t *definition; /* for model_load; NULL if there is none, and `error` says why */
  bool guessed;       /* the number of heads is a guess */
  bool unsaid;        /* so is the size of its values */
  bool unbased;       /* so is the base of its rotary positions */
  struct error error; /* also set if config.json says a number of heads that does not fit */
};

struct inspect_layers {
  size_t count;
  struct notes notes; /* on all of them, each once */
  bool more;          /* there are more layers than are listed */
  struct inspect_layer *layer;
};

/* Finds all layers and reads all their numbers, one layer after the other. `path` is the
 * checkpoint's path in the definitions. STATUS_OUT_OF_MEMORY, or STATUS_CONFIG where the path is
 * not UTF-8. */
enum status inspect_layers_find(struct inspect_layers *all, struct checkpoint *file,
                                const char *path, const struct hints *h, struct error *e);
void inspect_layers_free(struct inspect_layers *all);

#endif
