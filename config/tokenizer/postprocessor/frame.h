/* frame: the special tokens that are put around a text or two: the "post_processor" of a
 * tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_FRAME_H
#define CONFIG_FRAME_H

#include <jansson.h>

#include "config/tokenizer/model/tokens.h"

struct frame;

/* Of a "post_processor", an object, or NULL or null: the texts alone. NULL with STATUS_CONFIG that
 * names the type or member at fault and says what is known, or STATUS_OUT_OF_MEMORY. */
struct frame *frame_new(const json_t *json, struct error *e);
void frame_free(struct frame *f); /* NULL is fine */

/* How many tokens it puts around one text, or two. */
size_t frame_count(const struct frame *f, bool pair);

/* The largest id that it puts there; -1: none. */
int64_t frame_last(const struct frame *f);

/* Does it take blanks off the ends of what a token came from ("trim_offsets")? And does it leave
 * one at the beginning of the first token, which may have been put there ("add_prefix_space")? */
bool frame_trims(const struct frame *f);
bool frame_leaves_first(const struct frame *f);

/* Appends to `out` the tokens of one text, or two (`second` is not NULL), with those that it puts
 * around them if `special`; and sets `text` and `type` of each. A special token around them is of
 * the text before it, and came from none of its bytes. Both texts' tokens stay as special as they
 * are. */
enum status frame_apply(const struct frame *f, const struct tokens *first,
                        const struct tokens *second, bool special, struct tokens *out);

#endif
