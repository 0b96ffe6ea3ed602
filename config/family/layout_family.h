/* layout_family: the kinds of attention layers in checkpoints. The names of the tensors of
 * published models are those of whole_family.h. */
#ifndef CONFIG_LAYOUT_FAMILY_H
#define CONFIG_LAYOUT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "config/family/whole_family.h"
#include "core/attention/layer.h"

enum {
  LAYOUT_FAMILIES_MOST = 32,
  LAYOUT_ADDRESS_SIZE = 256, /* of the common beginning of a layer's names */
  LAYOUT_OBSTACLES_MOST = 4,
  LAYOUT_HARMLESS_MOST = 6
};

/* The defaults of a family for values that a definition does not have. */
struct definition_customs {
  bool causal, unscaled, rope, relative, relative_both;
};

/* A tensor that is not supported, and without which the layer would compute something else. */
struct layout_obstacle {
  const char *stem, *why;
};

/* One kind of layer of a family: the self-attention of `names`, or its cross-attention. Names are
 * prefix + path + stem. A family without names for the parameters of a score uses those of plain.
 */
struct layout_family {
  const char *layout;
  const char *label; /* the word of inspect for such a layer, before its number */
  const struct whole_family *names;
  bool cross;        /* queries come from one sequence, keys and values from another */
  const char *layer; /* path of a layer if it is not that of `names` */
  const char *parameter[ROLE_COUNT]; /* names of a score's parameters */
  bool alone;                        /* the prefix must be that of the definition, or none */
  bool unprojected;                  /* there may be layers without projections */
  bool causal;                       /* the layer is causal, although `names` is an encoder's */
  const char *frequencies;           /* of rotary positions */
  bool may_decode;                   /* it is causal if config.json has is_decoder */
  bool bare_keys;                    /* keys may lack the bias that queries and values have */
  const char *not_causal;            /* types of config.json that begin so are not causal */
  const char *sees_all;              /* after the prefix: if it exists, the layer is not causal */
  struct layout_obstacle obstacle[LAYOUT_OBSTACLES_MOST]; /* after the address */
  struct layout_obstacle beyond[LAYOUT_OBSTACLES_MOST];   /* after the prefix */
  const char *harmless[LAYOUT_HARMLESS_MOST]; /* change nothing; "x." means all that begin so */
};

/* The table. Rows of a layout follow each other. */
size_t layout_family_count(void);
const struct layout_family *layout_family_at(size_t index);

/* Lists the layouts, which end with NULL. */
void layout_family_list(const char *out[LAYOUT_FAMILIES_MOST + 1]);

/* The two parts of a path: that of a layer, in which {i} is its number, and that within it. */
const char *layout_family_layer(const struct layout_family *f);
const char *layout_family_within(const struct layout_family *f);

/* The stem of a role, which .weight and maybe .bias follow; NULL: there is none. */
const char *layout_family_stem(const struct layout_family *f, enum role role);

/* The stem of the tensor of queries, keys and values, which "weight" follows: its rows, or its
 * columns if matrices are [in, out]. NULL: they are separate. */
const char *layout_family_packed(const struct layout_family *f);

/* The names of queries, keys and values that nn.MultiheadAttention has instead of the packed tensor
 * if keys or values have another width. */
extern const char *const layout_family_separate[3];

struct definition_customs layout_family_customs(const struct layout_family *f);

/* Is this model_type of config.json known to have such layers? */
bool layout_family_fits(const struct layout_family *f, const char *type);

/* Writes the path of one layer. False if it is longer than `size` - 1 bytes. */
bool layout_family_path(const char *path, size_t layer, char *out, size_t size);

#endif
