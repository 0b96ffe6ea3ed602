/* whole_role: the roles of the parameters of a model; whole_roles.def is their table. */
#ifndef CONFIG_WHOLE_ROLE_H
#define CONFIG_WHOLE_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The roles of each layer, then those of the stack. */
enum whole_role {
#define WHOLE_LAYER(id, ...) WHOLE_##id,
#include "config/family/whole_roles.def"
  WHOLE_LAYER_ROLES,
  WHOLE_LAST_OF_LAYER = WHOLE_LAYER_ROLES - 1, /* the next one is the first role of the stack */
#define WHOLE_STACK(id, ...) WHOLE_##id,
#include "config/family/whole_roles.def"
  WHOLE_ROLES
};

enum whole_role_kind {
  WHOLE_IS_MATRIX,    /* it may have a bias; a member of type struct layer_matrix */
  WHOLE_IS_TABLE,     /* a matrix whose rows are used; a pointer */
  WHOLE_IS_VECTOR,    /* a pointer */
  WHOLE_IS_NORM,      /* factors, and maybe a shift; a struct stack_norm */
  WHOLE_IS_HEAD_NORM, /* the factors alone, for each head; a pointer */
};

enum whole_role_block {
  WHOLE_OF_EMBEDDINGS,
  WHOLE_OF_SELF,
  WHOLE_OF_FIRST, /* the self-attention of layer 0 */
  WHOLE_OF_CROSS,
  WHOLE_OF_FORWARD,
  WHOLE_OF_CONVOLUTION, /* behind the feed-forward of layer 0 */
  WHOLE_OF_NORM,
  WHOLE_OF_POOLER,
  WHOLE_OF_DENSE,
  WHOLE_OF_CLASSIFIER,
  WHOLE_OF_OUTPUT,
  WHOLE_OF_SPARSE
};

struct whole_role_row {
  enum whole_role_kind kind;
  enum whole_role_block block;
  unsigned char number; /* in random models */
};

extern const struct whole_role_row whole_roles[WHOLE_ROLES];

/* Is it only projected, when the model is loaded? Its numbers are not kept. */
static inline bool whole_role_is_projected(enum whole_role role) {
  return role == WHOLE_POSITION_KEY || role == WHOLE_POSITION_QUERY || role == WHOLE_DISTANCES ||
         role == WHOLE_NORM_DISTANCES;
}

/* The bit of a role in a set of roles: there are more than 32. */
#define ROLE_BIT(role) (UINT64_C(1) << (role))

static inline bool whole_role_is_norm(enum whole_role role) {
  return whole_roles[role].kind == WHOLE_IS_NORM || whole_roles[role].kind == WHOLE_IS_HEAD_NORM;
}

/* How many dimensions the weight of a role has. */
static inline size_t whole_role_rank(enum whole_role role) {
  return whole_role_is_norm(role) ? 1 : role == WHOLE_CONVOLUTION ? 3 : 2;
}

#endif
