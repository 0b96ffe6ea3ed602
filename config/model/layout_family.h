/* layout_family: the names that each family of checkpoints gives the tensors of a layer. */
#ifndef CONFIG_LAYOUT_FAMILY_H
#define CONFIG_LAYOUT_FAMILY_H

#include "config/model/definition.h"

enum { LAYOUT_ADDRESS_SIZE = 256 }; /* bytes of what stands before the names of a layer's tensors */
enum { LAYOUT_OBSTACLES_MOST = 4, LAYOUT_HARMLESS_MOST = 6 };

/* How the matrices of queries, keys and values lie. */
enum layout_joint {
  LAYOUT_APART,  /* each behind its stem: .weight, and maybe .bias */
  LAYOUT_TORCH,  /* one above the other in in_proj_weight, or apart; one in_proj_bias */
  LAYOUT_CONV1D, /* side by side in c_attn.weight; all matrices are [in, out], as Conv1D has them */
};

/* A tensor beside the others without which the layer would be another one. */
struct layout_obstacle {
  const char *stem, *why;
};

/* One place in which a family keeps layers. Names are prefix + path + stem; {i} in a path is the
 * number of the layer. A family without names for the parameters of a score uses plain's. */
struct layout_family {
  const char *layout;
  const char *label; /* what inspect calls a layer there; its number follows */
  const char *path;
  const char *stem[ROLE_COUNT];
  const char *mark[2]; /* what tells that it is there, if not queries: either; "": nothing does */
  const char *const *models; /* what config.json calls models that are known to fit; or NULL: any */
  enum layout_joint joint;
  bool nested;      /* the prefix may be anything that ends with a dot */
  bool unprojected; /* holds layers without projections, too */
  bool cross;       /* queries and keys come from two sides */
  bool shared;      /* keys and values may have fewer heads, as many as fit */
  struct definition_customs customs;
  const char *table[2];    /* of relative positions, behind the prefix; the first that is there */
  const char *frequencies; /* those of its rotary positions */
  const char *sees_all;    /* behind the prefix: where this is, the layer is not causal */
  struct layout_obstacle obstacle[LAYOUT_OBSTACLES_MOST],
      beyond[LAYOUT_OBSTACLES_MOST]; /* these behind the prefix */
  const char
      *harmless[LAYOUT_HARMLESS_MOST]; /* changes nothing; with a dot at its end all behind it */
};

size_t layout_family_count(void);
const struct layout_family *layout_family_at(size_t index);

/* The path for one layer, into `out`. False: longer than `size` - 1 bytes. */
bool layout_family_path(const char *path, size_t layer, char *out, size_t size);

#endif
