/* layout_family: the names that each family of checkpoints gives the tensors of a layer. */
#ifndef CONFIG_LAYOUT_FAMILY_H
#define CONFIG_LAYOUT_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/attention/layer.h"

enum {
  LAYOUT_ADDRESS_SIZE = 256, /* of what precedes the names of a layer's tensors */
  LAYOUT_OBSTACLES_MOST = 4,
  LAYOUT_HARMLESS_MOST = 6
};

/* What a family of checkpoints does where a definition does not say otherwise. */
struct definition_customs {
  bool causal, unscaled, rope, relative, relative_both;
};

/* Whether the matrices of queries, keys and values share a tensor. */
enum layout_joint {
  LAYOUT_APART,  /* each has a stem of its own, with .weight and maybe .bias behind it */
  LAYOUT_TORCH,  /* one below the other in in_proj_weight, or apart; one in_proj_bias */
  LAYOUT_CONV1D, /* side by side in c_attn.weight; all matrices are [in, out], as in Conv1D */
};

/* A tensor that is not served, and without which the layer would compute something else. */
struct layout_obstacle {
  const char *stem, *why;
};

/* One place in which a family keeps layers. Names are prefix + path + stem; {i} in a path is the
 * number of the layer. Where a family has no names for the parameters of a score, those of plain
 * are used. */
struct layout_family {
  const char *layout;
  const char *label; /* what inspect calls a layer there, before its number */
  const char *path;
  const char *stem[ROLE_COUNT];
  const char *mark[2];       /* show the place in lieu of queries' stem: either one; "" never */
  const char *const *models; /* model types of config.json that are known to fit; NULL for any */
  enum layout_joint joint;
  bool nested;      /* the prefix may be anything that ends with a dot */
  bool unprojected; /* the place may hold layers without projections */
  bool cross;       /* queries come from one sequence, keys and values from another */
  bool shared;      /* keys and values may have fewer heads: as many as their rows make */
  struct definition_customs customs;
  const char *table[2];    /* of relative positions, behind the prefix; the first one that exists */
  const char *frequencies; /* of its rotary positions */
  const char *sees_all;    /* behind the prefix: if it exists, the layer is not causal */
  struct layout_obstacle obstacle[LAYOUT_OBSTACLES_MOST]; /* behind the address */
  struct layout_obstacle beyond[LAYOUT_OBSTACLES_MOST];   /* behind the prefix */
  const char *harmless[LAYOUT_HARMLESS_MOST]; /* change nothing; "x." means all behind it */
};

size_t layout_family_count(void);
const struct layout_family *layout_family_at(size_t index);

/* Writes the path of one layer. False if it is longer than `size` - 1 bytes. */
bool layout_family_path(const char *path, size_t layer, char *out, size_t size);

#endif
