/* frame: the special tokens that stand around a text or two, and what two are cut to: the
 * "post_processor" and "truncation" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_FRAME_H
#define CONFIG_FRAME_H

#include <jansson.h>

#include "config/tokenizer/tokens.h"

struct frame;

/* Of a "post_processor", an object or NULL. NULL with STATUS_CONFIG that names the type or member
 * at fault and says what is known, or STATUS_OUT_OF_MEMORY. */
struct frame *frame_new(const json_t *json, struct error *e);
void frame_free(struct frame *f); /* NULL is fine */

/* How many tokens it puts around one text, or two. */
size_t frame_count(const struct frame *f, bool pair);

/* The largest id that it puts there; -1: none. */
int64_t frame_last(const struct frame *f);

/* Does it take blanks off the ends of what a token came from ("trim_offsets")? A single one at the
 * beginning of a text stays where its words begin with one anyway ("add_prefix_space"). */
enum frame_trim { FRAME_TRIM_NONE, FRAME_TRIM_ALL, FRAME_TRIM_BUT_FIRST };
enum frame_trim frame_trim(const struct frame *f);

/* Appends to `out` the tokens of one text, or two (`second` is not NULL), with those that it puts
 * around them if `special`; and sets `text`, `type` and `special` of each. */
enum status frame_apply(const struct frame *f, const struct tokens *first,
                        const struct tokens *second, bool special, struct tokens *out);

#endif
