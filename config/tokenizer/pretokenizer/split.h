/* split: how a text is cut into words: the "pre_tokenizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_SPLIT_H
#define CONFIG_SPLIT_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"

struct split;

/* Of a "pre_tokenizer", an object. NULL with STATUS_CONFIG that names the type or member at fault
 * and says what is known, or STATUS_OUT_OF_MEMORY. */
struct split *split_new(const json_t *json, struct error *e);
void split_free(struct split *s); /* NULL is fine */

/* Is the last thing that it does to write each byte as a character ("ByteLevel")? Then who knows of
 * it may have the bytes left as they are, with split_leave_bytes, which is called at most once,
 * before it is shared. */
bool split_writes_bytes(const struct split *s);
void split_leave_bytes(struct split *s);

/* Cuts the text of a passage in one piece. The passage's failure is returned: no memory, or a
 * pattern that takes too long on this text. */
enum status split_apply(const struct split *s, struct passage *p);

#endif
