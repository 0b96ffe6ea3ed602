/* normalizer_parts: the types of steps that a normalizer has. */
#ifndef CONFIG_NORMALIZER_PARTS_H
#define CONFIG_NORMALIZER_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/normalizer/normalizer.h"

/* Adds a step at the end with `size` zero bytes for its settings, which are the step's and which it
 * returns: NULL without memory, as `e` says, or for a size of 0. `apply` changes a text that is not
 * empty. `release` frees the settings, also after a failure; NULL: free does. */
void *normalizer_add_step(struct normalizer *n, size_t size,
                          void (*apply)(const void *settings, struct passage *p),
                          void (*release)(void *settings), struct error *e);

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
