/* parameters: the sizes of a layer and its numbers, before they are packed. */
#ifndef CONFIG_PARAMETERS_H
#define CONFIG_PARAMETERS_H

#include <stdint.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/describe/notes.h"
#include "config/family/layout_family.h"

struct parameters_matrix {
  size_t out, in; /* set also where nothing is projected; `in` of one group, if grouped */
  float *weight;  /* [out, in], owned; NULL: not projected */
  float *bias;    /* [out], owned; or NULL */
};

struct parameters {
  struct layer_shape shape;
  struct parameters_matrix matrix[ROLE_COUNT];
  uint64_t weights; /* numbers of all matrices, without biases */
  bool causal;
  bool hinted;        /* the number of heads is config.json's */
  const char *layout; /* that layout_find found; static text; "none" without a checkpoint */
  const struct layout_family *family; /* of the place where the layer lies, or NULL */
  char address[LAYOUT_ADDRESS_SIZE];  /* of that place */
  bool numbered;
  size_t layer;                               /* where it is numbered */
  const struct checkpoint_entry *frequencies; /* the checkpoint's, of rotary positions; or NULL */
  struct notes notes;
};

/* Fills `p` from the definition and the checkpoint `file`, NULL if it has none. `bias: true`
 * requires at least one bias, `bias: false` that no tensor used has one. Frequencies in the
 * checkpoint must be those of rope's base; if the definition itself says another base, that is
 * noted only. On failure (STATUS_CONFIG, STATUS_OUT_OF_MEMORY) the detail begins with the key or
 * the tensor; `p` is empty. */
enum status parameters_read(struct parameters *p, const struct definition *d,
                            struct checkpoint *file, struct error *e);

/* The same without the numbers: checks only names, types and shapes. */
enum status parameters_measure(struct parameters *p, const struct definition *d,
                               const struct checkpoint *file, struct error *e);
void parameters_free(struct parameters *p);

bool parameters_have_bias(const struct parameters *p);

#endif
