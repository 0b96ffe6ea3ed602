/* parameters: the sizes of a layer and its numbers, before they are packed. */
#ifndef CONFIG_PARAMETERS_H
#define CONFIG_PARAMETERS_H

#include <stdint.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/describe/notes.h"
#include "config/family/layout_family.h"

struct parameters_matrix {
  size_t out, in; /* set also without a projection; `in` is that of one group, if grouped */
  float *weight;  /* [out, in], owned; NULL: not projected */
  float *bias;    /* [out], owned; or NULL */
};

struct parameters {
  struct layer_shape shape;
  struct parameters_matrix matrix[ROLE_COUNT];
  uint64_t weights; /* numbers of all matrices, without biases */
  bool causal;
  bool hinted;        /* whether config.json has the number of heads */
  const char *layout; /* of struct layout; static text; "none" without a checkpoint */
  const struct layout_family *family; /* of the layer's place, or NULL */
  char address[LAYOUT_ADDRESS_SIZE];  /* of that place */
  bool numbered;
  size_t layer;                               /* if it is numbered */
  const struct checkpoint_entry *frequencies; /* of rotary positions in the checkpoint; or NULL */
  struct notes notes;
};

/* Fills `p` from the definition and the checkpoint `file`, which may be NULL. `bias: true` requires
 * at least one bias, `bias: false` that no tensor used has one. Frequencies in the checkpoint must
 * be those of rope's base; if they differ from a base in the definition, that is only noted. On
 * failure (STATUS_CONFIG, STATUS_OUT_OF_MEMORY) the detail begins with the key or the tensor; `p`
 * is empty. */
enum status parameters_read(struct parameters *p, const struct definition *d,
                            struct checkpoint *file, struct error *e);

/* The same without the numbers: checks only names, types and shapes. */
enum status parameters_measure(struct parameters *p, const struct definition *d,
                               const struct checkpoint *file, struct error *e);
void parameters_free(struct parameters *p);

bool parameters_have_bias(const struct parameters *p);

#endif
