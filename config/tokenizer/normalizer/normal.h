/* normal: what is done to a text before it is cut: the "normalizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_NORMAL_H
#define CONFIG_NORMAL_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"

struct normal;

/* Of a "normalizer", an object. NULL with STATUS_CONFIG that names the type or member at fault and
 * says what is known, or STATUS_OUT_OF_MEMORY. */
struct normal *normal_new(const json_t *json, struct error *e);
void normal_free(struct normal *n); /* NULL is fine */

/* Does it to the text of a passage in one piece. The passage's failure is returned. */
enum status normal_apply(const struct normal *n, struct passage *p);

#endif
