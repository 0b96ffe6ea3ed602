/* inspect_layers: every layer of a checkpoint that can be served, as a model definition. */
#ifndef CONFIG_INSPECT_LAYERS_H
#define CONFIG_INSPECT_LAYERS_H

#include "config/checkpoint/checkpoint.h"
#include "config/model/hints.h"
#include "config/model/notes.h"

enum { INSPECT_LAYERS_MOST = 512, INSPECT_NAME = 65 };

struct inspect_layer {
  const char *layout, *label;        /* static text */
  char address[LAYOUT_ADDRESS_SIZE]; /* what stands before its tensors' names */
  struct hints_layer at;             /* the same for config.json */
  char name[INSPECT_NAME];           /* of the model; no two are the same */
  json_t *definition; /* that model_load takes; NULL: `error` says why there is none */
  bool guessed;       /* nothing tells how many heads it has */
  bool unsaid;        /* nothing tells how large its values are */
  bool unbased;       /* nothing tells the base of its rotary positions */
  struct error error; /* also where config.json says a number of heads that does not fit */
};

struct inspect_layers {
  size_t count;
  struct notes notes; /* on any of them, each once */
  bool more;          /* there are more layers than are listed */
  struct inspect_layer *layer;
};

/* Finds them all and reads all their numbers, one layer after the other. `path` is what the
 * definitions call the checkpoint. STATUS_OUT_OF_MEMORY, or STATUS_CONFIG where the path is no
 * UTF-8. */
enum status inspect_layers_find(struct inspect_layers *all, struct checkpoint *file,
                                const char *path, const struct hints *h, struct error *e);
void inspect_layers_free(struct inspect_layers *all);

#endif
