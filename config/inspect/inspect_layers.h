/* inspect_layers: the layers of a checkpoint as model definitions.
 *
 * Finding them takes the names, types and shapes of the tensors, and of their numbers only
 * frequencies of rotary positions, which are few. Whether a layer's numbers can be served is known
 * once it has been checked, which reads all of them. */
#ifndef CONFIG_INSPECT_LAYERS_H
#define CONFIG_INSPECT_LAYERS_H

#include "config/checkpoint/checkpoint.h"
#include "config/describe/hints.h"
#include "config/describe/notes.h"
#include "config/inspect/inspect_name.h"

enum { INSPECT_LAYERS_MOST = 512 };

/* How many heads there are of queries, and of keys and values. */
struct inspect_heads {
  size_t query, key; /* 0 if no number fits */
};

/* What is asked for. */
struct inspect_wish {
  const char *path; /* the checkpoint's, in the definitions */
  size_t heads;     /* of layers whose checkpoint does not tell it; 0: as config.json says */
};

struct inspect_layer {
  const char *layout;                /* static text */
  char address[LAYOUT_ADDRESS_SIZE]; /* what precedes its tensors' names */
  struct hints_layer at;             /* the same, for hints */
  char name[INSPECT_NAME];           /* of the model; no two are the same */
  json_t *definition;         /* for model_load; NULL if there is none, and `error` says why */
  bool headless;              /* the number of heads is not known, and not in the definition */
  struct inspect_heads usual; /* a number that fits, where it is not known */
  bool unsaid;                /* the size of its values is a guess */
  bool unbased;               /* so is the base of its rotary positions */
  struct error error;         /* also set if config.json says a number of heads that does not fit */
};

struct inspect_layers {
  size_t count;
  struct notes notes; /* on all of them, each once */
  bool more;          /* there are more layers than are listed */
  struct inspect_layer *layer;
};

/* Finds all layers. STATUS_OUT_OF_MEMORY, or STATUS_CONFIG where the path is not UTF-8. */
enum status inspect_layers_find(struct inspect_layers *all, struct checkpoint *file,
                                const struct inspect_wish *wish, const struct hints *h,
                                struct error *e);

/* Reads the numbers of a layer that has a definition, and tries it; where it cannot be served, it
 * has none any more. Fails only with STATUS_OUT_OF_MEMORY. */
enum status inspect_layers_check(struct inspect_layer *l, struct checkpoint *file, struct error *e);
void inspect_layers_free(struct inspect_layers *all);

#endif
