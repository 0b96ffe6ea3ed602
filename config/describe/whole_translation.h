/* whole_translation: what whole_translate.c and whole_layers.c share. */
#ifndef CONFIG_WHOLE_TRANSLATION_H
#define CONFIG_WHOLE_TRANSLATION_H

#include "config/describe/whole_translate.h"

enum { WHOLE_TRANSLATION_MOST = 1 << 24 }; /* the greatest count in config.json */

struct whole_translation {
  struct whole_words *w;
  const struct whole_documents *of;
  const json_t *config; /* the member of config.json about the model, or all of it */
  const struct whole_family *family;
  struct notes *notes;
  struct error *e;
};

/* Reads a count that definitions do not have. */
size_t whole_translation_count(struct whole_translation *t, const char *key, size_t low,
                               size_t otherwise);

/* The same of a number from 1e-6 to 1e9. */
double whole_translation_number(struct whole_translation *t, const char *key, double otherwise);

bool whole_translation_flag(struct whole_translation *t, const char *key, bool otherwise);

/* The size of a head as config.json has it; 0: unknown. */
size_t whole_translation_head_size(const struct whole_translation *t);

/* Rejects the value of a key. */
void whole_translation_refuse(const struct whole_translation *t, const char *key, const char *only);

#endif
