/* inspect_layers: the layers of a checkpoint as model definitions.
 *
 * Finding them reads the names, types and shapes of the tensors, and only the numbers of a few
 * frequencies of rotary positions. Whether a layer can be served is known after a check, which
 * reads all of its numbers. */
#ifndef CONFIG_INSPECT_LAYERS_H
#define CONFIG_INSPECT_LAYERS_H

#include "config/checkpoint/checkpoint.h"
#include "config/describe/hints/hints.h"
#include "config/describe/notes.h"
#include "config/inspect/inspect_name.h"

enum { INSPECT_LAYERS_MOST = 512 };

/* Numbers of heads: of queries, and of keys and values. */
struct inspect_heads {
  size_t query, key; /* 0 if no number fits */
};

/* The options of an inspection. */
struct inspect_wish {
  const char *path; /* of the checkpoint in the definitions */
  size_t heads;     /* of layers whose checkpoint does not have it; 0: that of config.json */
};

struct inspect_layer {
  const char *layout;                /* static text */
  char address[LAYOUT_ADDRESS_SIZE]; /* the beginning of its tensors' names */
  struct hints_layer at;             /* the same for hints */
  char name[INSPECT_NAME];           /* of the model; unique */
  json_t *definition; /* for model_load; NULL if there is none: `error` has the reason */
  bool headless;      /* whether the number of heads is unknown, and not in the definition */
  struct inspect_heads usual; /* a number that fits, if it is unknown */
  bool unsaid;                /* whether the size of its values is a guess */
  bool unbased;               /* whether the base of its rotary positions is a guess */
  struct error error;         /* also set if config.json has a number of heads that does not fit */
};

struct inspect_layers {
  size_t count;
  struct notes notes; /* about all of them */
  bool more;          /* whether there are more layers than are listed */
  struct inspect_layer *layer;
};

/* Finds all layers. STATUS_OUT_OF_MEMORY, or STATUS_CONFIG if the path is not UTF-8. */
enum status inspect_layers_find(struct inspect_layers *all, struct checkpoint *file,
                                const struct inspect_wish *wish, const struct hints *h,
                                struct error *e);

/* Reads the numbers of a layer that has a definition, and tries it; a layer that cannot be served
 * loses the definition. Fails only with STATUS_OUT_OF_MEMORY. */
enum status inspect_layers_check(struct inspect_layer *l, struct checkpoint *file, struct error *e);
void inspect_layers_free(struct inspect_layers *all);

#endif
