/* whole_family_rows: the tables of families, and what their rows share. */
#ifndef CONFIG_WHOLE_FAMILY_ROWS_H
#define CONFIG_WHOLE_FAMILY_ROWS_H

#include "config/family/whole_family.h"

/* Each ends with NULL. A new family is a row in one of them. */
extern const struct whole_family *const whole_families_plain[];    /* family_plain.c */
extern const struct whole_family *const whole_families_encoders[]; /* family_encoders.c */
extern const struct whole_family *const whole_families_pairs[];    /* family_pairs.c */
extern const struct whole_family *const whole_families_decoders[]; /* family_decoders.c */

/* Families whose layers layout_family.c has as layers by themselves. */
extern const struct whole_family whole_family_torch_layers;
extern const struct whole_family whole_family_torch_decoder;
extern const struct whole_family whole_family_bert;
extern const struct whole_family whole_family_vit;
extern const struct whole_family whole_family_clip;
extern const struct whole_family whole_family_gpt2;
extern const struct whole_family whole_family_t5_encoder;
extern const struct whole_family whole_family_t5_decoder;
extern const struct whole_family whole_family_llama;
extern const struct whole_family whole_family_bart_encoder;
extern const struct whole_family whole_family_bart_decoder;

#define QUERY_KEY_VALUE (ROLE_BIT(WHOLE_QUERY) | ROLE_BIT(WHOLE_KEY) | ROLE_BIT(WHOLE_VALUE))
#define CROSS_QUERY_KEY_VALUE \
  (ROLE_BIT(WHOLE_CROSS_QUERY) | ROLE_BIT(WHOLE_CROSS_KEY) | ROLE_BIT(WHOLE_CROSS_VALUE))

/* Packed tensors of an attention. */
#define QUERIES_KEYS_VALUES(stem)                    \
  {                                                  \
    stem, 3, { WHOLE_QUERY, WHOLE_KEY, WHOLE_VALUE } \
  }
#define CROSS_QUERIES_KEYS_VALUES(stem)                                \
  {                                                                    \
    stem, 3, { WHOLE_CROSS_QUERY, WHOLE_CROSS_KEY, WHOLE_CROSS_VALUE } \
  }

/* The usual names of the layers of a classifier. */
#define CLASSIFIER [WHOLE_CLASS_FIRST] = "classifier.dense", [WHOLE_CLASSES] = "classifier.out_proj"

#endif
