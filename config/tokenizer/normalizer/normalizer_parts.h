/* normalizer_parts: the types of steps that a normalizer has. */
#ifndef CONFIG_NORMALIZER_PARTS_H
#define CONFIG_NORMALIZER_PARTS_H

#include <stdlib.h>

#include "config/document/part.h"
#include "config/tokenizer/normalizer/normalizer.h"

struct normalizer_step {
  void *settings;                                         /* owned */
  void (*apply)(const void *settings, struct passage *p); /* to a text that is not empty */
  void (*release)(void *settings);
};

struct normalizer {
  struct part_list steps; /* of normalizer_step */
};

/* Adds a step at the end with `size` zero bytes for its settings, which are the step's and which it
 * returns: NULL without memory, as `e` says, or for a size of 0. `release` frees the settings, also
 * after a failure; NULL: free does. */
static inline void *normalizer_add_step(struct normalizer *n, size_t size,
                                        void (*apply)(const void *settings, struct passage *p),
                                        void (*release)(void *settings), struct error *e) {
  struct normalizer_step *step = part_list_add(&n->steps, sizeof *step, e);
  if (!step) return NULL;
  step->apply = apply;
  step->release = release ? release : free;
  if (size) step->settings = calloc(1, size);
  if (size && !step->settings) error_no_memory(e);
  return step->settings;
}

/* Read a step of a type, whose members are known, into a struct normalizer. See part.h. */
void normalizer_read_bert(void *to, const json_t *json, struct error *e);
void normalizer_read_form(void *to, const json_t *json, struct error *e); /* NFC, ... */
void normalizer_read_strip(void *to, const json_t *json, struct error *e);
void normalizer_read_strip_accents(void *to, const json_t *json, struct error *e);
void normalizer_read_nmt(void *to, const json_t *json, struct error *e);
void normalizer_read_lowercase(void *to, const json_t *json, struct error *e);
void normalizer_read_prepend(void *to, const json_t *json, struct error *e);
void normalizer_read_byte_level(void *to, const json_t *json, struct error *e);
void normalizer_read_replace(void *to, const json_t *json, struct error *e);
void normalizer_read_charsmap(void *to, const json_t *json, struct error *e);

#endif
