/* normalizer: what is done to a text before it is cut: the "normalizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_NORMALIZER_H
#define CONFIG_NORMALIZER_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"

struct normalizer;

/* Of a "normalizer", an object. NULL with STATUS_CONFIG that names the type or member at fault and
 * says what is known, or STATUS_OUT_OF_MEMORY. */
struct normalizer *normalizer_new(const json_t *json, struct error *e);
void normalizer_free(struct normalizer *n); /* NULL is fine */

/* Does it to the text of a passage in one piece. The passage's failure is returned. */
enum status normalizer_apply(const struct normalizer *n, struct passage *p);

#endif
