/* layout_family: the names of an attention layer's tensors in each family
 * of checkpoints. Tables. */
#ifndef CONFIG_LAYOUT_FAMILY_H
#define CONFIG_LAYOUT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/attention/layer.h"

enum {
  LAYOUT_ADDRESS_SIZE = 256, /* of the common beginning of a layer's names */
  LAYOUT_OBSTACLES_MOST = 4,
  LAYOUT_HARMLESS_MOST = 6
};

/* The defaults of a family for values that a definition does not have. */
struct definition_customs {
  bool causal, unscaled, rope, relative, relative_both;
};

/* Whether the matrices of queries, keys and values share a tensor. */
enum layout_joint {
  LAYOUT_APART,  /* each has its own stem, followed by .weight and maybe .bias */
  LAYOUT_TORCH,  /* rows of in_proj_weight, or separate; one in_proj_bias */
  LAYOUT_CONV1D, /* columns of c_attn.weight; all matrices are [in, out], as in Conv1D */
};

/* A tensor that is not supported, and without which the layer would compute something else. */
struct layout_obstacle {
  const char *stem, *why;
};

/* One kind of layer of a family. Names are prefix + path + stem; {i} in a path is the number of the
 * layer. A family without names for the parameters of a score uses those of plain. */
struct layout_family {
  const char *layout;
  const char *label; /* the word of inspect for such a layer, before its number */
  const char *path;
  const char *stem[ROLE_COUNT];
  const char *mark[2];       /* names that show the layer, instead of the queries' stem; "": none */
  const char *const *models; /* model types of config.json that are known to fit; NULL: any */
  enum layout_joint joint;
  bool nested;      /* whether the prefix may be anything that ends with a dot */
  bool unprojected; /* whether there may be layers without projections */
  bool cross;       /* whether queries come from one sequence, keys and values from another */
  bool shared;      /* whether the rows of keys and values may mean fewer heads */
  struct definition_customs customs;
  const char *table[2];    /* of relative positions, after the prefix; the first that exists */
  const char *frequencies; /* of rotary positions */
  const char *sees_all;    /* after the prefix: if it exists, the layer is not causal */
  struct layout_obstacle obstacle[LAYOUT_OBSTACLES_MOST]; /* after the address */
  struct layout_obstacle beyond[LAYOUT_OBSTACLES_MOST];   /* after the prefix */
  const char *harmless[LAYOUT_HARMLESS_MOST]; /* change nothing; "x." means all that begin so */
};

size_t layout_family_count(void);
const struct layout_family *layout_family_at(size_t index);

/* Writes the path of one layer. False if it is longer than `size` - 1 bytes. */
bool layout_family_path(const char *path, size_t layer, char *out, size_t size);

#endif
