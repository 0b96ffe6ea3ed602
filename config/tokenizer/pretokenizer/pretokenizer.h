/* pretokenizer: cuts a text into words: the "pre_tokenizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_PRETOKENIZER_H
#define CONFIG_PRETOKENIZER_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"

struct pretokenizer;

/* From a "pre_tokenizer", an object. NULL with STATUS_CONFIG that names the type or member at fault
 * and lists what is supported, or STATUS_OUT_OF_MEMORY. */
struct pretokenizer *pretokenizer_new(const json_t *json, struct error *e);
void pretokenizer_free(struct pretokenizer *p); /* NULL is fine */

/* Whether the last step writes each byte as a character ("ByteLevel"). Then the caller may have the
 * bytes left as they are: with pretokenizer_leave_bytes, at most once, before it is shared. */
bool pretokenizer_writes_bytes(const struct pretokenizer *p);
void pretokenizer_leave_bytes(struct pretokenizer *p);

/* Cuts a passage of one piece. Returns the status of the passage's error: no memory, a text that
 * becomes too long, a pattern that takes too long, or the caller's patience has ended. */
enum status pretokenizer_apply(const struct pretokenizer *p, struct passage *passage);

#endif
