/* whole_translate: config.json and generation_config.json in the words of a definition. */
#ifndef CONFIG_WHOLE_TRANSLATE_H
#define CONFIG_WHOLE_TRANSLATE_H

#include "config/describe/whole_words.h"

/* The documents in the folder of the tensors; either may be NULL. */
struct whole_documents {
  const json_t *config;     /* config.json */
  const json_t *generation; /* generation_config.json, whose tokens override those of config.json */
  const char *type;         /* replaces the model_type of config.json; or NULL */
  const char *tower;        /* "text" or "vision", of a model that has both; NULL: not given */
};

/* Makes the words of a model. Keys about generation that have no effect here are noted.
 * STATUS_CONFIG naming the first key with an unsupported value, or STATUS_OUT_OF_MEMORY. */
enum status whole_translate(struct whole_words *w, const struct whole_documents *of,
                            struct notes *n, struct error *e);

#endif
