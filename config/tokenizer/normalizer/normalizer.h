/* normalizer: changes a text before it is cut: the "normalizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_NORMALIZER_H
#define CONFIG_NORMALIZER_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"
#include "config/tokenizer/sentencepiece/sentencepiece.h"

struct normalizer;

/* From a "normalizer", an object, or NULL: no step. NULL with STATUS_CONFIG that names the type or
 * member at fault and lists what is supported, or STATUS_OUT_OF_MEMORY. */
struct normalizer *normalizer_new(const json_t *json, struct error *e);

/* Adds the normalizer of a sentencepiece model at the end. With `first`, the blank before a text is
 * added only where the original begins. Returns the status of `e`: STATUS_CONFIG, or no memory. */
enum status normalizer_add_sentence(struct normalizer *n, const struct sentencepiece *s, bool first,
                                    struct error *e);
void normalizer_free(struct normalizer *n); /* NULL is fine */

/* Changes the text of a passage in one piece. Returns the status of the passage's error: no memory,
 * a text that becomes too long, a pattern that takes too long, or the caller's patience ended. */
enum status normalizer_apply(const struct normalizer *n, struct passage *p);

#endif
