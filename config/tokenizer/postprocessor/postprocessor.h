/* postprocessor: the special tokens around one text or two: the "post_processor" of a
 * tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_POSTPROCESSOR_H
#define CONFIG_POSTPROCESSOR_H

#include <jansson.h>

#include "config/tokenizer/model/tokens.h"

struct postprocessor;

/* From a "post_processor", an object, or NULL or null: the texts alone. NULL with STATUS_CONFIG
 * that names the type or member at fault and lists what is supported, or STATUS_OUT_OF_MEMORY. */
struct postprocessor *postprocessor_new(const json_t *json, struct error *e);
void postprocessor_free(struct postprocessor *p); /* NULL is fine */

/* How many special tokens it adds to one text, or to two. */
size_t postprocessor_count(const struct postprocessor *p, bool pair);

/* The largest id that it adds; -1: none. */
int64_t postprocessor_last(const struct postprocessor *p);

/* Whether a token's place excludes blanks at its ends ("trim_offsets"), and whether one blank at
 * the beginning of the first token is kept, as it may have been prepended ("add_prefix_space"). */
bool postprocessor_trims(const struct postprocessor *p);
bool postprocessor_leaves_first(const struct postprocessor *p);

/* Appends to `out` the tokens of one text, or of two (`second` is not NULL), and with `special` the
 * special tokens around them; sets `text` and `type` of each. An added special token belongs to the
 * text before it, and came from none of its bytes. Returns the status of out->e: no memory. */
enum status postprocessor_apply(const struct postprocessor *p, const struct tokens *first,
                                const struct tokens *second, bool special, struct tokens *out);

#endif
