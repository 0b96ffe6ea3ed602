/* pretokenizer: how a text is cut into words: the "pre_tokenizer" of a tokenizer.json.
 *
 * Immutable; any number of threads may apply it at once. */
#ifndef CONFIG_PRETOKENIZER_H
#define CONFIG_PRETOKENIZER_H

#include <jansson.h>

#include "config/tokenizer/normalizer/passage.h"

struct pretokenizer;

/* Of a "pre_tokenizer", an object. NULL with STATUS_CONFIG that names the type or member at fault
 * and says what is known, or STATUS_OUT_OF_MEMORY. */
struct pretokenizer *pretokenizer_new(const json_t *json, struct error *e);
void pretokenizer_free(struct pretokenizer *s); /* NULL is fine */

/* Is the last thing that it does to write each byte as a character ("ByteLevel")? Then who knows of
 * it may have the bytes left as they are, with pretokenizer_leave_bytes, which is called at most
 * once, before it is shared. */
bool pretokenizer_writes_bytes(const struct pretokenizer *s);
void pretokenizer_leave_bytes(struct pretokenizer *s);

/* Cuts the text of a passage in one piece. The passage's failure is returned: no memory, or a
 * pattern that takes too long on this text. */
enum status pretokenizer_apply(const struct pretokenizer *s, struct passage *p);

#endif
