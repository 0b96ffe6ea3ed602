/* postprocessor: the special tokens that are put around a text or two: the "post_processor" of a
 * tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_POSTPROCESSOR_H
#define CONFIG_POSTPROCESSOR_H

#include <jansson.h>

#include "config/tokenizer/model/tokens.h"

struct postprocessor;

/* Of a "post_processor", an object, or NULL or null: the texts alone. NULL with STATUS_CONFIG that
 * names the type or member at fault and says what is known, or STATUS_OUT_OF_MEMORY. */
struct postprocessor *postprocessor_new(const json_t *json, struct error *e);
void postprocessor_free(struct postprocessor *f); /* NULL is fine */

/* How many tokens it puts around one text, or two. */
size_t postprocessor_count(const struct postprocessor *f, bool pair);

/* The largest id that it puts there; -1: none. */
int64_t postprocessor_last(const struct postprocessor *f);

/* Does it take blanks off the ends of what a token came from ("trim_offsets")? And does it leave
 * one at the beginning of the first token, which may have been put there ("add_prefix_space")? */
bool postprocessor_trims(const struct postprocessor *f);
bool postprocessor_leaves_first(const struct postprocessor *f);

/* Appends to `out` the tokens of one text, or two (`second` is not NULL), with those that it puts
 * around them if `special`; and sets `text` and `type` of each. A special token around them is of
 * the text before it, and came from none of its bytes. Both texts' tokens stay as special as they
 * are. */
enum status postprocessor_apply(const struct postprocessor *f, const struct tokens *first,
                                const struct tokens *second, bool special, struct tokens *out);

#endif
